"""The letters of formulas that have a value as soon as the model is known."""

from __future__ import annotations

from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec

MODEL: dict[str, tuple[str, str | None]] = {
    "h": (QT_TRANSLATE_NOOP("symbols", "hidden size"), "model.hidden_size"),
    "a": (QT_TRANSLATE_NOOP("symbols", "attention heads"), "model.num_attention_heads"),
    "a2": (QT_TRANSLATE_NOOP("symbols", "pairs of attention heads"), None),
    "k": (QT_TRANSLATE_NOOP("symbols", "key/value heads"), "model.num_key_value_heads"),
    "d": (QT_TRANSLATE_NOOP("symbols", "head size"), "model.head_dim"),
    "g": (QT_TRANSLATE_NOOP("symbols", "query, key and value heads together (a + 2k)"), None),
    "p": (QT_TRANSLATE_NOOP("symbols", "rotated part of a head"), "model.rotary_dim"),
    "p2": (QT_TRANSLATE_NOOP("symbols", "half of the rotated part of a head"), None),
    "dp": (QT_TRANSLATE_NOOP("symbols", "part of a head that is not rotated"), None),
    "f": (QT_TRANSLATE_NOOP("symbols", "FFN width"), "model.intermediate_size"),
    "E": (QT_TRANSLATE_NOOP("symbols", "experts"), "model.num_experts"),
    "Ez": (QT_TRANSLATE_NOOP("symbols", "experts, those without weights included"), None),
    "T": (QT_TRANSLATE_NOOP("symbols", "experts per token"), "model.num_experts_per_tok"),
    "el": (QT_TRANSLATE_NOOP("symbols", "width that experts read"), "model.moe_latent_size"),
    "m": (QT_TRANSLATE_NOOP("symbols", "expert width"), "model.moe_intermediate_size"),
    "w": (QT_TRANSLATE_NOOP("symbols", "width of all shared experts"), None),
    "lq": (QT_TRANSLATE_NOOP("symbols", "query latent size"), "model.q_lora_rank"),
    "lk": (QT_TRANSLATE_NOOP("symbols", "KV latent size"), "model.kv_lora_rank"),
    "lp": (QT_TRANSLATE_NOOP("symbols", "KV latent and rotated key together"), None),
    "ih": (QT_TRANSLATE_NOOP("symbols", "indexer heads"), "model.index_n_heads"),
    "id": (QT_TRANSLATE_NOOP("symbols", "indexer head size"), "model.index_head_dim"),
    "ihk": (QT_TRANSLATE_NOOP("symbols", "indexer heads and its key"), None),
    "di": (QT_TRANSLATE_NOOP("symbols", "part of an indexer's head that is not rotated"), None),
    "ib": (QT_TRANSLATE_NOOP("symbols", "keys of a block"), "model.index_block_size"),
    "rc": (QT_TRANSLATE_NOOP("symbols", "tokens of a compressed entry"), "model.compress_rate_csa"),
    "rh": (QT_TRANSLATE_NOOP("symbols", "tokens of a heavily compressed entry"), "model.compress_rate_hca"),
    "nv": (QT_TRANSLATE_NOOP("symbols", "unrotated key and value of a head together"), None),
    "dv": (QT_TRANSLATE_NOOP("symbols", "value head size"), "model.v_head_dim"),
    "dg": (QT_TRANSLATE_NOOP("symbols", "query and gate of a head together"), None),
    "gr": (QT_TRANSLATE_NOOP("symbols", "inner width of a norm's gate"), "model.gated_norm_rank"),
    "V": (QT_TRANSLATE_NOOP("symbols", "vocabulary"), "model.vocab_size"),
    "Vo": (QT_TRANSLATE_NOOP("symbols", "vocabulary of the head"), "model.output_vocab_size"),
    "Vt": (QT_TRANSLATE_NOOP("symbols", "vocabulary's share of a rank"), None),
    "X": (QT_TRANSLATE_NOOP("symbols", "experts on a rank"), None),
    "P": (QT_TRANSLATE_NOOP("symbols", "learned positions"), "model.max_position_embeddings"),
    "e": (QT_TRANSLATE_NOOP("symbols", "embedding width"), "model.embedding_size"),
    "pl": (QT_TRANSLATE_NOOP("symbols", "per-layer embedding width"), "model.hidden_size_per_layer_input"),
    "Vp": (QT_TRANSLATE_NOOP("symbols", "per-layer vocabulary"), "model.vocab_size_per_layer_input"),
    "r": (QT_TRANSLATE_NOOP("symbols", "adapter rank"), "training.lora.rank"),
    "v": (QT_TRANSLATE_NOOP("symbols", "virtual tokens"), "training.virtual_tokens"),
    "D": (QT_TRANSLATE_NOOP("symbols", "Mamba width"), "model.mamba_d_ssm"),
    "N": (QT_TRANSLATE_NOOP("symbols", "state size"), "model.mamba_d_state"),
    "mh": (QT_TRANSLATE_NOOP("symbols", "Mamba heads"), "model.mamba_n_heads"),
    "md": (QT_TRANSLATE_NOOP("symbols", "Mamba head size"), "model.mamba_d_head"),
    "mn": (QT_TRANSLATE_NOOP("symbols", "state size of all Mamba groups"), None),
    "mc": (QT_TRANSLATE_NOOP("symbols", "width of Mamba's convolution"), None),
    "mi": (QT_TRANSLATE_NOOP("symbols", "width of Mamba's projection"), None),
    "gk": (QT_TRANSLATE_NOOP("symbols", "linear key heads"), "model.linear_num_key_heads"),
    "gv": (QT_TRANSLATE_NOOP("symbols", "linear value heads"), "model.linear_num_value_heads"),
    "ck": (QT_TRANSLATE_NOOP("symbols", "linear key size"), "model.linear_key_head_dim"),
    "cv": (QT_TRANSLATE_NOOP("symbols", "linear value size"), "model.linear_value_head_dim"),
    "gc": (QT_TRANSLATE_NOOP("symbols", "linear queries, keys and values together"), None),
    "gq": (QT_TRANSLATE_NOOP("symbols", "the same with the gate"), None),
    "lw": (QT_TRANSLATE_NOOP("symbols", "recurrence width"), "model.lru_width"),
    "lb": (QT_TRANSLATE_NOOP("symbols", "recurrence width of one head"), None),
    "Q": (QT_TRANSLATE_NOOP("symbols", "tokens of a chunk"), None),
    "K": (QT_TRANSLATE_NOOP("symbols", "tokens of the short convolution"), None),
    "A": (QT_TRANSLATE_NOOP("symbols", "longest source"), "model.max_source_positions"),
}
"""Symbols with a value as soon as the model (and the adapter) is known."""


ON_RANK: dict[str, str] = {
    "a": QT_TRANSLATE_NOOP("symbols", "attention heads of a rank"),
    "k": QT_TRANSLATE_NOOP("symbols", "key/value heads of a rank"),
    "g": QT_TRANSLATE_NOOP("symbols", "query, key and value heads of a rank together (a + 2k)"),
    "f": QT_TRANSLATE_NOOP("symbols", "FFN width of a rank"),
    "m": QT_TRANSLATE_NOOP("symbols", "expert width of a rank"),
    "w": QT_TRANSLATE_NOOP("symbols", "width of all shared experts on a rank"),
}
"""What symbols mean where tensor parallel ranks share a layer's matrices."""


def model_values(model: ModelSpec, rank: int, virtual: int) -> dict[str, int]:
    """The value of every symbol in :data:`MODEL`."""
    return {
        "h": model.hidden_size,
        **own_values(model),
        "E": model.num_experts,
        "Ez": model.num_experts + model.zero_expert_num,
        "T": model.num_experts_per_tok,
        "el": model.moe_latent_size,
        "m": model.moe_intermediate_size,
        "w": model.n_shared_experts * model.shared_expert_intermediate_size,
        "lq": model.q_lora_rank or 0,
        "lk": model.kv_lora_rank or 0,
        "ih": model.index_n_heads,
        "id": model.index_head_dim,
        "ihk": model.index_n_heads + 1,
        "ib": model.index_block_size,
        "rc": model.compress_rate_csa,
        "rh": model.compress_rate_hca,
        "gr": model.gated_norm_rank,
        "V": model.vocab_size,
        "Vo": model.output_vocab_size,
        "Vt": model.vocab_size,
        "X": model.num_experts,
        "P": model.max_position_embeddings + model.position_offset,
        "e": model.embedding_size or model.hidden_size,
        "pl": model.hidden_size_per_layer_input,
        "Vp": model.vocab_size_per_layer_input,
        "r": rank,
        "v": virtual,
        "D": model.mamba_d_ssm,
        "N": model.mamba_d_state,
        **_state_space(model),
        **_linear(model),
        "lw": model.lru_width,
        "Q": chunk_tokens(model),
        "K": convolution_tokens(model),
        "A": model.max_source_positions,
    }


def own_values(model: ModelSpec) -> dict[str, int]:
    """Those that follow from :data:`~memgui.spec.variants.SIZES`: some layers may have others."""
    heads, shared, size = model.num_attention_heads, model.num_key_value_heads, model.head_dim
    rotated = size if model.rotary_dim is None else model.rotary_dim
    of_values = model.v_head_dim or size
    return {
        "a": heads,
        "a2": heads // 2,
        "k": shared,
        "d": size,
        "g": heads + 2 * shared,
        "p": rotated,
        "p2": rotated // 2,
        "dp": size - rotated,
        "f": model.intermediate_size,
        "lp": (model.kv_lora_rank or 0) + rotated,
        "di": model.index_head_dim - rotated,
        "nv": size - rotated + of_values,
        "dv": of_values,
        "dg": size + of_values,
        "lb": model.lru_width // heads,
    }


def _state_space(model: ModelSpec) -> dict[str, int]:
    maps = model.mamba_n_groups * model.mamba_d_state
    convolved = model.mamba_d_ssm + 2 * maps
    heads = model.mamba_n_heads
    return {
        "mh": heads,
        "md": model.mamba_d_head,
        "mn": maps,
        "mc": convolved,
        "mi": model.mamba_d_ssm + convolved + heads,
    }


def _linear(model: ModelSpec) -> dict[str, int]:
    key_heads, value_heads = model.linear_num_key_heads, model.linear_num_value_heads
    values = value_heads * model.linear_value_head_dim
    mixed = 2 * key_heads * model.linear_key_head_dim + values
    return {
        "gk": key_heads,
        "gv": value_heads,
        "ck": model.linear_key_head_dim,
        "cv": model.linear_value_head_dim,
        "gc": mixed,
        "gq": mixed + values,
    }


_STATED_BY = {
    "Q": ("mamba_chunk_size", "linear_chunk_size", "index_block_size"),
    "K": ("mamba_d_conv", "linear_conv_kernel_dim", "conv1d_width"),
}


def stated_by(letter: str, model: ModelSpec) -> str | None:
    """The path of the field that says what ``letter`` is worth, of those that may."""
    path = MODEL[letter][1]
    if path is None:
        name = _stating(letter, model)
        path = f"model.{name}" if name else None
    return path


def _stating(letter: str, model: ModelSpec) -> str:
    """The first of the fields that may say what ``letter`` is worth that does; nothing where none does."""
    return next((name for name in _STATED_BY.get(letter, ()) if getattr(model, name)), "")


def chunk_tokens(model: ModelSpec) -> int:
    """Tokens that recurrences work on together."""
    name = _stating("Q", model)
    return getattr(model, name) if name else 1


def window(model: ModelSpec) -> int:
    """Tokens that a layer with a window or with chunks caches; beyond any length where it has neither."""
    return model.sliding_window or model.attention_chunk_size or 10**18


def convolution_tokens(model: ModelSpec) -> int:
    """Tokens that the model's short convolution reads."""
    name = _stating("K", model)
    return getattr(model, name) if name else 0
