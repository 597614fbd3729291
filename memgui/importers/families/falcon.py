"""Falcon and MPT: one projection for query, key and value, hardly a bias, ALiBi or rotation."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.parts import activation, dimensions, dropouts, ffn_width, share
from memgui.importers.families.registry import Fields, family


@family("falcon", "RefinedWebModel")
def falcon(c: Config) -> Fields:
    """One key/value head (7B), or groups that are repeated to all heads before they are cached (40B on)."""
    fields = dimensions(c)
    heads = fields["num_attention_heads"]
    grouped = c.flag("new_decoder_architecture", default=c.model_type == "RefinedWeb")
    one = c.flag("multi_query", default=True)
    parallel = c.flag("parallel_attn", default=True)
    norms = c.count_or_none("num_ln_in_parallel_attn") or (2 if grouped else 1)
    bias = c.flag("bias", default=False)
    alibi = c.flag("alibi", default=False)
    together = grouped or parallel
    return {
        **fields,
        **dropouts(c, *(("attention", "hidden") if alibi or not together else ("hidden",))),
        "num_key_value_heads": fields["num_key_value_heads"] if grouped else 1 if one else heads,
        "cached_key_value_heads": heads if grouped else None,
        "intermediate_size": ffn_width(c, fields),
        "hidden_act": activation(c, "gelu"),
        "gated_mlp": False,
        "norm": "layer_norm",
        "position_embedding": "alibi" if alibi else "rope",
        "parallel_block": ("two_norms" if norms == 2 else "one_norm") if together else "none",
        "joined_branches": together,
        "branch_held": "none" if together else "both",
        "fused_qkv": True,
        "fused_qkv_split": "indexed" if grouped or one else "slices",
        "explicit_mask": True,
        "repeats_key_values": False,
        "softmax_in_fp32": False,
        "score_scaling": "in_place",
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": bias,
        "bias_added": True,
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
    }


@family("RefinedWeb")
def refined_web(c: Config) -> Fields:
    """Falcon-40B under its first name: always the grouped architecture."""
    return falcon(c)


@family("mpt")
def mpt(c: Config) -> Fields:
    """ALiBi; norms without bias; no bias anywhere."""
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    dropout = c.within("attn_config").ratio("attn_pdrop")
    return {
        "vocab_size": c.count("vocab_size"),
        "hidden_size": hidden,
        "num_hidden_layers": c.count("num_hidden_layers"),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": share(c, hidden, heads),
        "max_position_embeddings": c.count("max_position_embeddings", default=0),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
        "intermediate_size": c.count("expansion_ratio", default=4) * hidden,
        "hidden_act": "gelu",
        "gated_mlp": False,
        "norm": "layer_norm",
        "norm_bias": False,
        "position_embedding": "alibi",
        "fused_qkv": True,
        "sdpa": False,
        "branch_held": "output",
        "score_masking": "filled",
        "dropouts": ("attention", "hidden"),
        "attention_dropout": dropout,
        "hidden_dropout": dropout,
    }
