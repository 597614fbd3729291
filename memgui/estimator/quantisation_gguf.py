"""GGUF's file mixes: which tensor of which layer llama.cpp's quantiser stores in which type.

Source: ggml-org/llama.cpp@007dbbf3 src/llama-quant.cpp.  One-dimensional tensors, norms, routers and
convolutions stay fp32 (positions too).  Types that cannot be made without an importance matrix
(IQ1, IQ2, IQ3_XXS) are counted as with one, the others as without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from memgui.estimator.tape import Parameter
from memgui.spec.formats import GGML, WeightScheme
from memgui.spec.model import ModelSpec, pattern_at


class Matrix(NamedTuple):
    """A weight as a format sees it: ``matrices`` of ``rows`` (outputs) and ``columns`` (inputs)."""

    matrices: int
    rows: int
    columns: int


class Place(NamedTuple):
    """Where a weight stands: in which layers of the model, counted from 0; in none outside them."""

    model: ModelSpec
    layers: tuple[int, ...]


Formats = list[tuple[str, int]]
"""Formats of a weight, each with in how many layers; ``""`` is the scheme's base format."""

_FALLBACKS = {
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"), "iq4_nl"),
    **dict.fromkeys(("q2_0", "q2_k", "q3_k", "tq1_0", "tq2_0"), "q4_0"),
    "q4_k": "q5_0",
    "q5_k": "q5_1",
    "q6_k": "q8_0",
}
_CATEGORIES = {
    "attention.q": "attn_q",
    "attention.k": "attn_k",
    "attention.v": "attn_v",
    "attention.qkv": "attn_qkv",
    "attention.kv_b": "attn_kv_b",
    "attention.o": "attn_output",
    "mlp.gate": "ffn_gate",
    "mlp.up": "ffn_up",
    "mlp.gate_up": "ffn_up",
    "mlp.down": "ffn_down",
}
_SMALL = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs")
_TWO = ("iq2_s", "iq2_m")


def category(parameter: Parameter) -> str:
    """What llama.cpp's quantiser takes a weight for, by its role; ``""`` is no category of its own."""
    if parameter.part in ("embedding", "lm_head"):
        return {"embedding": "token_embd", "lm_head": "output"}[parameter.part]
    if parameter.part in ("experts", "shared_experts"):
        return "ffn_down" if "down" in parameter.name else "ffn_up"
    return _CATEGORIES.get(parameter.role, "")


def mixed(scheme: WeightScheme, parameter: Parameter, shape: Matrix | None, place: Place) -> Formats:
    """The formats of ``parameter`` in a file of the mix ``scheme``."""
    base = scheme.linear.removeprefix("ggml_")
    count = max(len(place.layers), 1)
    if shape is None or parameter.part in ("norm", "qk_norm", "router", "position_embedding"):
        return [("", count)]
    if GGML[base].block == 1:
        return [(scheme.linear, count)]
    often: dict[str, int] = {}
    for kind, number in Counter(_kinds(scheme.mix, base, parameter, shape, place)).items():
        name = f"ggml_{fitting(kind, shape.columns)}"
        often[name] = often.get(name, 0) + number
    return list(often.items())


def fitting(kind: str, columns: int) -> str:
    """``kind``, or what stands in for it where a row is no whole number of its blocks."""
    if columns % GGML[kind].block:
        kind = _FALLBACKS.get(kind, "f16")
        if columns % GGML[kind].block:
            return "f16"
    return kind


def _kinds(name: str, base: str, parameter: Parameter, shape: Matrix, place: Place) -> Iterator[str]:
    model, what = place.model, category(parameter)
    tied = model.tie_word_embeddings and what == "token_embd"
    if what == "output" or tied:
        yield _output(name, base, model, shape)
    elif name == "mxfp4_moe":
        yield from ("mxfp4" if parameter.part == "experts" else "q8_0" for _ in place.layers or (0,))
    elif what == "token_embd":
        yield _embedding(name, base)
    elif not place.layers:
        yield base
    else:
        within = _in_layers(name, base, what, model)
        yield from [within[layer] for layer in place.layers]


@lru_cache(maxsize=64)
def _in_layers(name: str, base: str, what: str, model: ModelSpec) -> tuple[str, ...]:
    """What every layer has, those of encoders too."""
    counted = _counted(model, what)
    place = {layer: index for index, layer in enumerate(counted)}
    layers = range(model.num_hidden_layers + model.num_encoder_layers)
    return tuple([_in_layer(name, base, what, model, place.get(one, one), len(counted)) for one in layers])


def _counted(model: ModelSpec, what: str) -> list[int]:
    """The layers whose place counts: values are counted through, feed-forwards by their layer."""
    layers = range(model.num_hidden_layers)
    if what in ("attn_v", "attn_qkv", "attn_kv_b"):
        attending = ("full_attention", "sliding_attention", "chunked_attention", "attention_mamba2")
        return [
            layer
            for layer in layers
            if pattern_at(model.layer_types, layer, "full_attention").endswith("attention")
            or pattern_at(model.layer_types, layer, "full_attention") in attending
        ] or list(layers)
    return list(layers)


def _output(name: str, base: str, model: ModelSpec, shape: Matrix) -> str:
    if name == "mxfp4_moe" or model.model_type == "falcon" or shape.columns % GGML[base].block:
        return "q8_0"
    if name in (*_SMALL, *_TWO, "iq3_xxs"):
        return "q5_k"
    return base if base == "q8_0" else "q6_k"


def _embedding(name: str, base: str) -> str:
    if name in _SMALL:
        return "q2_k"
    if name in (*_TWO, "iq3_xxs"):
        return "iq3_s"
    return "q4_k" if name in ("tq1_0", "tq2_0") else base


def more_bits(index: int, count: int) -> bool:
    """Whether a layer is one of those (about half) that the M mixes give more bits."""
    return index < count // 8 or index >= 7 * count // 8 or (index - count // 8) % 3 == 2


def _in_layer(name: str, base: str, what: str, model: ModelSpec, index: int, count: int) -> str:
    grouped = model.num_attention_heads // max(model.num_key_value_heads, 1)
    if name in (*_SMALL, *_TWO):
        return _two_bits(name, base, what, grouped, model.num_experts, index, count)
    if what in ("attn_v", "attn_qkv", "attn_kv_b"):
        return _values(name, base, model, grouped, index, count)
    eight = model.num_experts == 8
    falcon = model.model_type == "falcon"
    if what == "attn_k" and eight:
        return "q8_0"
    if what in ("attn_k", "attn_q"):
        return {"iq3_xs": "iq3_xxs", "iq3_xxs": "iq2_s"}.get(name, base)
    if what == "ffn_down":
        return _down(name, base, falcon, eight, index, count)
    if what == "attn_output":
        return _attention_output(name, base, falcon, eight)
    if what in ("ffn_gate", "ffn_up") and name == "iq3_xs":
        return "iq3_xxs" if count // 8 <= index < 7 * count // 8 else base
    return base


def _two_bits(name: str, base: str, what: str, grouped: int, experts: int, index: int, count: int) -> str:
    better = "iq3_s" if name in _TWO else "q2_k"
    if what in ("attn_v", "attn_qkv", "attn_kv_b"):
        return "q4_k" if grouped >= 4 or experts >= 4 else better
    if what == "attn_k" and experts == 8:
        return "q4_k"
    if what == "ffn_down" and index < count // 8:
        return better
    if what == "attn_output":
        if experts == 8:
            return "q5_k"
        if name in ("iq1_s", "iq1_m"):
            return "iq2_xxs"
        return "iq3_s" if name in _TWO else base
    return base


def _values(name: str, base: str, model: ModelSpec, grouped: int, index: int, count: int) -> str:
    kind = base
    if name == "q2_k":
        kind = "q4_k" if grouped >= 4 else "q3_k"
    elif name in ("q2_k_s", "iq3_xs", "iq3_s") and grouped >= 4:
        kind = "q4_k"
    elif name == "iq3_xxs":
        kind = "q4_k" if grouped >= 4 else "iq3_s"
    elif name == "iq3_m":
        kind = "q4_k"
    elif name == "q3_k_m":
        kind = "q5_k" if index < 2 else "q4_k"
    elif name == "q3_k_l" or (name in ("iq4_nl", "iq4_xs") and grouped >= 4):
        kind = "q5_k"
    elif name in ("q4_k_m", "q5_k_m") and more_bits(index, count):
        kind = "q6_k"
    elif name == "q4_k_s" and index < 4:
        kind = "q5_k"
    if _seventy(model) and kind in ("q3_k", "q4_k"):
        kind = "q5_k"
    return "q8_0" if model.num_experts == 8 else kind


def _seventy(model: ModelSpec) -> bool:
    """The 70B class of Llama and Qwen 2, which the quantiser knows by its 80 layers and grouped heads."""
    grouped = model.num_key_value_heads != model.num_attention_heads
    return model.model_type in ("llama", "qwen2") and model.num_hidden_layers == 80 and grouped


def _down(name: str, base: str, falcon: bool, eight: bool, index: int, count: int) -> str:
    more = more_bits(index, count)
    first = index < count // 8
    match name:
        case "q2_k":
            return "q3_k"
        case "q2_k_s":
            return "q4_k" if first else base
        case "q3_k_m":
            if index < count // 16:
                return "q5_k"
            return "q4_k" if more or not falcon else "q3_k"
        case "iq3_m":
            return "q4_k" if first or (eight and more) else base
        case "q3_k_l":
            return "q4_k" if falcon else "q5_k"
        case "q4_k_m":
            if falcon:
                return "q6_k" if index < count // 16 else "q5_k" if more else base
            return "q6_k" if more else base
        case "iq4_nl" | "iq4_xs":
            return "q5_k" if first else base
        case "q5_k_m":
            return "q6_k" if more else base
        case "q4_k_s":
            return "q5_k" if first and not falcon else base
    return base


def _attention_output(name: str, base: str, falcon: bool, eight: bool) -> str:
    if falcon:
        return "q4_k" if name == "q3_k_l" else base
    if eight:
        raised = ("q2_k", "iq3_xs", "iq3_xxs", "q3_k_s", "q3_k_m", "iq4_nl", "q4_k_s", "q4_k_m")
        return "q5_k" if name in (*raised, "iq3_s", "iq3_m", "iq4_xs") else base
    return {"q2_k": "q3_k", "iq3_xxs": "iq3_s", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_m": "q4_k"}.get(
        name, base
    )
