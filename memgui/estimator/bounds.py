"""Bounds on what is alive inside a block, from births alone: nothing is ever freed.

Where a bound says that the peak cannot lie, the order of events is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from memgui.estimator.events import Pairs
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
    total: dict[int, int] = {}
    for op in tape.ops:
        for tensor in op.outs:
            if tensor.base is None:
                total[tensor.monomial] = total.get(tensor.monomial, 0) + tensor.coefficient
        for beside in (op.extra, op.inner):
            if beside is not None:
                total[beside[1]] = total.get(beside[1], 0) + beside[0]
    return tuple([(coefficient, monomial) for monomial, coefficient in total.items()])
