"""Which description belongs to which ``model_type``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgui.importers.config_reader import Config

Fields = dict[str, Any]
"""Fields of a ``ModelSpec`` by name."""

Describe = Callable[[Config], Fields]
"""A family's description: reads a configuration, answers the fields of the model."""

FAMILIES: dict[str, Describe] = {}
"""The description of each ``model_type``; filled by the modules of this package."""


def family(*model_types: str) -> Callable[[Describe], Describe]:
    """Register a description for these ``model_type`` values."""

    def register(describe: Describe) -> Describe:
        for model_type in model_types:
            FAMILIES[model_type] = describe
        return describe

    return register
