"""Fields of the whole scenario: task, inference, parallelism, device, method."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.methods import VARIANTS
from memgui.spec.scenario import Scenario


def _has_variants(scenario: Scenario) -> bool:
    return bool(VARIANTS.get(scenario.method))


def _nominal(scenario: Scenario) -> bool:
    return scenario.method == "llama_guide"


def _gpt_article(scenario: Scenario) -> bool:
    return scenario.method == "gpt_article"


TASK: tuple[Field, ...] = (
    Field(
        "task",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Task"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Training keeps gradients, optimizer states and activations; inference keeps a cache of keys "
            "and values.",
        ),
        section="task",
        choices=(
            Choice("training", QT_TRANSLATE_NOOP("fields", "Training")),
            Choice("inference", QT_TRANSLATE_NOOP("fields", "Inference")),
        ),
    ),
    Field(
        "method",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Estimate"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The detailed estimate, or a published rule of thumb computed exactly as its authors wrote it.",
        ),
        section="method",
        choices=(
            Choice("detailed", QT_TRANSLATE_NOOP("fields", "Detailed")),
            Choice(
                "gpt_article",
                QT_TRANSLATE_NOOP("fields", "GPT article"),
                QT_TRANSLATE_NOOP("fields", "five letters"),
            ),
            Choice(
                "llama_guide",
                QT_TRANSLATE_NOOP("fields", "Llama guide"),
                QT_TRANSLATE_NOOP("fields", "mixed-precision Adam"),
            ),
            Choice(
                "megatron_paper",
                QT_TRANSLATE_NOOP("fields", "Megatron paper"),
                QT_TRANSLATE_NOOP("fields", "Korthikanti 2022"),
            ),
        ),
    ),
    Field(
        "method_variant",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Variant"),
        QT_TRANSLATE_NOOP("fields", "Which of the method's own readings is computed."),
        section="method",
        choices=(
            Choice("derived", QT_TRANSLATE_NOOP("fields", "as derived")),
            Choice("printed", QT_TRANSLATE_NOOP("fields", "as its last line prints it")),
            Choice("long_sequence", QT_TRANSLATE_NOOP("fields", "long sequences")),
            Choice("exact", QT_TRANSLATE_NOOP("fields", "exact")),
            Choice("as_printed", QT_TRANSLATE_NOOP("fields", "as printed")),
        ),
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "the method's default"),
        applies=_has_variants,
    ),
    Field(
        "method_number_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Bytes per number"),
        QT_TRANSLATE_NOOP(
            "fields", "The GPT article multiplies every count by the bytes of one number; it takes float64."
        ),
        section="method",
        choices=(
            Choice("fp64", QT_TRANSLATE_NOOP("fields", "fp64"), QT_TRANSLATE_NOOP("fields", "8 bytes")),
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32"), QT_TRANSLATE_NOOP("fields", "4 bytes")),
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16"), QT_TRANSLATE_NOOP("fields", "2 bytes")),
            Choice("fp16", QT_TRANSLATE_NOOP("fields", "fp16"), QT_TRANSLATE_NOOP("fields", "2 bytes")),
        ),
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "the method's default"),
        applies=_gpt_article,
    ),
    Field(
        "model.nominal_parameters",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Nominal parameters"),
        QT_TRANSLATE_NOOP("fields", "What an article calls P; the counted parameters unless said otherwise."),
        section="method",
        minimum=1,
        maximum=10**15,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "as counted"),
        log_scale=True,
        applies=_nominal,
    ),
)

DEVICE: tuple[Field, ...] = (
    Field(
        "device.name",
        Kind.TEXT,
        QT_TRANSLATE_NOOP("fields", "GPU"),
        QT_TRANSLATE_NOOP("fields", "The accelerator, from the list or a name of your own."),
        section="device",
    ),
    Field(
        "device.memory_bytes",
        Kind.BYTES,
        QT_TRANSLATE_NOOP("fields", "Memory"),
        QT_TRANSLATE_NOOP("fields", "What a process really gets on one device, as CUDA reports its total."),
        section="device",
        unit=QT_TRANSLATE_NOOP("fields", "bytes"),
        minimum=1,
        maximum=2**60,
        usual_minimum=2**30,
        usual_maximum=2**42,
        log_scale=True,
    ),
    Field(
        "device.compute_capability",
        Kind.TEXT,
        QT_TRANSLATE_NOOP("fields", "Compute capability"),
        QT_TRANSLATE_NOOP(
            "fields",
            "NVIDIA's number for the chip's features; it decides which attention kernels exist. Empty for "
            "other makers.",
        ),
        section="device",
        advanced=True,
    ),
    Field(
        "device.count",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Count"),
        QT_TRANSLATE_NOOP(
            "fields", "How many of them; the degrees of parallelism say what each does, the rest do nothing."
        ),
        section="device",
        minimum=1,
        maximum=1_000_000,
        usual_maximum=65_536,
        log_scale=True,
    ),
)
