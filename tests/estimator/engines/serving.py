"""Scenarios that are served, in one line each."""

from __future__ import annotations

from typing import Any

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.result import Estimate
from memgui.spec import ModelSpec, Scenario, replace

CATALOG = Catalog()
MIB, GIB = 1 << 20, 1 << 30
H100 = int(79.18 * GIB)


def model(name: str) -> ModelSpec:
    return CATALOG.model(name).model


def scenario(which: str | ModelSpec, engine: str, **settings: Any) -> Scenario:
    """``settings`` are fields of ``inference``, or of another part as ``part__field``."""
    made = Scenario(model=model(which) if isinstance(which, str) else which, task="inference")
    made = replace(made, "inference.engine", engine)
    for name, value in settings.items():
        path = name.replace("__", ".") if "__" in name else f"inference.{name}"
        made = replace(made, path, value)
    return made


def served(which: str | ModelSpec, engine: str, **settings: Any) -> Estimate:
    return estimate(scenario(which, engine, **settings))
