"""What the modules can write: what is not written yet is refused, never passed over."""

from __future__ import annotations

from typing import Final

from memgui.estimator.modules.eager import MASKINGS
from memgui.estimator.modules.layers import FEED_FORWARDS, MIXERS, PLACEMENTS
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.moe import EXPERTS, GATES
from memgui.estimator.modules.norm import NORMS, WITHOUT_WEIGHT
from memgui.estimator.modules.rotary import ROTATIONS
from memgui.estimator.modules.routers import ROUTERS
from memgui.estimator.refusals import NotCovered, not_with, not_yet
from memgui.spec.messages import Named
from memgui.spec.model import ModelSpec

_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "norm": tuple(NORMS),
    "norm_placement": tuple(PLACEMENTS),
    "qk_norm": ("none", "head", "head_rotated", "per_head", "full", "plain"),
    "hidden_act": (*GATES, "xielu"),
    "rotary_style": tuple(ROTATIONS),
    "router_balance": ("none", "fp32", "own"),
    "attention_gate": ("none", "elementwise", "elementwise_biased", "per_head", "per_head_sigmoid"),
    "score_masking": tuple(MASKINGS),
    "router_scoring": tuple(ROUTERS),
    "expert_layout": tuple(EXPERTS),
}


_SHAPES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "decoder": {
        "head": ("causal", "sequence"),
        "position_embedding": ("rope", "learned", "sinusoidal_buffer", "alibi", "none"),
    },
    "encoder": {
        "position_embedding": ("rope", "learned", "disentangled", "none"),
    },
    "two stacks": {
        "head": ("seq2seq", "speech"),
        "position_embedding": ("learned", "sinusoidal", "sinusoidal_buffer", "relative"),
    },
}
"""What models of each shape may have."""
_KNOWN: Final = {shape: tuple({**_CHOICES, **own}.items()) for shape, own in _SHAPES.items()}


def require_covered(model: ModelSpec) -> None:
    """Raise :class:`NotCovered` where ``model`` has something that no module writes."""
    shape = shape_of(model)
    for name, known in _KNOWN[shape]:
        if getattr(model, name) not in known:
            raise NotCovered(not_yet(f"model.{name}", getattr(model, name)))
    if shape == "encoder":  # whose modules are loaded when the first of them is looked at
        from memgui.estimator.modules.encoders import HEADS

        if model.head not in HEADS or (model.head == "masked" and model.image_size):
            raise NotCovered(not_yet("model.head", model.head))
    if model.hidden_act == "xielu" and (shape == "encoder" or not _weighted(model)):
        raise NotCovered(not_yet("model.hidden_act", model.hidden_act))
    fused = model.hidden_act == "swiglu_clamped" and model.fused_gate_up and model.gated_mlp
    if model.hidden_act not in (*ACTIVATIONS, "xielu") and not fused and _writes_a_plain_mlp(model):
        raise NotCovered(not_yet("model.hidden_act", model.hidden_act))
    _require_gated(model, shape)
    if model.value_norm and model.norm not in WITHOUT_WEIGHT:
        raise NotCovered(not_with("model.value_norm", True, Named("model.norm", (model.norm,))))
    if model.attention_gate == "elementwise" and model.fused_qkv:
        raise NotCovered(not_with("model.attention_gate", "elementwise", Named("model.fused_qkv", (True,))))
    for name, patterns in (("layer_types", MIXERS), ("mlp_layer_types", FEED_FORWARDS)):
        for value in dict.fromkeys(getattr(model, name)):
            if value not in patterns and value != "none":
                raise NotCovered(not_yet(f"model.{name}", value))
    _require_pattern(model, shape)


LENT: Final = ("lending_attention", "lending_sliding_attention")
BORROWED: Final = ("borrowing_attention", "borrowing_sliding_attention")
"""Mixers that keep keys and values for later layers, and those that use them."""


def _require_pattern(model: ModelSpec, shape: str) -> None:
    """Raise :class:`NotCovered` where layers do not go together, or not with the rest of the model."""
    in_order = model.layer_types
    mixers, feeds = {*in_order}, {*model.mlp_layer_types}
    if "dense_sparse" in feeds and model.norm not in WITHOUT_WEIGHT:
        raise NotCovered(
            not_with("model.mlp_layer_types", "dense_sparse", Named("model.norm", (model.norm,)))
        )
    if shape != "decoder" and model.hc_mult:
        raise NotCovered(not_yet("model.hc_mult", model.hc_mult))
    streams = model.norm_placement == "gated_streams"
    several = model.hc_mult or model.altup_num_inputs or model.parallel_block != "none"
    if streams != (model.hc_count > 0) or (streams and (several or shape != "decoder")):
        raise NotCovered(not_yet("model.hc_count", model.hc_count))
    if model.n_recurrent_layers and (shape != "decoder" or model.altup_num_inputs or streams):
        raise NotCovered(not_yet("model.n_recurrent_layers", model.n_recurrent_layers))
    hybrid = "shared_mamba2" in mixers
    others = mixers - {"mamba2", "shared_mamba2"} or feeds != {"none"} or model.num_hidden_groups
    if hybrid != (model.num_mem_blocks > 0) or (hybrid and (shape != "decoder" or several or others)):
        raise NotCovered(not_yet("model.num_mem_blocks", model.num_mem_blocks))
    if hybrid and model.hidden_act not in ACTIVATIONS:
        raise NotCovered(not_yet("model.hidden_act", model.hidden_act))
    latent = model.kv_lora_rank is not None or model.v_head_dim > 0
    alone = shape == "decoder" and not (latent or model.altup_num_inputs or model.num_attention_heads % 2)
    if model.dynamic_mask and not (alone and model.explicit_mask):
        raise NotCovered(not_yet("model.dynamic_mask", True))
    if model.differential and not alone:
        raise NotCovered(not_yet("model.differential", True))
    if "none" in mixers and (shape != "decoder" or mixers == feeds or model.altup_num_inputs):
        raise NotCovered(not_yet("model.layer_types", "none"))
    for lender, borrower in zip(LENT, BORROWED, strict=True):
        if borrower in mixers and lender not in in_order[: in_order.index(borrower)]:
            raise NotCovered(not_yet("model.layer_types", borrower))


def _require_gated(model: ModelSpec, shape: str) -> None:
    """Raise :class:`NotCovered` where layers cannot have embeddings of their own, or several streams."""
    for name in ("hidden_size_per_layer_input", "altup_num_inputs"):
        value = getattr(model, name)
        if value and (shape != "decoder" or model.hidden_act not in ACTIVATIONS):
            raise NotCovered(not_yet(f"model.{name}", value))


def _weighted(model: ModelSpec) -> bool:
    """Whether the activation has weights of its own, which only a feed-forward without gate writes."""
    return model.hidden_act == "xielu" and not model.gated_mlp and not model.num_experts


def _writes_a_plain_mlp(model: ModelSpec) -> bool:
    """Whether anything but grouped experts, which may gate otherwise, takes the activation."""
    beside = "dense" in model.mlp_layer_types or model.n_shared_experts > 0
    beside = beside or "dense_sparse" in model.mlp_layer_types
    return not model.num_experts or beside or model.expert_layout != "grouped"


def shape_of(model: ModelSpec) -> str:
    """Which modules write the model: those of a decoder, of an encoder, or of two stacks."""
    if not model.num_encoder_layers:
        return "decoder" if model.is_decoder else "encoder"
    for name, same in (
        ("encoder_attention_heads", "num_attention_heads"),
        ("encoder_ffn_dim", "intermediate_size"),
    ):
        if getattr(model, name) != getattr(model, same):  # one letter stands for both
            raise NotCovered(not_yet(f"model.{name}", getattr(model, name)))
    return "two stacks"
