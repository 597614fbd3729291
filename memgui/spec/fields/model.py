"""Fields of the model: dimensions first, structure folded away as advanced."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP


def _count(
    name: str,
    label: str,
    help_: str,
    *,
    minimum: int = 1,
    maximum: int = 10**9,
    usual_maximum: int | None = None,
    log_scale: bool = False,
    advanced: bool = False,
) -> Field:
    return Field(
        f"model.{name}",
        Kind.COUNT,
        label,
        help_,
        section="model",
        minimum=minimum,
        maximum=maximum,
        usual_maximum=usual_maximum,
        log_scale=log_scale,
        advanced=advanced,
    )


def _flag(name: str, label: str, help_: str) -> Field:
    return Field(f"model.{name}", Kind.FLAG, label, help_, section="model", advanced=True)


def _ratio(name: str, label: str, help_: str) -> Field:
    return Field(
        f"model.{name}", Kind.RATIO, label, help_, section="model", minimum=0.0, maximum=0.99, advanced=True
    )


def _choice(name: str, label: str, help_: str, *choices: Choice) -> Field:
    return Field(f"model.{name}", Kind.CHOICE, label, help_, section="model", choices=choices, advanced=True)


FIELDS: tuple[Field, ...] = (
    Field(
        "model.name",
        Kind.TEXT,
        QT_TRANSLATE_NOOP("fields", "Name"),
        QT_TRANSLATE_NOOP("fields", "What the model is called."),
        section="model",
    ),
    Field(
        "model.model_type",
        Kind.TEXT,
        QT_TRANSLATE_NOOP("fields", "Model type"),
        QT_TRANSLATE_NOOP(
            "fields", "The configuration's model_type: where the description came from. It decides nothing."
        ),
        section="model",
        advanced=True,
    ),
    Field(
        "model.source",
        Kind.TEXT,
        QT_TRANSLATE_NOOP("fields", "Source"),
        QT_TRANSLATE_NOOP("fields", "Where the model's figures come from."),
        section="model",
        advanced=True,
    ),
    _choice(
        "head",
        QT_TRANSLATE_NOOP("fields", "Head"),
        QT_TRANSLATE_NOOP("fields", "What stands on top of the layers."),
        Choice("causal", QT_TRANSLATE_NOOP("fields", "next token")),
        Choice("base", QT_TRANSLATE_NOOP("fields", "none")),
    ),
    _count(
        "num_hidden_layers",
        QT_TRANSLATE_NOOP("fields", "Layers"),
        QT_TRANSLATE_NOOP("fields", "Transformer blocks."),
        maximum=100_000,
        usual_maximum=512,
    ),
    _count(
        "hidden_size",
        QT_TRANSLATE_NOOP("fields", "Hidden size"),
        QT_TRANSLATE_NOOP("fields", "Width of the residual stream."),
        usual_maximum=65_536,
        log_scale=True,
    ),
    _count(
        "num_attention_heads",
        QT_TRANSLATE_NOOP("fields", "Attention heads"),
        QT_TRANSLATE_NOOP("fields", "Query heads of each layer."),
        maximum=1_000_000,
        usual_maximum=1024,
    ),
    _count(
        "num_key_value_heads",
        QT_TRANSLATE_NOOP("fields", "Key/value heads"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Heads whose keys and values are kept; fewer than query heads is grouped-query attention.",
        ),
        maximum=1_000_000,
        usual_maximum=1024,
    ),
    _count(
        "head_dim",
        QT_TRANSLATE_NOOP("fields", "Head size"),
        QT_TRANSLATE_NOOP("fields", "Width of one attention head."),
        maximum=1_000_000,
        usual_maximum=1024,
    ),
    _count(
        "intermediate_size",
        QT_TRANSLATE_NOOP("fields", "FFN width"),
        QT_TRANSLATE_NOOP("fields", "Inner width of the feed-forward layer."),
        minimum=0,
        usual_maximum=1_000_000,
        log_scale=True,
    ),
    _count(
        "vocab_size",
        QT_TRANSLATE_NOOP("fields", "Vocabulary"),
        QT_TRANSLATE_NOOP("fields", "Rows of the embedding; the width of the logits."),
        usual_maximum=2_000_000,
        log_scale=True,
    ),
    _count(
        "max_position_embeddings",
        QT_TRANSLATE_NOOP("fields", "Longest sequence"),
        QT_TRANSLATE_NOOP(
            "fields", "The longest sequence the model was made for, in tokens; 0 where it has no limit."
        ),
        minimum=0,
        advanced=True,
    ),
    _flag(
        "tie_word_embeddings",
        QT_TRANSLATE_NOOP("fields", "Tied head"),
        QT_TRANSLATE_NOOP("fields", "The output head shares the embedding's weights."),
    ),
    _choice(
        "norm",
        QT_TRANSLATE_NOOP("fields", "Norm"),
        QT_TRANSLATE_NOOP("fields", "How the norm is written decides what it keeps for the backward pass."),
        Choice("rms_norm", QT_TRANSLATE_NOOP("fields", "RMSNorm")),
        Choice("layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm")),
    ),
    _choice(
        "norm_placement",
        QT_TRANSLATE_NOOP("fields", "Norm placement"),
        QT_TRANSLATE_NOOP("fields", "Where the norms stand around attention and feed-forward."),
        Choice("pre", QT_TRANSLATE_NOOP("fields", "before each")),
    ),
    _choice(
        "qk_norm",
        QT_TRANSLATE_NOOP("fields", "Query/key norm"),
        QT_TRANSLATE_NOOP("fields", "Norms on queries and keys."),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        Choice("head", QT_TRANSLATE_NOOP("fields", "per head size")),
    ),
    _choice(
        "hidden_act",
        QT_TRANSLATE_NOOP("fields", "Activation"),
        QT_TRANSLATE_NOOP(
            "fields", "The feed-forward layer's non-linearity; some are written out in Python and keep more."
        ),
        Choice("silu", "SiLU"),
        Choice("gelu", "GELU"),
        Choice("gelu_new", QT_TRANSLATE_NOOP("fields", "GELU (tanh, in Python)")),
        Choice("relu", "ReLU"),
    ),
    _flag(
        "gated_mlp",
        QT_TRANSLATE_NOOP("fields", "Gated FFN"),
        QT_TRANSLATE_NOOP("fields", "Two projections in, one of them through the activation (SwiGLU)."),
    ),
    _choice(
        "position_embedding",
        QT_TRANSLATE_NOOP("fields", "Positions"),
        QT_TRANSLATE_NOOP("fields", "How positions enter the model."),
        Choice("rope", QT_TRANSLATE_NOOP("fields", "rotary")),
        Choice("learned", QT_TRANSLATE_NOOP("fields", "learned")),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
    ),
    Field(
        "model.rotary_dim",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Rotary size"),
        QT_TRANSLATE_NOOP(
            "fields", "Elements of each head that are rotated; the whole head unless said otherwise."
        ),
        section="model",
        minimum=0,
        maximum=1_000_000,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "whole head"),
        advanced=True,
    ),
    _flag(
        "fused_qkv",
        QT_TRANSLATE_NOOP("fields", "Fused QKV"),
        QT_TRANSLATE_NOOP("fields", "Query, key and value come from one projection."),
    ),
    _flag(
        "fused_gate_up",
        QT_TRANSLATE_NOOP("fields", "Fused gate and up"),
        QT_TRANSLATE_NOOP("fields", "Gate and up come from one projection."),
    ),
    _flag(
        "attention_bias",
        QT_TRANSLATE_NOOP("fields", "QKV bias"),
        QT_TRANSLATE_NOOP("fields", "Query, key and value projections have a bias."),
    ),
    _flag(
        "attention_output_bias",
        QT_TRANSLATE_NOOP("fields", "Attention output bias"),
        QT_TRANSLATE_NOOP("fields", "The attention's output projection has a bias."),
    ),
    _flag(
        "mlp_bias",
        QT_TRANSLATE_NOOP("fields", "FFN bias"),
        QT_TRANSLATE_NOOP("fields", "The feed-forward projections have a bias."),
    ),
    _flag(
        "lm_head_bias",
        QT_TRANSLATE_NOOP("fields", "Head bias"),
        QT_TRANSLATE_NOOP("fields", "The output head has a bias."),
    ),
    Field(
        "model.embedding_size",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Embedding width"),
        QT_TRANSLATE_NOOP(
            "fields", "Width of the token embedding where it differs from the hidden size and is projected."
        ),
        section="model",
        minimum=1,
        maximum=10**9,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "hidden size"),
        advanced=True,
    ),
    _flag(
        "final_norm",
        QT_TRANSLATE_NOOP("fields", "Final norm"),
        QT_TRANSLATE_NOOP("fields", "A norm stands between the last layer and the head."),
    ),
    Field(
        "model.layer_types",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Layer types"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The pattern of mixers over the layers, repeated; empty means full attention everywhere.",
        ),
        section="model",
        choices=(
            Choice("full_attention", QT_TRANSLATE_NOOP("fields", "full attention")),
            Choice("sliding_attention", QT_TRANSLATE_NOOP("fields", "sliding window")),
        ),
        advanced=True,
    ),
    Field(
        "model.mlp_layer_types",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "FFN types"),
        QT_TRANSLATE_NOOP("fields", "The pattern of feed-forward kinds over the layers, repeated."),
        section="model",
        choices=(Choice("dense", QT_TRANSLATE_NOOP("fields", "dense")),),
        advanced=True,
    ),
    Field(
        "model.sliding_window",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Sliding window"),
        QT_TRANSLATE_NOOP("fields", "Tokens that a sliding-window layer looks back on."),
        section="model",
        minimum=1,
        maximum=10**9,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "no window"),
        advanced=True,
    ),
    Field(
        "model.attention_chunk_size",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Attention chunk"),
        QT_TRANSLATE_NOOP("fields", "Tokens of one chunk in chunked attention."),
        section="model",
        minimum=1,
        maximum=10**9,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "no chunks"),
        advanced=True,
    ),
    _ratio(
        "hidden_dropout",
        QT_TRANSLATE_NOOP("fields", "Hidden dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on residual branches."),
    ),
    _ratio(
        "attention_dropout",
        QT_TRANSLATE_NOOP("fields", "Attention dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on attention probabilities."),
    ),
    _ratio(
        "embedding_dropout",
        QT_TRANSLATE_NOOP("fields", "Embedding dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on the embeddings."),
    ),
)
