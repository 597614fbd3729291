"""Fields of the optimizer: which it is, how it runs, what it keeps in which format."""

from __future__ import annotations

from memgui.spec.fields import when
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

KERNELS = ("adamw", "muon", "badam")
"""Optimizers that come in PyTorch's three implementations."""

NUMBERS = (
    *("adamw", "sgd_momentum", "paged_adamw", "lion", "ademamix", "lamb", "sophia", "adam_mini"),
    *("schedule_free", "prodigy", "muon", "badam", "shampoo", "soap", "galore", "apollo", "apollo_mini"),
)
"""Optimizers whose states are plain numbers, so that their format can be chosen."""

RANKED = ("galore", "galore_8bit", "apollo")
"""Optimizers that project gradients to a rank."""

EMBEDDING_APART = ("adamw_8bit", "paged_adamw_8bit", "lion_8bit", "ademamix_8bit")
"""Optimizers of bitsandbytes with 8-bit states."""


IN_BACKWARD = ("lomo", "adalomo")
"""Optimizers that always step in the backward pass."""

BY_LAYER = ("badam",)
"""Optimizers that train one layer for some steps, then another, and freeze all else meanwhile."""

STATELESS = ("sgd", "lomo", "paged_adamw", "paged_adamw_8bit", "adalomo")
"""Optimizers without states worth moving, and those that put them elsewhere themselves."""

MASTERED = ("bf16_master", "fp16_master", "fp8")
"""Precisions with copies of the weights that the optimizer updates."""


def _waits(scenario: Scenario) -> bool:
    return when.detailed(scenario) and scenario.training.optimizer not in IN_BACKWARD


def _mastered(scenario: Scenario) -> bool:
    training = scenario.training
    by_layer = training.optimizer in BY_LAYER  # which has fp32 copies of its own
    return when.detailed(scenario) and not by_layer and training.precision in MASTERED


def _gradients_wait(scenario: Scenario) -> bool:
    return _waits(scenario) and not scenario.training.optimizer_in_backward


def _kept(scenario: Scenario) -> bool:
    training = scenario.training
    keeps = training.optimizer not in STATELESS or training.precision in MASTERED
    return when.detailed(scenario) and (keeps or training.offload_optimizer > 0)  # can be taken back


def _uses(names: tuple[str, ...]) -> when.When:
    def applies(scenario: Scenario) -> bool:
        return when.detailed(scenario) and scenario.training.optimizer in names

    return applies


OPTIMIZER: tuple[Field, ...] = (
    Field(
        "training.optimizer",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Optimizer"),
        QT_TRANSLATE_NOOP(
            "fields", "What updates the weights, and so what is kept for each of them from step to step."
        ),
        section="precision",
        choices=(
            Choice("adamw", QT_TRANSLATE_NOOP("fields", "AdamW"), QT_TRANSLATE_NOOP("fields", "two moments")),
            Choice(
                "adamw_8bit",
                QT_TRANSLATE_NOOP("fields", "AdamW 8-bit"),
                QT_TRANSLATE_NOOP("fields", "bitsandbytes"),
            ),
            Choice("paged_adamw", QT_TRANSLATE_NOOP("fields", "Paged AdamW"), "bitsandbytes"),
            Choice("paged_adamw_8bit", QT_TRANSLATE_NOOP("fields", "Paged AdamW 8-bit"), "bitsandbytes"),
            Choice("adamw_8bit_torchao", QT_TRANSLATE_NOOP("fields", "AdamW 8-bit"), "torchao"),
            Choice("adamw_4bit", QT_TRANSLATE_NOOP("fields", "AdamW 4-bit"), "torchao"),
            Choice("adamw_fp8", QT_TRANSLATE_NOOP("fields", "AdamW fp8"), "torchao"),
            Choice("adam_mini", QT_TRANSLATE_NOOP("fields", "Adam-mini")),
            Choice("ademamix", QT_TRANSLATE_NOOP("fields", "AdEMAMix"), "bitsandbytes"),
            Choice("ademamix_8bit", QT_TRANSLATE_NOOP("fields", "AdEMAMix 8-bit"), "bitsandbytes"),
            Choice("schedule_free", QT_TRANSLATE_NOOP("fields", "Schedule-free AdamW")),
            Choice("prodigy", QT_TRANSLATE_NOOP("fields", "Prodigy")),
            Choice("sgd", QT_TRANSLATE_NOOP("fields", "SGD"), QT_TRANSLATE_NOOP("fields", "no states")),
            Choice(
                "sgd_momentum",
                QT_TRANSLATE_NOOP("fields", "SGD with momentum"),
                QT_TRANSLATE_NOOP("fields", "one moment"),
            ),
            Choice("lion", QT_TRANSLATE_NOOP("fields", "Lion"), QT_TRANSLATE_NOOP("fields", "one moment")),
            Choice("lion_8bit", QT_TRANSLATE_NOOP("fields", "Lion 8-bit"), "bitsandbytes"),
            Choice(
                "adafactor",
                QT_TRANSLATE_NOOP("fields", "Adafactor"),
                QT_TRANSLATE_NOOP("fields", "rows and columns"),
            ),
            Choice("lamb", QT_TRANSLATE_NOOP("fields", "LAMB")),
            Choice("sophia", QT_TRANSLATE_NOOP("fields", "Sophia")),
            Choice(
                "muon", QT_TRANSLATE_NOOP("fields", "Muon"), QT_TRANSLATE_NOOP("fields", "AdamW elsewhere")
            ),
            Choice(
                "badam",
                QT_TRANSLATE_NOOP("fields", "BAdam"),
                QT_TRANSLATE_NOOP("fields", "one layer at a time"),
            ),
            Choice("shampoo", QT_TRANSLATE_NOOP("fields", "Shampoo")),
            Choice("soap", QT_TRANSLATE_NOOP("fields", "SOAP")),
            Choice("galore", QT_TRANSLATE_NOOP("fields", "GaLore AdamW")),
            Choice("galore_8bit", QT_TRANSLATE_NOOP("fields", "GaLore AdamW 8-bit")),
            Choice("apollo", QT_TRANSLATE_NOOP("fields", "APOLLO")),
            Choice(
                "apollo_mini",
                QT_TRANSLATE_NOOP("fields", "APOLLO-Mini"),
                QT_TRANSLATE_NOOP("fields", "rank 1"),
            ),
            Choice(
                "lomo", QT_TRANSLATE_NOOP("fields", "LOMO"), QT_TRANSLATE_NOOP("fields", "no gradients kept")
            ),
            Choice(
                "adalomo",
                QT_TRANSLATE_NOOP("fields", "AdaLomo"),
                QT_TRANSLATE_NOOP("fields", "no gradients kept"),
            ),
        ),
        applies=when.detailed,
        why_not=QT_TRANSLATE_NOOP("fields", "A rule of thumb has an optimizer of its own."),
    ),
    Field(
        "training.optimizer_implementation",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Optimizer kernels"),
        QT_TRANSLATE_NOOP(
            "fields", "PyTorch's three ways to run the same step; they differ in what they hold for a moment."
        ),
        section="precision",
        choices=(
            Choice(
                "fused",
                QT_TRANSLATE_NOOP("fields", "fused"),
                QT_TRANSLATE_NOOP("fields", "Trainer's default"),
            ),
            Choice("foreach", QT_TRANSLATE_NOOP("fields", "foreach")),
            Choice("forloop", QT_TRANSLATE_NOOP("fields", "for-loop")),
        ),
        advanced=True,
        applies=_uses(KERNELS),
        why_not=QT_TRANSLATE_NOOP("fields", "This optimizer comes in one implementation."),
    ),
    Field(
        "training.optimizer_rank",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Projection rank"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Rank to which the optimizer projects gradients of the layers' matrices; states grow with it.",
        ),
        section="precision",
        minimum=1,
        maximum=65_536,
        usual_maximum=4096,
        log_scale=True,
        applies=_uses(RANKED),
        why_not=QT_TRANSLATE_NOOP("fields", "This optimizer projects nothing."),
    ),
    Field(
        "training.state_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "State format"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Number format of the optimizer's states. Left open, each optimizer's own: most take the format "
            "of the weights they update.",
        ),
        section="precision",
        choices=(
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32")),
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16")),
            Choice("fp16", QT_TRANSLATE_NOOP("fields", "fp16")),
            Choice("fp8", QT_TRANSLATE_NOOP("fields", "fp8")),
        ),
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "the optimizer's own"),
        advanced=True,
        applies=_uses(NUMBERS),
        why_not=QT_TRANSLATE_NOOP(
            "fields", "This optimizer's states have a format of their own, or it has none."
        ),
    ),
    Field(
        "training.wide_embedding_states",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Embedding states in 32 bits"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Trainer asks bitsandbytes to keep the states of embeddings in 32 bits; other loops do not.",
        ),
        section="precision",
        advanced=True,
        applies=_uses(EMBEDDING_APART),
        why_not=QT_TRANSLATE_NOOP("fields", "Only bitsandbytes' 8-bit optimizers tell embeddings apart."),
    ),
    Field(
        "training.optimizer_in_backward",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Step in the backward pass"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Each weight is updated and its gradient freed as soon as that is there, so gradients never lie "
            "side by side.",
        ),
        section="precision",
        advanced=True,
        applies=_waits,
        why_not=QT_TRANSLATE_NOOP("fields", "This optimizer always steps in the backward pass."),
    ),
    Field(
        "training.offload_optimizer",
        Kind.RATIO,
        QT_TRANSLATE_NOOP("fields", "States on the CPU"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Share of the weights whose optimizer states and master copies lie in the computer's memory.",
        ),
        section="precision",
        minimum=0.0,
        maximum=1.0,
        advanced=True,
        applies=_kept,
        why_not=QT_TRANSLATE_NOOP("fields", "This optimizer keeps no states, or pages them itself."),
    ),
    Field(
        "training.master_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Master copies"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The format of the copy of each weight that the optimizer updates; DeepSpeed can keep it in bf16 "
            "(bf16_master_weights_and_grads).",
        ),
        section="precision",
        choices=(
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32")),
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16")),
        ),
        advanced=True,
        applies=_mastered,
        why_not=QT_TRANSLATE_NOOP("fields", "There are no master copies beside the weights."),
    ),
    Field(
        "training.gradient_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Main gradients"),
        QT_TRANSLATE_NOOP(
            "fields",
            "A buffer of main gradients as Megatron has it: it lies still from step to step, and each new "
            "gradient is added to it. Left open, gradients are tensors of the weights' own format.",
        ),
        section="precision",
        choices=(
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32")),
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16")),
            Choice("fp16", QT_TRANSLATE_NOOP("fields", "fp16")),
        ),
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "none"),
        advanced=True,
        applies=_gradients_wait,
        why_not=QT_TRANSLATE_NOOP("fields", "No gradient waits for a step in the backward pass."),
    ),
)
