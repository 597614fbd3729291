"""Multi-head latent attention: keys and values from a compressed, cached latent (DeepSeek and its likes)."""

from __future__ import annotations

from itertools import cycle

from memgui.importers.config_reader import Config
from memgui.importers.families.experts import by_sigmoids, first_dense
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import every, experts, mixers, rhythm, shared_experts, stated_layers
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP

KIMI = {"full_attention": "full_attention", "linear_attention": "kda"}
KDA_CHUNK = 64
"""Tokens that Transformers' Kimi delta attention solves for together."""
INDEXERS = {"full": "indexed_attention", "shared": "shared_indexed_attention"}


def latent_attention(c: Config) -> Fields:
    """The sizes of the latent and of the heads made from it."""
    rotated = c.count("qk_rope_head_dim")
    unrotated = c.count("qk_nope_head_dim")
    c.count_or_none("qk_head_dim")  # the sum of the two
    return {
        "q_lora_rank": c.count_or_none("q_lora_rank"),
        "kv_lora_rank": c.count("kv_lora_rank"),
        "qk_nope_head_dim": unrotated,
        "qk_rope_head_dim": rotated,
        "v_head_dim": c.count("v_head_dim"),
        "head_dim": rotated + unrotated,
        "rotary_dim": rotated,
    }


@family("deepseek_v2")
def deepseek_v2(c: Config) -> Fields:
    """Latent attention; the first layers dense, then routed experts beside shared ones."""
    latent = latent_attention(c)
    fields = llama(c.with_default("head_dim", latent["head_dim"]))
    number = c.count_or_none("n_shared_experts") or 0
    return {
        **fields,
        **latent,
        **experts(c),
        **shared_experts(number, c.count("moe_intermediate_size")),
        **first_dense(
            c, fields["num_hidden_layers"], c.count("first_k_dense_replace", default=int(c.model_type in ONE))
        ),
        "rotary_style": "complex",
        "router_in_fp32": True,
        "routed_scaling": True,
    }


ONE = (
    "glm4_moe_lite",
    "kimi_linear",
    "axk1",
    "axk2",
    "mistral_large4_text",
    "mistral_large4",
    "hy_v4",
    "hy_v4_vl_text",
)
"""Types whose first layer is dense where nothing is said."""


@family("deepseek_v3", "kimi_k2")
def deepseek_v3(c: Config) -> Fields:
    """DeepSeek-V2 with a balance in the router that is a buffer."""
    pairs = c.flag("rope_interleave", default=True)
    return {**deepseek_v2(c), **by_sigmoids(c), "rotary_style": "pairs_quarters" if pairs else "half"}


@family("deepseek_v32", "glm_moe_dsa")
def deepseek_v32(c: Config) -> Fields:
    """DeepSeek-V3 with an indexer in front of attention; GLM 5.2 shares one among several layers."""
    fields = deepseek_v3(c)
    layers = fields["num_hidden_layers"]
    stated = stated_layers(c, "indexer_types", layers, kinds=INDEXERS)
    every_nth = max(c.count("index_topk_freq", default=1), 1)
    offset = c.count("index_skip_topk_offset", default=2)
    computed = [INDEXERS["shared" if max(i - offset + 1, 0) % every_nth else "full"] for i in range(layers)]
    dense = stated_layers(c, "mlp_layer_types", layers, kinds={"dense": "dense", "sparse": "sparse"})
    return {
        **fields,
        **mixers(stated or computed),
        **({"mlp_layer_types": rhythm(dense)} if dense else {}),
        "index_n_heads": c.count("index_n_heads"),
        "index_head_dim": c.count("index_head_dim"),
        "index_topk": c.count("index_topk"),
    }


@family("axk1")
def axk1(c: Config) -> Fields:
    """DeepSeek-V3 with a norm behind its experts."""
    return {**deepseek_v3(c), "experts_norm": True}


@family("axk2")
def axk2(c: Config) -> Fields:
    """DeepSeek-V3.2 whose norms have gates before attention and experts, and its attention one behind it."""
    c.texts("layer_types")  # which are all alike
    return {**deepseek_v32(c), "query_gate": True, "gated_norm_rank": c.count("gated_norm_rank")}


@family("mistral4")
def mistral4(c: Config) -> Fields:
    """DeepSeek's attention and experts, without a balance in the router."""
    return deepseek_v2(c)


@family("mistral_large4_text", "mistral_large4")
def mistral_large4(c: Config) -> Fields:
    """GLM 5.2's indexer in front of DeepSeek's attention, without query latent; each fourth layer unrotated.

    Frequencies and the queries' scale are learned; the router is Mistral 4's, in fp32.
    """
    fields = deepseek_v32(c)
    layers = fields["num_hidden_layers"]
    rotated = c.counts("no_rope_layers") or tuple(
        int(not last) for last in every(c.count("no_rope_layer_interval", default=4), layers)
    )
    c.texts("layer_types")  # which are all alike
    sources = c.counts("kv_source_layers")
    if any(source != i for i, source in enumerate(sources)):
        c.refuse(
            "kv_source_layers",
            QT_TRANSLATE_NOOP(
                "messages", "{file}: {where}: layers that share a latent are not described yet."
            ),
        )
    kinds = fields.get("layer_types", ("full_attention",))
    each = zip(cycle(kinds), rotated[:layers], strict=False)
    return {
        **fields,
        **mixers([kind if turned else f"unrotated_{kind}" for kind, turned in each]),
        "q_lora_rank": None,
        "head_temperature": True,
        "rotary_learned": True,
        "rotary_style": "pairs_quarters",
        "router_scoring": "softmax",
        "router_correction_bias": False,
        "norm_topk_prob": True,
        "routed_scaling": True,
        "final_logit_softcapping": c.number_or_none("final_logit_softcapping"),
    }


@family("hy_v4", "hy_v4_vl_text")
def hy_v4(c: Config) -> Fields:
    """HunYuan 4: GLM 5.2's indexers and DeepSeek's attention with a gate and sinks, over several streams."""
    fields = deepseek_v32(c)
    layers = fields["num_hidden_layers"]
    kinds = stated_layers(c, "indexer_types", layers, kinds=INDEXERS)
    computed = [INDEXERS["shared" if i and (i - 1) % 4 else "full"] for i in range(layers)]
    c.texts("layer_types")  # which are all alike
    for key in ("hc_magnitude", "learnable_sink_init", "swiglu_limit"):
        c.number_or_none(key)  # whatever they are
    return {
        **fields,
        **mixers(kinds or computed),
        "num_key_value_heads": fields["num_attention_heads"],
        "rotary_style": "half" if c.model_type == "hy_v4" else "pairs",  # by tables that each layer copies
        "rotary_per_sequence": c.model_type != "hy_v4",
        "hc_mult": c.count("hc_mult", default=4),
        "attention_gate": "elementwise",
        "attention_sinks": True,
        "sdpa": False,
        "softmax_in_fp32": False,
        "indexer_in_fp32": True,
        "experts_clamped": True,
        "head_in_fp32": True,
    }


TWICE = QT_TRANSLATE_NOOP(
    "messages",
    "Each of the {layers} layers has attention and a feed-forward twice. Experts without weights ({zero}) "
    "are counted as if those with weights had their tokens; Transformers' class holds gate and up of these "
    "too, which no checkpoint has: they are left out.",
)


@family("longcat_flash")
def longcat_flash(c: Config) -> Fields:
    """Latent attention and dense feed-forwards twice in a layer, experts on a shortcut around the second."""
    for key in ("mla_scale_q_lora", "mla_scale_kv_lora"):
        c.flag(key, default=True)  # numbers of no size
    for key in ("attention_method", "zero_expert_type"):
        c.text(key, default="")  # of which there is one each
    latent = latent_attention(c)
    fields = llama(c.with_default("head_dim", latent["head_dim"]))
    zero = c.count("zero_expert_num", default=0)
    c.assume(TWICE, layers=fields["num_hidden_layers"], zero=zero)
    return {
        **fields,
        **latent,
        **experts(c),
        "shortcut_experts": True,
        "zero_expert_num": zero,
        "latent_scaling": True,
        "rotary_style": "pairs_quarters",
        "router_scoring": "softmax_balanced",
        "router_bias": c.flag("router_bias", default=False),
        "router_upcast": True,
        "router_correction_bias": True,
        "routed_scaling": True,
    }


GLM_5_3 = {
    "linear_attention": "kda",
    "indexed_attention": "grouped_indexed_attention",
    "full_attention": "grouped_indexed_attention",
}


@family("glm5_next_text")
def glm5_next(c: Config) -> Fields:
    """Kimi delta attention, and latent attention to chosen groups once in a period; several streams."""
    head = c.count("qk_nope_head_dim")
    c.count_or_none("qk_head_dim")  # the same
    for key in ("qk_rope_head_dim", "head_dim"):  # 0: nothing is rotated
        c.integer_or_none(key)
    fields = llama(c.renamed("head_dim", "qk_nope_head_dim"))
    layers = fields["num_hidden_layers"]
    linear = c.within("linear_attn_config")
    heads = _either(linear, "num_heads", c, "linear_num_heads", 64)
    width = _either(linear, "head_dim", c, "linear_head_dim", 128)
    kinds = stated_layers(c, "layer_types", layers, kinds=GLM_5_3)
    computed = ["kda" if i % 4 != 3 else "grouped_indexed_attention" for i in range(layers)]
    if "shared" in c.texts("indexer_types"):
        c.assume(
            QT_TRANSLATE_NOOP(
                "messages", "Layers that share an indexer's choice are counted as if each chose."
            )
        )
    lowest = c.number_or_none("linear_lower_bound"), linear.number_or_none("gate_lower_bound")
    safe = linear.flag("safe_gate", default=True) if c.states("linear_attn_config") else False
    c.flag("index_kpool_always_select_tail", default=True)  # a few tokens more
    c.number_or_none("swiglu_limit")
    return {
        **fields,
        **experts(c),
        **shared_experts(c.count_or_none("n_shared_experts") or 0, c.count("moe_intermediate_size")),
        **first_dense(c, layers, 3),
        **by_sigmoids(c),
        **mixers(kinds or computed),
        "position_embedding": "none",
        "q_lora_rank": c.count("q_lora_rank"),
        "kv_lora_rank": c.count("kv_lora_rank"),
        "qk_nope_head_dim": head,
        "v_head_dim": c.count("v_head_dim"),
        "head_dim": head,
        "index_n_heads": c.count("index_n_heads"),
        "index_head_dim": c.count("index_head_dim"),
        "index_topk": c.count("index_topk"),
        "compress_rate_csa": c.count("index_kpool", default=16),
        "linear_num_key_heads": heads,
        "linear_num_value_heads": heads,
        "linear_key_head_dim": width,
        "linear_value_head_dim": width,
        "linear_conv_kernel_dim": _either(linear, "short_conv_kernel_size", c, "linear_conv_kernel_dim", 4),
        "linear_chunk_size": KDA_CHUNK,
        "linear_bounded": safe or any(one is not None for one in lowest),
        "linear_exact": True,
        "hidden_act": "silu_clamped",
        "hc_mult": c.count("hc_mult", default=4),
        "hc_sinkhorn_iters": c.count("hc_sinkhorn_iters", default=20),
        "hc_upcast": True,
        "hc_averaged": True,
    }


@family("deepseek")
def deepseek(c: Config) -> Fields:
    """DeepSeek's first mixture of experts: Llama's attention, the first layers dense."""
    fields = llama(c)
    return {
        **fields,
        **experts(c),
        **shared_experts(c.count_or_none("n_shared_experts") or 0, c.count("moe_intermediate_size")),
        **first_dense(c, fields["num_hidden_layers"], c.count("first_k_dense_replace", default=0)),
    }


def _either(inner: Config, key: str, outer: Config, other: str, default: int) -> int:
    """A number of the inner object; where it states none, the outer one's under another name."""
    return inner.count(key) if key in inner.stated else outer.count(other, default=default)


@family("kimi_linear")
def kimi_linear(c: Config) -> Fields:
    """Kimi delta attention, with DeepSeek's latent attention without rotation once in a period."""
    fields = deepseek_v3(c)
    layers = fields["num_hidden_layers"]
    linear = c.within("linear_attn_config")
    full = {i - 1 for i in linear.counts("full_attn_layers")}
    linear.counts("kda_layers")
    heads = _either(linear, "num_heads", c, "linear_num_heads", 32)
    width = _either(linear, "head_dim", c, "linear_head_dim", 128)
    window = _either(linear, "short_conv_kernel_size", c, "linear_conv_kernel_dim", 4)
    computed = [
        "full_attention" if i in full or (not full and i and not i % 4) else "kda" for i in range(layers)
    ]
    dense = stated_layers(c, "mlp_layer_types", layers, kinds={"dense": "dense", "sparse": "sparse"})
    return {
        **fields,
        **mixers(stated_layers(c, "layer_types", layers, kinds=KIMI) or computed),
        **({"mlp_layer_types": rhythm(dense)} if dense else {}),
        "position_embedding": "none",
        "linear_num_key_heads": heads,
        "linear_num_value_heads": heads,
        "linear_key_head_dim": width,
        "linear_value_head_dim": width,
        "linear_conv_kernel_dim": window,
        "linear_chunk_size": KDA_CHUNK,
        "moe_latent_size": c.count("routed_expert_hidden_size", default=0),
    }
