"""Vision transformers that many models share, and what joins their patches."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.towers.registry import Tower

CHANNELS = 3


def norms(t: Tower, width: int, layers: int, *, bias: bool = True) -> None:
    """The two norms of each layer."""
    for name in ("norm_1", "norm_2"):
        t.norm(name, width, bias=bias, count=layers)


def clip_vit(t: Tower, c: Config, *, after: bool = True) -> int:
    """CLIP's ViT: a class token, learned positions, a norm before and after; its width."""
    width, layers, patch = c.count("hidden_size"), c.count("num_hidden_layers"), c.count("patch_size")
    t.add("class_embedding", width)
    t.add("patch_embedding", width, c.count("num_channels", default=CHANNELS), patch, patch)
    t.add("position_embedding", patches(c) + 1, width)
    t.norm("norm_before", width)
    t.attention(width, layers)
    t.mlp(width, c.count("intermediate_size"), layers)
    norms(t, width, layers)
    if after:
        t.norm("norm_after", width)
    return width


def siglip_vit(t: Tower, c: Config, layers: int = 0) -> int:
    """SigLIP's ViT without its pooling head; its width."""
    width, layers = c.count("hidden_size"), layers or c.count("num_hidden_layers")
    patch = c.count("patch_size")
    t.add("patch_embedding", width, c.count("num_channels", default=CHANNELS), patch, patch)
    t.add("patch_embedding_bias", width)
    t.add("position_embedding", patches(c), width)
    t.attention(width, layers)
    t.mlp(width, c.count("intermediate_size"), layers)
    norms(t, width, layers)
    t.norm("norm_after", width)
    return width


def pixtral_vit(t: Tower, c: Config) -> int:
    """Pixtral's ViT: rotary positions, RMSNorms, gated feed-forwards, no bias; its width."""
    width, layers, patch = c.count("hidden_size"), c.count("num_hidden_layers"), c.count("patch_size")
    t.add("patch_embedding", width, c.count("num_channels", default=CHANNELS), patch, patch)
    t.norm("norm_before", width, bias=False)
    t.attention(width, layers, bias=False)
    t.mlp(width, c.count("intermediate_size"), layers, bias=False, gated=True)
    norms(t, width, layers, bias=False)
    return width


def patches(c: Config) -> int:
    """How many patches a square image has."""
    return (c.count("image_size") // max(c.count("patch_size"), 1)) ** 2


def temporal_patches(t: Tower, c: Config, width: int, *, bias: bool) -> None:
    """Patches of several frames at once."""
    patch, frames = c.count("patch_size"), c.count("temporal_patch_size", default=2)
    channels = c.count("in_channels", "in_chans", default=CHANNELS)
    t.add("patch_embedding", width, channels, frames, patch, patch)
    if bias:
        t.add("patch_embedding_bias", width)


def merger(t: Tower, name: str, joined: int, out: int, count: int = 1) -> None:
    """Two linear layers over the features of patches that are joined to one."""
    t.linear(f"{name}.fc1", joined, joined, count=count)
    t.linear(f"{name}.fc2", joined, out, count=count)


def gated_merger(t: Tower, width: int, out: int, merge: int, inner: int) -> None:
    """A convolution joins patches to one, of which a linear and a gated layer follow (GLM-4.1V and later)."""
    t.norm("norm_after", width, bias=False)
    t.add("downsample", out, width, merge, merge)
    t.add("downsample_bias", out)
    t.linear("merger.proj", out, out, bias=False)
    t.norm("merger.norm", out)
    for name, reads, makes in (("gate", out, inner), ("up", out, inner), ("down", inner, out)):
        t.linear(f"merger.{name}", reads, makes, bias=False)


def resampler(t: Tower, width: int, wide: int, queries: int) -> None:
    """Learned queries attend once to the tower's features (Qwen-VL, MiniCPM-V)."""
    t.add("resampler.queries", queries, wide)
    t.linear("resampler.features", width, wide, bias=False)
    for which in ("query", "key", "value", "output"):
        t.linear(f"resampler.{which}", wide, wide)
    t.norm("resampler.norm", wide, count=3)
    t.linear("resampler.proj", wide, wide, bias=False)
