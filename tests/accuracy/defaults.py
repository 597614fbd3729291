"""Where a row is silent: what its framework's own script does then, and the least that it can mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Script(NamedTuple):
    """What a framework's script does unless told otherwise, by the words of a row; ``source`` says where.

    ``precision_of`` is what its flags for a precision mean.
    """

    source: str
    values: Mapping[str, Any]
    precision_of: Mapping[str, str] = {}


SCRIPTS: Mapping[str, Script] = {
    "stanford_alpaca": Script(
        "train.py loads fp32 weights, so that --bf16 is autocast; its README runs 8 times 4 samples of 512 "
        "tokens (gradient_accumulation_steps 8)",
        {"batch": 4, "seq_len": 512, "grad_accum": 8},
        {"bf16": "bf16 autocast over fp32 weights"},
    ),
    "lit-gpt": Script("finetune/lora.py of 2023: micro_batch_size = 4", {"batch": 4}),
    "litgpt docs": Script("finetune/lora.py of 2023: micro_batch_size = 4", {"batch": 4}),
    "run_clm": Script(
        "run_clm.py: block_size is 1024 at most; Trainer: fp32 unless --fp16 or --bf16",
        {"seq_len": 1024, "precision": "fp32"},
    ),
    "transformers": Script("Trainer: fp32 unless --fp16 or --bf16", {"precision": "fp32"}),
    "LLaMA-Factory": Script(
        "hparams/model_args.py: quantization_type nf4, double_quantization",
        {"4bit": "nf4, double quantised (dq)"},
    ),
}
"""By words of ``framework``; the first that a row holds counts."""

LEAST: Mapping[str, Any] = {"batch": 1, "seq_len": 1, "checkpointing": "on", "framework": "transformers"}
"""What needs least: next to nothing but weights, gradients and states, which are the same in all code."""


def filled(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its script's defaults where it says nothing."""
    row = dict(entry)
    framework = str(row.get("framework") or "")
    script = next((one for words, one in SCRIPTS.items() if words in framework), None)
    if script is None:
        return row
    for key, value in script.values.items():
        if key == "4bit":
            if _some_4_bits(row.get("quant")):
                row["quant"] = value
        elif row.get(key) is None and not (key == "precision" and row.get("quant")):
            row[key] = value
    row["precision"] = script.precision_of.get(str(row.get("precision")), row.get("precision"))
    return row


def _some_4_bits(words: Any) -> bool:
    """Whether a quantisation is said to have 4 bits, and no more."""
    return str(words).lower().removeprefix("bnb ") in ("4-bit", "4bit")


def least(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The least that a row can mean: where even that does not fit, it does not fit as it is meant."""
    return {**entry, **LEAST}
