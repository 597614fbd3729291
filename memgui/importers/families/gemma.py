"""Gemma: RMSNorm with 1 + weight in fp32, GeGLU, wide heads, tied head; from 2 on norms on both sides."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import window_by_layers
from memgui.importers.families.registry import Fields, family


@family("gemma")
def gemma(c: Config) -> Fields:
    """Llama with Gemma's norm."""
    return {**llama(c), "norm": "gemma_rms_norm", "embedding_scaling": "buffer"}


@family("gemma2")
def gemma2(c: Config) -> Fields:
    """Norms before and after each half, capped scores and logits, a window in every second layer."""
    fields = gemma(c)
    return {
        **fields,
        **window_by_layers(c, fields["num_hidden_layers"], 2),
        "norm_placement": "sandwich",
        "sdpa": False,
        "attn_logit_softcapping": c.number_or_none("attn_logit_softcapping"),
        "final_logit_softcapping": c.number_or_none("final_logit_softcapping"),
    }


@family("gemma3_text")
def gemma3(c: Config) -> Fields:
    """Norms on each query and key head instead of caps; a window in five of six layers."""
    fields = gemma2(c)
    return {
        **fields,
        **window_by_layers(c, fields["num_hidden_layers"], 6),
        "sdpa": True,
        "rotary_per_layer_type": True,
        "qk_norm": "head",
    }
