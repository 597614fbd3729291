"""Mixtures of experts on top of attention as Llama, Qwen or GPT write it."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.llama import FACTORS, llama, qwen3
from memgui.importers.families.parts import (
    dimensions,
    dropouts,
    every,
    experts,
    feed_forwards,
    mixers,
    rotary,
    shared_experts,
    stated_layers,
    window_by_layers,
    window_everywhere,
    window_size,
)
from memgui.importers.families.registry import Fields, family


@family("mixtral")
def mixtral(c: Config) -> Fields:
    """Every layer's feed-forward is experts of ``intermediate_size``."""
    fields = llama(c)
    return {
        **fields,
        **window_everywhere(c),
        **experts(c, fields["intermediate_size"]),
        "norm_topk_prob": True,
    }


@family("phimoe")
def phimoe(c: Config) -> Fields:
    """Mixtral with LayerNorms and biases in attention and head."""
    return {
        **mixtral(c),
        "norm": "layer_norm",
        "lm_head_bias": c.flag("lm_head_bias", default=False),
        "router_scoring": "sparsemixer",
        "norm_topk_prob": False,
    }


@family("olmoe")
def olmoe(c: Config) -> Fields:
    """Norms over all queries and all keys; every layer has experts of ``intermediate_size``."""
    fields = llama(c)
    return {
        **fields,
        **experts(c, fields["intermediate_size"]),
        **cast_back(c),
        "qk_norm": "full",
        "clip_qkv": c.number_or_none("clip_qkv") is not None,
    }


@family("granitemoe")
def granitemoe(c: Config) -> Fields:
    """Granite; every layer has experts of ``intermediate_size``."""
    fields = llama(c)
    return {
        **fields,
        **FACTORS,
        **experts(c, fields["intermediate_size"]),
        "router_scoring": "topk_softmax_fp32",
    }


@family("minimax_m2")
def minimax_m2(c: Config) -> Fields:
    """Norms over all queries and all keys; the router's balance is a buffer."""
    fields = llama(c)
    part = c.count_or_none("rotary_dim")
    return {
        **fields,
        **experts(c, fields["intermediate_size"]),
        **({"rotary_dim": part} if part else {}),
        "rotary_style": "part",
        "qk_norm": "full" if c.flag("use_qk_norm", default=True) else "none",
        "router_correction_bias": True,
        "router_scoring": "sigmoid",
        "norm_topk_prob": True,
    }


def cast_back(c: Config) -> Fields:
    """Weights of experts go back to the router's format; ``norm_topk_prob`` says whether they add up to 1."""
    return {"norm_topk_prob": c.flag("norm_topk_prob", default=False), "router_casts_back": True}


def by_sigmoids(c: Config) -> Fields:
    """DeepSeek-V3's router: in fp32, sigmoids with a balance that is a buffer, a factor on the weights."""
    return {
        "router_scoring": "sigmoid",
        "router_in_fp32": True,
        "router_correction_bias": True,
        "norm_topk_prob": c.flag("norm_topk_prob", default=True),
        "routed_scaling": True,
    }


def sparse_by_step(c: Config, layers: int) -> Fields:
    """Qwen: experts in each ``decoder_sparse_step``-th layer, but in none of ``mlp_only_layers``."""
    step = c.count("decoder_sparse_step", default=1)
    dense = set(c.counts("mlp_only_layers"))
    return feed_forwards([last and i not in dense for i, last in enumerate(every(step, layers))])


@family("qwen2_moe")
def qwen2_moe(c: Config) -> Fields:
    """Qwen 2 with routed experts and a gated shared one."""
    fields = llama(c)
    layers = fields["num_hidden_layers"]
    on = c.flag("use_sliding_window", default=False)
    window = window_size(c)
    stated = stated_layers(c, "layer_types", layers)
    first = c.count("max_window_layers", default=layers)
    computed = ["sliding_attention" if not i % 2 and i < first else "full_attention" for i in range(layers)]
    return {
        **fields,
        **experts(c),
        **cast_back(c),
        **shared_experts(1, c.count("shared_expert_intermediate_size"), gate=True),
        **sparse_by_step(c, layers),
        **({"sliding_window": window, **mixers(stated or computed)} if on and window else {}),
        "attention_bias": c.flag("qkv_bias", default=True),
        "attention_output_bias": False,
    }


@family("qwen3_moe")
def qwen3_moe(c: Config) -> Fields:
    """Qwen 3 with routed experts."""
    fields = qwen3(c)
    return {**fields, **experts(c), **cast_back(c), **sparse_by_step(c, fields["num_hidden_layers"])}


def first_dense(c: Config, layers: int, dense: int) -> Fields:
    """The first ``dense`` layers have no experts; beyond them each ``moe_layer_freq``-th has.

    Newer files name the kind of each layer instead (``mlp_layer_types``).
    """
    named = stated_layers(c, "mlp_layer_types", layers, kinds={"dense": "dense", "sparse": "sparse"})
    if named:
        return feed_forwards([kind == "sparse" for kind in named])
    frequency = c.count("moe_layer_freq", default=1) or 1
    return feed_forwards([i >= dense and i % frequency == 0 for i in range(layers)])


@family("glm4_moe")
def glm4_moe(c: Config) -> Fields:
    """GLM 4.5: the first layers are dense; shared experts; half of each head rotated."""
    fields = llama(c)
    width = c.count("moe_intermediate_size")
    return {
        **fields,
        **experts(c),
        **shared_experts(c.count("n_shared_experts"), width),
        **first_dense(c, fields["num_hidden_layers"], c.count("first_k_dense_replace", default=0)),
        **rotary(c, fields["head_dim"], 0.5),
        "rotary_style": "part",
        "attention_output_bias": False,
        **by_sigmoids(c),
        "qk_norm": "head" if c.flag("use_qk_norm", default=False) else "none",
    }


@family("gpt_oss")
def gpt_oss(c: Config) -> Fields:
    """Biases everywhere, sinks, a clamped SwiGLU, a window in every second layer."""
    fields = llama(c)
    return {
        **fields,
        **experts(c, fields["intermediate_size"]),
        **window_by_layers(c, fields["num_hidden_layers"], 2),
        "norm": "rms_norm_fp32",
        "hidden_act": "swiglu_clamped",
        "attention_sinks": True,
        "sdpa": False,
        "softmax_in_fp32": False,
        "rotary_style": "quarters",
        "router_scoring": "topk_softmax",
        "router_bias": True,
        "expert_bias": True,
    }


@family("llama4_text")
def llama4(c: Config) -> Fields:
    """Experts with a shared one in some layers, wide dense ones in the others; attention in chunks."""
    fields = llama(c)
    layers, width = fields["num_hidden_layers"], fields["intermediate_size"]
    step = c.count("interleave_moe_layer_step", default=1)
    sparse = set(c.counts("moe_layers")) or {i for i, last in enumerate(every(step, layers)) if last}
    chunk = c.count_or_none("attention_chunk_size")
    rotated = c.counts("no_rope_layers") or tuple(
        int(not last) for last in every(c.count("no_rope_layer_interval", default=4), layers)
    )
    stated = stated_layers(c, "layer_types", layers)
    computed = [
        ("chunked_attention" if chunk else "full_attention") if one else "unrotated_attention"
        for one in rotated[:layers]
    ]
    return {
        **fields,
        **experts(c, width),
        **shared_experts(1, width),
        **feed_forwards([i in sparse for i in range(layers)]),
        **mixers(
            [
                one if one == "chunked_attention" else other
                for one, other in zip(stated or computed, computed, strict=True)
            ]
        ),
        "attention_chunk_size": chunk,
        "intermediate_size": c.count("intermediate_size_mlp", default=width),
        "softmax_in_fp32": False,
        "branch_held": "output",
        "qk_norm": "plain" if c.flag("use_qk_norm", default=True) else "none",
        "rotary_style": "complex",
        "query_temperature": bool(c.flag("attn_temperature_tuning", default=True)),
        "expert_layout": "every_token",
    }


@family("dbrx")
def dbrx(c: Config) -> Fields:
    """LayerNorms without bias; attention and experts have objects of their own in the file."""
    attention, feed_forward = c.within("attn_config"), c.within("ffn_config")
    fields = dimensions(c)
    width = feed_forward.count("ffn_hidden_size", default=3584)
    return {
        **fields,
        **dropouts(c, "hidden"),
        **experts(feed_forward, width),
        "num_key_value_heads": attention.count("kv_n_heads", default=1),
        "dropouts": ("attention", "hidden"),
        "attention_dropout": attention.ratio("attn_pdrop"),
        "intermediate_size": width,
        "hidden_act": feed_forward.within("ffn_act_fn").text("name", default="silu"),
        "norm": "layer_norm",
        "norm_bias": False,
        "fused_qkv": True,
        "clip_qkv": True,
        "router_scoring": "softmax_own",
        "norm_topk_prob": feed_forward.number_or_none("moe_normalize_expert_weights") is not None,
        "expert_layout": "looped",
    }
