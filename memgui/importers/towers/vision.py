"""Which vision transformer each model has, and the projector behind it."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.towers.registry import Source, Tower, towers
from memgui.importers.towers.vit import (
    CHANNELS,
    clip_vit,
    gated_merger,
    merger,
    norms,
    patches,
    pixtral_vit,
    resampler,
    siglip_vit,
    temporal_patches,
)


@towers("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "cohere_compass", "qwen4_exp")
def qwen3_vl(s: Source) -> list[Tower]:
    """Qwen 3: learned positions; 3-VL also feeds features of middle layers (DeepStack)."""
    model_type = s.file.string("model_type")
    c, t = s.config("vision_config", f"{model_type}_vision"), Tower("vision")
    width, layers = c.count("hidden_size"), c.count("depth")
    joined, out = width * c.count("spatial_merge_size") ** 2, c.count("out_hidden_size")
    temporal_patches(t, c, width, bias=True)
    t.add("position_embedding", c.count("num_position_embeddings"), width)
    t.attention(width, layers)
    t.mlp(width, c.count("intermediate_size"), layers)
    norms(t, width, layers)
    t.norm("merger.norm", width)
    merger(t, "merger", joined, out)
    deep = 0 if "3_5" in model_type else len(c.counts("deepstack_visual_indexes"))
    t.norm("deepstack.norm", joined, count=deep)
    merger(t, "deepstack", joined, out, deep)
    return [t]


@towers("qwen2_vl")
def qwen2_vl(s: Source) -> list[Tower]:
    """Qwen 2: rotary positions, LayerNorms; ``hidden_size`` is what it hands over."""
    c, t = s.config("vision_config", "qwen2_vl_vision"), Tower("vision")
    width, layers = c.count("embed_dim"), c.count("depth")
    temporal_patches(t, c, width, bias=False)
    t.attention(width, layers)
    t.mlp(width, int(width * (c.number_or_none("mlp_ratio") or 4)), layers)
    norms(t, width, layers)
    t.norm("merger.norm", width)
    merger(t, "merger", width * c.count("spatial_merge_size") ** 2, c.count("hidden_size"))
    return [t]


def qwen2_5(c: Config) -> Tower:
    """Qwen 2.5: RMSNorms and gated feed-forwards with biases."""
    t = Tower("vision")
    width, layers = c.count("hidden_size"), c.count("depth")
    temporal_patches(t, c, width, bias=False)
    t.attention(width, layers)
    t.mlp(width, c.count("intermediate_size"), layers, gated=True)
    norms(t, width, layers, bias=False)
    t.norm("merger.norm", width, bias=False)
    merger(t, "merger", width * c.count("spatial_merge_size") ** 2, c.count("out_hidden_size"))
    return t


@towers("qwen2_5_vl")
def qwen2_5_vl(s: Source) -> list[Tower]:
    """The tower alone."""
    return [qwen2_5(s.config("vision_config", "qwen2_5_vl_vision"))]


@towers("glm4v", "glm4v_moe")
def glm4v(s: Source) -> list[Tower]:
    """GLM-4.1V and 4.5V: RMSNorms without bias, a convolution and a gated layer behind."""
    c, t = s.config("vision_config", f"{s.file.string('model_type')}_vision"), Tower("vision")
    width, layers, out = c.count("hidden_size"), c.count("depth"), c.count("out_hidden_size")
    merge, bias = c.count("spatial_merge_size"), c.flag("attention_bias", default=False)
    temporal_patches(t, c, width, bias=True)
    t.add("position_embedding", patches(c), width)
    t.norm("norm_before", width, bias=False)
    t.attention(width, layers, bias=bias)
    t.mlp(width, out, layers, bias=False, gated=True)
    norms(t, width, layers, bias=False)
    gated_merger(t, width, out, merge, c.count("intermediate_size"))
    return [t]


@towers("llama4")
def llama4(s: Source) -> list[Tower]:
    """Llama 4: a ViT with a class token; four patches become one in the adapter."""
    c, t = s.config("vision_config", "llama4_vision_model"), Tower("vision")
    width, layers, patch = c.count("hidden_size"), c.count("num_hidden_layers"), c.count("patch_size")
    inner, handed = c.count("intermediate_size"), c.count("projector_output_dim")
    t.add("class_embedding", width)
    t.add("position_embedding", patches(c) + 1, width)
    t.linear("patch_embedding", c.count("num_channels", default=CHANNELS) * patch**2, width, bias=False)
    t.norm("norm_before", width)
    t.norm("norm_after", width)
    t.attention(width, layers)
    t.mlp(width, inner, layers)
    norms(t, width, layers)
    t.linear("adapter.fc1", inner, c.count("projector_input_dim"), bias=False)
    t.linear("adapter.fc2", handed, handed, bias=False)
    t.linear("projector", c.count("vision_output_dim"), s.width, bias=False)
    return [t]


@towers("gemma3")
def gemma3(s: Source) -> list[Tower]:
    """SigLIP, then one norm and one matrix."""
    c, t = s.config("vision_config", "siglip_vision_model"), Tower("vision")
    width = siglip_vit(t, c)
    t.linear("projector", width, s.width, bias=False)
    t.norm("projector.norm", width, bias=False)
    return [t]


@towers("paligemma")
def paligemma(s: Source) -> list[Tower]:
    """SigLIP and one linear layer."""
    c, t = s.config("vision_config", "siglip_vision_model"), Tower("vision")
    t.linear("projector", siglip_vit(t, c), s.width)
    return [t]


QWEN2_HALF = {"layers": 24, "inner": 4864, "keys": 128}
"""Qwen 2 0.5B, which DeepSeek-OCR 2 names: layers, feed-forward width, width of all keys."""
SAM = {"image": 1024, "patch": 16, "window": 14, "neck": 256, "narrow": 512}
"""SAM's ViT-B as its own file has it, and the first of the two convolutions behind it."""
LOOKS = (12, 16)
"""Queries on a side, for a part of the image and for the whole."""


@towers("deepseek_vl_v2")
def deepseek_ocr_2(s: Source) -> list[Tower]:
    """DeepSeek-OCR 2: SAM's ViT, then Qwen 2 0.5B over its patches and learned queries."""
    c = s.config("vision_config", "")
    if c.text("model_name", default="") != "deepencoderv2":
        return []
    t, sam = Tower("vision"), c.within("width").within("sam_vit_b")
    width, layers = sam.count("width", default=768), sam.count("layers", default=12)
    everywhere = len(sam.counts("global_attn_indexes"))
    head, grid = width // max(sam.count("heads", default=12), 1), SAM["image"] // SAM["patch"]
    dim = c.within("width").within("qwen2-0-5b").count("dim", default=896)
    t.add("sam.positions", grid, grid, width)
    t.linear("sam.patch", 3 * SAM["patch"] ** 2, width)
    t.norm("sam.norm", width, count=2 * layers)
    t.linear("sam.attention.qkv", width, 3 * width, count=layers)
    t.linear("sam.attention.output", width, width, count=layers)
    t.add("sam.distances", 2 * SAM["window"] - 1, head, count=2 * max(layers - everywhere, 0))
    t.add("sam.distances_everywhere", 2 * grid - 1, head, count=2 * everywhere)
    t.mlp(width, 4 * width, layers)
    t.linear("sam.neck", width, SAM["neck"], bias=False)
    t.linear("sam.neck_convolution", 9 * SAM["neck"], SAM["neck"], bias=False)
    t.norm("sam.neck_norm", SAM["neck"], count=2)
    t.linear("sam.narrowed", 9 * SAM["neck"], SAM["narrow"], bias=False)
    t.linear("sam.widened", 9 * SAM["narrow"], dim, bias=False)
    many = QWEN2_HALF["layers"]
    t.linear("encoder.query", dim, dim, count=many)
    t.linear("encoder.keys", dim, QWEN2_HALF["keys"], count=2 * many)
    t.linear("encoder.output", dim, dim, bias=False, count=many)
    t.mlp(dim, QWEN2_HALF["inner"], many, bias=False, gated=True)
    t.norm("encoder.norm", dim, bias=False, count=2 * many + 1)
    t.add("queries", sum(side**2 for side in LOOKS), dim)
    t.linear("projector", dim, s.width)
    t.add("view_separator", s.width)
    return [t]


@towers("fuyu")
def fuyu(s: Source) -> list[Tower]:
    """A linear layer from the colours of a patch, and nothing more."""
    tower, c = Tower("vision"), s.outer()
    pixels = c.count("patch_size", default=30) ** 2 * c.count("num_channels", default=3)
    tower.linear("patch", pixels, s.width)
    return [tower]


@towers("llava", "llava_next", "vipllava")
def llava(s: Source) -> list[Tower]:
    """CLIP (or another ViT that the file names) and two linear layers."""
    inner = s.file.child_or_none("vision_config", null=True)
    kind = (
        inner.string_or_none("model_type", null=True) if inner is not None else None
    ) or "clip_vision_model"
    build = {"siglip_vision_model": siglip_vit, "pixtral": pixtral_vit}.get(kind, clip_vit)
    c, t = s.config("vision_config", kind), Tower("vision")
    width, bias = build(t, c), s.outer().flag("multimodal_projector_bias", default=True)
    t.linear("projector.fc1", width, s.width, bias=bias)
    t.linear("projector.fc2", s.width, s.width, bias=bias)
    if s.file.value.get("model_type") == "llava_next":
        t.add("image_newline", s.width)
    return [t]


PIXTRAL_14 = {"patch_size": 14, "image_size": 1540}
"""The tower of a Mistral 3 that states none."""


PIXTRAL_LARGE = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 30,
    "num_attention_heads": 16,
    "patch_size": 14,
    "image_size": 1540,
}
"""The tower of a Mistral Large 4 that states none."""


@towers("mistral3", "ministral3", "mistral_large4")
def mistral3(s: Source) -> list[Tower]:
    """Pixtral, patches joined, two linear layers; Ministral's files may be of text alone."""
    if s.file.value.get("model_type") == "ministral3" and "vision_config" not in s.file:
        return []
    t, outer = Tower("vision"), s.outer()
    stated = s.file.child_or_none("vision_config", null=True) is not None
    usual = PIXTRAL_LARGE if s.file.value.get("model_type") == "mistral_large4" else PIXTRAL_14
    width = pixtral_vit(t, s.config("vision_config", "pixtral") if stated else s.named(usual, "pixtral"))
    bias = outer.flag("multimodal_projector_bias", default=False)
    t.norm("projector.norm", width, bias=False)
    t.linear("projector.merge", width * outer.count("spatial_merge_size", default=2) ** 2, width, bias=False)
    t.linear("projector.fc1", width, s.width, bias=bias)
    t.linear("projector.fc2", s.width, s.width, bias=bias)
    return [t]


@towers("mllama")
def mllama(s: Source) -> list[Tower]:
    """Llama 3.2 Vision: tiles with embeddings of their own, local and then global layers."""
    c, t = s.config("vision_config", "mllama_vision_model"), Tower("vision")
    width, patch = c.count("hidden_size"), c.count("patch_size")
    layers, world = c.count("num_hidden_layers"), c.count("num_global_layers")
    tiles, rows = c.count("max_num_tiles", default=4), patches(c) + 1
    ratios = len(c.items("supported_aspect_ratios")) or 8
    t.add("class_embedding", width)
    t.add("patch_embedding", width, c.count("num_channels", default=CHANNELS), patch, patch)
    t.add("gates", 1, count=3 + 2 * world)
    t.add("position_embedding", rows, width)
    t.add("tile_position_embedding", ratios + 1, tiles * rows * width)
    t.add("tile_embedding", ratios + 1, tiles * width, count=2)
    t.norm("norm_before", width)
    t.norm("norm_after", width)
    t.attention(width, layers + world, bias=False)
    t.mlp(width, c.count("intermediate_size"), layers + world)
    norms(t, width, layers + world)
    t.linear("projector", c.count("vision_output_dim"), s.width)
    return [t]


@towers("internvl_chat")
def internvl(s: Source) -> list[Tower]:
    """InternViT: layer scales, a class token, LayerNorms; four patches become one before two layers."""
    c, t = s.config("vision_config", ""), Tower("vision")
    width, layers, patch = c.count("hidden_size"), c.count("num_hidden_layers"), c.count("patch_size")
    rms = c.text("norm_type", default="layer_norm") == "rms_norm"
    t.add("class_embedding", width)
    t.add("patch_embedding", width, c.count("num_channels", default=CHANNELS), patch, patch)
    t.add("patch_embedding_bias", width)
    t.add("position_embedding", patches(c) + 1, width)
    bias = c.flag("qkv_bias", default=False)
    for which in ("query", "key", "value"):
        t.linear(f"attention.{which}", width, width, bias=bias, count=layers)
    t.linear("attention.output", width, width, count=layers)
    if c.flag("qk_normalization", default=False):
        t.norm("attention.qk_norm", width, bias=False, count=2 * layers)
    t.mlp(width, c.count("intermediate_size"), layers)
    norms(t, width, layers, bias=not rms)
    t.add("layer_scale", width, count=2 * layers)
    joined = 4 * width  # downsample_ratio 0.5, both ways
    t.norm("projector.norm", joined)
    t.linear("projector.fc1", joined, s.width)
    t.linear("projector.fc2", s.width, s.width)
    return [t]


@towers("gemma4")
def gemma4(s: Source) -> list[Tower]:
    """Gemma 4's own ViT: positions by row and column, norms on both sides, no bias; and sound, if any."""
    from memgui.importers.towers.audio import gemma4_audio

    found = []
    c, t = s.config("vision_config", "gemma4_vision"), Tower("vision")
    width, layers = c.count("hidden_size"), c.count("num_hidden_layers")
    head, heads = c.count("head_dim"), c.count("num_attention_heads")
    t.linear("patch_embedding", CHANNELS * c.count("patch_size") ** 2, width, bias=False)
    t.add("position_embedding", 2, c.count("position_embedding_size"), width)
    t.attention(width, layers, bias=False, inner=head * heads)
    t.norm("attention.qk_norm", head, bias=False, count=2 * layers)
    t.mlp(width, c.count("intermediate_size"), layers, bias=False, gated=True)
    t.norm("norm", width, bias=False, count=4 * layers)
    t.linear("projector", width, s.width, bias=False)
    found.append(t)
    if s.file.child_or_none("audio_config", null=True) is not None:
        found.append(gemma4_audio(s))
    return found


def moonvit(s: Source, names: dict[str, str]) -> Tower:
    """Kimi's MoonViT: learned positions of a grid, LayerNorms, four patches become one."""
    c, t = s.config("vision_config", ""), Tower("vision")
    for key, name in names.items():
        c = c.renamed(key, name)
    width, layers, patch = c.count("hidden_size"), c.count("num_hidden_layers"), c.count("patch_size")
    t.add("patch_embedding", width, CHANNELS, patch, patch)
    t.add("patch_embedding_bias", width)
    rows, columns = c.count("init_pos_emb_height", default=64), c.count("init_pos_emb_width", default=64)
    t.add("position_embedding", rows, columns, width)
    t.attention(width, layers)
    t.mlp(width, c.count("intermediate_size"), layers)
    norms(t, width, layers)
    t.norm("norm_after", width)
    joined = 4 * width
    t.norm("projector.norm", width)
    t.linear("projector.fc1", joined, joined)
    t.linear("projector.fc2", joined, s.width)
    return t


@towers("kimi_k25")
def kimi_k25(s: Source) -> list[Tower]:
    """Kimi K2.5 to 2.7."""
    names = {key: f"vt_{key}" for key in ("hidden_size", "num_hidden_layers", "intermediate_size")}
    return [moonvit(s, names)]


CLIP_L_336 = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "image_size": 336,
    "patch_size": 14,
}
"""``openai/clip-vit-large-patch14-336``, which some files only name."""


@towers("phi3_v")
def phi3_v(s: Source) -> list[Tower]:
    """Phi-3 Vision: CLIP-L at 336 pixels, four patches joined, two linear layers, two separators."""
    t = Tower("vision")
    joined = 4 * clip_vit(t, s.named(CLIP_L_336, "clip_vision_model"))
    t.add("separators", joined, count=2)
    t.linear("projector.fc1", joined, s.width)
    t.linear("projector.fc2", s.width, s.width)
    return [t]


@towers("molmo")
def molmo(s: Source) -> list[Tower]:
    """Molmo: CLIP-L at 336 pixels, features of two layers pooled by attention, a gated projector."""
    t = Tower("vision")
    used = {**CLIP_L_336, "num_hidden_layers": 23}  # the last layer is read by nobody and left out
    width = clip_vit(t, s.named(used, "clip_vision_model"), after=False)
    for which in ("query", "key", "value"):
        t.linear(f"pooling.{which}", 2 * width, width)
    t.linear("pooling.output", width, width)
    t.add("pooling.padding", 2, 2 * width)
    inner = int(s.fields["intermediate_size"])
    t.linear("projector.gate", width, inner, bias=False)
    t.linear("projector.up", width, inner, bias=False)
    t.linear("projector.down", inner, s.width, bias=False)
    return [t]


@towers("minicpmv")
def minicpmv(s: Source) -> list[Tower]:
    """MiniCPM-V 2.5 and 2.6: SigLIP, and queries that attend to its patches."""
    c, t, wide = s.config("vision_config", "siglip_vision_model"), Tower("vision"), s.width
    width = siglip_vit(t, c)
    resampler(t, width, wide, s.outer().count("query_num", default=64))
    return [t]


@towers("qwen")
def qwen_vl(s: Source) -> list[Tower]:
    """Qwen-VL: OpenCLIP's ViT-bigG and 256 queries; other Qwen 1 have no ``visual``."""
    if "visual" not in s.file:
        return []
    c, t = s.config("visual", ""), Tower("vision")
    width, layers, patch = c.count("width"), c.count("layers"), c.count("patch_size")
    t.add("patch_embedding", width, CHANNELS, patch, patch)
    t.add("position_embedding", 256, width)
    t.norm("norm_before", width)
    t.attention(width, layers)
    t.mlp(width, int(width * (c.number_or_none("mlp_ratio") or 4)), layers)
    norms(t, width, layers)
    wide = c.count("output_dim", default=s.width)
    t.add("resampler.position_embedding", 256, wide)
    resampler(t, width, wide, 256)
    return [t]


@towers("clip")
def clip(s: Source) -> list[Tower]:
    """CLIP itself: the language model is its text encoder; both are projected to where they meet."""
    c, t = s.config("vision_config", "clip_vision_model"), Tower("vision")
    meet = s.outer().count("projection_dim", default=512)
    t.linear("projection", clip_vit(t, c), meet, bias=False)
    text = Tower("projection")
    text.linear("text", s.width, meet, bias=False)
    text.add("logit_scale", 1)
    return [t, text]
