"""Fields of a training step."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def training(scenario: Scenario) -> bool:
    """Whether the scenario is a training step."""
    return scenario.task == "training"


def detailed(scenario: Scenario) -> bool:
    """Whether the scenario is a training step estimated in detail."""
    return scenario.task == "training" and scenario.method == "detailed"


def _checkpoints(scenario: Scenario) -> bool:
    return detailed(scenario) or scenario.method == "megatron_paper"


def _lora(scenario: Scenario) -> bool:
    return training(scenario) and scenario.training.method == "lora"


def _adam_like(scenario: Scenario) -> bool:
    return detailed(scenario) and scenario.training.optimizer == "adamw"


def _sdpa(scenario: Scenario) -> bool:
    return detailed(scenario) and scenario.training.attention == "sdpa"


FIELDS: tuple[Field, ...] = (
    Field(
        "training.method",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Method"),
        QT_TRANSLATE_NOOP(
            "fields",
            "What is trained: every weight, low-rank adapters beside a frozen base, or the head alone.",
        ),
        section="workload",
        choices=(
            Choice("full", QT_TRANSLATE_NOOP("fields", "Full fine-tuning")),
            Choice("lora", QT_TRANSLATE_NOOP("fields", "LoRA")),
            Choice(
                "frozen", QT_TRANSLATE_NOOP("fields", "Head only"), QT_TRANSLATE_NOOP("fields", "frozen body")
            ),
        ),
        applies=training,
    ),
    Field(
        "training.lora.rank",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Rank"),
        QT_TRANSLATE_NOOP(
            "fields", "Inner width of the two adapter matrices; adapters grow in proportion to it."
        ),
        section="workload",
        minimum=1,
        maximum=65_536,
        usual_maximum=512,
        log_scale=True,
        applies=_lora,
    ),
    Field(
        "training.lora.target_modules",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Target modules"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The linear layers that get an adapter, by their names in the model; all-linear means every one "
            "but the head.",
        ),
        section="workload",
        choices=(
            Choice("all-linear", QT_TRANSLATE_NOOP("fields", "all linear")),
            Choice("q_proj", "q_proj"),
            Choice("k_proj", "k_proj"),
            Choice("v_proj", "v_proj"),
            Choice("o_proj", "o_proj"),
            Choice("gate_proj", "gate_proj"),
            Choice("up_proj", "up_proj"),
            Choice("down_proj", "down_proj"),
        ),
        open_choices=True,
        applies=_lora,
    ),
    Field(
        "training.lora.dropout",
        Kind.RATIO,
        QT_TRANSLATE_NOOP("fields", "Adapter dropout"),
        QT_TRANSLATE_NOOP(
            "fields", "Dropout before each adapter; above 0 a byte mask of the adapter's input is kept."
        ),
        section="workload",
        minimum=0.0,
        maximum=0.99,
        usual_maximum=0.5,
        advanced=True,
        applies=_lora,
    ),
    Field(
        "training.lora.adapter_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Adapter format"),
        QT_TRANSLATE_NOOP(
            "fields", "Number format of the adapter weights; PEFT makes them fp32 even beside a bf16 base."
        ),
        section="precision",
        choices=(
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32"), QT_TRANSLATE_NOOP("fields", "as PEFT")),
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16")),
            Choice("fp16", QT_TRANSLATE_NOOP("fields", "fp16")),
        ),
        advanced=True,
        applies=_lora,
    ),
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
        applies=training,
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
        applies=training,
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
        applies=detailed,
    ),
    Field(
        "training.precision",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Precision"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Formats of weights, gradients and arithmetic. Autocast keeps fp32 weights and computes in bf16.",
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
                "bf16_master",
                QT_TRANSLATE_NOOP("fields", "bf16 with master"),
                QT_TRANSLATE_NOOP("fields", "fp32 copy and states"),
            ),
            Choice(
                "fp16_master",
                QT_TRANSLATE_NOOP("fields", "fp16 with master"),
                QT_TRANSLATE_NOOP("fields", "fp32 copy and states"),
            ),
        ),
        applies=training,
    ),
    Field(
        "training.base_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Base weights"),
        QT_TRANSLATE_NOOP("fields", "Number format of the frozen base beside the adapters."),
        section="precision",
        choices=(
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16")),
            Choice("fp16", QT_TRANSLATE_NOOP("fields", "fp16")),
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32")),
        ),
        applies=_lora,
    ),
    Field(
        "training.optimizer",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Optimizer"),
        QT_TRANSLATE_NOOP(
            "fields", "What updates the weights, and so what is kept for each of them from step to step."
        ),
        section="precision",
        choices=(
            Choice("adamw", QT_TRANSLATE_NOOP("fields", "AdamW")),
            Choice("sgd", QT_TRANSLATE_NOOP("fields", "SGD")),
            Choice("sgd_momentum", QT_TRANSLATE_NOOP("fields", "SGD with momentum")),
        ),
        applies=training,
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
        applies=_adam_like,
    ),
    Field(
        "training.activation_checkpointing",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Checkpointing"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Activation checkpointing keeps each layer's input only and computes the layer again in the "
            "backward pass.",
        ),
        section="precision",
        choices=(
            Choice("none", QT_TRANSLATE_NOOP("fields", "None")),
            Choice(
                "selective",
                QT_TRANSLATE_NOOP("fields", "Attention only"),
                QT_TRANSLATE_NOOP("fields", "as Megatron"),
            ),
            Choice(
                "full",
                QT_TRANSLATE_NOOP("fields", "Every layer"),
                QT_TRANSLATE_NOOP("fields", "about a third slower"),
            ),
        ),
        applies=_checkpoints,
    ),
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
        ),
        applies=detailed,
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
        applies=_sdpa,
    ),
    Field(
        "training.implementation",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Implementation"),
        QT_TRANSLATE_NOOP("fields", "Whose layers run: they differ in what they keep for the backward pass."),
        section="precision",
        choices=(Choice("transformers", QT_TRANSLATE_NOOP("fields", "Transformers")),),
        advanced=True,
        applies=detailed,
    ),
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
        applies=detailed,
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
        applies=detailed,
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
        applies=detailed,
    ),
    Field(
        "training.gradient_clipping",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Gradient clipping"),
        QT_TRANSLATE_NOOP("fields", "Clips the norm of all gradients before the optimizer step."),
        section="workload",
        advanced=True,
        applies=detailed,
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
        applies=detailed,
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
        applies=detailed,
    ),
)
