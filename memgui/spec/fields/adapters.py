"""What is trained: everything, adapters beside a frozen base, or parts; and how the base is stored."""

from __future__ import annotations

from collections.abc import Iterator

from memgui.spec.fields import when
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.formats.weights import WEIGHT_FORMATS
from memgui.spec.messages import QT_TRANSLATE_NOOP

_LIBRARIES = (
    ("gptq_int4_", "GPT-QModel"),
    ("gptq_int8_", "GPT-QModel"),
    ("awq_", "GPT-QModel"),
    ("hqq_", "hqq"),
)


def _packed_before() -> Iterator[Choice]:
    """Bases that are packed before they are loaded; those of 3 bits are unpacked in other steps."""
    for start, library in _LIBRARIES:
        for name, stored in WEIGHT_FORMATS.items():
            if name.startswith(start) and "_3bit" not in name:
                yield Choice(name, stored.label, library)


METHOD: tuple[Field, ...] = (
    Field(
        "training.method",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Method"),
        QT_TRANSLATE_NOOP(
            "fields",
            "What is trained: every weight, adapters beside a frozen base, or the head alone.",
        ),
        section="workload",
        choices=(
            Choice("full", QT_TRANSLATE_NOOP("fields", "Full fine-tuning")),
            Choice("lora", QT_TRANSLATE_NOOP("fields", "LoRA")),
            Choice(
                "ia3", QT_TRANSLATE_NOOP("fields", "(IA)³"), QT_TRANSLATE_NOOP("fields", "scaling vectors")
            ),
            Choice(
                "prompt",
                QT_TRANSLATE_NOOP("fields", "Prompt tuning"),
                QT_TRANSLATE_NOOP("fields", "virtual tokens"),
            ),
            Choice(
                "prefix",
                QT_TRANSLATE_NOOP("fields", "Prefix tuning"),
                QT_TRANSLATE_NOOP("fields", "keys and values in every layer"),
            ),
            Choice(
                "frozen", QT_TRANSLATE_NOOP("fields", "Head only"), QT_TRANSLATE_NOOP("fields", "frozen body")
            ),
        ),
        applies=when.detailed,
        why_not=QT_TRANSLATE_NOOP("fields", "A rule of thumb knows full training only."),
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
        applies=when.lora,
    ),
    Field(
        "training.lora.target_modules",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Target modules"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The linear layers that get an adapter, by their names in the model; Llama's names stand for the "
            "same layers where a model calls them otherwise.  all-linear means every one but the head.",
        ),
        section="workload",
        empty_label=QT_TRANSLATE_NOOP("fields", "none"),
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
        applies=when.lora,
    ),
    Field(
        "training.lora.variant",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Variant"),
        QT_TRANSLATE_NOOP(
            "fields",
            "How the adapter is built: DoRA computes the norms of the adapted weight in every layer, "
            "LoRA-FA and MiCA train one of the two matrices only.",
        ),
        section="workload",
        choices=(
            Choice("lora", QT_TRANSLATE_NOOP("fields", "LoRA")),
            Choice(
                "rslora", QT_TRANSLATE_NOOP("fields", "rsLoRA"), QT_TRANSLATE_NOOP("fields", "same memory")
            ),
            Choice(
                "dora",
                QT_TRANSLATE_NOOP("fields", "DoRA"),
                QT_TRANSLATE_NOOP("fields", "direction and magnitude"),
            ),
            Choice(
                "lora_fa",
                QT_TRANSLATE_NOOP("fields", "LoRA-FA"),
                QT_TRANSLATE_NOOP("fields", "A stays frozen"),
            ),
            Choice(
                "mica", QT_TRANSLATE_NOOP("fields", "MiCA"), QT_TRANSLATE_NOOP("fields", "B stays frozen")
            ),
        ),
        advanced=True,
        applies=when.lora,
    ),
    Field(
        "training.lora.modules_to_save",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Trained whole"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Embedding and head that are trained as copies of their own beside the adapters, as new "
            "tokens need (modules_to_save).",
        ),
        section="workload",
        empty_label=QT_TRANSLATE_NOOP("fields", "none"),
        choices=(Choice("embed_tokens", "embed_tokens"), Choice("lm_head", "lm_head")),
        open_choices=True,
        advanced=True,
        applies=when.lora,
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
        applies=when.lora,
    ),
    Field(
        "training.virtual_tokens",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Virtual tokens"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Trained vectors in front of every sequence. Prompts go through all layers; a prefix is keys "
            "and values of each layer.",
        ),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=1_000_000,
        usual_maximum=1024,
        log_scale=True,
        applies=when.prompt,
    ),
    Field(
        "training.frozen_layers",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Frozen layers"),
        QT_TRANSLATE_NOOP(
            "fields",
            "How many of the first layers stay frozen, the embedding with them: they keep nothing for the "
            "backward pass.",
        ),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "layers"),
        minimum=0,
        maximum=1_000_000,
        usual_maximum=1024,
        advanced=True,
        applies=when.full,
    ),
)
"""What is trained."""

FORMATS: tuple[Field, ...] = (
    Field(
        "training.base_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Base weights"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Number format of the frozen base beside the adapters.  GPTQ keeps what it unpacks for "
            "the backward pass, unless layers are checkpointed; HQQ keeps each layer's input; others keep "
            "neither.  Fused experts, embeddings, norms and the head stay unpacked.",
        ),
        section="precision",
        choices=(
            Choice("bf16", QT_TRANSLATE_NOOP("fields", "bf16")),
            Choice("fp16", QT_TRANSLATE_NOOP("fields", "fp16")),
            Choice("fp32", QT_TRANSLATE_NOOP("fields", "fp32")),
            Choice("int8", "LLM.int8()", "bitsandbytes"),
            Choice("nf4", "NF4", "bitsandbytes"),
            Choice("nf4_dq", QT_TRANSLATE_NOOP("fields", "NF4, double quantised"), "bitsandbytes"),
            Choice("fp4", "FP4", "bitsandbytes"),
            Choice("fp4_dq", QT_TRANSLATE_NOOP("fields", "FP4, double quantised"), "bitsandbytes"),
            *_packed_before(),
        ),
        applies=when.adapters,
    ),
    Field(
        "training.kbit_preparation",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "k-bit preparation"),
        QT_TRANSLATE_NOOP(
            "fields",
            "prepare_model_for_kbit_training(): what is not quantised (embeddings, norms, head) turns to "
            "fp32, and with it the residual stream.",
        ),
        section="precision",
        advanced=True,
        applies=when.packed_base,
        why_not=QT_TRANSLATE_NOOP("fields", "Only a quantised base is prepared."),
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
        applies=when.lora,
    ),
    Field(
        "training.input_require_grads",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Input gradients"),
        QT_TRANSLATE_NOOP(
            "fields",
            "enable_input_require_grads(): the embeddings' output needs a gradient although they are frozen, "
            "as Transformers 5 asks for with checkpoints; it and its gradient stay until the loss is let go.",
        ),
        section="workload",
        advanced=True,
        applies=when.frozen_input,
        why_not=QT_TRANSLATE_NOOP(
            "fields", "Matters where a frozen embedding stands before checkpointed layers."
        ),
    ),
)
"""How base and adapters are stored."""
