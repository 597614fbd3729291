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
    batch, gpus = entry.get("micro_batch"), int((entry.get("parallelism") or {}).get("gpus") or 1)
    if gpus > 1 and isinstance(batch, int):  # finetune/lora.py of October 2023: batch_size = 128 / devices
        settings["training.gradient_accumulation_steps"] = max(1, 128 // gpus // batch)
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


def torchtitan(entry: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """torchtitan: rows of December 2024 compile layers where they say so, later ones the loss as well.

    Its loop lets go of the logits; a pipeline cuts a batch into as many micro batches as it has stages.
    """
    name = str(entry["id"])
    compiled = "compile" in name or "float8" in name or bool(entry.get("quantisation"))
    compiled = compiled or name.startswith("ao-titan")  # torchao's script compiles its baseline too
    settings: dict[str, Any] = {
        "training.keep_outputs": False,
        "training.compile": compiled and "nocompile" not in name and "eager" not in name,
    }
    if "Dec 2024" in str(entry.get("framework")) or "early 2025" in str(entry.get("framework")):
        settings["training.loss"] = "standard"
    if entry.get("gradient_checkpointing") is None:  # as its configurations have it
        settings["training.activation_checkpointing"] = "selective_op"
    layout = entry.get("parallelism") or {}
    stages = int(layout.get("pp") or 1)
    batch = entry.get("micro_batch")
    if stages > 1 and isinstance(batch, int):
        chunks = 2 if "Interleaved" in str(layout.get("schedule")) else 1
        steps = min(batch, stages * chunks)
        settings |= {
            "parallelism.virtual_pipeline": chunks,
            "training.micro_batch_size": batch // steps,
            "training.gradient_accumulation_steps": steps,
        }
    return settings


def megatron(entry: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """Megatron-LM: AdamW is fused; where nothing is said, a pipeline has micro batches enough to be full."""
    layout = entry.get("parallelism") or {}
    stages, chunks = int(layout.get("pp") or 1), int(layout.get("vpp") or 1)
    settings: dict[str, Any] = {"training.keep_outputs": False, "training.optimizer_implementation": "fused"}
    if "unfused" in str(entry.get("attention")):  # a run without Transformer Engine steps with PyTorch's
        settings["training.optimizer_implementation"] = "foreach"
    if stages > 1 and not (entry.get("extra") or {}).get("gradient_accumulation"):
        settings["training.gradient_accumulation_steps"] = stages * chunks
    return settings


def transformers_2022(entry: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """PyTorch zeroed gradients before 2.0; an 8-bit Adam given to the Trainer packs all states."""
    return {"training.zero_grad_set_to_none": False, "training.wide_embedding_states": False}


FSDP_QLORA = {
    "training.kbit_preparation": False,
    "training.lora.adapter_format": "bf16",
    "training.lora.rank": 64,
    "training.lora.dropout": 0.1,
    "training.lora.target_modules": ("k_proj", "q_proj", "v_proj", "up_proj", "down_proj", "gate_proj"),
}
"""What its script (train.py, March 2024) does where the command says nothing: nothing is widened to fp32."""


def transformers(entry: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """Scripts around Transformers that are known by name."""
    if "fsdp_qlora" in str(entry.get("framework")):
        return FSDP_QLORA
    return _peft(entry)


def _peft(entry: Mapping[str, Any]) -> dict[str, Any]:
    """PEFT's comparison of July 2026 trains LoRA-FA's first matrix as well, as far as autograd goes.

    Its script makes the optimizer, which freezes that matrix, then measures the base within
    ``disable_adapter()``; leaving that, PEFT lets every weight of the adapter require a gradient again.  The
    published means say so: 22 MB more are allocated between steps than in the run of January, which are
    the gradients of 28 x 2 matrices of 3,072 x 32 in fp32.  Its MiCA stands in the run's name only.
    """
    if entry["kind"] == "train-lora" and "-mica" in str(entry["id"]):
        return {"training.lora.variant": "mica"}
    thawed = "lora-fa" in str(entry.get("optimizer")) and "PEFT 0.19.2" in str(entry.get("framework"))
    return {"training.lora.variant": "lora"} if thawed else {}


RECIPES = {
    "transformers": transformers,
    "transformers_2022": transformers_2022,
    "litgpt": litgpt,
    "torchtune": torchtune,
    "torchtitan": torchtitan,
    "megatron": megatron,
}
"""By ``training.implementation``."""
