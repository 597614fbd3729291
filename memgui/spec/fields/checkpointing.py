"""Fields of activation checkpointing: what is computed again in the backward pass."""

from __future__ import annotations

from memgui.spec.fields import when
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def _selective(scenario: Scenario) -> bool:
    return when.detailed(scenario) and scenario.training.activation_checkpointing == "selective"


def _layerwise(scenario: Scenario) -> bool:
    layers = ("full", "selective_op")
    return when.detailed(scenario) and scenario.training.activation_checkpointing in layers


def _blockwise(scenario: Scenario) -> bool:
    training = scenario.training
    return _layerwise(scenario) and training.implementation == "megatron" and training.checkpoint_every == 1


CHECKPOINTING: tuple[Field, ...] = (
    Field(
        "training.activation_checkpointing",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Checkpointing"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Activation checkpointing keeps each layer's input only and computes the layer again in the "
            "backward pass; selective forms compute parts of it again.",
        ),
        section="precision",
        choices=(
            Choice("none", QT_TRANSLATE_NOOP("fields", "None")),
            Choice(
                "selective",
                QT_TRANSLATE_NOOP("fields", "Chosen modules"),
                QT_TRANSLATE_NOOP("fields", "attention, as Megatron"),
            ),
            Choice(
                "selective_op",
                QT_TRANSLATE_NOOP("fields", "By operator"),
                QT_TRANSLATE_NOOP("fields", "as torchtitan"),
            ),
            Choice(
                "full",
                QT_TRANSLATE_NOOP("fields", "Every layer"),
                QT_TRANSLATE_NOOP("fields", "about a third slower"),
            ),
        ),
        applies=when.checkpoints,
    ),
    Field(
        "training.recompute_modules",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Recomputed modules"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The parts of each layer that are computed again: their inputs are kept, what they make inside "
            "is not. Of norms the output goes too.",
        ),
        section="precision",
        empty_label=QT_TRANSLATE_NOOP("fields", "none"),
        choices=(
            Choice("core_attn", QT_TRANSLATE_NOOP("fields", "attention's core")),
            Choice("mlp", QT_TRANSLATE_NOOP("fields", "feed-forward")),
            Choice("moe", QT_TRANSLATE_NOOP("fields", "experts")),
            Choice("layernorm", QT_TRANSLATE_NOOP("fields", "norms")),
        ),
        applies=_selective,
        why_not=QT_TRANSLATE_NOOP("fields", "Only checkpointing of chosen modules asks which."),
    ),
    Field(
        "training.checkpoint_every",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Every n-th layer"),
        QT_TRANSLATE_NOOP(
            "fields", "1 checkpoints all layers, 2 every second one; the others keep what autograd saves."
        ),
        section="precision",
        minimum=1,
        maximum=100_000,
        usual_maximum=256,
        advanced=True,
        applies=_layerwise,
        why_not=QT_TRANSLATE_NOOP("fields", "Only checkpointing of whole layers can leave layers out."),
    ),
    Field(
        "training.checkpoint_layers",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "How many layers"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Only so many layers, the first ones of each pipeline stage, are checkpointed (Megatron-LM's "
            "recompute_method block).",
        ),
        section="precision",
        unit=QT_TRANSLATE_NOOP("fields", "layers"),
        minimum=1,
        maximum=100_000,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "all"),
        advanced=True,
        applies=_blockwise,
        why_not=QT_TRANSLATE_NOOP("fields", "Only Megatron-LM checkpoints some of the layers in a row."),
    ),
    Field(
        "training.checkpoint_offload",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Layer inputs on the CPU"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The input of each checkpointed layer waits in the computer's memory and is fetched when the "
            "layer is computed again.",
        ),
        section="precision",
        advanced=True,
        applies=_layerwise,
        why_not=QT_TRANSLATE_NOOP("fields", "Only checkpointing of whole layers keeps layer inputs."),
    ),
)
