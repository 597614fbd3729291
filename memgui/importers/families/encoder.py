"""Encoders: BERT and its likes, and the vision transformer."""

from __future__ import annotations

from memgui.files.strict_json import shown
from memgui.importers.config_reader import Config
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import (
    CLASSIFYING,
    activation,
    dimensions,
    dropouts,
    ffn_width,
    labels,
    mixers,
    stated_layers,
)
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP

IMAGE_CLASSES = 1000
PADDED = 2
"""Positions before the first token's: that of padding, and one more."""
DISTILLED = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout": "dropout",
}
"""DistilBERT's own names."""
CLASSIFIERS = {
    "Bert": "pooled",
    "MegatronBert": "pooled",
    "Ernie": "pooled",
    "Albert": "pooled",
    "RemBert": "pooled",
    "LayoutLM": "pooled",
    "Roberta": "dropped",
    "XLMRoberta": "dropped",
    "Camembert": "dropped",
    "XLMRobertaXL": "dropped",
    "RobertaPreLayerNorm": "dropped",
    "Data2VecText": "dropped",
    "Electra": "dropped_gelu",
    "Deberta": "dropped_gelu",
    "DebertaV2": "dropped_gelu",
    "RoFormer": "dropped_gelu",
    "DistilBert": "relu",
    "ModernBert": "normed",
}
"""What classes for ``…ForSequenceClassification`` do with the first token before a linear layer."""
DISENTANGLED = {
    "relative_attention": True,
    "share_att_key": True,
    "position_biased_input": False,
    "conv_kernel_size": 0,
}
"""What the disentangled attention that is known here looks like: that of DeBERTa v3."""


def head(c: Config, usual: str, pooler: bool = False) -> Fields:
    """What stands on top: nothing (but a pooler, where the family has one) under a bare ``…Model``."""
    names = c.texts("architectures")
    if any(name.endswith("Model") for name in names):
        return {"head": "base", "pooler": pooler}
    found = next((name for name in names if name.endswith(CLASSIFYING)), "").removesuffix(CLASSIFYING)
    if found in CLASSIFIERS:
        return {"head": "sequence", "classifier": CLASSIFIERS[found], "num_labels": labels(c)}
    return {"head": usual}


@family("bert", "electra")
def bert(c: Config) -> Fields:
    """Norms after each sum, learned positions and segments, biases everywhere."""
    fields = dimensions(c)
    hidden = fields["hidden_size"]
    found = {
        **fields,
        **dropouts(c, "attention", "hidden"),
        "dropouts": ("attention", "hidden", "embedding"),
        **head(c, "masked", pooler=True),
        "is_decoder": False,
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c, "gelu"),
        "gated_mlp": False,
        "norm": "layer_norm",
        "norm_placement": "post",
        "final_norm": False,
        "embedding_norm": True,
        "position_embedding": "learned",
        "attention_bias": True,
        "attention_output_bias": True,
        "lm_head_bias": True,
        "softmax_in_fp32": False,
        "mlp_bias": True,
        "type_vocab_size": c.count("type_vocab_size", default=0),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }
    width = c.count_or_none("embedding_size")
    return {
        **found,
        "embedding_size": width if width != hidden else None,
        "embedding_dropout": found["hidden_dropout"],
    }


@family("eurobert")
def eurobert(c: Config) -> Fields:
    """Llama that sees what comes after, with nothing but the table on top."""
    return {
        **llama(c),
        **head(c, "masked"),
        "is_decoder": False,
        "head_transform": False,
        "lm_head_bias": c.flag("mlp_bias", default=False),
        "loss_in_fp32": True,
    }


@family("roberta", "xlm-roberta", "camembert")
def roberta(c: Config) -> Fields:
    """BERT; the first positions belong to padding and are counted in ``max_position_embeddings``."""
    fields = bert(c)
    rows = fields["max_position_embeddings"]
    return {**fields, "max_position_embeddings": max(rows - PADDED, 0), "position_offset": min(rows, PADDED)}


@family("distilbert")
def distilbert(c: Config) -> Fields:
    """BERT without segments; its layers drop behind the feed-forward alone."""
    for name, own in DISTILLED.items():
        c = c.renamed(name, own)
    fields = bert(c)
    return {**fields, "pooler": False, "dropouts": ("attention", "feed_forward", "embedding")}


@family("albert")
def albert(c: Config) -> Fields:
    """BERT with a narrow embedding, and layers that share their weights and drop behind attention alone."""
    return {
        **bert(c),
        "num_hidden_groups": c.count("num_hidden_groups", default=1),
        "dropouts": ("attention", "attention_output", "embedding"),
    }


def _disentangled(c: Config, *keys: str) -> None:
    """Book what of a stated disentangled attention is not that which is known here."""
    for key in keys:
        known = DISENTANGLED[key]
        if (value := c.stated.value.get(key, known)) not in (known, None):
            c.assume(
                QT_TRANSLATE_NOOP(
                    "messages", "{key} is {value}, which is not known here; {known} of DeBERTa v3 is taken."
                ),
                key=key,
                value=shown(value, 40),
                known=str(known).lower(),
            )


@family("deberta")
def first_deberta(c: Config) -> Fields:
    """Disentangled attention with a projection of its own for distances; every distance is one of its own."""
    fields = bert(c)
    _disentangled(c, "relative_attention", "position_biased_input")
    longest = c.integer_or_none("max_relative_positions") or 0
    return {
        **fields,
        "pooler": False,
        "sdpa": False,
        "fused_qkv": True,
        "norm": "deberta_layer_norm",
        "position_embedding": "disentangled",
        "position_buckets": longest if longest > 0 else fields["max_position_embeddings"],
    }


@family("deberta-v2")
def deberta(c: Config) -> Fields:
    """Disentangled attention: distances in buckets, with an embedding of their own that layers share."""
    fields = bert(c)
    _disentangled(c, *DISENTANGLED)
    buckets = c.integer_or_none("position_buckets") or 0
    longest = fields["max_position_embeddings"]
    return {
        **fields,
        "pooler": False,
        "sdpa": False,
        "position_embedding": "disentangled",
        "position_buckets": buckets if buckets > 0 else longest,
    }


@family("modernbert")
def modernbert(c: Config) -> Fields:
    """Norms before each half without bias, rotary positions, GeGLU, a window in two of three layers."""
    fields = dimensions(c)
    layers = fields["num_hidden_layers"]
    period = c.count("global_attn_every_n_layers", default=3)
    stated = stated_layers(c, "layer_types", layers)
    computed = ["full_attention" if i % max(period, 1) == 0 else "sliding_attention" for i in range(layers)]
    bias = c.flag("attention_bias", default=False)
    return {
        **fields,
        **mixers(stated or computed),
        **dropouts(c, "attention", "embedding"),
        "dropouts": ("attention", "attention_output", "activation", "embedding"),
        "hidden_dropout": c.ratio("attention_dropout"),
        "activation_dropout": c.ratio("mlp_dropout"),
        **head(c, "masked"),
        "is_decoder": False,
        "sliding_window": c.count("local_attention", default=128),
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c, "gelu"),
        "norm": "layer_norm",
        "norm_bias": c.flag("norm_bias", default=False),
        "first_norm": False,
        "branch_held": "output",
        "embedding_norm": True,
        "fused_qkv": True,
        "fused_gate_up": True,
        "rotary_style": "half_upcast",
        "rotary_per_layer_type": True,
        "loss_in_fp32": True,
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": c.flag("mlp_bias", default=False),
        "lm_head_bias": c.flag("decoder_bias", default=True),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }


@family("modernbert-decoder")
def modernbert_decoder(c: Config) -> Fields:
    """ModernBERT that predicts the next token: projections of their own, and a layer before the table."""
    window = c.count("local_attention", default=128)
    return {
        **modernbert(c),
        "head": "causal",
        "is_decoder": True,
        "sliding_window": max(window // 2, 1),
        "fused_qkv": False,
        "branch_held": "output",
        "loss_in_fp32": False,
        "causal_head_transform": True,
        "rotary_per_sequence": True,
    }


@family("vit")
def vit(c: Config) -> Fields:
    """Patches of an image as tokens, norms before each half, a head over classes."""
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    bias = c.flag("qkv_bias", default=True)
    image, patch = c.count("image_size"), c.count("patch_size")
    if not patch or image < patch:
        c.refuse(
            "patch_size",
            QT_TRANSLATE_NOOP(
                "messages", "{file}: {where} is {value}; a whole number from 1 to {image} is allowed."
            ),
            image=image,
        )
    top = head(c, "image", pooler=True)
    classes = labels(c)
    if not classes and top["head"] == "image":
        classes = IMAGE_CLASSES
        c.assume(
            QT_TRANSLATE_NOOP(
                "messages", "num_labels is not stated; {value} is assumed, the classes of ImageNet."
            ),
            value=classes,
        )
    return {
        **dropouts(c, "attention", "hidden"),
        "dropouts": ("attention", "hidden", "embedding"),
        "embedding_dropout": c.ratio("hidden_dropout"),
        **top,
        "is_decoder": False,
        "vocab_size": max(classes, 1),
        "hidden_size": hidden,
        "num_hidden_layers": c.count("num_hidden_layers"),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": c.count_or_none("head_dim") or hidden // heads,
        "intermediate_size": c.count("intermediate_size"),
        "max_position_embeddings": (image // patch) ** 2 + 1,
        "hidden_act": activation(c, "gelu"),
        "gated_mlp": False,
        "norm": "layer_norm",
        "position_embedding": "learned",
        "attention_bias": bias,
        "attention_output_bias": True,
        "mlp_bias": True,
        "lm_head_bias": True,
        "image_size": image,
        "patch_size": patch,
        "num_channels": c.count("num_channels"),
        "num_labels": classes,
    }
