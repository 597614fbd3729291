"""Towers whose patches are joined by convolutions (GLM 5.3, HunYuan 4)."""

from __future__ import annotations

from memgui.importers.towers.registry import Source, Tower, towers
from memgui.importers.towers.vit import CHANNELS, gated_merger, norms, temporal_patches


@towers("glm5_next")
def glm5_next(s: Source) -> list[Tower]:
    """GLM 5.3: GLM-4.5V's with norms on heads and no learned positions, a wider layer behind."""
    c, t = s.config("vision_config", "glm5_next_vision"), Tower("vision")
    width, layers, out = c.count("hidden_size"), c.count("depth"), c.count("out_hidden_size")
    merge, bias = c.count("spatial_merge_size"), c.flag("attention_bias", default=True)
    temporal_patches(t, c, width, bias=True)
    t.attention(width, layers, bias=bias)
    t.norm("qk_norm", width // max(c.count("num_heads"), 1), bias=False, count=2 * layers)
    t.mlp(width, c.count("intermediate_size"), layers, bias=bias, gated=True)
    norms(t, width, layers, bias=False)
    gated_merger(t, width, out, merge, c.count("projection_intermediate_size"))
    return [t]


@towers("hy_v4_vl")
def hy_v4_vl(s: Source) -> list[Tower]:
    """HunYuan 4: a ViT with learned positions; two convolutions join patches, rows end in a break."""
    c, t = s.config("vision_config", "hy_v4_vl_vision"), Tower("vision")
    width, layers, patch = c.count("hidden_size"), c.count("num_hidden_layers"), c.count("patch_size")
    out, joined = c.count("out_hidden_size"), width * c.count("spatial_merge_size") ** 2
    t.linear("patch_embedding", c.count("num_channels", default=CHANNELS) * patch**2, width)
    t.add("position_embedding", (c.count("max_image_size") // max(patch, 1)) ** 2 + 1, width)
    t.attention(width, layers)
    t.mlp(width, c.count("intermediate_size"), layers)
    norms(t, width, layers)
    t.norm("merger.norm", width, bias=False)
    t.linear("merger.conv", joined, joined)
    t.linear("merger.proj", joined, out)
    t.add("image_newline", out)
    return [t]
