"""What a training loop does around a step, as far as memory feels it."""

from __future__ import annotations

from memgui.spec.fields import when
from memgui.spec.fields.field import Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

_HUGGING_FACE = ("transformers", "transformers_2022", "fused")


def _caches(scenario: Scenario) -> bool:
    """Whether layers have a cache to fill in training."""
    training = scenario.training
    whole = training.activation_checkpointing == "none"
    return when.detailed(scenario) and whole and training.implementation in _HUGGING_FACE


def _gives_output(scenario: Scenario) -> bool:
    """Whether logits leave the model, or a cache does, for somebody to keep."""
    training = scenario.training
    gives = training.implementation in ("transformers", "transformers_2022", "litgpt")
    gives = gives or (training.implementation == "fused" and training.loss == "standard")
    return when.detailed(scenario) and (gives or (training.use_cache and _caches(scenario)))


def _frees_gradients(scenario: Scenario) -> bool:
    """Whether gradients are freed one by one; Megatron's are one buffer that stays."""
    return when.detailed(scenario) and scenario.training.implementation != "megatron"


FIELDS: tuple[Field, ...] = (
    Field(
        "training.dropout",
        Kind.RATIO,
        QT_TRANSLATE_NOOP("fields", "Dropout"),
        QT_TRANSLATE_NOOP("fields", "Probability for every dropout the model has; 0 keeps no masks."),
        section="workload",
        minimum=0.0,
        maximum=0.99,
        usual_maximum=0.5,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "the model's own"),
        advanced=True,
        applies=when.detailed,
    ),
    Field(
        "training.padding_mask",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Padding mask"),
        QT_TRANSLATE_NOOP(
            "fields",
            "A batch with padding has a mask; a mask rules the flash kernel out and is kept in every layer.",
        ),
        section="workload",
        advanced=True,
        applies=when.detailed,
    ),
    Field(
        "training.use_cache",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "KV cache in training"),
        QT_TRANSLATE_NOOP(
            "fields", "Leaves the model's cache on while training, as some scripts do by mistake."
        ),
        section="workload",
        advanced=True,
        applies=_caches,
        why_not=QT_TRANSLATE_NOOP(
            "fields", "Only layers of Transformers that are not checkpointed have a cache in training."
        ),
    ),
    Field(
        "training.gradient_clipping",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Gradient clipping"),
        QT_TRANSLATE_NOOP("fields", "Clips the norm of all gradients before the optimizer step."),
        section="workload",
        advanced=True,
        applies=when.detailed,
    ),
    Field(
        "training.zero_grad_set_to_none",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Gradients freed"),
        QT_TRANSLATE_NOOP(
            "fields",
            "zero_grad() frees the gradients, as PyTorch does unless told otherwise; "
            "else they stay from step to step.",
        ),
        section="workload",
        advanced=True,
        applies=_frees_gradients,
        why_not=QT_TRANSLATE_NOOP("fields", "Megatron-LM keeps its gradients in one buffer that stays."),
    ),
    Field(
        "training.keep_outputs",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Outputs kept"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The model's output is still referenced in the backward pass, so the logits stay, as in most "
            "training loops.",
        ),
        section="workload",
        advanced=True,
        applies=_gives_output,
        why_not=QT_TRANSLATE_NOOP("fields", "No logits leave this code: there is no output to keep."),
    ),
    Field(
        "training.outputs_in_step",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Outputs kept in the step"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The loop still refers to outputs and loss while the optimizer steps, so logits and what "
            "hangs on the graph stay; Trainer lets them go before.",
        ),
        section="workload",
        advanced=True,
        applies=when.detailed,
    ),
    Field(
        "training.expandable_segments",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Expandable segments"),
        QT_TRANSLATE_NOOP(
            "fields",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: PyTorch's allocator lets its segments grow, "
            "so that hardly anything is reserved in vain.",
        ),
        section="workload",
        advanced=True,
        applies=when.detailed,
    ),
)
