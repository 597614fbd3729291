"""Hybrids whose layers are one thing each, or short convolutions: Nemotron-H, LFM2, Granite 4."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.hybrid import mamba2_beside_attention
from memgui.importers.families.llama import FACTORS, llama
from memgui.importers.families.parts import (
    ATTENTION,
    activation,
    experts,
    mixers,
    rhythm,
    shared_experts,
    stated_layers,
    window_size,
)
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP

CONVOLUTION = {**ATTENTION, "conv": "short_conv"}
GRANITE = {**ATTENTION, "mamba": "mamba2", "linear_attention": "mamba2"}
LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
MIXERS = {"mamba": "mamba2", "linear_attention": "mamba2", "attention": "full_attention"}
MIXERS |= {"full_attention": "full_attention", "mlp": "none", "moe": "none"}
FEED_FORWARDS = {"mlp": "dense", "moe": "sparse"}


@family("nemotron_h")
def nemotron_h(c: Config) -> Fields:
    """Each layer is one of Mamba-2, attention, feed-forward, experts; no gates, no positions."""
    kinds = _one_thing_each(c)
    fields = llama(c.with_default("num_hidden_layers", len(kinds)))
    layers = fields["num_hidden_layers"]
    heads, width = c.count("mamba_num_heads"), c.count("mamba_head_dim")
    number = c.count("n_shared_experts", default=0)
    parts = {
        **experts(c),
        **shared_experts(number, c.count("moe_shared_expert_intermediate_size", default=0)),
        "moe_latent_size": c.count_or_none("moe_latent_size") or 0,
        "router_scoring": "sigmoid",
        "norm_topk_prob": c.flag("norm_topk_prob", default=True),
        "routed_scaling": True,
        "router_correction_bias": True,
        "router_in_fp32": True,
    }
    return {
        **fields,
        **(parts if "moe" in kinds else {}),
        "layer_types": rhythm([MIXERS[kind] for kind in kinds[:layers]]),
        "mlp_layer_types": rhythm([FEED_FORWARDS.get(kind, "none") for kind in kinds[:layers]]),
        "norm": "rms_norm_fp32_copied",
        "logits_in_fp32": True,
        "position_embedding": "none",
        "gated_mlp": False,
        "hidden_act": activation(c.renamed("hidden_act", "mlp_hidden_act"), "relu2"),
        "mamba_d_ssm": heads * width,
        "mamba_d_state": c.count("ssm_state_size"),
        "mamba_d_conv": c.count("conv_kernel"),
        "mamba_n_heads": heads,
        "mamba_d_head": width,
        "mamba_n_groups": c.count("n_groups"),
        "mamba_chunk_size": c.count("chunk_size"),
        "mamba_conv_bias": c.flag("use_conv_bias", default=True),
        "mamba_proj_bias": c.flag("mamba_proj_bias", default=False),
        "mamba_inner_norm": "gated",
    }


def _one_thing_each(c: Config) -> tuple[str, ...]:
    """``layers_block_type``, or letters in ``hybrid_override_pattern``."""
    if c.states_text("hybrid_override_pattern"):
        letters = c.text("hybrid_override_pattern")
        kinds = tuple(LETTERS.get(letter, letter) for letter in letters)
    else:
        kinds = c.texts("layers_block_type") or c.texts("layer_types")
    unknown = next((kind for kind in kinds if kind not in MIXERS), None)
    if unknown is not None or not kinds:
        c.refuse(
            "hybrid_override_pattern",
            QT_TRANSLATE_NOOP(
                "messages",
                "{file}: {where} is {value}; a pattern of M, *, - and E is needed, one for each layer.",
            ),
        )
    return kinds


@family("lfm2")
def lfm2(c: Config) -> Fields:
    """Short convolutions with attention in some layers; norms on each query and key head."""
    c = c.renamed("intermediate_size", "block_ff_dim").renamed("tie_word_embeddings", "tie_embedding")
    fields = llama(c)
    layers, width = fields["num_hidden_layers"], fields["intermediate_size"]
    attention = set(c.counts("full_attn_idxs"))
    stated = stated_layers(c, "layer_types", layers, kinds=CONVOLUTION)
    computed = ["full_attention" if i in attention or not attention else "short_conv" for i in range(layers)]
    if c.flag("block_auto_adjust_ff_dim", default=True):
        step = c.count("block_multiple_of", default=256) or 1
        width = int((c.number_or_none("block_ffn_dim_multiplier") or 1.0) * int(2 * width / 3))
        width = -(-width // step) * step
    return {
        **fields,
        **mixers(stated or computed),
        "intermediate_size": width,
        "qk_norm": "head",
        "dropouts": (),
        "conv1d_width": c.count("conv_L_cache"),
        "mamba_conv_bias": c.flag("conv_bias", default=False),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }


@family("lfm3")
def lfm3(c: Config) -> Fields:
    """LFM2's convolutions, windows beside full attention, a gate for each head, norms around each half."""
    fields = llama(c)
    layers = fields["num_hidden_layers"]
    computed = [
        ("full_attention" if i % 4 == 2 else "sliding_attention" if i and i % 4 == 0 else "short_conv")
        for i in range(layers)
    ]
    sandwiched = c.flag("use_sandwich_norm", default=True)
    return {
        **fields,
        **mixers(stated_layers(c, "layer_types", layers, kinds=CONVOLUTION) or computed),
        "sliding_window": window_size(c),
        "qk_norm": "head",
        "norm_placement": "sandwich" if sandwiched else "pre",
        "attention_gate": "per_head_sigmoid" if c.flag("use_attention_gate", default=True) else "none",
        "rotary_style": "half_fp32",
        "rotary_per_layer_type": True,
        "conv1d_width": c.count("conv_L_cache"),
        "mamba_conv_bias": c.flag("conv_bias", default=False),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }


@family("granitemoehybrid")
def granitemoehybrid(c: Config) -> Fields:
    """Granite 4: Mamba-2 or attention, then a shared feed-forward, beside experts where there are any."""
    fields = llama(c)
    layers, width = fields["num_hidden_layers"], c.count("shared_intermediate_size")
    stated = stated_layers(c, "layer_types", layers, kinds=GRANITE)
    number = c.count("num_experts", default=0)
    rotated = c.states("position_embedding_type") and c.text("position_embedding_type") == "rope"
    return {
        **fields,
        **mamba2_beside_attention(c, fields["hidden_size"]),
        **mixers(stated or ("mamba2",) * layers),
        **(
            {**experts(c, fields["intermediate_size"]), **shared_experts(1, width)}
            if number
            else {"intermediate_size": width}
        ),
        **FACTORS,
        "router_scoring": "topk_softmax_fp32",
        "fused_gate_up": True,
        "position_embedding": "rope" if rotated else "none",
        "mamba_inner_norm": "gated",
    }
