"""A program's weights counted: how many there are of each size, and the parameters in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from memgui.estimator.program import Program
from memgui.estimator.result import Parameters

Counts = Mapping[int, Mapping[int, int]]
"""By bytes of an element how many there are of so many elements."""


class Counted(NamedTuple):
    """The sizes of weights that are trained, and of those that rest; what all of them hold."""

    trained: Counts
    resting: Counts
    parameters: Parameters


@lru_cache(maxsize=64)
def counted(program: Program) -> Counted:
    """The weights of a program; a layer's count once for each layer that is like it."""
    found: dict[tuple[str, int, int, bool], int] = {}
    for weights, count in program.weights(alike=True):
        for one in weights:
            kind = one.part, one.elements, one.width, one.grad
            found[kind] = found.get(kind, 0) + count
    by_part: dict[str, int] = {}
    trained: dict[int, dict[int, int]] = {}
    resting: dict[int, dict[int, int]] = {}
    trainable = 0
    for (part, elements, width, grad), count in found.items():
        whole = elements * count
        by_part[part] = by_part.get(part, 0) + whole
        if grad:
            trainable += whole
            sizes = trained.get(width) or trained.setdefault(width, {})
        else:
            sizes = resting.get(width) or resting.setdefault(width, {})
        sizes[elements] = sizes.get(elements, 0) + count
    total = sum(by_part.values())
    added, idle, added_idle = _beside(program)
    parts: Mapping[str, int] = MappingProxyType(by_part)
    parameters = Parameters(total, trainable, total - idle, parts, added, added - added_idle)
    return Counted(trained, resting, parameters)


def _beside(program: Program) -> tuple[int, int, int]:
    """Elements that methods add, those of experts that a token does not come to, and what is both."""
    experts, chosen = program.model.num_experts, program.model.num_experts_per_tok
    adapted = program.options.trained != "full"
    added = idle = both = 0
    for weights, count in program.weights(alike=True) if experts or adapted else ():
        routed = [one for one in weights if one.cut == "expert"] if experts else []
        resting = {one: (one.elements - one.elements // experts * chosen) * count for one in routed}
        idle += sum(resting.values())
        if adapted:
            beside = [one for one in weights if one.part == "adapter" or "modules_to_save" in one.name]
            added += sum([one.elements for one in beside]) * count
            both += sum([resting.get(one, 0) for one in beside])
    return added, idle, both
