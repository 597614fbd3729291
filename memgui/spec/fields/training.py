"""Fields of a training step."""

from __future__ import annotations

from memgui.spec.fields import adapters, checkpointing, code, loop, optimizers, when
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def _in_fp8(scenario: Scenario) -> bool:
    """Whether products in fp8 have a choice of scales; torchtitan's have one for each tensor."""
    training = scenario.training
    return when.detailed(scenario) and training.precision == "fp8" and training.implementation == "megatron"


FIELDS: tuple[Field, ...] = (
    *adapters.METHOD,
    Field(
        "training.micro_batch_size",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Micro batch"),
        QT_TRANSLATE_NOOP("fields", "Sequences that go through the model at once on one device."),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "sequences"),
        minimum=1,
        maximum=1_000_000_000,
        usual_maximum=4096,
        log_scale=True,
        applies=when.training,
    ),
    Field(
        "training.sequence_length",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Sequence length"),
        QT_TRANSLATE_NOOP("fields", "Tokens in each sequence, padding included."),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=1_000_000_000,
        usual_maximum=10_000_000,
        log_scale=True,
        applies=when.training,
    ),
    Field(
        "training.target_length",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Target length"),
        QT_TRANSLATE_NOOP("fields", "Tokens in each target sequence, which the decoder learns to write."),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=1_000_000_000,
        usual_maximum=10_000_000,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "as long as the source"),
        log_scale=True,
        applies=when.targets,
    ),
    Field(
        "training.gradient_accumulation_steps",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Accumulation"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Micro batches per optimizer step; from the second one on the gradients are alive during the "
            "forward pass.",
        ),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "micro batches"),
        minimum=1,
        maximum=1_000_000,
        usual_maximum=4096,
        log_scale=True,
        applies=when.detailed,
    ),
    Field(
        "training.precision",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Precision"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Formats of weights, gradients and arithmetic. Autocast computes in 16 bits beside fp32 weights.",
        ),
        section="precision",
        choices=(
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16"), QT_TRANSLATE_NOOP("fields", "everything")),
            Choice("fp16", QT_TRANSLATE_NOOP("fields", "fp16"), QT_TRANSLATE_NOOP("fields", "everything")),
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32"), QT_TRANSLATE_NOOP("fields", "everything")),
            Choice(
                "bf16_mixed",
                QT_TRANSLATE_NOOP("fields", "bf16 autocast"),
                QT_TRANSLATE_NOOP("fields", "fp32 weights"),
            ),
            Choice(
                "fp16_mixed",
                QT_TRANSLATE_NOOP("fields", "fp16 autocast"),
                QT_TRANSLATE_NOOP("fields", "fp32 weights, the loss scaled"),
            ),
            Choice(
                "bf16_master",
                QT_TRANSLATE_NOOP("fields", "bf16 with master"),
                QT_TRANSLATE_NOOP("fields", "fp32 copy and states"),
            ),
            Choice(
                "fp16_master",
                QT_TRANSLATE_NOOP("fields", "fp16 with master"),
                QT_TRANSLATE_NOOP("fields", "fp32 copy and states"),
            ),
            Choice(
                "fp8",
                QT_TRANSLATE_NOOP("fields", "fp8 products"),
                QT_TRANSLATE_NOOP("fields", "Megatron-LM or torchtitan"),
            ),
        ),
        applies=when.detailed,
        why_not=QT_TRANSLATE_NOOP("fields", "A rule of thumb has a precision of its own."),
    ),
    Field(
        "training.fp8_scaling",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Scaling of fp8"),
        QT_TRANSLATE_NOOP(
            "fields",
            "What a scale of fp8 numbers stands for: a tensor as it is now, a tensor as its last steps were "
            "(which keeps a history), or a block of it.",
        ),
        section="precision",
        choices=(
            Choice("tensorwise", QT_TRANSLATE_NOOP("fields", "Each tensor")),
            Choice("delayed", QT_TRANSLATE_NOOP("fields", "Delayed")),
            Choice("blockwise", QT_TRANSLATE_NOOP("fields", "Blocks"), "128"),
            Choice("mxfp8", "MXFP8", QT_TRANSLATE_NOOP("fields", "blocks of 32")),
        ),
        advanced=True,
        applies=_in_fp8,
        why_not=QT_TRANSLATE_NOOP(
            "fields",
            "Only Megatron-LM's products in fp8 have a choice; torchtitan's have one scale for each tensor.",
        ),
    ),
    *adapters.FORMATS,
    *optimizers.OPTIMIZER,
    *checkpointing.CHECKPOINTING,
    *code.FIELDS,
    *loop.FIELDS,
)
