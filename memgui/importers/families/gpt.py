"""GPT-2 and its likes: LayerNorm, feed-forward without a gate, mostly biases everywhere."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.parts import (
    ATTENTION,
    activation,
    dimensions,
    dropouts,
    ffn_width,
    mixers,
    rotary,
    stated_layers,
    unrotated_beyond_windows,
    window_by_layers,
    window_size,
)
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP

BIASES: Fields = {"attention_bias": True, "attention_output_bias": True, "mlp_bias": True}


def with_layer_norm(c: Config) -> Fields:
    """What this module's families share: LayerNorm, feed-forward without a gate, biases everywhere."""
    fields = dimensions(c)
    return {
        **fields,
        **BIASES,
        **dropouts(c, "attention", "hidden", "embedding"),
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c, "gelu_new"),
        "gated_mlp": False,
        "norm": "layer_norm",
    }


@family("gpt2")
def gpt2(c: Config) -> Fields:
    """Learned positions; query, key and value from one projection."""
    return {
        **with_layer_norm(c),
        "position_embedding": "learned",
        "fused_qkv": True,
        "softmax_in_fp32": False,
        "score_scaling": "upcast" if c.flag("reorder_and_upcast_attn", default=False) else "after",
        "branch_held": "output",
    }


@family("gpt_bigcode")
def gpt_bigcode(c: Config) -> Fields:
    """GPT-2 with one key/value head, unless ``multi_query`` is off."""
    fields = gpt2(c)
    one = c.flag("multi_query", default=True)
    return {
        **fields,
        "num_key_value_heads": 1 if one else fields["num_attention_heads"],
        "softmax_in_fp32": True,
        "mask_buffer": True,
    }


@family("opt")
def opt(c: Config) -> Fields:
    """Separate projections; OPT-350M narrows its embedding and has its norms after each sum."""
    fields = with_layer_norm(c)
    bias = c.flag("enable_bias", default=True)
    pre = c.flag("do_layer_norm_before", default=True)
    width = c.count_or_none("word_embed_proj_dim")
    return {
        **fields,
        **dropouts(c, "attention", "hidden"),
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": bias,
        "position_embedding": "learned",
        "position_offset": 2,
        "query_scaling": True,
        "norm_placement": "pre" if pre else "post",
        "final_norm": pre and not c.flag("_remove_final_layer_norm", default=False),
        "embedding_size": width if width != fields["hidden_size"] else None,
    }


@family("xglm")
def xglm(c: Config) -> Fields:
    """Separate projections, scaled queries, fixed positions; scores are held above the least number."""
    fields = with_layer_norm(c)
    return {
        **fields,
        **dropouts(c, "attention", "hidden"),
        "dropouts": ("attention", "hidden", "embedding", "activation"),
        "embedding_dropout": c.ratio("hidden_dropout"),
        "activation_dropout": c.ratio("activation_dropout"),
        "hidden_act": activation(c, "gelu"),
        "position_embedding": "sinusoidal_buffer",
        "position_offset": 2,
        "embedding_scaling": "number",
        "query_scaling": True,
        "score_scaling": "none",
        "score_masking": "floored",
        "softmax_in_fp32": False,
        "sdpa": False,
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }


@family("gptj")
def gptj(c: Config) -> Fields:
    """Both halves read one norm; no bias in attention; part of each head rotated; a head with bias."""
    return {
        **with_layer_norm(c),
        "attention_bias": False,
        "attention_output_bias": False,
        "rotary_dim": c.count_or_none("rotary_dim"),
        "rotary_style": "pairs_part_by_token",
        "scores_in_fp32": True,
        "softmax_in_fp32": False,
        "parallel_block": "one_norm",
        "lm_head_bias": True,
    }


@family("gpt_neo")
def gpt_neo(c: Config) -> Fields:
    """Learned positions, separate projections, a local window in every second layer."""
    fields = with_layer_norm(c)
    window = c.count("window_size", default=256)
    layers = tuple(ATTENTION.get(kind, "full_attention") for kind in _attention_layers(c, fields))
    return {
        **fields,
        "attention_bias": False,
        "position_embedding": "learned",
        "sdpa": False,
        "branch_held": "output",
        "scores_in_fp32": True,
        "softmax_in_fp32": False,
        "score_scaling": "none",
        "score_masking": "buffered",
        **({"sliding_window": window, **mixers(layers)} if "sliding_attention" in layers else {}),
    }


def _attention_layers(c: Config, fields: Fields) -> tuple[str, ...]:
    """GPT-Neo's ``attention_layers``, or ``attention_types``: a list of [kinds, times]."""
    stated = c.texts("attention_layers")
    if stated:
        return stated[: fields["num_hidden_layers"]]
    layers: list[str] = []
    for item in c.items("attention_types"):
        match item:
            case [list(kinds), int(times)] if all(isinstance(kind, str) for kind in kinds):
                layers += kinds * min(times, fields["num_hidden_layers"])
            case _:
                c.refuse(
                    "attention_types",
                    QT_TRANSLATE_NOOP(
                        "messages",
                        "{file}: {where} is {value}; a list of [[kinds of layers], times] is allowed.",
                    ),
                )
    return tuple(layers[: fields["num_hidden_layers"]]) or ("global", "local")


@family("gpt_neox")
def gpt_neox(c: Config) -> Fields:
    """Both halves read the input through a norm each; part of each head rotated."""
    fields = with_layer_norm(c)
    bias = c.flag("attention_bias", default=True)
    parallel = c.flag("use_parallel_residual", default=True)
    return {
        **fields,
        **rotary(c, fields["head_dim"], 0.25),
        "rotary_style": "part",
        "attention_bias": bias,
        "attention_output_bias": bias,
        "parallel_block": "two_norms" if parallel else "none",
        "fused_qkv": True,
        "embedding_dropout": fields["hidden_dropout"],
    }


@family("bloom")
def bloom(c: Config) -> Fields:
    """ALiBi instead of positions, a norm on the embedding, a GELU of its own."""
    fields = dimensions(c)
    return {
        **fields,
        **BIASES,
        **dropouts(c, "attention", "hidden"),
        "intermediate_size": 4 * fields["hidden_size"],
        "hidden_act": "bloom_gelu",
        "gated_mlp": False,
        "norm": "layer_norm",
        "position_embedding": "alibi",
        "embedding_norm": True,
        "fused_qkv": True,
        "fused_qkv_split": "slices",
        "sdpa": False,
        "score_scaling": "fused",
    }


@family("starcoder2")
def starcoder2(c: Config) -> Fields:
    """Rotary positions, grouped queries, separate projections; ``use_bias`` speaks for all of them."""
    fields = with_layer_norm(c)
    bias = c.flag("use_bias", default=True)
    window = window_size(c)
    return {
        **fields,
        **rotary(c, fields["head_dim"]),
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": bias,
        **({"sliding_window": window, "layer_types": ("sliding_attention",)} if window else {}),
    }


@family("phi")
def phi(c: Config) -> Fields:
    """Both halves read one norm; part of each head rotated; biases everywhere, in the head too."""
    fields = with_layer_norm(c)
    norms = {"qk_norm": "head", "qk_norm_bias": True} if c.flag("qk_layernorm", default=False) else {}
    return {
        **fields,
        **rotary(c, fields["head_dim"], 0.5),
        "rotary_style": "part_in_layer",
        **norms,
        "parallel_block": "one_norm",
        "lm_head_bias": True,
    }


@family("stablelm")
def stablelm(c: Config) -> Fields:
    """LayerNorm around a gated feed-forward; a quarter of each head rotated; norms of its own per head."""
    fields = dimensions(c)
    parallel = c.flag("use_parallel_residual", default=False)
    return {
        **fields,
        **dropouts(c, "attention", "hidden"),
        **rotary(c, fields["head_dim"], 0.25),
        "rotary_style": "part_in_layer",
        "dropouts": ("attention", "feed_forward"),
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c),
        "norm": "layer_norm",
        "attention_bias": c.flag("use_qkv_bias", default=False),
        "qk_norm": "per_head" if c.flag("qk_layernorm", default=False) else "none",
        "parallel_block": "one_norm" if parallel else "none",
        "residual_first": True,
        "branch_held": "none" if parallel else "both",
    }


@family("cohere")
def cohere(c: Config) -> Fields:
    """Both halves read one norm without bias; the head is tied."""
    fields = dimensions(c)
    bias = c.flag("attention_bias", default=False)
    return {
        **fields,
        **dropouts(c, "attention"),
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c),
        "norm": "cohere_layer_norm",
        "norm_bias": False,
        "attention_bias": bias,
        "attention_output_bias": bias,
        "qk_norm": "per_head" if c.flag("use_qk_norm", default=False) else "none",
        "parallel_block": "one_norm",
        "residual_first": True,
        "rotary_style": "pairs_fp32",
        "logit_scaling": True,
    }


@family("cohere2")
def cohere2(c: Config) -> Fields:
    """Command R7B: Cohere's parallel layers, with a window in three of four."""
    fields = cohere(c)
    windows = window_by_layers(c, fields["num_hidden_layers"], 4)
    return {**fields, **unrotated_beyond_windows(windows), "qk_norm": "none"}


@family("cohere_compass_text")
def cohere_compass(c: Config) -> Fields:
    """Command R7B's layers rotated as Qwen's, where the file has positions for layers of that kind."""
    fields = cohere(c)
    kinds = stated_layers(c, "layer_types", fields["num_hidden_layers"])
    bases = c.within("rope_parameters").stated.value
    still = [kind for kind in set(kinds) if kind in bases and bases[kind] is None]
    if still == ["sliding_attention"]:
        c.refuse(
            "rope_parameters",
            QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; layers with a window need positions."),
        )
    window = window_size(c)
    named = {kind: "unrotated_attention" if kind in still else kind for kind in set(kinds)}
    return {
        **fields,
        **mixers([named[kind] for kind in kinds]),
        **({"position_embedding": "none"} if len(still) == len(named) > 0 else {}),
        **({"sliding_window": window} if "sliding_attention" in kinds else {}),
        "qk_norm": "none",
        "rotary_style": "half",
        "rotary_per_layer_type": True,
        "rotary_per_sequence": True,
    }
