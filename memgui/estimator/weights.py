"""A program's weights by kind: one that stands for all that are like it, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from memgui.estimator.program import Program
from memgui.estimator.result import Parameters
from memgui.estimator.tape import Parameter
from memgui.estimator.tensor import APART


class Counted(NamedTuple):
    """One weight of each kind, with how many there are, in the order in which a program meets the first.

    Those of a kind have one shape, format and part, and all are trained or none is.
    """

    alike: tuple[tuple[Parameter, int], ...]
    parameters: Parameters


@lru_cache(maxsize=64)
def counted(program: Program) -> Counted:
    """The weights of a program; a layer's count once for each layer that is like it."""
    found: dict[tuple[object, ...], tuple[Parameter, int]] = {}
    resting = added = added_resting = 0
    model = program.model
    adapted = program.options.trained != "full"
    for weights, count in program.weights():
        for one in weights:
            cut, part, name = one.cut, one.part, one.name
            kind = (
                one.dims,
                one.sizes,
                one.width,
                one.grad,
                part,
                cut,
                one.role in APART,
                name[-4:] == "bias",
                one.inputs,
            )
            known = found.get(kind)
            found[kind] = (one, count) if known is None else (known[0], known[1] + count)
            beside = adapted and (part == "adapter" or "modules_to_save" in name)
            if beside:
                added += one.elements * count
            if cut == "expert" and model.num_experts:
                elements = one.elements * count
                rest = elements - elements // model.num_experts * model.num_experts_per_tok
                resting += rest
                added_resting += rest if beside else 0
    alike = tuple(found.values())
    by_part: dict[str, int] = {}
    trainable = 0
    for one, count in alike:
        elements = one.elements * count
        by_part[one.part] = by_part.get(one.part, 0) + elements
        if one.grad:
            trainable += elements
    total = sum(by_part.values())
    parts: Mapping[str, int] = MappingProxyType(by_part)
    return Counted(alike, Parameters(total, trainable, total - resting, parts, added, added - added_resting))
