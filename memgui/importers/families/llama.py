"""Llama and its likes: RMSNorm before each half, rotary positions, grouped queries, SwiGLU."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.parts import (
    activation,
    dimensions,
    dropouts,
    ffn_width,
    mixers,
    stated_layers,
    window_behind_switch,
    window_everywhere,
)
from memgui.importers.families.registry import Fields, family


@family("llama", "yi", "aquila", "internlm", "decilm", "open_llama")
def llama(c: Config) -> Fields:
    """The structure that every other one here is a variation of."""
    fields = dimensions(c)
    bias = c.flag("attention_bias", "bias", default=False)
    return {
        **fields,
        **dropouts(c),
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c),
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": c.flag("mlp_bias", default=False),
    }


@family("mistral", "ministral3", "ministral")
def mistral(c: Config) -> Fields:
    """Llama without biases; where a window is stated, every layer has it."""
    return {**llama(c), **window_everywhere(c)}


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
    window = c.count_or_none("sliding_window") if c.flag("use_sliding_window", default=False) else None
    layers = stated_layers(c, "layer_types", fields["num_hidden_layers"])
    c.counts("no_rope_layers")
    return {**fields, **({"sliding_window": window, **mixers(layers)} if window else {})}


@family("phi3")
def phi3(c: Config) -> Fields:
    """Llama with query, key and value from one projection, and gate and up from one."""
    return {
        **llama(c),
        "fused_qkv": True,
        "fused_gate_up": True,
        "attention_bias": False,
        "attention_output_bias": False,
        "mlp_bias": False,
        **window_everywhere(c),
    }
