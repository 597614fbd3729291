"""The letters of formulas: what each means, and the field it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memgui.estimator.result import Symbol
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec
from memgui.spec.scenario import Scenario

MODEL: dict[str, tuple[str, str | None]] = {
    "h": (QT_TRANSLATE_NOOP("symbols", "hidden size"), "model.hidden_size"),
    "a": (QT_TRANSLATE_NOOP("symbols", "attention heads"), "model.num_attention_heads"),
    "k": (QT_TRANSLATE_NOOP("symbols", "key/value heads"), "model.num_key_value_heads"),
    "d": (QT_TRANSLATE_NOOP("symbols", "head size"), "model.head_dim"),
    "g": (QT_TRANSLATE_NOOP("symbols", "query, key and value heads together (a + 2k)"), None),
    "p": (QT_TRANSLATE_NOOP("symbols", "rotated part of a head"), "model.rotary_dim"),
    "p2": (QT_TRANSLATE_NOOP("symbols", "half of the rotated part of a head"), None),
    "dp": (QT_TRANSLATE_NOOP("symbols", "part of a head that is not rotated"), None),
    "f": (QT_TRANSLATE_NOOP("symbols", "FFN width"), "model.intermediate_size"),
    "E": (QT_TRANSLATE_NOOP("symbols", "experts"), "model.num_experts"),
    "T": (QT_TRANSLATE_NOOP("symbols", "experts per token"), "model.num_experts_per_tok"),
    "el": (QT_TRANSLATE_NOOP("symbols", "width that experts read"), "model.moe_latent_size"),
    "m": (QT_TRANSLATE_NOOP("symbols", "expert width"), "model.moe_intermediate_size"),
    "w": (QT_TRANSLATE_NOOP("symbols", "width of all shared experts"), None),
    "lq": (QT_TRANSLATE_NOOP("symbols", "query latent size"), "model.q_lora_rank"),
    "lk": (QT_TRANSLATE_NOOP("symbols", "KV latent size"), "model.kv_lora_rank"),
    "lp": (QT_TRANSLATE_NOOP("symbols", "KV latent and rotated key together"), None),
    "ih": (QT_TRANSLATE_NOOP("symbols", "indexer heads"), "model.index_n_heads"),
    "id": (QT_TRANSLATE_NOOP("symbols", "indexer head size"), "model.index_head_dim"),
    "nv": (QT_TRANSLATE_NOOP("symbols", "unrotated key and value of a head together"), None),
    "dv": (QT_TRANSLATE_NOOP("symbols", "value head size"), "model.v_head_dim"),
    "V": (QT_TRANSLATE_NOOP("symbols", "vocabulary"), "model.vocab_size"),
    "P": (QT_TRANSLATE_NOOP("symbols", "learned positions"), "model.max_position_embeddings"),
    "e": (QT_TRANSLATE_NOOP("symbols", "embedding width"), "model.embedding_size"),
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


def model_values(model: ModelSpec, rank: int, virtual: int) -> dict[str, int]:
    """The value of every symbol in :data:`MODEL`."""
    heads, shared = model.num_attention_heads, model.num_key_value_heads
    rotated = model.head_dim if model.rotary_dim is None else model.rotary_dim
    return {
        "h": model.hidden_size,
        "a": heads,
        "k": shared,
        "d": model.head_dim,
        "g": heads + 2 * shared,
        "p": rotated,
        "p2": rotated // 2,
        "dp": model.head_dim - rotated,
        "f": model.intermediate_size,
        "E": model.num_experts,
        "T": model.num_experts_per_tok,
        "el": model.moe_latent_size,
        "m": model.moe_intermediate_size,
        "w": model.n_shared_experts * model.shared_expert_intermediate_size,
        "lq": model.q_lora_rank or 0,
        "lk": model.kv_lora_rank or 0,
        "lp": (model.kv_lora_rank or 0) + rotated,
        "ih": model.index_n_heads,
        "id": model.index_head_dim,
        "nv": model.head_dim - rotated + (model.v_head_dim or model.head_dim),
        "dv": model.v_head_dim or model.head_dim,
        "V": model.vocab_size,
        "P": model.max_position_embeddings + model.position_offset,
        "e": model.embedding_size or model.hidden_size,
        "r": rank,
        "v": virtual,
        "D": model.mamba_d_ssm,
        "N": model.mamba_d_state,
        **_state_space(model),
        **_linear(model),
        "lw": model.lru_width,
        "lb": model.lru_width // heads,
        "Q": chunk_tokens(model),
        "K": convolution_tokens(model),
        "A": model.max_source_positions,
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


def chunk_tokens(model: ModelSpec) -> int:
    """Tokens that recurrences work on together."""
    return model.mamba_chunk_size or model.linear_chunk_size or 1


def window(model: ModelSpec) -> int:
    """Tokens that a layer with a window or with chunks caches; beyond any length where it has neither."""
    return model.sliding_window or model.attention_chunk_size or 10**18


def convolution_tokens(model: ModelSpec) -> int:
    """Tokens that the model's short convolution reads."""
    return model.mamba_d_conv or model.linear_conv_kernel_dim or model.conv1d_width


def _length(scenario: Scenario) -> int:
    """Tokens of a sequence that go through the layers: prompt tuning puts some in front."""
    training = scenario.training
    return training.sequence_length + (training.virtual_tokens if training.method == "prompt" else 0)


def _chunks(scenario: Scenario) -> tuple[int, int, int]:
    """Tokens of the last chunk, of the one before it, of all others, as ``torch.chunk`` cuts a sequence."""
    length = _length(scenario)
    each = -(-length // scenario.training.loss_chunks)
    last = length - (-(-length // each) - 1) * each
    second = min(each, length - last)
    return last, second, length - last - second


def _tokens_at_once(scenario: Scenario) -> int:
    """Tokens of a chunk of Liger's loss: so many that their logits are about as large as its input."""
    tokens = scenario.training.micro_batch_size * _length(scenario)
    share = -(-tokens // -(-scenario.model.vocab_size // scenario.model.hidden_size))
    return min(tokens, 1 << (share - 1).bit_length())


def target_tokens(scenario: Scenario) -> int:
    """Tokens of each target sequence: as many as the source has, unless said otherwise."""
    training = scenario.training
    return training.target_length or training.sequence_length


def start_tokens(scenario: Scenario) -> int:
    """Tokens that a decoder beside an encoder begins with."""
    return scenario.inference.decoder_prompt_tokens


TRAINING: dict[str, tuple[str, str | None, Callable[[Scenario], int]]] = {
    "b": (
        QT_TRANSLATE_NOOP("symbols", "micro batch"),
        "training.micro_batch_size",
        lambda s: s.training.micro_batch_size,
    ),
    "s": (
        QT_TRANSLATE_NOOP("symbols", "sequence length"),
        "training.sequence_length",
        lambda s: _length(s),
    ),
    "s0": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a sequence without the prompt"),
        "training.sequence_length",
        lambda s: s.training.sequence_length,
    ),
    "s1": (
        QT_TRANSLATE_NOOP("symbols", "sequence length plus one"),
        None,
        lambda s: _length(s) + 1,
    ),
    "sc128": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a chunk: 128, or the sequence where that is shorter"),
        None,
        lambda s: min(128, _length(s)),
    ),
    "c128": (
        QT_TRANSLATE_NOOP("symbols", "chunks of 128 tokens"),
        None,
        lambda s: -(-_length(s) // 128),
    ),
    "c1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of the loss's last chunk"),
        "training.loss_chunks",
        lambda s: _chunks(s)[0],
    ),
    "c2": (
        QT_TRANSLATE_NOOP("symbols", "tokens of the loss's last chunk but one"),
        "training.loss_chunks",
        lambda s: _chunks(s)[1],
    ),
    "cr": (
        QT_TRANSLATE_NOOP("symbols", "tokens of the loss's other chunks"),
        "training.loss_chunks",
        lambda s: _chunks(s)[2],
    ),
    "bt": (
        QT_TRANSLATE_NOOP("symbols", "tokens whose logits are there at once"),
        None,
        lambda s: _tokens_at_once(s),
    ),
    "u": (QT_TRANSLATE_NOOP("symbols", "target length"), "training.target_length", target_tokens),
    "u8": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 8"),
        None,
        lambda s: -(-target_tokens(s) // 8) * 8,
    ),
    "u32": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 32"),
        None,
        lambda s: -(-target_tokens(s) // 32) * 32,
    ),
    "u64": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 64"),
        None,
        lambda s: -(-target_tokens(s) // 64) * 64,
    ),
    "u128": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 128"),
        None,
        lambda s: -(-target_tokens(s) // 128) * 128,
    ),
    "sp": (
        QT_TRANSLATE_NOOP("symbols", "sequence length less one"),
        None,
        lambda s: _length(s) - 1,
    ),
    "sc": (
        QT_TRANSLATE_NOOP("symbols", "sequence length and the convolution's padding"),
        None,
        lambda s: _length(s) + convolution_tokens(s.model) - 1,
    ),
    "cc": (QT_TRANSLATE_NOOP("symbols", "chunks"), None, lambda s: -(-_length(s) // chunk_tokens(s.model))),
    "cn": (
        QT_TRANSLATE_NOOP("symbols", "chunks plus one"),
        None,
        lambda s: -(-_length(s) // chunk_tokens(s.model)) + 1,
    ),
    "cm": (
        QT_TRANSLATE_NOOP("symbols", "chunks less one"),
        None,
        lambda s: -(-_length(s) // chunk_tokens(s.model)) - 1,
    ),
    "s8": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 8"),
        None,
        lambda s: -(-_length(s) // 8) * 8,
    ),
    "it": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the indexer chooses"),
        "model.index_topk",
        lambda s: min(s.model.index_topk, s.training.sequence_length),
    ),
    "s32": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 32"),
        None,
        lambda s: -(-_length(s) // 32) * 32,
    ),
    "s64": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 64"),
        None,
        lambda s: -(-_length(s) // 64) * 64,
    ),
    "s128": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 128"),
        None,
        lambda s: -(-_length(s) // 128) * 128,
    ),
}
"""Symbols of a training step that stay open until it is evaluated: label, field, value."""

RESIDUAL = 128
"""Tokens that Transformers' QuantizedCache gathers before it packs them."""

INFERENCE: dict[str, tuple[str, str | None, Callable[[Scenario], int]]] = {
    "u": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the decoder begins with"),
        "inference.decoder_prompt_tokens",
        start_tokens,
    ),
    "u8": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the decoder begins with, rounded up to 8"),
        None,
        lambda s: -(-start_tokens(s) // 8) * 8,
    ),
    "u32": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the decoder begins with, rounded up to 32"),
        None,
        lambda s: -(-start_tokens(s) // 32) * 32,
    ),
    "v": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each target in the cache"),
        None,
        lambda s: start_tokens(s) + s.inference.generated_tokens,
    ),
    "v1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each target in the cache, less one"),
        None,
        lambda s: start_tokens(s) + s.inference.generated_tokens - 1,
    ),
    "sp": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens less one"),
        None,
        lambda s: s.inference.prompt_tokens - 1,
    ),
    "sc": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens and the convolution's padding"),
        None,
        lambda s: s.inference.prompt_tokens + convolution_tokens(s.model) - 1,
    ),
    "b": (
        QT_TRANSLATE_NOOP("symbols", "sequences"),
        "inference.batch_size",
        lambda s: s.inference.batch_size,
    ),
    "s": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens"),
        "inference.prompt_tokens",
        lambda s: s.inference.prompt_tokens,
    ),
    "cc": (
        QT_TRANSLATE_NOOP("symbols", "chunks"),
        None,
        lambda s: -(-s.inference.prompt_tokens // chunk_tokens(s.model)),
    ),
    "cn": (
        QT_TRANSLATE_NOOP("symbols", "chunks plus one"),
        None,
        lambda s: -(-s.inference.prompt_tokens // chunk_tokens(s.model)) + 1,
    ),
    "cm": (
        QT_TRANSLATE_NOOP("symbols", "chunks less one"),
        None,
        lambda s: -(-s.inference.prompt_tokens // chunk_tokens(s.model)) - 1,
    ),
    "s8": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens rounded up to 8"),
        None,
        lambda s: -(-s.inference.prompt_tokens // 8) * 8,
    ),
    "it": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the indexer chooses"),
        "model.index_topk",
        lambda s: min(s.model.index_topk, s.inference.prompt_tokens),
    ),
    "s32": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens rounded up to 32"),
        None,
        lambda s: -(-s.inference.prompt_tokens // 32) * 32,
    ),
    "s1": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens plus one"),
        None,
        lambda s: s.inference.prompt_tokens + 1,
    ),
    "ts": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence in the cache, plus one"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens + 1,
    ),
    "t": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence in the cache"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens,
    ),
    "t1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence in the cache, less one"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens - 1,
    ),
    "tq": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a cache has packed"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens // RESIDUAL * RESIDUAL,
    ),
    "tr": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a cache has not packed yet"),
        None,
        lambda s: s.inference.generated_tokens % RESIDUAL,
    ),
    "tr1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence not packed yet before the last"),
        None,
        lambda s: (s.inference.generated_tokens - 1) % RESIDUAL,
    ),
    "tw1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a window held before the last"),
        None,
        lambda s: (
            s.inference.prompt_tokens
            if s.inference.generated_tokens == 1
            else min(
                s.inference.prompt_tokens + s.inference.generated_tokens - 1,
                window(s.model),
            )
        ),
    ),
    "tw": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a window holds"),
        None,
        lambda s: min(s.inference.prompt_tokens + s.inference.generated_tokens, window(s.model)),
    ),
}
"""Symbols of serving that stay open until it is evaluated."""


def open_symbols(scenario: Scenario) -> dict[str, tuple[str, str | None, Callable[[Scenario], int]]]:
    """The open symbols of the scenario's task."""
    return TRAINING if scenario.task == "training" else INFERENCE


def symbol(scenario: Scenario, name: str, values: Mapping[str, int]) -> Symbol:
    """The symbol called ``name`` with its value in ``scenario``."""
    found = MODEL.get(name)
    if found is not None:
        return Symbol(values[name], found[0], found[1])
    label, path, value = open_symbols(scenario)[name]
    return Symbol(value(scenario), label, path)
