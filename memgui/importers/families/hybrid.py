"""State spaces and other recurrences, alone or among attention layers."""

from __future__ import annotations

from collections.abc import Mapping

from memgui.importers.config_reader import Config
from memgui.importers.families.experts import cast_back, sparse_by_step
from memgui.importers.families.llama import llama, olmo2
from memgui.importers.families.parts import (
    ATTENTION,
    activation,
    every,
    experts,
    feed_forwards,
    mixers,
    rotary,
    shared_experts,
    stated_layers,
    unrotated_beyond_windows,
    window_size,
    without_attention,
)
from memgui.importers.families.registry import Fields, family

LIGHTNING = {**ATTENTION, "linear_attention": "lightning_attention"}
DELTA = {**ATTENTION, "linear_attention": "gated_delta_net"}
ZAMBA = {"linear_attention": "mamba2", "mamba": "mamba2", "hybrid": "shared_mamba2"}
DELTA_CHUNK = 64
"""Tokens that Transformers' delta rule solves for together."""
GRIFFIN = {"recurrent": "rg_lru", "attention": "sliding_attention"}


@family("mamba")
def mamba(c: Config) -> Fields:
    """Mamba-1 layers and nothing else."""
    fields = without_attention(c)
    hidden = fields["hidden_size"]
    expanded = c.count("expand", default=2) * hidden
    return {
        **fields,
        "layer_types": ("mamba",),
        "mamba_d_ssm": c.count_or_none("intermediate_size", "d_inner") or expanded,
        "mamba_d_state": c.count("state_size"),
        "mamba_d_conv": c.count("conv_kernel"),
        "mamba_dt_rank": c.count_or_auto("time_step_rank", -(-hidden // 16)),
        "mamba_conv_bias": c.flag("use_conv_bias", default=True),
        "mamba_proj_bias": c.flag("use_bias", default=False),
        "residual_in_fp32": c.flag("residual_in_fp32", default=True),
        "logits_in_fp32": True,
    }


@family("falcon_mamba")
def falcon_mamba(c: Config) -> Fields:
    """Mamba-1 with norms without weights on time step, input and output maps."""
    return {**mamba(c), "mamba_inner_norm": "plain_selection"}


@family("mamba2")
def mamba2(c: Config) -> Fields:
    """Mamba-2 layers and nothing else."""
    fields = without_attention(c)
    return {
        **fields,
        "layer_types": ("mamba2",),
        "mamba_d_ssm": c.count("expand", default=2) * fields["hidden_size"],
        "mamba_d_state": c.count("state_size"),
        "mamba_d_conv": c.count("conv_kernel"),
        "mamba_n_heads": c.count("num_heads"),
        "mamba_d_head": c.count("head_dim"),
        "mamba_n_groups": c.count("n_groups"),
        "mamba_chunk_size": c.count("chunk_size"),
        "mamba_conv_bias": c.flag("use_conv_bias", default=True),
        "mamba_proj_bias": c.flag("use_bias", default=False),
        "residual_in_fp32": c.flag("residual_in_fp32", default=True),
        "logits_in_fp32": True,
        "mamba_inner_norm": "gated",
    }


def mamba2_beside_attention(c: Config, hidden: int) -> Fields:
    """Mamba-2's sizes under the names that Bamba, Falcon-H1 and Granite 4 use."""
    heads = c.count("mamba_n_heads")
    if c.states("mamba_d_ssm") or not c.states("mamba_d_head") or c.states_text("mamba_d_head"):
        width = c.count_or_none("mamba_d_ssm") or c.count("mamba_expand", default=2) * hidden
        head = c.count_or_auto("mamba_d_head", width // max(heads, 1))
    else:  # the class's default width does not know of these heads
        head = c.count("mamba_d_head")
        width = heads * head
    return {
        "mamba_d_ssm": width,
        "mamba_d_state": c.count("mamba_d_state"),
        "mamba_d_conv": c.count("mamba_d_conv"),
        "mamba_n_heads": heads,
        "mamba_d_head": head,
        "mamba_n_groups": c.count("mamba_n_groups"),
        "mamba_chunk_size": c.count("mamba_chunk_size"),
        "mamba_conv_bias": c.flag("mamba_conv_bias", default=True),
        "mamba_proj_bias": c.flag("mamba_proj_bias", default=False),
    }


@family("bamba")
def bamba(c: Config) -> Fields:
    """Mamba-2 in most layers, attention in those of ``attn_layer_indices``; a feed-forward in each."""
    fields = llama(c)
    attention = set(c.counts("attn_layer_indices"))
    layers = ["full_attention" if i in attention else "mamba2" for i in range(fields["num_hidden_layers"])]
    return {
        **fields,
        **mamba2_beside_attention(c, fields["hidden_size"]),
        **rotary(c, fields["head_dim"], 0.5),
        **mixers(layers),
        "mamba_inner_norm": "gated",
    }


@family("zamba2")
def zamba2(c: Config) -> Fields:
    """Mamba-2 in each layer, in some behind a transformer that they share, which reads the embedding too."""
    hidden = c.count("hidden_size")
    fields = llama(c.with_default("head_dim", 2 * hidden // max(c.count("num_attention_heads"), 1)))
    layers, width = fields["num_hidden_layers"], c.count("mamba_expand", default=2) * hidden
    stated = stated_layers(c, "layers_block_type", layers, "layer_types", kinds=ZAMBA)
    usual = [6, *range(12, 43, 6), 47, 51]
    computed = ["shared_mamba2" if i in usual else "mamba2" for i in range(layers)]
    bias = c.flag("add_bias_linear", default=False)
    heads = c.count("n_mamba_heads")
    return {
        **fields,
        "layer_types": stated or tuple(computed),
        "mlp_layer_types": ("none",),
        "hidden_act": activation(c, "gelu"),
        "position_embedding": "rope" if c.flag("use_mem_rope", default=False) else "none",
        "mamba_d_ssm": width,
        "mamba_d_state": c.count("mamba_d_state"),
        "mamba_d_conv": c.count("mamba_d_conv"),
        "mamba_n_heads": heads,
        "mamba_d_head": width // max(heads, 1),
        "mamba_n_groups": c.count("mamba_ngroups"),
        "mamba_chunk_size": c.count("chunk_size"),
        "mamba_conv_bias": True,
        "mamba_proj_bias": bias,
        "mlp_bias": bias,
        "mamba_inner_norm": "gated",
        "num_mem_blocks": c.count("num_mem_blocks", default=1),
        "adapter_rank": c.count("adapter_rank", default=128),
        "shared_attention_adapter": c.flag("use_shared_attention_adapter", default=False),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }


@family("falcon_h1")
def falcon_h1(c: Config) -> Fields:
    """Attention and Mamba-2 side by side in every layer."""
    fields = llama(c)
    bias = c.flag("projectors_bias", default=False)
    gated = "norm_gated" if c.flag("mamba_norm_before_gate", default=True) else "gated"
    return {
        **fields,
        **mamba2_beside_attention(c, fields["hidden_size"]),
        "mamba_proj_bias": c.flag("mamba_proj_bias", default=False) or bias,
        "layer_types": ("attention_mamba2",),
        "mamba_inner_norm": gated if c.flag("mamba_rms_norm", default=False) else "none",
        "mup_scaling": True,
        "embedding_scaling": "number",
        "logit_scaling": True,
    }


@family("jamba")
def jamba(c: Config) -> Fields:
    """Mamba-1 with attention once in a period, experts in every second layer; no positions."""
    fields = llama(c)
    hidden, layers = fields["hidden_size"], fields["num_hidden_layers"]
    period, offset = c.count("attn_layer_period"), c.count("attn_layer_offset")
    expert_period, expert_offset = c.count("expert_layer_period"), c.count("expert_layer_offset")
    kinds = ["full_attention" if i % max(period, 1) == offset else "mamba" for i in range(layers)]
    return {
        **fields,
        **experts(c, fields["intermediate_size"]),
        **feed_forwards([i % max(expert_period, 1) == expert_offset for i in range(layers)]),
        **mixers(kinds),
        "position_embedding": "none",
        "mamba_d_ssm": c.count("mamba_expand") * hidden,
        "mamba_d_state": c.count("mamba_d_state"),
        "mamba_d_conv": c.count("mamba_d_conv"),
        "mamba_dt_rank": c.count_or_auto("mamba_dt_rank", -(-hidden // 16)),
        "mamba_conv_bias": c.flag("mamba_conv_bias", default=True),
        "mamba_proj_bias": c.flag("mamba_proj_bias", default=False),
        "mamba_inner_norm": "selection",
    }


@family("minimax")
def minimax(c: Config) -> Fields:
    """Lightning attention with full attention once in a period, experts in every layer."""
    fields = llama(c)
    layers = fields["num_hidden_layers"]
    stated = stated_layers(c, "layer_types", layers, kinds=LIGHTNING)
    computed = ["lightning_attention" if last else "full_attention" for last in every(2, layers)]
    return {
        **fields,
        **experts(c, fields["intermediate_size"]),
        **mixers(stated or computed),
        "norm_placement": "normed",
        "norm_topk_prob": True,
        "linear_chunk_size": c.count("block_size", default=256),
    }


def delta_net(c: Config, fields: Fields, kinds: Mapping[str, str] = DELTA) -> Fields:
    """Qwen3-Next and 3.5: gated delta nets, gated attention once in a period, Gemma's norm."""
    layers = fields["num_hidden_layers"]
    period = c.count("full_attention_interval", default=4)
    stated = stated_layers(c, "layer_types", layers, kinds=kinds)
    full = kinds["full_attention"]
    computed = [full if last else "gated_delta_net" for last in every(period, layers)]
    return {
        **mixers(stated or computed),
        **rotary(c, fields["head_dim"], 0.25),
        "norm": "gemma_rms_norm",
        "qk_norm": "head",
        "attention_output_gate": True,
        **_delta_sizes(c),
    }


def _delta_sizes(c: Config) -> Fields:
    sizes = (
        *("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim"),
        *("linear_value_head_dim", "linear_conv_kernel_dim"),
    )
    return {**{name: c.count(name) for name in sizes}, "linear_chunk_size": DELTA_CHUNK}


@family("qwen3_5_text")
def qwen3_5(c: Config) -> Fields:
    """Dense feed-forwards between delta nets and gated attention."""
    fields = llama(c)
    return {**fields, **delta_net(c, fields), "rotary_per_sequence": True}


@family("qwen3_next")
def qwen3_next(c: Config) -> Fields:
    """Routed experts and a gated shared one."""
    fields = llama(c)
    return {
        **fields,
        **experts(c),
        **cast_back(c),
        **sparse_by_step(c, fields["num_hidden_layers"]),
        **shared_experts(1, c.count("shared_expert_intermediate_size"), gate=True),
        **delta_net(c, fields),
        "linear_fused": True,
    }


@family("qwen3_5_moe_text")
def qwen3_5_moe(c: Config) -> Fields:
    """Qwen 3.5 with routed experts and a gated shared one in every layer."""
    c = c.with_default("intermediate_size", 0)
    fields = llama(c)
    shared = shared_experts(1, c.count("shared_expert_intermediate_size"), gate=True)
    delta = {**delta_net(c, fields), "rotary_per_sequence": True}
    return {**fields, **experts(c), **shared, **delta}


@family("lara_mini")
def lara_mini(c: Config) -> Fields:
    """Qwen 3.5's delta nets among windows and layers without positions; experts and a shared one in each."""
    fields = llama(c.with_default("intermediate_size", 0))
    layers = fields["num_hidden_layers"]
    period = (
        "gated_delta_net",
        "sliding_attention",
        "gated_delta_net",
        "full_attention",
        "sliding_attention",
    )
    computed = [period[i % len(period)] for i in range(layers)]
    kinds = stated_layers(c, "layer_types", layers, kinds=DELTA) or computed
    return {
        **fields,
        **_delta_sizes(c),
        **unrotated_beyond_windows({"layer_types": ("unrotated_attention",), **mixers(kinds)}),
        **experts(c),
        **shared_experts(1, c.count("shared_expert_intermediate_size")),
        "sliding_window": window_size(c),
        "norm": "rms_norm_fp32_copied",
        "qk_norm": "head",
        "router_scoring": "softmax_exact",
        "norm_topk_prob": c.flag("norm_topk_prob", default=True),
    }


@family("olmo_hybrid")
def olmo_hybrid(c: Config) -> Fields:
    """OLMo 3's attention in one of four layers, delta nets with a norm before each half in the others."""
    fields = olmo2(c)
    layers, hidden = fields["num_hidden_layers"], fields["hidden_size"]
    heads = fields["num_attention_heads"]
    read = c.count_or_none("linear_num_key_heads") or heads
    width = c.count_or_none("linear_key_head_dim") or hidden * 3 // 4 // max(read, 1)
    computed = ["full_attention" if last else "gated_delta_net" for last in every(4, layers)]
    if layers and "full_attention" not in computed:
        computed[-1] = "full_attention"
    rotated = c.within("rope_parameters").stated.value.get("rope_theta") is not None
    return {
        **fields,
        **mixers(stated_layers(c, "layer_types", layers, kinds=DELTA) or computed),
        "position_embedding": "rope" if rotated else "none",
        "norm_placement": "post_branch_attention",
        "linear_num_key_heads": read,
        "linear_num_value_heads": c.count_or_none("linear_num_value_heads") or heads,
        "linear_key_head_dim": width,
        "linear_value_head_dim": c.count_or_none("linear_value_head_dim") or 2 * width,
        "linear_conv_kernel_dim": c.count_or_none("linear_conv_kernel_dim") or 4,
        "linear_chunk_size": DELTA_CHUNK,
        "linear_separate": True,
        "linear_doubled": c.flag("linear_allow_neg_eigval", default=True),
    }


@family("recurrent_gemma")
def recurrent_gemma(c: Config) -> Fields:
    """Griffin: gated linear recurrences, and attention in a window once in a period."""
    fields = llama(c)
    layers, hidden = fields["num_hidden_layers"], fields["hidden_size"]
    pattern = c.texts("block_types", "_block_types") or ("recurrent", "recurrent", "attention")
    kinds = [GRIFFIN.get(pattern[i % len(pattern)], "rg_lru") for i in range(layers)]
    return {
        **fields,
        **rotary(c, fields["head_dim"], 0.5),
        **mixers(kinds),
        "intermediate_size": fields["intermediate_size"] // 2,
        "sliding_window": c.count("attention_window_size"),
        "norm": "gemma_rms_norm",
        "embedding_scaling": "normalizer",
        "rotary_in_layer": True,
        "mlp_bias": True,
        "attention_output_bias": True,
        "final_logit_softcapping": c.number_or_none("logits_soft_cap"),
        "lru_width": c.count_or_none("lru_width") or hidden,
        "conv1d_width": c.count("conv1d_width"),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }
