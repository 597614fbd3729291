"""What a block's backward leaves to others, and bounds on what is alive inside a block.

Both are read off the tape without going through births and deaths: what each layer leaves is wanted of
every layer, the order of events only where the peak may lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memgui.estimator.events import Gradient, Group, gradient_of
from memgui.estimator.lifetimes import Role
from memgui.estimator.tape import ALIAS, PARAMETER, PROMOTED, Tape, Tensor

Pairs = tuple[tuple[int, int], ...]
"""Bytes as (coefficient, monomial) pairs."""


class Outcome:
    """The gradients that a block's backward leaves, and those that waited for it and are gone.

    ``left`` lie on weights or in autograd's buffers (the latter alone are ``waiting``).
    """

    __slots__ = ("left", "taken", "waiting")

    def __init__(self, left: list[Gradient], taken: list[Gradient]) -> None:
        self.left = Group(left)
        self.taken = Group(taken)
        self.waiting = Group([gradient for gradient in left if gradient.of.origin != PARAMETER])


def outcome(tape: Tape, role: Role, *, accumulate: bool) -> Outcome:
    """What comes of a block's backward; see :func:`memgui.estimator.backward.backward`."""
    left: list[Gradient] = []
    taken: list[Gradient] = []
    waiting, starts = role.waiting, role.starts
    reached = {tape.out, *waiting}
    coming = coming_to(tape)
    for op in reversed(tape.ops):
        edges = op.back
        if not edges or reached.isdisjoint(op.outs):
            continue
        if waiting:
            taken += [waiting[tensor] for tensor in op.outs if tensor in waiting]
        for tensor, _ in edges:
            if tensor.origin != PARAMETER:
                reached.add(tensor)
            elif tensor in coming and coming[tensor] > 1:
                coming[tensor] -= 1  # waits for those of earlier uses
            elif tensor in waiting:
                if accumulate and tensor in role.ends:
                    taken.append(waiting[tensor])
            elif tensor in starts:
                left.append(starts[tensor])
            elif not accumulate:
                left.append(gradient_of(tensor))
    left += [gradient for tensor, gradient in starts.items() if tensor.origin != PARAMETER]
    return Outcome(left, taken)


def coming_to(tape: Tape) -> dict[Tensor, int]:
    """Weights that get several gradients in the block, and not one through autocast's copy: how many."""
    if not tape.reused:
        return {}
    found = Counter(tensor for op in tape.ops for tensor, _ in op.back if tensor in tape.reused)
    return {tensor: count for tensor, count in found.items() if count > 1}


def summed(*parts: Iterable[tuple[int, int]]) -> Pairs:
    """The sum of pairs."""
    total: dict[int, int] = {}
    for part in parts:
        for coefficient, monomial in part:
            total[monomial] = total.get(monomial, 0) + coefficient
    return tuple([(coefficient, monomial) for monomial, coefficient in total.items()])


def born_forward(tape: Tape) -> Pairs:
    """All that is allocated while the block runs, as if none of it were freed."""
    total: dict[int, int] = {}
    for op in tape.ops:
        for tensor in op.outs:
            if tensor.base is None:
                total[tensor.monomial] = total.get(tensor.monomial, 0) + tensor.coefficient
        for beside in (op.extra, op.inner):
            if beside is not None:
                total[beside[1]] = total.get(beside[1], 0) + beside[0]
    return tuple([(coefficient, monomial) for monomial, coefficient in total.items()])


def born_back(tape: Tape) -> Pairs:
    """All that is allocated while the block runs back, as if none of it were freed.

    Its output's gradient is there before.  What a stretch computes again is allocated once more; where
    gradients meet, their sum is a further one.
    """
    total: dict[int, int] = {}
    met: set[Tensor] = set()
    for op in tape.ops:
        for tensor, how in op.back:
            size, monomial = tensor.coefficient, tensor.monomial
            times = (how != ALIAS) + (tensor in met)
            if how == PROMOTED:
                total[monomial] = total.get(monomial, 0) + size // tensor.width * op.outs[0].width
            if times:
                total[monomial] = total.get(monomial, 0) + size * times
            met.add(tensor)
        for beside in (op.back_extra, op.back_inner):
            if beside is not None:
                total[beside[1]] = total.get(beside[1], 0) + beside[0]
    born = tuple([(coefficient, monomial) for monomial, coefficient in total.items()])
    return summed(born, born_forward(tape)) if tape.regions else born
