"""What the recipes of libraries other than Transformers set, where a published row only names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.accuracy.express import Inexpressible

_STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("packed", {}),
    ("compile", {"training.compile": True}),
    ("chunked-ce", {"training.loss": "chunked"}),
    ("activation-checkpointing", {}),
    ("optimizer-in-backward", {"training.optimizer_in_backward": True}),
    ("activation-offloading", {"training.checkpoint_offload": True}),
    ("8bit-adamw", {}),
)
"""torchtune's table of December 2024: each row adds to the one before."""

_WITHOUT_FUSING = ("lora", "qlora")
"""Its last rows, which step after the backward pass again."""


def litgpt(entry: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """LitGPT: heads are their own; adapters are as the rest is, nothing is prepared for packed weights."""
    settings: dict[str, Any] = {"model.tie_word_embeddings": False}
    if entry["kind"] == "train-full":
        return settings
    return settings | {
        "training.lora.adapter_format": "fp32" if precision == "bf16_mixed" else precision,
        "training.kbit_preparation": False,
    }


def torchtune(entry: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """torchtune: adapters in the format of the rest; AdamW is fused; torchao's NF4 packs its scales too."""
    settings: dict[str, Any] = {
        "training.input_require_grads": False,
        "training.optimizer_implementation": "fused",
    }
    if entry["kind"] != "train-full":
        settings |= {"training.lora.adapter_format": precision, "training.kbit_preparation": False}
    if entry["kind"] == "train-qlora":
        settings["training.base_format"] = "nf4_dq"
    _, _, step = str(entry["id"]).partition("torchtune-l32-3b-")
    if step:
        settings |= _of_table(step)
    return settings


def _of_table(step: str) -> dict[str, Any]:
    if step == "baseline":
        raise Inexpressible("samples are not packed, their length is not stated")
    settings: dict[str, Any] = {"training.loss": "standard"}
    for name, added in _STEPS:
        settings |= added
        if name == step:
            return settings
    if step in _WITHOUT_FUSING:
        settings["training.optimizer_in_backward"] = False
    return settings


RECIPES = {"litgpt": litgpt, "torchtune": torchtune}
"""By ``training.implementation``."""
