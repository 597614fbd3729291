"""Layers of one mixer that have other sizes than the rest, each as one short text.

``full_attention:head_dim=512,num_key_value_heads=4`` says that layers whose mixer is ``full_attention`` have
heads of 512 elements, four of them for keys; flags are 0 or 1.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from memgui.spec.model import ModelSpec

SIZES: Final = (
    *("head_dim", "num_attention_heads", "num_key_value_heads", "rotary_dim", "intermediate_size"),
)
"""What may differ from layer to layer: whole numbers from 1 on."""
FLAGS: Final = ("keys_are_values", "attention_sinks")
"""What may differ as well: 0 or 1."""
MOST: Final = 32
"""Most entries of one model."""
_TEXT: Final = (  # compiled when first asked for: a start reads none
    r"(?P<mixer>[a-z][a-z0-9_]{0,40}):(?P<changes>[a-z_]+=\d{1,9}(?:,[a-z_]+=\d{1,9})*)"
)


def variant(text: str) -> tuple[str, dict[str, Any]] | None:
    """The mixer that ``text`` speaks of and the fields it changes; ``None`` where it is written otherwise."""
    found = re.fullmatch(_TEXT, text)
    if found is None:
        return None
    changes: dict[str, Any] = {}
    for change in found["changes"].split(","):
        name, _, value = change.partition("=")
        if name in SIZES and int(value):
            changes[name] = int(value)
        elif name in FLAGS and value in ("0", "1"):
            changes[name] = value == "1"
        else:
            return None
    return found["mixer"], changes


def written(mixer: str, **changes: int) -> str:
    """The text that says so."""
    return f"{mixer}:{','.join(f'{name}={int(value)}' for name, value in changes.items())}"


@lru_cache(maxsize=64)
def changes(model: ModelSpec) -> dict[str, dict[str, Any]]:
    """The fields that layers have otherwise than ``model``, by their mixer."""
    found: dict[str, dict[str, Any]] = {}
    for text in model.layer_variants:
        said = variant(text)
        if said is not None:
            found.setdefault(*said)
    return found


@lru_cache(maxsize=256)
def varied(model: ModelSpec, mixer: str) -> ModelSpec:
    """``model`` as its layers with ``mixer`` have it."""
    found = changes(model).get(mixer)
    return msgspec.structs.replace(model, **found) if found is not None else model
