"""Bounds on what is alive inside a block, from births alone: nothing is ever freed.

Where a bound says that the peak cannot lie, the order of events is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memgui.estimator.events import Pairs
from memgui.estimator.op import Op, Stretch
from memgui.estimator.tape import ALIAS, NEW, PARAMETER, PROMOTED, Tape, Tensor


def summed(*parts: Iterable[tuple[int, int]]) -> Pairs:
    """The sum of pairs."""
    total: dict[int, int] = {}
    for part in parts:
        for coefficient, monomial in part:
            total[monomial] = total.get(monomial, 0) + coefficient
    return tuple([(coefficient, monomial) for monomial, coefficient in total.items()])


def pairs(total: list[int]) -> Pairs:
    """The bytes of each monomial, those that there are."""
    return tuple([(coefficient, monomial) for monomial, coefficient in enumerate(total) if coefficient])


def born_back(tape: Tape, waiting: Iterable[Tensor]) -> Pairs:
    """No less than all that is allocated while the block runs back, whatever of it is reached.

    Gradients of ``waiting`` tensors may be there before; see :func:`memgui.estimator.outcome.read_back`.
    """
    assert tape.out is not None
    total = [0] * len(tape.sizes.monomials)
    met = {tape.out, *waiting}
    if tape.own is not None:
        met |= {one for one, own in tape.own.same.items() if own in met}
    add_born_back(tape.written, total, met)
    return pairs(total)


def born_in_any(tapes: Sequence[Tape]) -> tuple[Pairs, Pairs]:
    """No less than any of several blocks allocates, forward and back: all they do, what is in common once."""
    forward, back = ([0] * len(tapes[0].sizes.monomials) for _ in range(2))
    met: set[Tensor] = set()
    for tape in tapes:
        assert tape.out is not None
        met |= {tape.out, *tape.handed_out}
        if tape.own is not None:
            met |= {one for one, own in tape.own.same.items() if own in met}
    ops = dict.fromkeys([op for tape in tapes for op in tape.written])
    add_born(ops, forward)
    add_born_back(ops, back, met)
    ahead, behind = pairs(forward), pairs(back)
    # What is computed again is born again.
    return ahead, summed(ahead, behind) if any(tape.regions for tape in tapes) else behind


def add_born_back(ops: Iterable[Op], total: list[int], met: set[Tensor]) -> None:
    """Add what operators that run back allocate by monomial, and what they make gradients of to ``met``."""
    for op in ops:
        if op.back_extra is not None:
            coefficient, monomial = op.back_extra
            total[monomial] += coefficient
            if type(op) is Stretch:
                _add_stretch_back(op, total, met)
                continue
        for tensor, how in op.back:
            if how == NEW:
                total[tensor.monomial] += tensor.coefficient
            elif how != ALIAS:
                total[tensor.monomial] += tensor.coefficient
                if how == PROMOTED:
                    total[tensor.monomial] += tensor.coefficient // tensor.width * op.outs[0].width
            if tensor.origin != PARAMETER:
                if tensor in met:  # where gradients meet, their sum is a further one
                    total[tensor.monomial] += tensor.coefficient
                else:
                    met.add(tensor)
        if op.back_inner is not None:
            coefficient, monomial = op.back_inner
            total[monomial] += coefficient


def _add_stretch_back(op: Stretch, total: list[int], met: set[Tensor]) -> None:
    """Add what an operator that stands for several allocates."""
    for coefficient, monomial in op.born_back:
        total[monomial] += coefficient
    for tensor in op.inward:
        if tensor in met:
            total[tensor.monomial] += tensor.coefficient
        else:
            met.add(tensor)


def born_forward(tape: Tape) -> Pairs:
    """All that is allocated while the block runs, as if none of it were freed."""
    total = [0] * len(tape.sizes.monomials)
    add_born(tape.written, total)
    return pairs(total)


def add_born(ops: Iterable[Op], total: list[int]) -> None:
    """Add what operators allocate by monomial."""
    for op in ops:
        for tensor in op.outs:
            if tensor.base is None:
                total[tensor.monomial] += tensor.coefficient
        if op.extra is not None:
            coefficient, monomial = op.extra
            total[monomial] += coefficient
            if type(op) is Stretch:
                for coefficient, monomial in op.born:
                    total[monomial] += coefficient
        if op.inner is not None:
            coefficient, monomial = op.inner
            total[monomial] += coefficient
