"""Where most is alive: exact inside the layers that may hold the peak, bounded inside all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memgui.estimator.events import Pairs
from memgui.estimator.lifetimes import Consumer
from memgui.estimator.measure import Bytes, N
from memgui.estimator.points import Layer, Point


class Highest(NamedTuple):
    """The most bytes, at which of the points that is, and at how many layers on from its first."""

    bytes: int
    at: int
    offset: int


def highest(point: Point[int]) -> tuple[int, int]:
    """The most that a stretch of points holds, and how many points on that is."""
    amount = point.amount()
    if point.count > 1:
        last = amount + point.slope() * (point.count - 1)
        if last > amount:
            return last, point.count - 1
    return amount, 0


def highest_of(points: Iterable[tuple[Point[int], int]], numbers: Bytes, floor: int = 0) -> Highest | None:
    """The first of the points with the most bytes; ``None`` where all hold less than ``floor``.

    Each comes with what is there beside it.  Inside a layer nothing is looked at before its bound says
    that the peak may lie there.
    """
    bounded = [
        (point.bound(numbers) + beside, -index, point, beside) for index, (point, beside) in enumerate(points)
    ]
    bounded.sort(key=lambda one: one[:2], reverse=True)
    best: Highest | None = None
    for bound, index, point, beside in bounded:
        if bound < floor:
            break
        most, offset = highest(point)
        most += beside
        if most > floor or (most == floor and (best is None or -index < best.at)):
            floor, best = most, Highest(most, -index, offset)
    return best


def bounds(layer: Layer[N], consumer: Consumer | None) -> Iterator[Pairs]:
    """Their sum is no less than what is ever alive inside a layer beyond what was before."""
    roles, recomputed = layer.roles, layer.kind.recomputed
    for block in layer.kind.blocks:
        if roles is None or recomputed:
            yield block.most_forward
        if roles is None:
            continue
        yield block.most_back
        if recomputed:
            yield from (block.held.pairs, block.copies.pairs)
        if consumer is not None:
            yield ((sum([consumer.work.get(one, 0) for one in block.tape.parameters]), 0),)
    for role in roles or ():
        yield from (((waiting.coefficient, waiting.monomial),) for waiting in role.starts.values())
