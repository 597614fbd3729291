"""Encoders of sound: Whisper's, and Gemma's conformers."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.towers.registry import Source, Tower, towers


def _whisper(c: Config) -> Tower:
    """Two convolutions over a spectrogram and Whisper's layers: keys without bias."""
    t = Tower("audio")
    width, layers = c.count("d_model"), c.count("encoder_layers")
    t.add("conv1", width, c.count("num_mel_bins"), 3)
    t.add("conv2", width, width, 3)
    t.add("conv_bias", width, count=2)
    for which in ("query", "key", "value", "output"):
        t.linear(f"attention.{which}", width, width, bias=which != "key", count=layers)
    t.mlp(width, c.count("encoder_ffn_dim"), layers)
    t.norm("norm_1", width, count=layers)
    t.norm("norm_2", width, count=layers)
    t.norm("norm_after", width)
    return t


@towers("qwen2_audio")
def qwen2_audio(s: Source) -> list[Tower]:
    """Whisper's encoder and one linear layer."""
    c = s.config("audio_config", "qwen2_audio_encoder")
    t = _whisper(c)
    t.add("position_embedding", c.count("max_source_positions"), c.count("d_model"))
    t.linear("projector", c.count("d_model"), s.width)
    return [t]


def qwen2_5_omni_audio(c: Config) -> Tower:
    """Whisper's encoder with fixed positions, two tokens for begin and end, and one linear layer."""
    t, out = _whisper(c), c.count("output_dim")
    t.add("begin_end_embedding", 2, out)
    t.linear("projector", c.count("d_model"), out)
    return t


def gemma4_audio(s: Source) -> Tower:
    """A conformer: half a feed-forward, attention with relative positions, a convolution, another half."""
    c, t = s.config("audio_config", "gemma4_audio"), Tower("audio")
    width, layers = c.count("hidden_size"), c.count("num_hidden_layers")
    first, second = c.counts("subsampling_conv_channels") or (128, 32)
    out = c.count("output_proj_dims", default=1536)
    t.add("conv1", first, 1, 3, 3)
    t.add("conv1_norm", first)
    t.add("conv2", second, first, 3, 3)
    t.add("conv2_norm", second)
    t.linear("features", 32 * second, width, bias=False)  # 128 mel bins, halved twice
    for half in ("mlp_1", "mlp_2"):
        t.linear(f"{half}.up", width, 4 * width, bias=False, count=layers)
        t.linear(f"{half}.down", 4 * width, width, bias=False, count=layers)
        t.norm(f"{half}.norm", width, bias=False, count=2 * layers)
    t.attention(width, layers, bias=False)
    t.linear("attention.relative_key", width, width, bias=False, count=layers)
    t.add("attention.scale", width // max(c.count("num_attention_heads"), 1), count=layers)
    t.linear("conv.start", width, 2 * width, bias=False, count=layers)
    t.add("conv.depthwise", width, 1, c.count("conv_kernel_size", default=5), count=layers)
    t.linear("conv.end", width, width, bias=False, count=layers)
    t.norm("norm", width, bias=False, count=5 * layers)
    t.linear("output", width, out)
    t.linear("projector", out, s.width, bias=False)
    return t
