"""Experts behind gated attention, or chosen by sigmoids that are divided by their sum."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.experts import by_sigmoids, first_dense, qwen3_moe
from memgui.importers.families.gpt import cohere2
from memgui.importers.families.llama import llama, qwen3
from memgui.importers.families.parts import (
    every,
    experts,
    feed_forwards,
    mixers,
    shared_experts,
    stated_layers,
    unrotated_beyond_windows,
    window_by_layers,
    window_size,
)
from memgui.importers.families.registry import Fields, family
from memgui.spec.variants import written

SUMMED: Fields = {"router_scoring": "sigmoid_summed", "norm_topk_prob": True, "routed_scaling": True}
TRINITY: Fields = {
    "norm": "rms_norm_fp32",
    "norm_placement": "sandwich",
    "attention_gate": "elementwise",
}


@family("afmoe")
def afmoe(c: Config) -> Fields:
    """Trinity: gated attention without rotation beyond windows, norms around each half."""
    fields = {**qwen3(c), **TRINITY}
    layers = fields["num_hidden_layers"]
    windows = window_by_layers(c, layers, c.count("global_attn_every_n_layers", default=4))
    width = c.count("moe_intermediate_size")
    return {
        **fields,
        **unrotated_beyond_windows(windows),
        **experts(c),
        **shared_experts(c.count("num_shared_experts", default=1), width),
        **first_dense(c, layers, c.count("num_dense_layers", default=1)),
        **SUMMED,
        "router_balance": "fp32",
        "shared_experts_first": True,
        "embedding_scaling": "number" if c.flag("mup_enabled", default=False) else "none",
    }


@family("hy_v3")
def hy_v3(c: Config) -> Fields:
    """HunYuan 3: Qwen 3's attention; experts and the shared one are summed in fp32."""
    fields = qwen3(c)
    width = c.count("moe_intermediate_size")
    return {
        **fields,
        **experts(c),
        **shared_experts(c.count_or_none("num_shared_experts") or 0, width),
        **first_dense(c, fields["num_hidden_layers"], 1),
        **SUMMED,
        "router_in_fp32": True,
        "router_correction_bias": True,
        "experts_summed_in_fp32": c.flag("enable_moe_fp32_combine", default=True),
    }


@family("laguna")
def laguna(c: Config) -> Fields:
    """Gated attention, a gate for each head; the shared expert comes first."""
    fields = {**qwen3(c), "attention_gate": "per_head"}
    layers = fields["num_hidden_layers"]
    window = window_size(c)
    kinds = stated_layers(c, "layer_types", layers) or ("full_attention",) * layers
    counts = c.counts("num_attention_heads_per_layer")[:layers]
    own = {
        kind: {n for n, one in zip(counts, kinds, strict=False) if one == kind}
        for kind in dict.fromkeys(kinds)
    }
    variants = []
    for kind, found in own.items():
        changes = {"rotary_dim": int(fields["head_dim"] / 2)} if kind == "full_attention" else {}
        if len(found) == 1 and found != {fields["num_attention_heads"]}:
            changes["num_attention_heads"] = max(found)
        variants += [written(kind, **changes)] if changes else []
    return {
        **fields,
        **mixers(kinds),
        **({"sliding_window": window} if "sliding_attention" in kinds else {}),
        **experts(c),
        **shared_experts(1, c.count("shared_expert_intermediate_size")),
        **first_dense(c, layers, 1),
        **SUMMED,
        "layer_variants": tuple(variants),
        "rotary_style": "part",
        "rotary_per_layer_type": True,
        "router_balance": "own",
        "router_casts_back": True,
        "shared_experts_first": True,
    }


@family("flint")
def flint(c: Config) -> Fields:
    """Qwen 3's experts and a shared one; sinks and scores in fp32, positions within windows alone."""
    fields = qwen3_moe(c)
    layers = fields["num_hidden_layers"]
    step = c.count("decoder_sparse_step", default=1)
    dense = c.counts("mlp_only_layers") if c.states("mlp_only_layers") else (0, 1)
    full = [i < 2 or i % 4 == 1 or i == layers - 1 for i in range(layers)]
    computed = ["full_attention" if one else "sliding_attention" for one in full]
    kinds = mixers(stated_layers(c, "layer_types", layers) or computed)
    return {
        **fields,
        **unrotated_beyond_windows({"layer_types": ("unrotated_attention",), **kinds}),
        **shared_experts(1, c.count("shared_expert_intermediate_size")),
        **feed_forwards([last and i not in dense for i, last in enumerate(every(step, layers))]),
        "sliding_window": window_size(c),
        "norm": "rms_norm_fp32",
        "attention_sinks": True,
        "sdpa": False,
        "score_scaling": "exact",
        "softmax_in_fp32": False,
        "router_scoring": "sigmoid_exact",
        "router_in_fp32": True,
        "router_casts_back": False,
        "norm_topk_prob": c.flag("norm_topk_prob", default=True),
    }


@family("aria_text")
def aria(c: Config) -> Fields:
    """Llama with experts of ``intermediate_size``, and as many shared ones as are said."""
    fields = llama(c)
    width = fields["intermediate_size"]
    return {
        **fields,
        **experts(c, width),
        **shared_experts(c.count("moe_num_shared_experts", default=2), width),
        "router_scoring": "topk_softmax_plain",
    }


@family("cohere2_moe")
def cohere2_moe(c: Config) -> Fields:
    """Command R7B's parallel layers with experts of ``intermediate_size``."""
    fields = cohere2(c)
    width = fields["intermediate_size"]
    return {
        **fields,
        **experts(c, width),
        **shared_experts(c.count("num_shared_experts", default=0), width),
        **first_dense(c, fields["num_hidden_layers"], 0),
        "intermediate_size": c.count_or_none("prefix_dense_intermediate_size") or width,
        "router_scoring": "topk_softmax_upcast",
    }


@family("kolibri1")
def kolibri(c: Config) -> Fields:
    """Qwen 3's heads, no rotation beyond windows, norms around each half, a shared expert in every layer."""
    fields = llama(c.with_default("intermediate_size", 0))
    return {
        **fields,
        **unrotated_beyond_windows(window_by_layers(c, fields["num_hidden_layers"], 5)),
        **experts(c),
        **shared_experts(1, c.count("shared_expert_intermediate_size")),
        "qk_norm": "head",
        "norm_placement": "sandwich",
        "router_scoring": "sigmoid_last",
        "router_upcast": True,
        "router_correction_bias": True,
        "norm_topk_prob": c.flag("norm_topk_prob", default=False),
    }


@family("beam")
def beam(c: Config) -> Fields:
    """Qwen 3's heads behind a gate, no rotation beyond windows, norms around each half, SwiGLU in fp32.

    Branches and residual stream are scaled by depth; the first layers are dense.
    """
    fields = {**llama(c), "qk_norm": "head"}
    layers = fields["num_hidden_layers"]
    computed = ["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(layers)]
    computed[-1:] = ["full_attention"]
    kinds = stated_layers(c, "layer_types", layers) or tuple(computed)
    rotated = c.within("rope_parameters").stated.value.get("full_attention") is not None
    windows = {**mixers(kinds), "sliding_window": window_size(c)}
    return {
        **fields,
        **(windows if rotated else unrotated_beyond_windows(windows)),
        **experts(c),
        **first_dense(c, layers, 3),
        **by_sigmoids(c),
        "routed_scaling": False,
        "experts_scaled": True,
        "hidden_act": "silu_upcast",
        "norm": "rms_norm_fp32",
        "norm_placement": "sandwich",
        "attention_gate": "elementwise_biased",
        "attention_output_bias": False,
        "rotary_style": "half_fp32",
        "rotary_per_layer_type": True,
        "query_temperature": not rotated,
        "temperature_once": not rotated,
        "stream_scaling": True,
        "final_logit_softcapping": c.number_or_none("final_logit_softcapping"),
        "cap_in_fp32": c.number_or_none("final_logit_softcapping") is not None,
    }
