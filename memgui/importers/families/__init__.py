"""One short description for each family of models: how its config.json becomes a ``ModelSpec``.

A description is a function from a :class:`~memgui.importers.config_reader.Config` to fields, registered for
its ``model_type`` values.  It states structure that the family's code fixes (norms, biases, fused
projections) and reads what the file or the class's defaults say of the rest.
"""

from __future__ import annotations

from memgui.importers.families import (
    cousins,
    custom,
    embedders,
    encoder,
    encoder_decoder,
    experts,
    falcon,
    further,
    gated,
    gemma,
    gpt,
    hybrid,
    kin,
    latent,
    llama,
    looped,
    qwen4,
    single,
)
from memgui.importers.families.registry import FAMILIES, Describe, Fields

__all__ = [
    "FAMILIES",
    "Describe",
    "Fields",
    "cousins",
    "custom",
    "embedders",
    "encoder",
    "encoder_decoder",
    "experts",
    "falcon",
    "further",
    "gated",
    "gemma",
    "gpt",
    "hybrid",
    "kin",
    "latent",
    "llama",
    "looped",
    "qwen4",
    "single",
]
