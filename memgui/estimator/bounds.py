"""Bounds on what is alive inside a block, from births alone: nothing is ever freed.

Where a bound says that the peak cannot lie, the order of events is not looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from memgui.estimator.events import Pairs
from memgui.estimator.op import Stretch
from memgui.estimator.tape import Tape


def summed(*parts: Iterable[tuple[int, int]]) -> Pairs:
    """The sum of pairs."""
    total: dict[int, int] = {}
    for part in parts:
        for coefficient, monomial in part:
            total[monomial] = total.get(monomial, 0) + coefficient
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
