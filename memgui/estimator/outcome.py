"""What a block's backward leaves to others, read off the tape without going through births and deaths.

What each layer leaves is wanted of every layer, the order of events only where the peak may lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Set
from functools import partial
from typing import NamedTuple

import msgspec

from memgui.estimator.bounds import born_forward, pairs, summed
from memgui.estimator.events import NONE, Gradient, Group, Pairs, gradient_of, group
from memgui.estimator.lifetimes import Role
from memgui.estimator.tape import ALIAS, NEW, PARAMETER, PROMOTED, Tape, Tensor


class Outcome(NamedTuple):
    """The gradients that a block's backward leaves, and those that waited for it and are gone (``taken``).

    Those that are ``left`` lie on weights, those that are ``waiting`` in autograd's buffers.  ``whole``: that
    is all; nothing that was saved is left.
    """

    left: Group
    waiting: Group
    taken: Group
    whole: bool


class Reading(msgspec.Struct, frozen=True):
    """What a tape says of its backward without going through births and deaths.

    ``reached``: tensors with which a gradient stays, in order: weights (once all of their gradients in the
    block have come), and those that wait for other blocks and were made here.  ``born`` is all that is
    allocated, as if none of it were freed.  ``whole``: backward comes by every operator and lets go of all
    that was saved, and no gradient stays elsewhere.  ``passed`` are all tensors that a gradient comes to
    and that are no weights.
    """

    reached: tuple[Tensor, ...]
    born: Pairs
    whole: bool
    passed: Set[Tensor]


def read_back(tape: Tape, waiting: Collection[Tensor] = ()) -> Reading:
    """Read a tape from its end; gradients of ``waiting`` tensors are there before.

    The gradient of its output is there before.  What a stretch computes again is allocated once more;
    where gradients meet, their sum is a further one.
    """
    found: list[Tensor] = []
    assert tape.out is not None
    reached: set[Tensor] = {tape.out, *waiting}
    awaited = frozenset(waiting)
    coming = coming_to(tape)
    total = [0] * len(tape.sizes.monomials)
    whole = tape.leaf is None  # whose gradient stays
    for op in reversed(tape.written):
        edges = op.back
        if not edges:
            continue
        outs = op.outs
        if outs[0] not in reached and reached.isdisjoint(outs):
            whole = False
            continue
        if awaited and not awaited.isdisjoint(outs):
            found += [tensor for tensor in outs if tensor in awaited]
        for tensor, how in edges:
            if how == NEW:
                total[tensor.monomial] += tensor.coefficient
            elif how != ALIAS:
                size = tensor.coefficient
                if how == PROMOTED:
                    size += size // tensor.width * outs[0].width
                total[tensor.monomial] += size
            if tensor.origin != PARAMETER:
                if tensor in reached:
                    total[tensor.monomial] += tensor.coefficient
                else:
                    reached.add(tensor)
            elif coming and coming.get(tensor, 1) > 1:
                coming[tensor] -= 1  # waits for those of earlier uses
            else:
                found.append(tensor)
        if op.back_extra is not None:
            coefficient, monomial = op.back_extra
            total[monomial] += coefficient
        if op.back_inner is not None:
            coefficient, monomial = op.back_inner
            total[monomial] += coefficient
    carried = tape.carried
    if carried is not None and carried in awaited:  # handed out as it came: its gradient is the input's
        found.append(carried)
    born = summed(pairs(total), born_forward(tape)) if tape.regions else pairs(total)
    return Reading(tuple(found), born, whole, reached)


def outcome(reading: Reading, role: Role, *, accumulate: bool, component: str) -> Outcome:
    """What comes of a block's backward; see :func:`memgui.estimator.backward.backward`.

    New gradients of weights belong to ``component``.
    """
    waiting, starts = role.waiting, role.starts
    if not waiting and not starts:
        made = () if accumulate else reading.reached
        return Outcome(_on_weights(made, component), NONE, NONE, reading.whole)
    left: list[Tensor | Gradient] = []
    taken: list[Gradient] = []
    for tensor in reading.reached:
        if tensor in waiting:
            if tensor.origin != PARAMETER or (accumulate and tensor in role.ends):
                taken.append(waiting[tensor])
        elif tensor in starts:
            left.append(starts[tensor])
        elif not accumulate:
            left.append(tensor)
    begun = [gradient for tensor, gradient in starts.items() if tensor.origin != PARAMETER]
    return Outcome(_on_weights(tuple(left), component), group(begun), group(taken), reading.whole)


def _on_weights(weights: tuple[Tensor | Gradient, ...], component: str) -> Group:
    """Gradients, some told by the weights that they are of, which are as large."""
    return Group(weights, component, make=partial(_made, weights)) if weights else NONE


def _made(weights: Iterable[Tensor | Gradient]) -> tuple[Gradient, ...]:
    return tuple([one if isinstance(one, Gradient) else gradient_of(one) for one in weights])


def coming_to(tape: Tape) -> dict[Tensor, int]:
    """Weights that get several gradients in the block, and not one through autocast's copy: how many."""
    if not tape.reused:
        return {}
    found = Counter(tensor for op in tape.written for tensor, _ in op.back if tensor in tape.reused)
    return {tensor: count for tensor, count in found.items() if count > 1}
