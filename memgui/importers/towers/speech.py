"""Qwen2.5-Omni: it sees, hears, and speaks through a second language model and a vocoder."""

from __future__ import annotations

from memgui.importers.towers.audio import qwen2_5_omni_audio
from memgui.importers.towers.registry import Source, Tower, towers
from memgui.importers.towers.vision import qwen2_5


@towers("qwen2_5_omni")
def qwen2_5_omni(s: Source) -> list[Tower]:
    """Towers of the thinker, the talker, and what makes waves of its tokens."""
    thinker = s.file.child_or_none("thinker_config", null=True) or s.file
    found = [
        qwen2_5(s.config("vision_config", "qwen2_5_omni_vision_encoder", thinker)),
        qwen2_5_omni_audio(s.config("audio_config", "qwen2_5_omni_audio_encoder", thinker)),
    ]
    if s.file.value.get("enable_audio_output") is not False:
        found += [_talker(s), _waves(s)]
    return found


def _talker(s: Source) -> Tower:
    """A Qwen 2 of its own that reads the thinker's states and writes codes."""
    c, t = s.config("talker_config", "qwen2_5_omni_talker"), Tower("speech")
    width, layers, reads = c.count("hidden_size"), c.count("num_hidden_layers"), c.count("embedding_size")
    head, codes = c.count("head_dim", default=128), c.count("vocab_size")
    query, key = c.count("num_attention_heads") * head, c.count("num_key_value_heads") * head
    t.linear("talker.proj", reads, width)
    t.add("talker.embedding", codes, reads)
    t.linear("talker.query", width, query, count=layers)
    t.linear("talker.key_value", width, key, count=2 * layers)
    t.linear("talker.output", query, width, bias=False, count=layers)
    t.mlp(width, c.count("intermediate_size"), layers, bias=False, gated=True)
    t.norm("talker.norm", width, bias=False, count=2 * layers + 1)
    t.linear("talker.head", width, codes, bias=False)
    return t


def _waves(s: Source) -> Tower:
    """A diffusion transformer from codes to a spectrogram, and BigVGAN from there to waves."""
    holder = s.file.child_or_none("token2wav_config", null=True) or s.file
    t = Tower("speech")
    c = s.config("dit_config", "qwen2_5_omni_dit", holder)
    width, layers = c.count("hidden_size", "dim"), c.count("num_hidden_layers", "depth")
    inner = c.count("num_attention_heads", "heads") * c.count("head_dim")
    mel, codes = c.count("mel_dim"), c.count("emb_dim")
    channels = c.counts("enc_channels") or (256, 256, 256, 256, 768)
    narrow, scale = c.count("enc_attention_channels"), c.count("enc_res2net_scale", default=2)
    speaker, squeeze = c.count("enc_dim"), c.count("enc_se_channels")
    t.linear("dit.time_1", 256, width)
    t.linear("dit.time_2", width, width)
    t.add("dit.codes", c.count("num_embeds") + 1, codes)
    t.linear("dit.input", mel + codes + speaker + c.count("enc_emb_dim"), width)
    t.add("speaker.first", channels[0], mel, 5)
    t.add("speaker.first_bias", channels[0])
    wide, blocks = channels[0], len(channels) - 2
    t.linear("speaker.tdnn", wide, wide, count=2 * blocks)
    part = wide // max(scale, 1)
    t.add("speaker.res2net", part, part, 3, count=blocks * (scale - 1))
    t.add("speaker.res2net_bias", part, count=blocks * (scale - 1))
    t.linear("speaker.squeeze", wide, squeeze, count=blocks)
    t.linear("speaker.excite", squeeze, wide, count=blocks)
    last = channels[-1]
    t.linear("speaker.joined", last, last)
    t.linear("speaker.pool_1", 3 * last, narrow)
    t.linear("speaker.pool_2", narrow, last)
    t.linear("speaker.out", 2 * last, speaker)
    t.linear("dit.norm", width, 6 * width, count=layers)
    for which in ("query", "key", "value"):
        t.linear(f"dit.{which}", width, inner, count=layers)
    t.linear("dit.output", inner, width, count=layers)
    t.linear("dit.up", width, c.count("ff_mult", default=2) * width, count=layers)
    t.linear("dit.down", c.count("ff_mult", default=2) * width, width, count=layers)
    t.linear("dit.norm_out", width, 2 * width)
    t.linear("dit.mel", width, mel)
    _bigvgan(t, s, holder_mel=mel)
    return t


def _bigvgan(t: Tower, s: Source, holder_mel: int) -> None:
    holder = s.file.child_or_none("token2wav_config", null=True) or s.file
    c = s.config("bigvgan_config", "qwen2_5_omni_bigvgan", holder)
    width, mel = c.count("upsample_initial_channel"), c.count("mel_dim", default=holder_mel)
    kernels = c.counts("upsample_kernel_sizes") or (11, 7, 4, 4, 4, 4)
    inner = c.counts("resblock_kernel_sizes") or (3, 7, 11)
    t.add("bigvgan.before", width, mel, 7)
    t.add("bigvgan.before_bias", width)
    for at, kernel in enumerate(kernels):
        half = width // 2
        t.add(f"bigvgan.up_{at}", width, half, kernel)
        t.add(f"bigvgan.up_{at}_bias", half)
        for size in inner:  # three dilations, two convolutions and two activations each
            t.add(f"bigvgan.block_{at}_{size}", half, half, size, count=6)
        t.add(f"bigvgan.block_{at}_bias", half, count=6 * len(inner))
        t.add(f"bigvgan.block_{at}_activation", half, count=12 * len(inner))
        width = half
    t.add("bigvgan.activation", width, count=2)
    t.add("bigvgan.after", 1, width, 7)
