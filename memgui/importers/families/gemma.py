"""Gemma: RMSNorm with 1 + weight in fp32, GeGLU, wide heads, tied head; from 2 on norms on both sides."""

from __future__ import annotations

from collections.abc import Sequence

from memgui.importers.config_reader import Config
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import mixers, rhythm, stated_layers, window_by_layers
from memgui.importers.families.registry import Fields, family
from memgui.spec.variants import written


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


@family("gemma4_text")
def gemma4(c: Config) -> Fields:
    """Gemma 3; full attention has wider heads, fewer for keys.

    Small ones have embeddings of each layer's own and last layers that use the keys of earlier ones; one has
    experts beside its feed-forward.
    """
    fields = gemma3(c)
    layers = fields["num_hidden_layers"]
    computed = ["full_attention" if not (i + 1) % 6 else "sliding_attention" for i in range(layers)]
    kinds = [*(stated_layers(c, "layer_types", layers) or computed)]
    kinds[-1:] = ["full_attention"]  # which the class insists on
    shared = min(c.count("num_kv_shared_layers", default=0), layers)
    wide = c.flag("use_double_wide_mlp", default=False)
    experts = c.flag("enable_moe_block", default=False)
    width = c.count("hidden_size_per_layer_input", default=0)
    rows = c.count("vocab_size_per_layer_input", default=fields["vocab_size"])
    named = _lent(kinds, shared)
    changes = {"full_attention": _global(c, fields)}
    inner = {"intermediate_size": 2 * fields["intermediate_size"]} if wide else {}
    variants = [
        written(mixer, **found)
        for mixer in dict.fromkeys(named)
        if (found := changes.get(BASE.get(mixer, mixer), {}) | (inner if "borrowing" in mixer else {}))
    ]
    return {
        **fields,
        **mixers(named),
        "layer_variants": tuple(variants),
        "norm": "gemma4_rms_norm",
        "value_norm": True,
        "layer_scalar": True,
        "hidden_size_per_layer_input": width,
        "vocab_size_per_layer_input": rows if width else 0,
        **({**routed(c), "mlp_layer_types": ("dense_sparse",)} if experts else {}),
    }


GLOBAL_HEAD = 512
"""Head size of full attention where the file says none, in Transformers' class."""
BASE = {
    "lending_attention": "full_attention",
    "borrowing_attention": "full_attention",
    "lending_sliding_attention": "sliding_attention",
    "borrowing_sliding_attention": "sliding_attention",
}
"""What layers that lend or borrow keys are else."""


def _lent(kinds: Sequence[str], shared: int) -> list[str]:
    """The last ``shared`` layers borrow keys and values of the last of the same kind before them.

    Those keep theirs for others whether there are any or not.
    """
    first = len(kinds) - shared
    ways = {kind: name for name, kind in BASE.items() if name.startswith("borrowing")}
    named = [ways[kind] if i >= first else kind for i, kind in enumerate(kinds)]
    for kind in dict.fromkeys(kinds[:first]):
        last = max(i for i in range(first) if kinds[i] == kind)
        named[last] = ways[kind].replace("borrowing", "lending")
    return named


def _global(c: Config, fields: Fields) -> dict[str, int]:
    """What layers with full attention have otherwise; newer files list it layer by layer."""
    newer = c.within("per_layer_config")
    first = newer.within(next(iter(newer.stated.value))) if newer.stated.value else newer
    same = c.flag("attention_k_eq_v", default=False)
    stated = {
        "head_dim": c.count_or_none("global_head_dim") or first.count_or_none("head_dim") or GLOBAL_HEAD,
        "num_key_value_heads": (c.count_or_none("num_global_key_value_heads") if same else None)
        or first.count_or_none("num_key_value_heads"),
    }
    changes = {name: value for name, value in stated.items() if value and value != fields[name]}
    return changes | ({"keys_are_values": 1} if same else {})


def routed(c: Config) -> Fields:
    """Gemma 4's experts."""
    return {
        "num_experts": c.count("num_experts"),
        "num_experts_per_tok": c.count("num_experts_per_tok", "top_k_experts"),
        "moe_intermediate_size": c.count("moe_intermediate_size"),
    }


@family("gemma3n_text")
def gemma3n(c: Config) -> Fields:
    """Gemma 4's attention and embeddings of each layer's own; four streams (AltUp), a narrow way (LAuReL)."""
    fields = gemma3(c)
    layers = fields["num_hidden_layers"]
    computed = ["full_attention" if not (i + 1) % 5 else "sliding_attention" for i in range(layers)]
    kinds = stated_layers(c, "layer_types", layers) or tuple(computed)
    sparsity = c.items("activation_sparsity_pattern")[:layers]
    few = [isinstance(one, int | float) and one > 0 for one in sparsity]
    return {
        **fields,
        **mixers(_lent(kinds, min(c.count("num_kv_shared_layers", default=0), layers))),
        **({"mlp_layer_types": rhythm(["dense_few" if one else "dense" for one in few])} if any(few) else {}),
        "norm": "gemma4_rms_norm",
        "value_norm": True,
        "hidden_size_per_layer_input": c.count("hidden_size_per_layer_input", default=256),
        "vocab_size_per_layer_input": c.count("vocab_size_per_layer_input", default=fields["vocab_size"]),
        "altup_num_inputs": c.count("altup_num_inputs", default=4),
        "laurel_rank": c.count("laurel_rank", default=64),
    }
