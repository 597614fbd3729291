"""Encoders with other positions than BERT: rotary ones, or a bias by distance."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.encoder import bert, roberta
from memgui.importers.families.parts import activation, share
from memgui.importers.families.registry import Fields, family

ROTATED: Fields = {"position_embedding": "rope", "pooler": False, "loss_in_fp32": False}
ALWAYS_MASKED: Fields = {"sdpa": False, "explicit_mask": True}
"""Older code: eager attention, and a mask that hides nothing where none is given."""


@family("nomic_bert")
def nomic_bert(c: Config) -> Fields:
    """BERT with rotary positions and a gated feed-forward, without biases."""
    biases = {"attention_bias": False, "attention_output_bias": False, "mlp_bias": False}
    return {**bert(c), **ROTATED, **biases, "gated_mlp": True, "head_transform_bias": True}


@family("gte")
def gte(c: Config) -> Fields:
    """The same with biases in attention, and dropout within the feed-forward."""
    fields = {**bert(c), **ROTATED, "gated_mlp": True, "gate_bias": False}
    return {**fields, "activation_dropout": fields["hidden_dropout"], "max_position_embeddings": 0}


@family("jina_embeddings_v3")
def jina(c: Config) -> Fields:
    """XLM-RoBERTa with rotary positions."""
    return {**bert(c), **ROTATED}


@family("roformer")
def roformer(c: Config) -> Fields:
    """BERT with rotary positions, looked up in a table that is not trained."""
    return {**bert(c), **ROTATED, "rotary_style": "pairs_of_table", **ALWAYS_MASKED}


@family("layoutlm")
def layoutlm(c: Config) -> Fields:
    """BERT whose tokens also have a place on the page."""
    places = c.count("max_2d_position_embeddings")
    fields = {**bert(c), "spatial_positions": places, "explicit_mask": True}
    return {**fields, "pooler": True, "softmax_in_fp32": True}


WIDE_HEAD = 1664
"""RemBERT's head, where the file does not say its width, in Transformers' class."""


@family("rembert")
def rembert(c: Config) -> Fields:
    """BERT with a narrow embedding and a wide head."""
    return {
        **bert(c.with_default("embedding_size", c.count("input_embedding_size"))),
        "embedding_size": c.count("input_embedding_size"),
        "head_embedding_size": c.count("output_embedding_size", default=WIDE_HEAD),
        "segments_given": True,
        **ALWAYS_MASKED,
        "tie_word_embeddings": False,
    }


@family("mobilebert")
def mobilebert(c: Config) -> Fields:
    """BERT whose layers work in a narrow middle, with several feed-forwards each."""
    fields = bert(c)
    heads, middle = fields["num_attention_heads"], c.count("intra_bottleneck_size", default=128)
    return {
        **fields,
        "hidden_act": activation(c, "relu"),
        "head_dim": share(c, middle, heads),
        "norm": "no_norm" if c.text("normalization_type", default="no_norm") == "no_norm" else "layer_norm",
        "bottleneck_size": middle,
        "num_feedforward_networks": c.count("num_feedforward_networks", default=4),
        "segments_given": True,
    }


@family("mpnet")
def mpnet(c: Config) -> Fields:
    """RoBERTa without segments, with a bias by distance that all layers are given."""
    return {
        **roberta(c),
        "type_vocab_size": 0,
        "relative_attention_num_buckets": c.count("relative_attention_num_buckets"),
        "sdpa": False,
    }


@family("esm")
def esm(c: Config) -> Fields:
    """RoBERTa with norms before each half; ESM-2 rotates, and makes up for tokens that are masked."""
    fields = roberta(c)
    rotated = c.text("position_embedding_type", default="absolute") == "rotary"
    rows = fields["max_position_embeddings"] + fields["position_offset"]
    turned = {"position_embedding": "rope", "position_offset": 0, "rotary_style": "half_upcast_once"}
    return {
        **fields,
        **({**turned, "max_position_embeddings": rows} if rotated else {}),
        "type_vocab_size": 0,
        "hidden_act": "gelu_erf",
        "norm_placement": "pre",
        "final_norm": True,
        "query_scaling": True,
        "embedding_scaling": "unmasked" if c.flag("token_dropout", default=False) else "none",
        "embedding_norm": c.flag("emb_layer_norm_before", default=False),
        "embedding_dropout": 0.0,
        "head_bias_added": True,
        "other_weights": (f"contacts:1x{fields['num_hidden_layers'] * fields['num_attention_heads'] + 1}",),
    }
