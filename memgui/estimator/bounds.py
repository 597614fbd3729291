"""Bounds on what is alive inside a block, from births alone: nothing is ever freed.

Where a bound says that the peak cannot lie, the order of events is not looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from memgui.estimator.events import Pairs
from memgui.estimator.op import Stretch
from memgui.estimator.tape import ALIAS, PARAMETER, PROMOTED, Tape, Tensor


def summed(*parts: Iterable[tuple[int, int]]) -> Pairs:
    """The sum of pairs."""
    total: dict[int, int] = {}
    for part in parts:
        for coefficient, monomial in part:
            total[monomial] = total.get(monomial, 0) + coefficient
    return tuple([(coefficient, monomial) for monomial, coefficient in total.items()])


def born_back(tape: Tape, waiting: Iterable[Tensor]) -> Pairs:
    """No less than all that is allocated while the block runs back, whatever of it is reached.

    Gradients of ``waiting`` tensors may be there before; see :func:`memgui.estimator.outcome.read_back`.
    """
    total: defaultdict[int, int] = defaultdict(int)
    met: set[Tensor | None] = {tape.out, *waiting}
    for op in tape.written:
        if isinstance(op, Stretch):
            pattern, tensors = op.pattern, op.tensors
            for coefficient, monomial in pattern.born_back:
                total[monomial] += coefficient
            to: Iterable[Tensor] = [tensors[index] for index in pattern.inward]
        else:
            for tensor, how in op.back:
                if how != ALIAS:
                    total[tensor.monomial] += tensor.coefficient
                    if how == PROMOTED:
                        total[tensor.monomial] += tensor.coefficient // tensor.width * op.outs[0].width
            to = [tensor for tensor, _ in op.back if tensor.origin != PARAMETER]
            if op.back_extra is not None:
                total[op.back_extra[1]] += op.back_extra[0]
            if op.back_inner is not None:
                total[op.back_inner[1]] += op.back_inner[0]
        for tensor in to:
            if tensor in met:  # where gradients meet, their sum is a further one
                total[tensor.monomial] += tensor.coefficient
            else:
                met.add(tensor)
    return tuple([(coefficient, monomial) for monomial, coefficient in total.items()])


def born_forward(tape: Tape) -> Pairs:
    """All that is allocated while the block runs, as if none of it were freed."""
    total: defaultdict[int, int] = defaultdict(int)
    for op in tape.written:
        for tensor in op.outs:
            if tensor.base is None:
                total[tensor.monomial] += tensor.coefficient
        if op.extra is not None:
            total[op.extra[1]] += op.extra[0]
            if isinstance(op, Stretch):
                for coefficient, monomial in op.pattern.born:
                    total[monomial] += coefficient
        if op.inner is not None:
            total[op.inner[1]] += op.inner[0]
    return tuple([(coefficient, monomial) for monomial, coefficient in total.items()])
