"""What a walk through a program comes by: blocks and layers, what is alive in them, and where it is most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, Protocol

from memgui.estimator.events import Events, Pairs
from memgui.estimator.measure import Bytes, N, Sorter
from memgui.estimator.program import Kind
from memgui.estimator.roles import Roles


class Place(NamedTuple):
    """Where in the program a peak lies: the events that lead to it (the first ``stop`` of them).

    ``back``: they are those of a backward.
    """

    events: Events
    stop: int | None = None
    back: bool = False


Inside = Iterator[tuple[Place, Sorter, N]]
"""Places inside a layer where the peak may lie, and what is alive when each begins (to be used at once)."""


class Outside(NamedTuple):
    """A block outside the layers."""

    place: Place
    sort: Sorter


class Layer(Generic[N]):
    """A layer of one kind, run forward or, with the roles of its blocks, back.

    ``slope`` is what each such layer leaves behind, less what it takes away.  ``peak`` is the largest
    of the amounts inside it, ``choice`` which of the candidates that is and where it lies, ``most`` a bound
    on their bytes; all are found when asked for.  ``guide`` is the same layer over bytes, whose choice
    holds.  ``end``: it is the first or the last one run back, where these differ from others.
    """

    __slots__ = ("choice", "end", "guide", "kind", "most", "peak", "roles", "slope")

    def __init__(
        self, kind: Kind, roles: Roles | None, slope: N, guide: Layer[int] | None, end: str = ""
    ) -> None:
        self.kind = kind
        self.end = end
        self.roles = roles
        self.slope = slope
        self.guide = guide
        self.peak: N | None = None
        self.choice: tuple[int, Place] | None = None
        self.most: int | None = None


class Walker(Protocol[N]):
    """What a point needs of the walk that came by it."""

    def amount(self, live: N, inside: Layer[N] | Outside) -> N:
        """What is alive at the peak of ``inside``, with ``live`` before it."""
        ...

    def slope(self, inside: Layer[N] | Outside) -> N:
        """What it leaves behind."""
        ...

    def place(self, inside: Layer[N] | Outside) -> Place:
        """Where its peak lies."""
        ...

    def bound(self, layer: Layer[N]) -> Iterator[Pairs]:
        """Their sum is no less than what is ever alive inside a layer beyond what was before."""
        ...


class Point(Generic[N]):
    """``count`` alike points, at layers ``start``, ``start + step``, ... (one where it is no layer).

    ``live`` is what is alive before the first of them.
    """

    __slots__ = ("_walk", "count", "inside", "key", "live", "start", "step")

    def __init__(
        self,
        key: str,
        walk: Walker[N],
        live: N,
        inside: Layer[N] | Outside,
        start: int = -1,
        count: int = 1,
        step: int = 1,
    ) -> None:
        self.key = key
        self.start = start
        self.count = count
        self.step = step
        self._walk = walk
        self.live = live
        self.inside = inside

    def with_live(self, live: N, start: int, count: int) -> Point[N]:
        """``count`` points like this from layer ``start`` on, with ``live`` before them."""
        return Point(self.key, self._walk, live, self.inside, start, count, self.step)

    def amount(self) -> N:
        """What is alive at the first point, in the order of the walk."""
        return self._walk.amount(self.live, self.inside)

    def slope(self) -> N:
        """What each further point has more."""
        return self._walk.slope(self.inside)

    def place(self) -> Place:
        """Where the peak lies."""
        return self._walk.place(self.inside)

    def bound(self: Point[int], numbers: Bytes) -> int:
        """No less than any of the points holds."""
        inside = self.inside
        if isinstance(inside, Outside):
            return self.amount()
        if inside.most is None:
            inside.most = sum([numbers.sum(pairs) for pairs in self._walk.bound(inside)])
        return self.live + inside.most + max(0, inside.slope * (self.count - 1))
