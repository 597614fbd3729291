"""Llama and its likes: RMSNorm before each half, rotary positions, grouped queries, SwiGLU."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.parts import (
    activation,
    dimensions,
    dropouts,
    ffn_width,
    mixers,
    rotary,
    stated_layers,
    window_behind_switch,
    window_by_layers,
    window_everywhere,
    window_size,
)
from memgui.importers.families.registry import Fields, family


@family("llama", "yi", "aquila", "internlm", "decilm", "open_llama")
def llama(c: Config) -> Fields:
    """The structure that every other one here is a variation of."""
    fields = dimensions(c)
    bias = c.flag("attention_bias", "bias", default=False)
    return {
        **fields,
        **dropouts(c, "attention"),
        **rotary(c, fields["head_dim"]),
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c),
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": c.flag("mlp_bias", default=False),
    }


@family("mistral", "ministral3", "ministral")
def mistral(c: Config) -> Fields:
    """Llama without biases; where a window is stated, every layer has it.  Ministral 3 scales its queries."""
    return {**llama(c), **window_everywhere(c), "query_temperature": c.model_type == "ministral3"}


@family("qwen2")
def qwen2(c: Config) -> Fields:
    """Llama with biases on query, key and value."""
    fields = {**llama(c), "attention_bias": True, "attention_output_bias": False}
    return {**fields, **window_behind_switch(c, fields["num_hidden_layers"])}


@family("qwen3")
def qwen3(c: Config) -> Fields:
    """Llama with norms on each query and key head."""
    fields = {**llama(c), "qk_norm": "head"}
    return {**fields, **window_behind_switch(c, fields["num_hidden_layers"])}


@family("smollm3")
def smollm3(c: Config) -> Fields:
    """Llama; some layers go without rotation, which changes no size."""
    fields = llama(c)
    on = c.flag("use_sliding_window", default=False)
    window = window_size(c)
    layers = stated_layers(c, "layer_types", fields["num_hidden_layers"])
    c.counts("no_rope_layers")
    return {**fields, **({"sliding_window": window, **mixers(layers)} if on and window else {})}


@family("phi3", "phi3_v")
def phi3(c: Config) -> Fields:
    """Llama with query, key and value from one projection, and gate and up from one."""
    return {
        **llama(c),
        **dropouts(c, "attention", "hidden"),
        **window_everywhere(c),
        "fused_qkv": True,
        "fused_qkv_split": "slices",
        "fused_gate_up": True,
        "rotary_style": "part",
    }


FACTORS: Fields = {"embedding_scaling": "number", "residual_scaling": True, "logit_scaling": True}
"""Granite's fixed factors on embedding, residual branches and logits."""


@family("granite")
def granite(c: Config) -> Fields:
    """Llama with fixed factors on embedding, scores, residuals and logits."""
    return {**llama(c), **FACTORS}


@family("olmo")
def olmo(c: Config) -> Fields:
    """Llama with LayerNorms that have no weights."""
    return {
        **llama(c),
        "norm": "plain_layer_norm",
        "rotary_style": "half_fp32",
        "clip_qkv": c.number_or_none("clip_qkv") is not None,
    }


@family("olmo2")
def olmo2(c: Config) -> Fields:
    """Norms on the output of each half, and over all queries and all keys."""
    return {
        **olmo(c),
        "norm": "rms_norm_fp32",
        "norm_placement": "post_branch",
        "qk_norm": "full",
    }


@family("olmo3")
def olmo3(c: Config) -> Fields:
    """OLMo 2 with a window in three of four layers."""
    fields = olmo2(c)
    return {**fields, **window_by_layers(c, fields["num_hidden_layers"], 4), "rotary_per_layer_type": True}


@family("exaone4")
def exaone4(c: Config) -> Fields:
    """Norms on the output of each half and on each query and key head; windows where stated."""
    fields = {**llama(c), "norm_placement": "post_branch", "qk_norm": "head"}
    return {**fields, **window_by_layers(c, fields["num_hidden_layers"], 4)}


@family("glm")
def glm(c: Config) -> Fields:
    """Gate and up from one projection; biases on query, key and value; half of each head rotated."""
    fields = llama(c)
    return {
        **fields,
        **rotary(c, fields["head_dim"], 0.5),
        "attention_output_bias": False,
        "fused_gate_up": True,
        "rotary_style": "pairs_part",
    }


@family("glm4")
def glm4(c: Config) -> Fields:
    """GLM with norms before and after each half."""
    return {**glm(c), "norm_placement": "sandwich"}
