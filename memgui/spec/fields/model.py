"""Fields of the model: dimensions first, structure folded away as advanced."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.fields.rows import choice, count, flag, ratio, size
from memgui.spec.messages import QT_TRANSLATE_NOOP

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
    choice(
        "head",
        QT_TRANSLATE_NOOP("fields", "Head"),
        QT_TRANSLATE_NOOP("fields", "What stands on top of the layers."),
        Choice("causal", QT_TRANSLATE_NOOP("fields", "next token")),
        Choice("masked", QT_TRANSLATE_NOOP("fields", "masked token")),
        Choice("seq2seq", QT_TRANSLATE_NOOP("fields", "sequence to sequence")),
        Choice("speech", QT_TRANSLATE_NOOP("fields", "speech to text")),
        Choice("image", QT_TRANSLATE_NOOP("fields", "image classes")),
        Choice("base", QT_TRANSLATE_NOOP("fields", "none")),
    ),
    count(
        "num_hidden_layers",
        QT_TRANSLATE_NOOP("fields", "Layers"),
        QT_TRANSLATE_NOOP("fields", "Transformer blocks."),
        maximum=100_000,
        usual_maximum=512,
    ),
    count(
        "hidden_size",
        QT_TRANSLATE_NOOP("fields", "Hidden size"),
        QT_TRANSLATE_NOOP("fields", "Width of the residual stream."),
        usual_maximum=65_536,
        log_scale=True,
    ),
    count(
        "num_attention_heads",
        QT_TRANSLATE_NOOP("fields", "Attention heads"),
        QT_TRANSLATE_NOOP("fields", "Query heads of each layer."),
        maximum=1_000_000,
        usual_maximum=1024,
    ),
    count(
        "num_key_value_heads",
        QT_TRANSLATE_NOOP("fields", "Key/value heads"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Heads whose keys and values are kept; fewer than query heads is grouped-query attention.",
        ),
        maximum=1_000_000,
        usual_maximum=1024,
    ),
    count(
        "head_dim",
        QT_TRANSLATE_NOOP("fields", "Head size"),
        QT_TRANSLATE_NOOP("fields", "Width of one attention head."),
        maximum=1_000_000,
        usual_maximum=1024,
    ),
    count(
        "intermediate_size",
        QT_TRANSLATE_NOOP("fields", "FFN width"),
        QT_TRANSLATE_NOOP("fields", "Inner width of the feed-forward layer."),
        minimum=0,
        usual_maximum=1_000_000,
        log_scale=True,
    ),
    count(
        "vocab_size",
        QT_TRANSLATE_NOOP("fields", "Vocabulary"),
        QT_TRANSLATE_NOOP("fields", "Rows of the embedding; the width of the logits."),
        usual_maximum=2_000_000,
        log_scale=True,
    ),
    count(
        "max_position_embeddings",
        QT_TRANSLATE_NOOP("fields", "Longest sequence"),
        QT_TRANSLATE_NOOP(
            "fields", "The longest sequence the model was made for, in tokens; 0 where it has no limit."
        ),
        minimum=0,
        advanced=True,
    ),
    flag(
        "tie_word_embeddings",
        QT_TRANSLATE_NOOP("fields", "Tied head"),
        QT_TRANSLATE_NOOP("fields", "The output head shares the embedding's weights."),
    ),
    choice(
        "norm",
        QT_TRANSLATE_NOOP("fields", "Norm"),
        QT_TRANSLATE_NOOP("fields", "How the norm is written decides what it keeps for the backward pass."),
        Choice("rms_norm", QT_TRANSLATE_NOOP("fields", "RMSNorm")),
        Choice("rms_norm_fp32", QT_TRANSLATE_NOOP("fields", "RMSNorm (weight in fp32)")),
        Choice("gemma_rms_norm", QT_TRANSLATE_NOOP("fields", "RMSNorm (Gemma)")),
        Choice("layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm")),
        Choice("cohere_layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm (Cohere)")),
        Choice("plain_layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm without weights")),
    ),
    flag(
        "norm_bias",
        QT_TRANSLATE_NOOP("fields", "Norm bias"),
        QT_TRANSLATE_NOOP("fields", "LayerNorms have a bias beside their weight."),
    ),
    choice(
        "norm_placement",
        QT_TRANSLATE_NOOP("fields", "Norm placement"),
        QT_TRANSLATE_NOOP("fields", "Where the norms stand around attention and feed-forward."),
        Choice("pre", QT_TRANSLATE_NOOP("fields", "before each")),
        Choice("post", QT_TRANSLATE_NOOP("fields", "after each sum")),
        Choice("post_branch", QT_TRANSLATE_NOOP("fields", "after each, before the sum")),
        Choice("sandwich", QT_TRANSLATE_NOOP("fields", "before and after each")),
    ),
    flag(
        "first_norm",
        QT_TRANSLATE_NOOP("fields", "First norm"),
        QT_TRANSLATE_NOOP("fields", "The first layer has its norm before attention, as every other."),
    ),
    choice(
        "parallel_block",
        QT_TRANSLATE_NOOP("fields", "Parallel layer"),
        QT_TRANSLATE_NOOP("fields", "Attention and feed-forward both read the layer's input."),
        Choice("none", QT_TRANSLATE_NOOP("fields", "one after the other")),
        Choice("one_norm", QT_TRANSLATE_NOOP("fields", "parallel, one norm")),
        Choice("two_norms", QT_TRANSLATE_NOOP("fields", "parallel, a norm each")),
    ),
    choice(
        "qk_norm",
        QT_TRANSLATE_NOOP("fields", "Query/key norm"),
        QT_TRANSLATE_NOOP("fields", "Norms on queries and keys."),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        Choice("head", QT_TRANSLATE_NOOP("fields", "of each head, shared weights")),
        Choice("per_head", QT_TRANSLATE_NOOP("fields", "of each head, own weights")),
        Choice("full", QT_TRANSLATE_NOOP("fields", "of all heads together")),
        Choice("plain", QT_TRANSLATE_NOOP("fields", "of each head, no weights")),
    ),
    flag(
        "qk_norm_bias",
        QT_TRANSLATE_NOOP("fields", "Query/key norm bias"),
        QT_TRANSLATE_NOOP("fields", "The norms on queries and keys have a bias."),
    ),
    choice(
        "hidden_act",
        QT_TRANSLATE_NOOP("fields", "Activation"),
        QT_TRANSLATE_NOOP(
            "fields", "The feed-forward layer's non-linearity; some are written out in Python and keep more."
        ),
        Choice("silu", "SiLU"),
        Choice("gelu", "GELU"),
        Choice("gelu_new", QT_TRANSLATE_NOOP("fields", "GELU (tanh, in Python)")),
        Choice("gelu_pytorch_tanh", QT_TRANSLATE_NOOP("fields", "GELU (tanh)")),
        Choice("bloom_gelu", QT_TRANSLATE_NOOP("fields", "GELU (BLOOM's own)")),
        Choice("quick_gelu", QT_TRANSLATE_NOOP("fields", "GELU (sigmoid)")),
        Choice("relu", "ReLU"),
        Choice("relu2", QT_TRANSLATE_NOOP("fields", "ReLU squared")),
        Choice("swiglu_clamped", QT_TRANSLATE_NOOP("fields", "SwiGLU, clamped")),
    ),
    flag(
        "gated_mlp",
        QT_TRANSLATE_NOOP("fields", "Gated FFN"),
        QT_TRANSLATE_NOOP("fields", "Two projections in, one of them through the activation (SwiGLU)."),
    ),
    choice(
        "position_embedding",
        QT_TRANSLATE_NOOP("fields", "Positions"),
        QT_TRANSLATE_NOOP("fields", "How positions enter the model."),
        Choice("rope", QT_TRANSLATE_NOOP("fields", "rotary")),
        Choice("learned", QT_TRANSLATE_NOOP("fields", "learned")),
        Choice("sinusoidal", QT_TRANSLATE_NOOP("fields", "sinusoidal")),
        Choice("alibi", "ALiBi"),
        Choice("relative", QT_TRANSLATE_NOOP("fields", "relative, in buckets")),
        Choice("disentangled", QT_TRANSLATE_NOOP("fields", "relative, disentangled")),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
    ),
    size(
        "position_offset",
        QT_TRANSLATE_NOOP("fields", "Position offset"),
        QT_TRANSLATE_NOOP("fields", "Rows of the learned positions beyond the longest sequence."),
    ),
    count(
        "rotary_dim",
        QT_TRANSLATE_NOOP("fields", "Rotary size"),
        QT_TRANSLATE_NOOP(
            "fields", "Elements of each head that are rotated; the whole head unless said otherwise."
        ),
        minimum=0,
        maximum=1_000_000,
        advanced=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "whole head"),
    ),
    flag(
        "fused_qkv",
        QT_TRANSLATE_NOOP("fields", "Fused QKV"),
        QT_TRANSLATE_NOOP("fields", "Query, key and value come from one projection."),
    ),
    flag(
        "fused_gate_up",
        QT_TRANSLATE_NOOP("fields", "Fused gate and up"),
        QT_TRANSLATE_NOOP("fields", "Gate and up come from one projection."),
    ),
    flag(
        "attention_bias",
        QT_TRANSLATE_NOOP("fields", "QKV bias"),
        QT_TRANSLATE_NOOP("fields", "Query, key and value projections have a bias."),
    ),
    flag(
        "key_bias",
        QT_TRANSLATE_NOOP("fields", "Key bias"),
        QT_TRANSLATE_NOOP("fields", "Where query and value have a bias, the key has one too."),
    ),
    flag(
        "attention_output_bias",
        QT_TRANSLATE_NOOP("fields", "Attention output bias"),
        QT_TRANSLATE_NOOP("fields", "The attention's output projection has a bias."),
    ),
    flag(
        "attention_output_gate",
        QT_TRANSLATE_NOOP("fields", "Attention gate"),
        QT_TRANSLATE_NOOP("fields", "The query projection also gives a gate on the attention's output."),
    ),
    flag(
        "attention_sinks",
        QT_TRANSLATE_NOOP("fields", "Attention sinks"),
        QT_TRANSLATE_NOOP("fields", "Each head has a learned logit that attends to nothing."),
    ),
    flag(
        "mlp_bias",
        QT_TRANSLATE_NOOP("fields", "FFN bias"),
        QT_TRANSLATE_NOOP("fields", "The feed-forward projections have a bias."),
    ),
    flag(
        "lm_head_bias",
        QT_TRANSLATE_NOOP("fields", "Head bias"),
        QT_TRANSLATE_NOOP("fields", "The output head has a bias."),
    ),
    count(
        "embedding_size",
        QT_TRANSLATE_NOOP("fields", "Embedding width"),
        QT_TRANSLATE_NOOP(
            "fields", "Width of the token embedding where it differs from the hidden size and is projected."
        ),
        advanced=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "hidden size"),
    ),
    flag(
        "embedding_norm",
        QT_TRANSLATE_NOOP("fields", "Embedding norm"),
        QT_TRANSLATE_NOOP("fields", "A norm stands between the embedding and the first layer."),
    ),
    flag(
        "final_norm",
        QT_TRANSLATE_NOOP("fields", "Final norm"),
        QT_TRANSLATE_NOOP("fields", "A norm stands between the last layer and the head."),
    ),
    ratio(
        "attn_logit_softcapping",
        QT_TRANSLATE_NOOP("fields", "Score cap"),
        QT_TRANSLATE_NOOP(
            "fields", "Attention scores are squashed below this; one more copy of them is kept."
        ),
        maximum=1e9,
        empty_label=QT_TRANSLATE_NOOP("fields", "no cap"),
    ),
    ratio(
        "final_logit_softcapping",
        QT_TRANSLATE_NOOP("fields", "Logit cap"),
        QT_TRANSLATE_NOOP("fields", "Logits are squashed below this; one more copy of them is kept."),
        maximum=1e9,
        empty_label=QT_TRANSLATE_NOOP("fields", "no cap"),
    ),
    count(
        "cached_key_value_heads",
        QT_TRANSLATE_NOOP("fields", "Cached heads"),
        QT_TRANSLATE_NOOP(
            "fields", "Heads in the cache, where keys and values are repeated before they go in."
        ),
        maximum=1_000_000,
        advanced=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "key/value heads"),
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
            Choice("chunked_attention", QT_TRANSLATE_NOOP("fields", "attention in chunks")),
            Choice("mamba", "Mamba"),
            Choice("mamba2", "Mamba-2"),
            Choice("attention_mamba2", QT_TRANSLATE_NOOP("fields", "attention beside Mamba-2")),
            Choice("gated_delta_net", QT_TRANSLATE_NOOP("fields", "gated delta net")),
            Choice("kda", QT_TRANSLATE_NOOP("fields", "Kimi delta attention")),
            Choice("lightning_attention", QT_TRANSLATE_NOOP("fields", "lightning attention")),
            Choice("rg_lru", QT_TRANSLATE_NOOP("fields", "gated linear recurrence")),
            Choice("short_conv", QT_TRANSLATE_NOOP("fields", "short convolution")),
            Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        ),
        advanced=True,
    ),
    Field(
        "model.mlp_layer_types",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "FFN types"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The pattern of feed-forward kinds over the layers, repeated; empty means experts where there "
            "are any, else dense.",
        ),
        section="model",
        choices=(
            Choice("dense", QT_TRANSLATE_NOOP("fields", "dense")),
            Choice("sparse", QT_TRANSLATE_NOOP("fields", "experts")),
            Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        ),
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
    Field(
        "model.dropouts",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Dropouts"),
        QT_TRANSLATE_NOOP("fields", "The places where the model's code has a dropout at all."),
        section="model",
        choices=(
            Choice("attention", QT_TRANSLATE_NOOP("fields", "attention probabilities")),
            Choice("hidden", QT_TRANSLATE_NOOP("fields", "residual branches")),
            Choice("embedding", QT_TRANSLATE_NOOP("fields", "embeddings")),
        ),
        advanced=True,
    ),
    ratio(
        "hidden_dropout",
        QT_TRANSLATE_NOOP("fields", "Hidden dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on residual branches."),
    ),
    ratio(
        "attention_dropout",
        QT_TRANSLATE_NOOP("fields", "Attention dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on attention probabilities."),
    ),
    ratio(
        "embedding_dropout",
        QT_TRANSLATE_NOOP("fields", "Embedding dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on the embeddings."),
    ),
)
