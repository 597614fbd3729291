"""GPT-2 and OPT: LayerNorm, learned positions, biases everywhere."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.parts import activation, dimensions, dropouts, ffn_width
from memgui.importers.families.registry import Fields, family


@family("gpt2")
def gpt2(c: Config) -> Fields:
    """Query, key and value from one projection; the head is tied."""
    fields = dimensions(c)
    return {
        **fields,
        **dropouts(c),
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c),
        "gated_mlp": False,
        "norm": "layer_norm",
        "position_embedding": "learned",
        "fused_qkv": True,
        "attention_bias": True,
        "attention_output_bias": True,
        "mlp_bias": True,
    }


@family("opt")
def opt(c: Config) -> Fields:
    """Separate projections; OPT-350M narrows its embedding and has its norms after each half."""
    fields = {**gpt2(c), "fused_qkv": False}
    bias = c.flag("enable_bias", default=True)
    pre = c.flag("do_layer_norm_before", default=True)
    width = c.count_or_none("word_embed_proj_dim")
    return {
        **fields,
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": bias,
        "norm_placement": "pre" if pre else "post",
        "final_norm": pre and not c.flag("_remove_final_layer_norm", default=False),
        "embedding_size": width if width != fields["hidden_size"] else None,
    }
