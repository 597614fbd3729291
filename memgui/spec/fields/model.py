"""Fields of the model: dimensions first, structure folded away as advanced."""

from __future__ import annotations

from memgui.spec.fields import attending
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.fields.parts import looks_up, streams
from memgui.spec.fields.rows import choice, count, flag, ratio, size
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

_HEADLESS = {"mamba", "mamba2", "short_conv", "gated_delta_net", "kda", "none"}
"""Mixers with sizes of their own, which have no use for attention's."""


def _attends(scenario: Scenario) -> bool:
    """Whether any layer has attention heads; what an article computes always has."""
    mixers = scenario.model.layer_types
    return scenario.method != "detailed" or not mixers or not _HEADLESS.issuperset(mixers)


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
        Choice("sequence", QT_TRANSLATE_NOOP("fields", "classes of the sequence")),
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
        applies=_attends,
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
        applies=_attends,
    ),
    count(
        "head_dim",
        QT_TRANSLATE_NOOP("fields", "Head size"),
        QT_TRANSLATE_NOOP("fields", "Width of one attention head."),
        maximum=1_000_000,
        usual_maximum=1024,
        applies=_attends,
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
        Choice("rms_norm_exact", QT_TRANSLATE_NOOP("fields", "RMSNorm (weight kept in fp32)")),
        Choice("rms_norm_fp32_copied", QT_TRANSLATE_NOOP("fields", "RMSNorm (weight copied to fp32)")),
        Choice("gemma4_rms_norm", QT_TRANSLATE_NOOP("fields", "RMSNorm (Gemma 4)")),
        Choice("gemma_rms_norm", QT_TRANSLATE_NOOP("fields", "RMSNorm (Gemma)")),
        Choice("t5_rms_norm", QT_TRANSLATE_NOOP("fields", "RMSNorm (T5)")),
        Choice("layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm")),
        Choice("no_norm", QT_TRANSLATE_NOOP("fields", "a factor and a bias (MobileBERT)")),
        Choice("deberta_layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm written out (DeBERTa)")),
        Choice("cohere_layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm (Cohere)")),
        Choice("plain_layer_norm", QT_TRANSLATE_NOOP("fields", "LayerNorm without weights")),
        Choice("plain_rms_norm", QT_TRANSLATE_NOOP("fields", "RMSNorm without weights")),
        Choice("plain_l2_norm", QT_TRANSLATE_NOOP("fields", "length of one (nGPT)")),
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
        Choice(
            "post_branch_attention",
            QT_TRANSLATE_NOOP("fields", "before each; after each where a layer attends (OLMo Hybrid)"),
        ),
        Choice("normed", QT_TRANSLATE_NOOP("fields", "before, and on the residual stream (MiniMax)")),
        Choice("sandwich", QT_TRANSLATE_NOOP("fields", "before and after each")),
        Choice("weighed", QT_TRANSLATE_NOOP("fields", "before each, what is added to is weighed (Doge)")),
        Choice("gated_streams", QT_TRANSLATE_NOOP("fields", "of streams, before each (Qwen 4)")),
        Choice("towards", QT_TRANSLATE_NOOP("fields", "before and after each, a learned way between (nGPT)")),
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
        Choice("head_rotated", QT_TRANSLATE_NOOP("fields", "of each head, after rotation")),
        Choice("per_head", QT_TRANSLATE_NOOP("fields", "of each head, own weights")),
        Choice("full", QT_TRANSLATE_NOOP("fields", "of all heads together")),
        Choice("plain", QT_TRANSLATE_NOOP("fields", "of each head, no weights")),
    ),
    flag(
        "inner_norms",
        QT_TRANSLATE_NOOP("fields", "Inner norms"),
        QT_TRANSLATE_NOOP("fields", "Attention and feed-forward have a norm before their last projection."),
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
        Choice("gelu_erf", QT_TRANSLATE_NOOP("fields", "GELU (erf, ESM)")),
        Choice("quick_gelu", QT_TRANSLATE_NOOP("fields", "GELU (sigmoid)")),
        Choice("relu", "ReLU"),
        Choice("relu2", QT_TRANSLATE_NOOP("fields", "ReLU squared")),
        Choice("xielu", QT_TRANSLATE_NOOP("fields", "xIELU, with two weights")),
        Choice("swiglu_clamped", QT_TRANSLATE_NOOP("fields", "SwiGLU, clamped")),
        Choice("silu_clamped", QT_TRANSLATE_NOOP("fields", "SiLU, clamped (DeepSeek V4)")),
        Choice("silu_upcast", QT_TRANSLATE_NOOP("fields", "SiLU in fp32 (Beam)")),
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
        Choice("sinusoidal_buffer", QT_TRANSLATE_NOOP("fields", "sinusoidal, no weight")),
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
    *attending.FIELDS,
    flag(
        "fused_gate_up",
        QT_TRANSLATE_NOOP("fields", "Fused gate and up"),
        QT_TRANSLATE_NOOP("fields", "Gate and up come from one projection."),
    ),
    flag(
        "mlp_bias",
        QT_TRANSLATE_NOOP("fields", "FFN bias"),
        QT_TRANSLATE_NOOP("fields", "The feed-forward projections have a bias."),
    ),
    flag(
        "gate_bias",
        QT_TRANSLATE_NOOP("fields", "Gate bias"),
        QT_TRANSLATE_NOOP("fields", "Where the feed-forward has a bias, gate and up have one too."),
    ),
    flag(
        "head_transform",
        QT_TRANSLATE_NOOP("fields", "Head transform"),
        QT_TRANSLATE_NOOP("fields", "A masked head has a layer, an activation and a norm before the table."),
    ),
    flag(
        "head_transform_bias",
        QT_TRANSLATE_NOOP("fields", "Head transform bias"),
        QT_TRANSLATE_NOOP("fields", "The layer before the table has a bias, the feed-forward has none."),
    ),
    flag(
        "lm_head_bias",
        QT_TRANSLATE_NOOP("fields", "Head bias"),
        QT_TRANSLATE_NOOP("fields", "The output head has a bias."),
    ),
    size(
        "output_vocab_size",
        QT_TRANSLATE_NOOP("fields", "Head's vocabulary"),
        QT_TRANSLATE_NOOP(
            "fields", "Rows of the head where it predicts the first tokens alone; 0: all of them."
        ),
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
    count(
        "hidden_size_per_layer_input",
        QT_TRANSLATE_NOOP("fields", "Per-layer embedding width"),
        QT_TRANSLATE_NOOP("fields", "Width of the embedding that each layer has of its own (Gemma 4 E2B)."),
        minimum=0,
        maximum=1_000_000,
        advanced=True,
        applies=looks_up,
    ),
    count(
        "vocab_size_per_layer_input",
        QT_TRANSLATE_NOOP("fields", "Per-layer vocabulary"),
        QT_TRANSLATE_NOOP("fields", "Rows of the embeddings that layers have of their own."),
        minimum=0,
        maximum=1_000_000_000,
        advanced=True,
        applies=looks_up,
    ),
    count(
        "altup_num_inputs",
        QT_TRANSLATE_NOOP("fields", "Streams"),
        QT_TRANSLATE_NOOP("fields", "Copies of the residual stream, of which a layer sees one (Gemma 3n)."),
        minimum=0,
        maximum=64,
        advanced=True,
        applies=streams,
    ),
    count(
        "laurel_rank",
        QT_TRANSLATE_NOOP("fields", "Rank beside attention"),
        QT_TRANSLATE_NOOP("fields", "Width of the narrow way beside attention (Gemma 3n)."),
        minimum=0,
        maximum=1_000_000,
        advanced=True,
        applies=streams,
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
)
