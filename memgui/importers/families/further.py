"""Families whose layers differ from one another in ways that no field says yet.

What all layers share is described as ever.  Weights that only some layers have are stated beside them
(``other_weights``), so that the count is exact; what such layers compute is taken to be what the others do,
and the report says so.  Structure as Transformers 5.24's modules have it, or the checkpoint's own code.
"""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.experts import by_sigmoids, first_dense, glm4_moe, minimax_m2
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import (
    activation,
    dimensions,
    dropouts,
    experts,
    feed_forwards,
    mixers,
    rhythm,
    rotary,
    shared_experts,
    stated_layers,
)
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.variants import written
from memgui.spec.weights import Weights

UNEQUAL = QT_TRANSLATE_NOOP(
    "messages",
    "Layers of {model_type} differ: {what}. Their weights are counted; activations and cache are taken to be "
    "those of the other layers.",
)


ACROSS = QT_TRANSLATE_NOOP(
    "messages",
    "{layers} {layers:layer attends|layers attend} to a picture; {layers:it is|they are} counted as without "
    "one, when {layers:it does|they do} not run.",
)


def unequal(c: Config, what: str) -> None:
    """Book what is not the same in all layers; ``what`` is marked for translation."""
    c.assume(UNEQUAL, model_type=c.model_type, what=Message(what))


def beside(*found: Weights) -> Fields:
    """Weights that only some layers have, beside those of all."""
    return {"other_weights": tuple(str(one) for one in found if one.elements)}


def _layer_kinds(c: Config, fields: Fields) -> tuple[str, ...]:
    """The kind of each layer of a Gemma: five of six have a window where the file does not say."""
    layers = fields["num_hidden_layers"]
    computed = ["full_attention" if not (i + 1) % 6 else "sliding_attention" for i in range(layers)]
    return stated_layers(c, "layer_types", layers) or tuple(computed)


def _per_layer(c: Config, fields: Fields, more: int, owed: int) -> Fields:
    """Embeddings of each layer's own, and ``more`` weights beside them.

    ``owed`` are weights that the layers as described have and some of the real ones have not; they are taken
    off here, where their number is a trifle.
    """
    layers, hidden = fields["num_hidden_layers"], fields["hidden_size"]
    width = c.count("hidden_size_per_layer_input", default=0)
    if width:
        rows = c.count("vocab_size_per_layer_input", default=fields["vocab_size"])
        more += layers * (2 * width * hidden + hidden) + width * layers * hidden + width
    else:
        rows = 0
    rest = more - owed
    found = [Weights("per_layer.embedding", 1, (rows, layers * width))] if rows else []
    return beside(*found, *([Weights("per_layer.rest", 1, (rest,))] if rest > 0 else []))


@family("mllama_text_model")
def mllama(c: Config) -> Fields:
    """Llama 3; some layers attend to a picture alone: without one they do not run, and are weights beside."""
    fields = llama(c)
    layers, hidden, inner = fields["num_hidden_layers"], fields["hidden_size"], fields["intermediate_size"]
    across = {layer for layer in c.counts("cross_attention_layers") if layer < layers}
    head, many = fields["head_dim"], len(across)
    q, k = fields["num_attention_heads"] * head, fields["num_key_value_heads"] * head
    shapes = {
        "query": (1, (q, hidden)),
        "keys": (2, (k, hidden)),
        "output": (1, (hidden, q)),
        "qk_norm": (2, (head,)),
        "gates": (2, (1,)),
        "mlp": (3, (inner, hidden)),
        "norm": (2, (hidden,)),
    }
    if across:
        c.assume(ACROSS, layers=many)
    return {
        **fields,
        "logits_in_fp32": True,
        **mixers(["none" if i in across else "full_attention" for i in range(layers)]),
        "mlp_layer_types": rhythm(["none" if i in across else "dense" for i in range(layers)]),
        **beside(
            Weights("embedding.image_tokens", 1, (8, hidden)),
            *(
                Weights(f"vision.cross.{name}", n * many, shape)
                for name, (n, shape) in shapes.items()
                if many
            ),
        ),
    }


@family("clip_text_model")
def clip_text(c: Config) -> Fields:
    """CLIP's text encoder: norms before each half, learned positions, no head."""
    fields = dimensions(c)
    return {
        **fields,
        **dropouts(c, "attention"),
        "head": "base",
        "is_decoder": False,
        "intermediate_size": c.count("intermediate_size"),
        "hidden_act": activation(c, "gelu"),
        "gated_mlp": False,
        "norm": "layer_norm",
        "position_embedding": "learned",
        "attention_bias": True,
        "attention_output_bias": True,
        "mlp_bias": True,
        "softmax_in_fp32": False,
        "tie_word_embeddings": False,
    }


@family("nemotron-nas")
def nemotron_nas(c: Config) -> Fields:
    """Llama 3 after a search: each layer has attention or not, and a feed-forward of its own width.

    The widest feed-forward is described; narrower ones are weights beside it.
    """
    blocks = c.stated.children("block_configs")
    c.report.understood.append("block_configs")
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    groups, widths = [], []
    for block in blocks:
        attention, ffn = (block.child_or_none(key, null=True) for key in ("attention", "ffn"))
        groups.append(attention.integer_or_none("n_heads_in_group", 1, null=True) if attention else None)
        mult = ffn.number_or_none("ffn_mult", 0, 100, null=True) if ffn else None
        widths.append(-(-int(2 * mult * hidden / 3) // 256) * 256 if mult else 0)
    sizes = {group for group in groups if group}
    if len(sizes) != 1 or len(blocks) != c.count("num_hidden_layers"):
        c.refuse(
            "num_hidden_layers",
            QT_TRANSLATE_NOOP(
                "messages",
                "{file}: {where} is {value}; block_configs has to describe as many layers, with attention of "
                "one n_heads_in_group.",
            ),
        )
    widest = max(widths)
    narrow = [width for width in widths if 0 < width < widest]
    if narrow:
        unequal(c, QT_TRANSLATE_NOOP("messages", "attention left out, feed-forward width"))
    return {
        **llama(c.with_default("intermediate_size", widest)),  # null in the file: each block has its own
        "intermediate_size": widest,
        "num_key_value_heads": max(heads // sizes.pop(), 1),
        **mixers(["full_attention" if group else "none" for group in groups]),
        "mlp_layer_types": rhythm(["dense" if width == widest else "none" for width in widths]),
        **beside(
            Weights("mlp.narrow", 3, (sum(narrow), hidden)),
            Weights("norm.narrow", max(len(narrow), 1), (hidden,)),
        ),
    }


@family("molmo")
def molmo(c: Config) -> Fields:
    """Qwen 2 whose ``intermediate_size`` counts gate and up together; CLIP and a pooling projector."""
    fields = llama(c.with_default("num_key_value_heads", c.count("num_attention_heads")))
    bias = c.flag("qkv_bias", default=False)
    return {
        **fields,
        "intermediate_size": fields["intermediate_size"] // 2,
        "attention_bias": bias,
        "attention_output_bias": False,
        **beside(Weights("embedding.image_tokens", 1, (128, fields["hidden_size"]))),
    }


@family("minimax_m3", "minimax_m3_vl_text")
def minimax_m3(c: Config) -> Fields:
    """MiniMax-M2 with dense first layers, a shared expert, norms on heads, blocks chosen in sparse layers."""
    fields = minimax_m2(c)
    layers = fields["num_hidden_layers"]
    inner = c.within("sparse_attention_config")
    heads = c.count("index_n_heads", default=inner.count("sparse_num_index_heads", default=4))
    width = c.count("index_head_dim", default=inner.count("sparse_index_dim", default=128))
    chosen = [bool(one) for one in inner.counts("sparse_attention_freq")[:layers]]
    named = {"full_attention": "full_attention", "minimax_m3_sparse": "block_indexed_attention"}
    kinds = stated_layers(c, "layer_types", layers, kinds=named)
    kinds = kinds or tuple(named["minimax_m3_sparse" if one else "full_attention"] for one in chosen)
    fed = stated_layers(c, "mlp_layer_types", layers, kinds={"dense": "dense", "sparse": "sparse"})
    sparse = [one == "sparse" for one in fed] or [bool(one) for one in c.counts("moe_layer_freq")[:layers]]
    blocks = {
        "index_n_heads": heads,
        "index_head_dim": width,
        "index_block_size": c.count(
            "index_block_size", default=inner.count("sparse_block_size", default=128)
        ),
        "index_topk_blocks": c.count(
            "index_topk_blocks", default=inner.count("sparse_topk_blocks", default=16)
        ),
    }
    return {
        **fields,
        **shared_experts(
            c.count("n_shared_experts", default=1), c.count("shared_intermediate_size", default=0)
        ),
        **feed_forwards(sparse or [True] * layers),
        **mixers(kinds),
        **(blocks if "block_indexed_attention" in kinds else {}),
        "intermediate_size": c.count("dense_intermediate_size", default=fields["intermediate_size"]),
        "norm": "gemma_rms_norm",
        "hidden_act": "swiglu_clamped",
        "fused_gate_up": True,
        "shared_experts_first": True,
        "experts_scaled": True,
        "qk_norm": "head",
    }


@family("step3p7", "step3p5")
def step3p7(c: Config) -> Fields:
    """GLM 4.5's shape with norms on heads, windows, and a gate for each head."""
    fields = glm4_moe(c)
    layers, hidden, heads = fields["num_hidden_layers"], fields["hidden_size"], fields["num_attention_heads"]
    kinds = stated_layers(c, "layer_types", layers)
    return {
        **fields,
        **first_dense(c, layers, c.count("first_k_dense_replace", default=3)),
        **mixers(kinds),
        "sliding_window": c.count_or_none("sliding_window"),
        "rotary_dim": None,
        "qk_norm": "head",
        **beside(Weights("attention.gate", layers, (heads, hidden))),
    }


@family("mimo_v2_flash", "mimo_v2")
def mimo_v2(c: Config) -> Fields:
    """Windows in five of six layers, with more heads for keys and sinks; values narrower than queries."""
    fields = llama(c.with_default("head_dim", 192))
    layers, shared = fields["num_hidden_layers"], fields["num_key_value_heads"]
    named = stated_layers(c, "layer_types", layers)
    windows = tuple(int(kind == "sliding_attention") for kind in named)
    windows = windows or c.counts("hybrid_layer_pattern")[:layers] or (0,) * layers
    kinds = stated_layers(c, "mlp_layer_types", layers, kinds={"dense": "dense", "sparse": "sparse"})
    sparse = tuple(int(kind == "sparse") for kind in kinds)
    sparse = sparse or c.counts("moe_layer_freq")[:layers] or (1,) * layers
    own = {
        "num_key_value_heads": c.count("swa_num_key_value_heads", default=2 * shared),
        "attention_sinks": c.flag("add_swa_attention_sink_bias", default=True),
    }
    return {
        **fields,
        **experts(c),
        **shared_experts(c.count_or_none("n_shared_experts") or 0, c.count("moe_intermediate_size")),
        **by_sigmoids(c),
        **feed_forwards([bool(one) for one in sparse]),
        **mixers(["sliding_attention" if one else "full_attention" for one in windows]),
        "sliding_window": c.count("sliding_window", default=128),
        "v_head_dim": c.count("v_head_dim", default=fields["head_dim"]),
        "layer_variants": (written("sliding_attention", **own),) if any(windows) else (),
        "attention_output_bias": False,
        "value_scaling": c.number_or_none("attention_value_scale") is not None,
        **rotary(c, fields["head_dim"], 0.334),
        "rotary_style": "part",
        "rotary_per_layer_type": True,
        "sdpa": False,
        "score_masking": "lowered",
        "softmax_in_fp32": False,
    }


COMPRESSED = {
    "sliding_attention": "windowed_attention",
    "compressed_sparse_attention": "compressed_sparse_attention",
    "heavily_compressed_attention": "heavily_compressed_attention",
}
"""The names newer files give the layers; older ones say how many tokens become one: none, few, many."""


@family("deepseek_v4")
def deepseek_v4(c: Config) -> Fields:
    """Attention over compressed tokens, several residual streams mixed by learned connections.

    ``kv_lora_rank`` is what engines may keep of each token, which is no less than the compressed cache.
    """
    head = c.count("head_dim")
    part = c.number_or_none("partial_rotary_factor") or 1 / 8
    rotated = c.count("qk_rope_head_dim", default=0) or int(head * part)
    fields = llama(c)
    known = {"hash_moe": "hash_moe", "moe": "moe"}
    named = stated_layers(c, "mlp_layer_types", fields["num_hidden_layers"], kinds=known)
    hashed = named.count("hash_moe") if named else c.count("num_hash_layers", default=3)
    layers = fields["num_hidden_layers"]
    rates = c.within("compress_rates")
    few = c.count("compress_rate_csa", default=rates.count("compressed_sparse_attention", default=4))
    many = c.count("compress_rate_hca", default=rates.count("heavily_compressed_attention", default=128))
    ratios = c.counts("compress_ratios")[:layers]
    by_ratio = {0: "windowed_attention", few: "compressed_sparse_attention"}
    kinds = [by_ratio.get(one, "heavily_compressed_attention") for one in ratios]
    return {
        **fields,
        **experts(c),
        **shared_experts(c.count_or_none("n_shared_experts") or 0, c.count("moe_intermediate_size")),
        **mixers(stated_layers(c, "layer_types", layers, kinds=COMPRESSED) or kinds),
        "sliding_window": c.count("sliding_window", default=128),
        "q_lora_rank": c.count("q_lora_rank"),
        "kv_lora_rank": rotated,
        "qk_nope_head_dim": head - rotated,
        "qk_rope_head_dim": rotated,
        "v_head_dim": head,
        "num_key_value_heads": 1,
        "intermediate_size": c.count("moe_intermediate_size"),
        "rotary_dim": rotated,
        "o_groups": c.count("o_groups", default=8),
        "o_lora_rank": c.count("o_lora_rank", default=1024),
        "index_n_heads": c.count("index_n_heads", default=64),
        "index_head_dim": c.count("index_head_dim", default=128),
        "index_topk": c.count("index_topk", default=512),
        "compress_rate_csa": few,
        "compress_rate_hca": many,
        "hc_mult": c.count("hc_mult", default=4),
        "num_hash_layers": hashed,
        "hc_sinkhorn_iters": c.count("hc_sinkhorn_iters", default=20),
        "norm": "rms_norm_exact",
        "hidden_act": "silu_clamped",
        "attention_sinks": True,
        "sdpa": False,
        "score_masking": "lowered",
        "softmax_in_fp32": False,
        "router_scoring": "sqrtsoftplus",
        "router_correction_bias": True,
    }
