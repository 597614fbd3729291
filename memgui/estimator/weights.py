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
    found: dict[tuple[object, ...], Parameter] = {}
    counts: dict[Parameter, int] = {}
    of: dict[Parameter, Parameter] = {}
    resting = added = added_resting = 0
    model = program.model
    adapted = program.options.trained != "full"
    experts = model.num_experts
    for weights, count in program.weights():
        for one in weights:
            first = one.first
            known = None if first is None else of.get(first)
            if known is None:
                kind = (
                    one.dims,
                    one.sizes,
                    one.width,
                    one.grad,
                    one.part,
                    one.cut,
                    one.role in APART,
                    one.name[-4:] == "bias",
                    one.inputs,
                )
                known = found.setdefault(kind, one)
                if first is not None:
                    of[first] = known
            counts[known] = counts.get(known, 0) + count
            beside = adapted and (one.part == "adapter" or "modules_to_save" in one.name)
            if beside:
                added += one.elements * count
            if experts and one.cut == "expert":
                elements = one.elements * count
                rest = elements - elements // experts * model.num_experts_per_tok
                resting += rest
                added_resting += rest if beside else 0
    alike = tuple(counts.items())
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
