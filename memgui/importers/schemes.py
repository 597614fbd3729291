"""Which of memgui's weight formats a checkpoint is in, of what its quantisation block states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from memgui.importers.quantization import Quantization
from memgui.spec.formats import SCHEMES
from memgui.spec.model import ModelSpec


class Scheme(NamedTuple):
    """``inference.weight_format``, and ``inference.quantised_parts`` where not those usual for it."""

    name: str
    parts: tuple[str, ...] | None = None


def scheme_of(stated: Quantization, model: ModelSpec) -> Scheme | None:
    """The format that ``stated`` describes, the nearest in group size, if there is one like it."""
    name = _name(stated)
    if name is None or name not in SCHEMES:
        return None
    usual = SCHEMES[name].parts
    if stated.method == "fbgemm_fp8":
        return Scheme(name, _without(usual, {"attention"}))
    if stated.only:  # one library for all of it would need two formats
        only = {part for text in stated.only for part in _parts(text)}
        return Scheme(name, tuple(part for part in usual if part in only) or None)
    return Scheme(name, _without(usual, _skipped(stated.skipped, model)))


def _without(usual: tuple[str, ...], skipped: set[str]) -> tuple[str, ...] | None:
    left = tuple(part for part in usual if part not in skipped)
    return left if left and left != usual else None


def _name(stated: Quantization) -> str | None:
    bits, number = stated.bits, (stated.number_type or "").lower()
    nested = "_dq" if stated.double_quant else ""
    match stated.method:
        case "bitsandbytes":
            return "int8" if bits == 8 else f"{number or 'fp4'}{nested}"
        case "fp8" if number == "nvfp4":
            return "nvfp4"
        case "fp8":
            return (
                "fp8_block_128x128" if stated.blocked else "fp8_static" if stated.fixed else "fp8_per_tensor"
            )
        case "fbgemm_fp8":
            return "fp8_per_channel"
        case "modelopt":
            return {"fp8": "fp8_static", "nvfp4": "nvfp4"}.get(number)
        case "compressed-tensors" if number == "float":
            if bits == 8:
                return "fp8_per_channel" if stated.strategy == "channel" else "fp8_per_tensor"
            return "nvfp4" if stated.group_size == 16 else "mxfp4"
        case "compressed-tensors":
            return _nearest("compressed_tensors_int{bits}_g{group}_sym", stated)
        case "mxfp4":
            return "mxfp4"
        case "gptq" | "auto-round":
            return _nearest("gptq_int{bits}_g{group}", stated)
        case "awq":
            return _nearest("awq_int{bits}_g{group}", stated)
        case "hqq":
            return _nearest("hqq_{bits}bit_g{group}", stated)
        case "mlx":
            return _nearest("mlx_{bits}bit_g{group}", stated)
        case "quanto":
            return _nearest("quanto_int{bits}_g{group}", stated)
        case "aqlm":
            return "aqlm_2x8_g8" if bits == 8 else "aqlm_1x16_g8"
    return None


def _nearest(template: str, stated: Quantization) -> str | None:
    """The format with these bits whose groups are nearest to those stated (128 where none are)."""
    pattern = re.escape(template).replace(r"\{bits\}", str(stated.bits)).replace(r"\{group\}", r"(-?\d+)")
    groups = [int(found[1]) for name in SCHEMES if (found := re.fullmatch(pattern, name))]
    wanted = stated.group_size or 128
    if not groups:
        return None
    group = wanted if wanted in groups else min(groups, key=lambda one: abs(one - wanted))
    return template.format(bits=stated.bits, group=group)


_WORDS: Final = (
    ("shared_expert", "shared_experts"),
    (".experts", "experts"),
    ("linear_attn", "mixer"),
    ("mamba", "mixer"),
    ("mixer", "mixer"),
    ("attn", "attention"),
    ("attention", "attention"),
    ("down)_proj", "mlp"),
    ("lm_head", "lm_head"),
)
_BESIDE: Final = ("vision", "visual", "audio", "projector", "mtp", "shared_expert_gate", "norm")
"""What is no part that formats are stated for."""


def _parts(text: str) -> Iterator[str]:
    """The part that a module's name, or a pattern of names, is of."""
    plain = text.replace("\\", "")
    if not any(word in plain for word in _BESIDE):
        found = next((part for word, part in _WORDS if word in plain), None)
        if found is not None:
            yield found


def _skipped(skipped: tuple[str, ...], model: ModelSpec) -> set[str]:
    """Parts that are left alone in most of their layers; a whole layer counts where it is a dense one."""
    layers: dict[str, set[str]] = {}
    whole: set[int] = set()
    for text in skipped:
        alone = re.fullmatch(r".*layers\.(\d+)\.?\*?", text)
        if alone:
            whole.add(int(alone[1]))
        at = re.search(r"layers\.(\d+|\*)\.", text)
        for part in _parts(text):
            layers.setdefault(part, set()).add(at[1] if at else "*")
    found = {part for part, where in layers.items() if "*" in where or 2 * len(where) >= _count(part, model)}
    dense = {index for index, kind in enumerate(model.mlp_layer_types) if kind == "dense"}
    if dense and dense <= whole:
        found.add("mlp")
    return found


def _count(part: str, model: ModelSpec) -> int:
    """Layers that have a part."""
    mixers = model.layer_types
    if part not in ("attention", "mixer") or len(mixers) <= 1:
        return model.num_hidden_layers
    attention = sum("attention" in mixers[index % len(mixers)] for index in range(model.num_hidden_layers))
    return attention if part == "attention" else model.num_hidden_layers - attention
