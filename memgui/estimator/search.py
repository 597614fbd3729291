"""Where most is alive: exact inside the layers that may hold the peak, bounded inside all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memgui.estimator.measure import Bytes
from memgui.estimator.points import Layer, Outside, Place, Point, Spot
from memgui.estimator.stock import Stock
from memgui.estimator.walk import Walk


class Highest(NamedTuple):
    """The most bytes, at which of the points that is, and at how many layers on from its first."""

    bytes: int
    at: int
    point: Point
    offset: int


class Heights:
    """How many bytes are alive at the points of a walk; each is worked out when asked for, once."""

    __slots__ = ("_bounds", "_peaks", "numbers", "walk")

    def __init__(self, walk: Walk, numbers: Bytes) -> None:
        self.walk = walk
        self.numbers = numbers
        self._peaks: dict[Layer | Outside, tuple[int, Spot]] = {}
        self._bounds: dict[Layer | Outside, int] = {}

    def spots(self, inside: Layer | Outside) -> tuple[Spot, ...]:
        """Where the peak inside may lie."""
        return inside.spots or self.walk.spots(inside)

    def peak(self, inside: Layer | Outside) -> tuple[int, Spot]:
        """The most that is alive inside beyond what was before, and the first spot where that is.

        Events are looked at only where the bound says that the peak may lie among them.
        """
        found = self._peaks.get(inside)
        if found is None:
            numbers = self.numbers
            spots = self.spots(inside)
            there = [numbers.bytes(spot.before) for spot in spots]
            bounded = [
                (before + numbers.sums(spot.most), -index)
                for index, (spot, before) in enumerate(zip(spots, there, strict=True))
            ]
            most, at = -1, 0
            for bound, negative in sorted(bounded, reverse=True):
                if bound < most:
                    break
                events, stop, _ = spots[-negative].place()
                amount = there[-negative] + numbers.peak(events, stop)
                if amount > most or (amount == most and -negative < at):
                    most, at = amount, -negative
            found = self._peaks[inside] = most, spots[at]
        return found

    def amount(self, point: Point) -> int:
        """What is alive at the first of the points, in the order of the walk."""
        return self.numbers.bytes(point.live) + self.peak(point.inside)[0]

    def highest(self, point: Point) -> tuple[int, int]:
        """The most that a stretch of points holds, and how many points on that is."""
        amount = self.amount(point)
        if point.count > 1:
            last = amount + self.numbers.bytes(point.inside.slope) * (point.count - 1)
            if last > amount:
                return last, point.count - 1
        return amount, 0

    def bound(self, point: Point) -> int:
        """No less than any of the points holds."""
        inside, numbers = point.inside, self.numbers
        most = self._bounds.get(inside)
        if most is None:
            bounds = self.walk.bounds(inside)
            most = max([numbers.bytes(before) + numbers.sums(pairs) for before, pairs in bounds])
            self._bounds[inside] = most
        if point.count > 1:
            most += max(0, numbers.bytes(inside.slope) * (point.count - 1))
        return most + numbers.bytes(point.live)

    def place(self, point: Point) -> Place:
        """Where the peak lies."""
        return self.peak(point.inside)[1].place()

    def whole(self, point: Point, offset: int = 0) -> Stock:
        """All that is alive at the peak of a point, or of the one so many on."""
        spot = self.peak(point.inside)[1]
        events, stop, _ = spot.place()
        whole = Stock(point.live)
        whole.include(spot.before)
        numbers = self.numbers
        whole.happen(events, spot.sort, numbers.stop_at_peak(events, stop), whole=numbers.whole)
        whole.include(point.inside.slope, offset)
        return whole

    def highest_of(self, points: Iterable[tuple[Point, int]], floor: int = 0) -> Highest | None:
        """The first of the points with the most bytes; ``None`` where all hold less than ``floor``.

        Each comes with what is there beside it.  Inside a layer nothing is looked at before its bound
        says that the peak may lie there.
        """
        bounded = [
            (self.bound(point) + beside, -index, point, beside)
            for index, (point, beside) in enumerate(points)
        ]
        bounded.sort(reverse=True)  # no two have the same number: points are never compared
        best: Highest | None = None
        for bound, index, point, beside in bounded:
            if bound < floor:
                break
            most, offset = self.highest(point)
            most += beside
            if most > floor or (most == floor and (best is None or -index < best.at)):
                floor, best = most, Highest(most, -index, point, offset)
        return best
