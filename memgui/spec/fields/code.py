"""Whose code runs a training step, and how it computes attention and the loss."""

from __future__ import annotations

from memgui.spec.fields import when
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def _chunked(scenario: Scenario) -> bool:
    training = scenario.training
    return (
        when.detailed(scenario)
        and training.implementation == "torchtune"
        and training.loss in ("auto", "chunked")
    )


def _takes_a_backend(scenario: Scenario) -> bool:
    """Whether SDPA runs attention; Megatron-LM has kernels of its own."""
    return when.sdpa(scenario) and scenario.training.implementation != "megatron"


def _chooses(scenario: Scenario) -> bool:
    """Whether PyTorch chooses the kernel; implementations of a year ran on that year's PyTorch."""
    return when.sdpa(scenario) and scenario.training.implementation in ("transformers", "fused")


def _compiles(scenario: Scenario) -> bool:
    """Whether compiled layers can be estimated; where they are asked for they can be taken back."""
    training = scenario.training
    return when.detailed(scenario) and (
        training.compile or training.implementation in ("torchtitan", "torchtune")
    )


FIELDS: tuple[Field, ...] = (
    Field(
        "training.attention",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Attention"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Eager attention keeps the scores of every pair of tokens; SDPA and flash attention do not.",
        ),
        section="precision",
        choices=(
            Choice("eager", QT_TRANSLATE_NOOP("fields", "Eager")),
            Choice(
                "sdpa", QT_TRANSLATE_NOOP("fields", "SDPA"), QT_TRANSLATE_NOOP("fields", "PyTorch's kernels")
            ),
            Choice("flash_attention_2", "FlashAttention 2"),
            Choice("flex_attention", "FlexAttention", QT_TRANSLATE_NOOP("fields", "packed samples")),
        ),
        applies=when.detailed,
    ),
    Field(
        "training.sdpa_backend",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "SDPA backend"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The kernel behind SDPA; automatic is what PyTorch takes on the chosen device for these tensors.",
        ),
        section="precision",
        choices=(
            Choice("auto", QT_TRANSLATE_NOOP("fields", "Automatic")),
            Choice("flash", QT_TRANSLATE_NOOP("fields", "flash")),
            Choice("efficient", QT_TRANSLATE_NOOP("fields", "memory-efficient")),
            Choice("math", QT_TRANSLATE_NOOP("fields", "math")),
            Choice("cudnn", QT_TRANSLATE_NOOP("fields", "cuDNN")),
        ),
        advanced=True,
        applies=_takes_a_backend,
        why_not=QT_TRANSLATE_NOOP("fields", "Only SDPA has backends to choose from."),
    ),
    Field(
        "training.torch_version",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "PyTorch"),
        QT_TRANSLATE_NOOP(
            "fields",
            "From 2.14 on SDPA's memory-efficient kernel takes query heads that share keys and values; "
            "before, they fell to the math kernel in fp32, which keeps the scores of every pair of tokens.",
        ),
        section="precision",
        choices=(
            Choice("2.13", "2.13", QT_TRANSLATE_NOOP("fields", "and before")),
            Choice("2.14", "2.14", QT_TRANSLATE_NOOP("fields", "and later")),
        ),
        advanced=True,
        applies=_chooses,
        why_not=QT_TRANSLATE_NOOP(
            "fields",
            "Tells kernels apart only where Transformers leaves their choice to PyTorch's SDPA.",
        ),
    ),
    Field(
        "training.implementation",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Implementation"),
        QT_TRANSLATE_NOOP("fields", "Whose layers run: they differ in what they keep for the backward pass."),
        section="precision",
        choices=(
            Choice("transformers", "Transformers", "5.24"),
            Choice("transformers_2022", QT_TRANSLATE_NOOP("fields", "Transformers of 2022"), "PyTorch 1.10"),
            Choice("fused", QT_TRANSLATE_NOOP("fields", "Fused kernels"), "Liger 0.8"),
            Choice("megatron", "Megatron-LM", "core 0.12"),
            Choice("torchtitan", "torchtitan", "2025"),
            Choice("unsloth", "Unsloth", "2026.10"),
            Choice("torchtune", "torchtune", "2024"),
            Choice("litgpt", "LitGPT", "2023"),
        ),
        advanced=True,
        applies=when.detailed,
    ),
    Field(
        "training.loss",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Loss"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Cross-entropy in fp32 of all logits at once, of chunks of tokens one after the other, or fused "
            "with the head, which makes gradients in the forward pass.",
        ),
        section="precision",
        choices=(
            Choice("auto", QT_TRANSLATE_NOOP("fields", "As implemented")),
            Choice("standard", QT_TRANSLATE_NOOP("fields", "All logits at once")),
            Choice(
                "chunked",
                QT_TRANSLATE_NOOP("fields", "In chunks"),
                QT_TRANSLATE_NOOP("fields", "one in fp32 at a time"),
            ),
            Choice(
                "compiled",
                QT_TRANSLATE_NOOP("fields", "Compiled"),
                QT_TRANSLATE_NOOP("fields", "logits kept as they are"),
            ),
            Choice(
                "fused_linear",
                QT_TRANSLATE_NOOP("fields", "With the head"),
                QT_TRANSLATE_NOOP("fields", "no logits kept"),
            ),
        ),
        advanced=True,
        applies=when.detailed,
    ),
    Field(
        "training.loss_chunks",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Chunks of the loss"),
        QT_TRANSLATE_NOOP("fields", "Into how many chunks of tokens the logits are cut."),
        section="precision",
        minimum=1,
        maximum=1_000_000,
        usual_maximum=1024,
        advanced=True,
        applies=_chunked,
        why_not=QT_TRANSLATE_NOOP("fields", "Only a loss in chunks has a number of them."),
    ),
    Field(
        "training.compile",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Compiled layers"),
        QT_TRANSLATE_NOOP(
            "fields",
            "torch.compile fuses what lies between matrix products: layers keep less for the backward pass.",
        ),
        section="precision",
        advanced=True,
        applies=_compiles,
        why_not=QT_TRANSLATE_NOOP(
            "fields", "What torch.compile makes of layers is known of torchtitan's and torchtune's alone."
        ),
    ),
)
