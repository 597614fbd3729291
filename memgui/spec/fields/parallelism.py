"""Fields of how several devices share the work."""

from __future__ import annotations

from typing import Final

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def many(scenario: Scenario) -> bool:
    """Whether there is more than one device."""
    return scenario.device.count > 1


def _split(scenario: Scenario) -> bool:
    """Whether there is more than one device, or a degree is left that asks for more: it can be taken back."""
    return many(scenario) or (scenario.method == "detailed" and scenario.parallelism.devices > 1)


def _megatron_paper(scenario: Scenario) -> bool:
    return scenario.method == "megatron_paper"


def _split_or_megatron_paper(scenario: Scenario) -> bool:
    return _split(scenario) or _megatron_paper(scenario)


def _training(scenario: Scenario) -> bool:
    return many(scenario) and scenario.task == "training" and scenario.method == "detailed"


def _sequence(scenario: Scenario) -> bool:
    if _megatron_paper(scenario):
        return True
    code, split = scenario.training.implementation, scenario.parallelism
    chosen = code == "megatron" or (split.sequence and code != "torchtitan")  # can be taken back
    return _training(scenario) and chosen and split.tensor > 1


def _staged(scenario: Scenario) -> bool:
    return _megatron_paper(scenario) or (_training(scenario) and scenario.parallelism.pipeline > 1)


def _experts(scenario: Scenario) -> bool:
    return many(scenario) and scenario.model.num_experts > 0


def library(scenario: Scenario) -> str:
    """Who reduces gradients and shares out: as chosen, or who usually does."""
    if scenario.parallelism.library != "auto":
        return scenario.parallelism.library
    if scenario.training.implementation == "megatron":
        return "megatron"
    shares = scenario.parallelism.sharding != "none"
    return "deepspeed" if shares and scenario.training.precision.endswith("_master") else "pytorch"


def _deepspeed(scenario: Scenario) -> bool:
    sharded = scenario.parallelism.sharding != "none"
    return _training(scenario) and sharded and library(scenario) == "deepspeed"


def _ddp(scenario: Scenario) -> bool:
    reduced = scenario.parallelism.sharding in ("none", "zero1")
    return _training(scenario) and reduced and library(scenario) == "pytorch"


def _fsdp(scenario: Scenario) -> bool:
    return _sharded_weights(scenario) and library(scenario) == "pytorch"


REDUCE_AT_ONCE: Final = ("torchtitan", "torchtune", "megatron")
"""Training codes that reduce each micro batch's gradients; others leave it to Accelerate or Fabric."""


def waits_to_reduce(scenario: Scenario) -> bool:
    """Whether FSDP may keep whole gradients until all micro batches of a step have run back."""
    training, split = scenario.training, scenario.parallelism
    return (
        _training(scenario)
        and split.sharding in ("zero2", "zero3")
        and library(scenario) == "pytorch"
        and split.pipeline == 1
        and training.gradient_accumulation_steps > 1
        and training.implementation not in REDUCE_AT_ONCE
    )


def _sharded_weights(scenario: Scenario) -> bool:
    return _training(scenario) and scenario.parallelism.sharding == "zero3"


FIELDS: tuple[Field, ...] = (
    Field(
        "parallelism.data",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Data parallel"),
        QT_TRANSLATE_NOOP("fields", "Replicas (or shards, with ZeRO) that each take their own micro batch."),
        section="parallelism",
        minimum=1,
        maximum=1_000_000,
        log_scale=True,
        applies=_split,
    ),
    Field(
        "parallelism.tensor",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Tensor parallel"),
        QT_TRANSLATE_NOOP("fields", "Devices that split each layer's matrices."),
        section="parallelism",
        minimum=1,
        maximum=1024,
        log_scale=True,
        applies=_split_or_megatron_paper,
    ),
    Field(
        "parallelism.pipeline",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Pipeline parallel"),
        QT_TRANSLATE_NOOP("fields", "Stages that split the layers."),
        section="parallelism",
        minimum=1,
        maximum=1024,
        log_scale=True,
        applies=_split_or_megatron_paper,
    ),
    Field(
        "parallelism.virtual_pipeline",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Interleaved chunks"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Model chunks on each pipeline stage; 1 is the plain schedule, 1F1B without interleaving.",
        ),
        section="parallelism",
        minimum=1,
        maximum=1024,
        log_scale=True,
        advanced=True,
        applies=_staged,
        why_not=QT_TRANSLATE_NOOP("fields", "There is one pipeline stage."),
    ),
    Field(
        "parallelism.context",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Context parallel"),
        QT_TRANSLATE_NOOP("fields", "Devices that split each sequence."),
        section="parallelism",
        minimum=1,
        maximum=1024,
        log_scale=True,
        applies=_split,
    ),
    Field(
        "parallelism.expert",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Expert parallel"),
        QT_TRANSLATE_NOOP("fields", "Devices that split the experts of a layer."),
        section="parallelism",
        minimum=1,
        maximum=1024,
        log_scale=True,
        applies=_experts,
        why_not=QT_TRANSLATE_NOOP("fields", "The model has no experts, or there is one device."),
    ),
    Field(
        "parallelism.sequence",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Sequence parallel"),
        QT_TRANSLATE_NOOP(
            "fields", "Splits norms and residuals along the sequence inside a tensor parallel group."
        ),
        section="parallelism",
        applies=_sequence,
        why_not=QT_TRANSLATE_NOOP(
            "fields",
            "Only tensor parallel ranks of Megatron-LM have the choice: torchtitan's always do, others not.",
        ),
    ),
    Field(
        "parallelism.sharding",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Sharding"),
        QT_TRANSLATE_NOOP(
            "fields", "What data parallel replicas share out: optimizer states, gradients, weights."
        ),
        section="parallelism",
        choices=(
            Choice("none", QT_TRANSLATE_NOOP("fields", "None")),
            Choice("zero1", QT_TRANSLATE_NOOP("fields", "ZeRO-1"), QT_TRANSLATE_NOOP("fields", "states")),
            Choice(
                "zero2", QT_TRANSLATE_NOOP("fields", "ZeRO-2"), QT_TRANSLATE_NOOP("fields", "and gradients")
            ),
            Choice(
                "zero3",
                QT_TRANSLATE_NOOP("fields", "ZeRO-3"),
                QT_TRANSLATE_NOOP("fields", "FSDP, and weights"),
            ),
        ),
        applies=many,
    ),
    Field(
        "parallelism.library",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Shared out by"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Whose code reduces gradients and shares out states and weights; each holds buffers of its own. "
            "Usual is DeepSpeed where there are master copies, PyTorch for all else.",
        ),
        section="parallelism",
        choices=(
            Choice("auto", QT_TRANSLATE_NOOP("fields", "Usual")),
            Choice("pytorch", "PyTorch", "DDP, FSDP2"),
            Choice("deepspeed", "DeepSpeed"),
            Choice("megatron", "Megatron", QT_TRANSLATE_NOOP("fields", "fp32 gradients")),
        ),
        advanced=True,
        applies=_training,
        why_not=QT_TRANSLATE_NOOP("fields", "There is one device, or nothing is trained."),
    ),
    Field(
        "parallelism.bucket_elements",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Reduce bucket"),
        QT_TRANSLATE_NOOP(
            "fields",
            "How many gradients DeepSpeed reduces at once (reduce_bucket_size): 500M by its own default; "
            "Trainer's auto takes the hidden size squared.",
        ),
        section="parallelism",
        unit=QT_TRANSLATE_NOOP("fields", "numbers"),
        minimum=1,
        maximum=10**12,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "hidden size squared"),
        log_scale=True,
        advanced=True,
        applies=_deepspeed,
        why_not=QT_TRANSLATE_NOOP("fields", "Only DeepSpeed's sharding reduces from such buckets."),
    ),
    Field(
        "parallelism.gradient_as_bucket_view",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Gradients are bucket views"),
        QT_TRANSLATE_NOOP(
            "fields",
            "DDP's buckets are as large as all gradients. With this its gradients are views of them, not a "
            "second copy, and lie still from step to step.",
        ),
        section="parallelism",
        advanced=True,
        applies=_ddp,
        why_not=QT_TRANSLATE_NOOP("fields", "Only PyTorch's DDP has such buckets."),
    ),
    Field(
        "parallelism.offload_parameters",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Shards on the CPU"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Shards of weights, gradients and states lie in the computer's memory; only what is gathered is "
            "on the device.",
        ),
        section="parallelism",
        advanced=True,
        applies=_sharded_weights,
        why_not=QT_TRANSLATE_NOOP("fields", "Only weights that are shared out can leave the device."),
    ),
    Field(
        "parallelism.limit_all_gathers",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Gathers wait"),
        QT_TRANSLATE_NOOP(
            "fields",
            "A layer is gathered when the one before it is done. FSDP before PyTorch 2.1 did not wait: all "
            "weights may be there at once then, which counts as possible, not as usual.",
        ),
        section="parallelism",
        advanced=True,
        applies=_fsdp,
        why_not=QT_TRANSLATE_NOOP("fields", "Only FSDP gathers weights layer by layer."),
    ),
    Field(
        "parallelism.gather_to_save",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Saved from the device"),
        QT_TRANSLATE_NOOP(
            "fields",
            "All weights are gathered on each device when the model is saved, as FSDP does unless it moves "
            "them to the CPU.",
        ),
        section="parallelism",
        advanced=True,
        applies=_fsdp,
        why_not=QT_TRANSLATE_NOOP("fields", "Only FSDP gathers weights layer by layer."),
    ),
    Field(
        "parallelism.sync_each_batch",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Each micro batch reduced"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Gradients of each micro batch are reduced at once (Accelerate's sync_each_batch). Without it "
            "FSDP keeps whole gradients on each device until a step's last micro batch, as Trainer does.",
        ),
        section="parallelism",
        advanced=True,
        applies=waits_to_reduce,
        why_not=QT_TRANSLATE_NOOP(
            "fields",
            "Only FSDP with gradient accumulation can wait; torchtitan, torchtune and Megatron do not.",
        ),
    ),
)
