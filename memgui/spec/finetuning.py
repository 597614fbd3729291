"""What is wrong or unusual in a training step's choices, beside what its optimizer rules out."""

from __future__ import annotations

from collections.abc import Iterator

from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, allowed
from memgui.spec.scenario import Scenario


def validate_training(scenario: Scenario) -> Iterator[Issue]:
    """Issues of attention and of what is frozen."""
    if scenario.task != "training" or scenario.method != "detailed":
        return
    training = scenario.training
    if training.attention == "flash_attention_2" and training.precision == "fp32":
        yield Issue(
            "warning",
            "no_flash_in_fp32",
            ("training.attention", "training.precision"),
            Message(
                QT_TRANSLATE_NOOP("messages", "FlashAttention 2 computes in 16 bits; computed all the same.")
            ),
        )
    if training.method in _ADAPTERS and (training.base_format, training.precision) in _MIXED_HALVES:
        yield Issue(
            "warning",
            "halves_mixed",
            ("training.base_format", "training.precision"),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "A {base} base under autocast to the other 16-bit format: PyTorch promotes what meets to "
                    "fp32, and needs more than with one format for both.",
                ),
                {"base": Named(_BASE, (training.base_format,))},
            ),
        )
    yield from _prepared(scenario)
    yield from _beside(scenario)
    yield from _experts(scenario)
    if training.method == "prefix" and training.activation_checkpointing != "none":
        yield Issue(
            "error",
            "prefix_with_checkpoints",
            ("training.activation_checkpointing", "training.method"),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "A prefix is a cache, which checkpointed layers have none of: PEFT refuses both.",
                )
            ),
            allowed("training.activation_checkpointing", "none"),
        )
    layers = scenario.model.num_hidden_layers
    if training.method == "full" and training.frozen_layers > layers:
        yield Issue(
            "error",
            "more_frozen_than_there_are",
            ("training.frozen_layers", "model.num_hidden_layers"),
            Message(
                QT_TRANSLATE_NOOP("messages", "{frozen} layers cannot stay frozen: the model has {layers}."),
                {"frozen": training.frozen_layers, "layers": layers},
            ),
            Message(QT_TRANSLATE_NOOP("messages", "Allowed: up to {longest}."), {"longest": layers}),
        )


def _prepared(scenario: Scenario) -> Iterator[Issue]:
    """That k-bit preparation without autocast leaves what lies between packed layers in fp32."""
    training = scenario.training
    if (
        training.method not in _ADAPTERS
        or not training.base_format.startswith(_PREPARED)
        or not training.kbit_preparation
        or training.precision not in ("bf16", "fp16")
        or training.implementation not in ("transformers", "fused")
        or scenario.parallelism.sharding != "none"  # as FSDP casts itself
    ):
        return
    yield Issue(
        "note",
        "prepared_without_autocast",
        ("training.precision", "training.kbit_preparation"),
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "k-bit preparation turns embeddings, norms and head to fp32; without autocast all that runs "
                "between packed layers is fp32 too. The Trainer's bf16=True is {mixed} here.",
            ),
            {"mixed": Named("training.precision", (f"{training.precision}_mixed",))},
        ),
    )


def _experts(scenario: Scenario) -> Iterator[Issue]:
    """That experts are no linear layers, which are all that is packed (Transformers 5, bitsandbytes, hqq)."""
    training = scenario.training
    if not scenario.model.num_experts or not training.base_format.startswith(_PACKS_LINEARS):
        return
    if training.method not in _ADAPTERS:
        return
    text = QT_TRANSLATE_NOOP(
        "messages",
        "{base} packs linear layers; experts are one tensor for all of a layer and stay in 16 bits.",
    )
    paths = ["training.base_format", "model.num_experts"]
    if training.kbit_preparation and not training.base_format.startswith("hqq_"):
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{base} packs linear layers; experts are one tensor for all of a layer and stay unpacked, and "
            "k-bit preparation turns them to fp32: they take more than without it.",
        )
        paths.append("training.kbit_preparation")
    yield Issue(
        "warning",
        "experts_not_packed",
        tuple(paths),
        Message(text, {"base": Named(_BASE, (training.base_format,))}),
    )


_BASE = "training.base_format"
_ADAPTERS = ("lora", "ia3", "prompt", "prefix")
_MIXED_HALVES = (("bf16", "fp16_mixed"), ("fp16", "bf16_mixed"))
_PREPARED = ("nf4", "fp4", "int8", "awq_")
_PACKS_LINEARS = ("nf4", "fp4", "int8", "hqq_")

_PLAIN_LORA = ("gptq_", "awq_")
"""Bases beside which PEFT builds low-rank adapters without their norms (DoRA)."""

_NO_SCALING = (*_PLAIN_LORA, "hqq_")
"""Bases beside which PEFT builds no (IA)³."""


def _beside(scenario: Scenario) -> Iterator[Issue]:
    """What PEFT does not build beside a packed base."""
    training = scenario.training
    base = training.base_format
    others: tuple[str, ...]
    if training.method == "lora" and training.lora.variant == "dora" and base.startswith(_PLAIN_LORA):
        path, wanted = "training.lora.variant", "dora"
        others = ("lora", "rslora", "lora_fa", "mica")
    elif training.method == "ia3" and base.startswith(_NO_SCALING):
        path, wanted = "training.method", "ia3"
        others = ("lora", "prompt")
    else:
        return
    yield Issue(
        "error",
        "not_beside_this_base",
        (path, "training.base_format"),
        Message(
            QT_TRANSLATE_NOOP("messages", "PEFT builds no {adapter} beside a base packed as {base}."),
            {"adapter": Named(path, (wanted,)), "base": Named(_BASE, (base,))},
        ),
        allowed(path, *others),
    )
