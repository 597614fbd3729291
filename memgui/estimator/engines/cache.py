"""What each layer of a model keeps of the tokens so far, whatever engine holds it.

Attention keeps keys and values (of a window, where it has one), latent attention the compressed
form, state-space and linear-attention layers a state of fixed size.  Engines differ in how they pad,
page and place these; that is theirs to say.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from memgui.spec.formats import CacheFormat
from memgui.spec.model import ModelSpec, pattern_at
from memgui.spec.variants import varied


class Keys(NamedTuple):
    """Keys and values of an attention layer: ``heads`` of ``key`` and of ``value`` elements for each token.

    ``window``: tokens that are looked back on, 0 where all are.  ``latent``: one compressed vector of
    ``key`` elements instead, of which ``rotary`` are kept in 16 bits by formats that say so.
    ``indexer``: elements for each token that an indexer keeps beside it.
    """

    heads: int
    key: int
    value: int
    window: int = 0
    latent: bool = False
    rotary: int = 0
    indexer: int = 0

    def bytes_for(self, keys: CacheFormat, values: CacheFormat, degree: int = 1) -> int:
        """Bytes of one token on one of ``degree`` tensor parallel ranks; a latent lies whole on each."""
        if self.latent:
            return _latent(self, keys)
        heads = max(1, self.heads // degree)
        return keys.bytes_for(heads, self.key) + values.bytes_for(heads, self.value)


def _latent(layer: Keys, keys: CacheFormat) -> int:
    index = 0
    if layer.indexer:  # fp8 values with one fp32 scale beside an fp8 latent, else in the cache's format
        index = layer.indexer + 4 if keys.latent_only else keys.bytes_for(1, layer.indexer)
    if keys.latent_only:
        return keys.bytes_for(1, layer.key - layer.rotary) + 2 * layer.rotary + index
    return keys.bytes_for(1, layer.key) + index


class State(NamedTuple):
    """The state of a recurrent layer for one sequence, in elements.

    ``channels`` times ``kernel`` columns are the input of a convolution (the newest column included),
    ``state`` what the recurrence carries, in fp32 where it is ``wide``.
    """

    channels: int
    kernel: int
    state: int
    wide: bool = False


Layer = Keys | State

WIDE = "qwen3_5"
"""Models whose configs ask for states in fp32 (``mamba_ssm_dtype``); KDA's states always are."""

RECURRENT = ("mamba", "mamba2", "gated_delta_net", "kda", "lightning_attention", "rg_lru", "short_conv")
"""Mixers that keep a state of fixed size."""


def of_layer(model: ModelSpec, mixer: str) -> tuple[Layer, ...]:
    """What one layer with ``mixer`` keeps."""
    if mixer in RECURRENT:
        return (_state(model, mixer),)
    if mixer == "attention_mamba2":
        return _keys(model, "full_attention"), _state(model, "mamba2")
    if mixer == "none" or mixer.startswith("borrowing_"):
        return ()
    twice = 2 if model.shortcut_experts else 1  # layers with two attentions
    return (_keys(model, mixer),) * twice


def _keys(model: ModelSpec, mixer: str) -> Keys:
    window = 0
    model = varied(model, mixer)
    if mixer.endswith("sliding_attention"):
        window = model.sliding_window or 0
        if model.max_position_embeddings and window >= model.max_position_embeddings:
            window = 0  # no sequence is longer: Phi-3's 128k
    elif mixer == "chunked_attention":
        window = model.attention_chunk_size or 0
    if model.kv_lora_rank is not None:
        rotary = model.qk_rope_head_dim
        chooses = mixer in ("indexed_attention", "unrotated_indexed_attention")
        index = model.index_head_dim if chooses else 0
        return Keys(1, model.kv_lora_rank + rotary, 0, window, True, rotary, index)
    return Keys(model.num_key_value_heads, model.head_dim, model.v_head_dim or model.head_dim, window)


def _state(model: ModelSpec, mixer: str) -> State:
    match mixer:
        case "mamba":
            return State(model.mamba_d_ssm, model.mamba_d_conv, model.mamba_d_ssm * model.mamba_d_state)
        case "mamba2":
            channels = model.mamba_d_ssm + 2 * model.mamba_n_groups * model.mamba_d_state
            heads = model.mamba_n_heads * model.mamba_d_head
            return State(channels, model.mamba_d_conv, heads * model.mamba_d_state)
        case "gated_delta_net" | "kda":
            keys = model.linear_num_key_heads * model.linear_key_head_dim
            values = model.linear_num_value_heads * model.linear_value_head_dim
            carried = model.linear_num_value_heads * model.linear_key_head_dim * model.linear_value_head_dim
            wide = mixer == "kda" or model.model_type.startswith(WIDE)
            return State(2 * keys + values, model.linear_conv_kernel_dim, carried, wide)
        case "lightning_attention":
            return State(0, 0, model.num_attention_heads * model.head_dim * model.head_dim)
        case "rg_lru":
            return State(model.lru_width, model.conv1d_width, model.lru_width)
        case _:
            return State(model.hidden_size, model.conv1d_width, 0)


@lru_cache(maxsize=128)
def layers(model: ModelSpec, start: int = 0, stop: int | None = None) -> tuple[tuple[Layer, int], ...]:
    """What the layers from ``start`` up to ``stop`` keep: equal ones once, with how many there are.

    Encoders read all tokens at once and keep none.
    """
    if not model.is_decoder:
        return ()
    stop = model.num_hidden_layers if stop is None else stop
    if len(model.layer_types) <= 1:
        mixer = pattern_at(model.layer_types, 0, "full_attention")
        return tuple((layer, stop - start) for layer in of_layer(model, mixer))
    counts: Counter[Layer] = Counter()
    for index in range(start, stop):
        counts.update(of_layer(model, pattern_at(model.layer_types, index, "full_attention")))
    return tuple(counts.items())
