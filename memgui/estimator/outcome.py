"""What a block's backward leaves to others, read off the tape without going through births and deaths.

What each layer leaves is wanted of every layer, the order of events only where the peak may lie.
"""

from __future__ import annotations

from collections import Counter

from memgui.estimator.events import Gradient, Group, gradient_of
from memgui.estimator.lifetimes import Role
from memgui.estimator.tape import PARAMETER, Tape, Tensor


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
