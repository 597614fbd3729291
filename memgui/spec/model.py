"""What a model is: dimensions and structure, named as in a Hugging Face ``config.json``.

A model is described, not named: its ``model_type`` is only where the description came from.
Each layer has a *mixer* (``layer_types``) and a *feed-forward* (``mlp_layer_types``); the other
structural fields say how this model's layers write their norms, projections and activations.  The
estimator reads nothing but this description, so a hybrid, an alternating window or a first dense
layer is a pattern in a tuple and no special case.
"""

from __future__ import annotations

import msgspec


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One transformer (or state-space) model.  Widths are elements, lengths are tokens.

    ``layer_types`` and ``mlp_layer_types`` are patterns: layer *i* takes entry ``i % len(pattern)``,
    so that changing ``num_hidden_layers`` keeps the rhythm; an empty pattern means every layer is
    ``full_attention`` / ``dense`` (``sparse`` where ``num_experts`` is set).
    """

    # where the description comes from
    name: str = ""
    model_type: str = ""
    source: str = ""
    head: str = "causal"

    # dimensions
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    max_position_embeddings: int = 0
    tie_word_embeddings: bool = False
    nominal_parameters: int | None = None

    # how a layer is written
    layer_types: tuple[str, ...] = ()
    mlp_layer_types: tuple[str, ...] = ()
    norm: str = "rms_norm"
    norm_placement: str = "pre"
    qk_norm: str = "none"
    hidden_act: str = "silu"
    gated_mlp: bool = True
    position_embedding: str = "rope"
    rotary_dim: int | None = None
    fused_qkv: bool = False
    fused_gate_up: bool = False
    attention_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    lm_head_bias: bool = False
    embedding_size: int | None = None
    final_norm: bool = True

    # windows
    sliding_window: int | None = None
    attention_chunk_size: int | None = None

    # the model's own dropout probabilities
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0


def pattern_at(pattern: tuple[str, ...], index: int, default: str) -> str:
    """Entry of a layer pattern for layer ``index``; ``default`` where the pattern is empty."""
    return pattern[index % len(pattern)] if pattern else default
