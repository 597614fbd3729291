"""Bounds on what is alive inside a block, from births alone: nothing is ever freed.

Where a bound says that the peak cannot lie, the order of events is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from memgui.estimator.events import Pairs
from memgui.estimator.op import Stretch
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
    total = [0] * len(tape.sizes.monomials)
    met: set[Tensor | None] = {tape.out, *waiting}
    folded = tape.folded
    if tape.own is not None:
        met |= {one for one, own in tape.own.same.items() if own in met}
    for op in tape.written:
        if op.back_extra is not None:
            coefficient, monomial = op.back_extra
            total[monomial] += coefficient
            if folded and type(op) is Stretch:
                _born_back(op, total, met)
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
    return pairs(total)


def _born_back(op: Stretch, total: list[int], met: set[Tensor | None]) -> None:
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
    folded = tape.folded
    for op in tape.written:
        for tensor in op.outs:
            if tensor.base is None:
                total[tensor.monomial] += tensor.coefficient
        if op.extra is not None:
            coefficient, monomial = op.extra
            total[monomial] += coefficient
            if folded and type(op) is Stretch:
                for coefficient, monomial in op.born:
                    total[monomial] += coefficient
        if op.inner is not None:
            coefficient, monomial = op.inner
            total[monomial] += coefficient
    return pairs(total)
