"""What a walk through a program comes by: blocks and layers, what is alive in them, and where it is most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from memgui.estimator.events import Events, Pairs, Until
from memgui.estimator.roles import Roles
from memgui.estimator.stacks import Kind
from memgui.estimator.stock import NOTHING, Sorter, Stock


class Place(NamedTuple):
    """Where in the program a peak lies: the events that lead to it (the first ``stop`` of them).

    ``back``: they are those of a backward.
    """

    events: Events
    stop: int | None = None
    back: bool = False


class Spot(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Events among which a peak may lie, made when asked for; ``before`` them that is alive beside.

    No more than ``most`` together is ever alive at them beyond that.  Where the ``first`` of them can be made
    alone, no more is born at all.
    """

    before: Stock
    sort: Sorter
    place: Callable[[], Place]
    most: tuple[Pairs, ...]
    first: Callable[[Until], Place] | None = None

    def up_to(self, until: Until) -> Place:
        """The first of the events, with more of them than are wanted where they are made together."""
        return self.place() if self.first is None else self.first(until)

    def after(self, stop: int) -> Place:
        """At least the first ``stop`` of the events."""
        return self.up_to(lambda events: len(events.things) >= stop)

    def beside(self, there: Stock) -> Spot:
        """The same with more there before."""
        before = Stock(self.before)
        before.include(there)
        return Spot(before, self.sort, self.place, self.most, self.first)


class Beside(NamedTuple):
    """A bound on what is alive in backward when the block after the layers has run back.

    No more comes than ``waiting`` and what layers leave beyond what they kept; beside that no more is alive
    inside the block before the first of them than ``last``.
    """

    waiting: tuple[Pairs, ...]
    last: tuple[Pairs, ...]


class Outside:
    """A block outside the layers.

    ``closer`` tells from monomials' values, and from the bytes that its spot has at most, what it has at most
    with a look at what dies, as far as it may be so many.
    """

    __slots__ = ("closer", "slope", "spots")

    def __init__(self, spot: Spot, closer: Callable[[Sequence[int], int, int], int] | None = None) -> None:
        self.spots = (spot,)
        self.slope = NOTHING
        self.closer = closer


class Layer:
    """A layer of one kind, run forward or, with the roles of its blocks, back.

    ``slope`` is what each such layer leaves behind, less what it takes away.  ``spots`` are where the
    peak inside it may lie, once they have been asked for, ``most`` a bound on all of them.  ``end``: it is
    the first or the last one run back, where these differ from others.
    """

    __slots__ = ("end", "kind", "most", "roles", "slope", "spots")

    def __init__(self, kind: Kind, roles: Roles | None, slope: Stock, end: str = "") -> None:
        self.kind = kind
        self.end = end
        self.roles = roles
        self.slope = slope
        self.spots: tuple[Spot, ...] = ()
        self.most: tuple[Pairs, ...] | None = None


class Point(msgspec.Struct, frozen=True, eq=False, gc=False):
    """``count`` alike points, at layers ``start``, ``start + step``, ... (one where it is no layer).

    ``live`` is what is alive before the first of them.
    """

    key: str
    live: Stock
    inside: Layer | Outside
    start: int = -1
    count: int = 1
    step: int = 1
    wholes: dict[tuple[Spot, int, int, bool], Stock] = msgspec.field(default_factory=dict)

    @property
    def layers(self) -> tuple[tuple[Layer | Outside, int, int], ...]:
        """The same as a row has it."""
        return ((self.inside, self.start, self.count),)

    def points(self) -> Iterator[Point]:
        """This one alone."""
        yield self

    def point(self, index: int) -> Point:
        """This one, the only one there is."""
        return self

    def moved(self, live: Stock, start: int, count: int) -> Point:
        """So many of them, from another start, with something else alive before."""
        return Point(self.key, live, self.inside, start, count, self.step)

    def whole(self, spot: Spot, stop: int, offset: int = 0, *, whole: bool = True) -> Stock:
        """All that is alive in the point so many on after the first ``stop`` events of a spot, made once."""
        found = self.wholes.get((spot, stop, offset, whole))
        if found is None:
            found = Stock(self.live)
            found.include(spot.before)
            found.happen(spot.after(stop).events, spot.sort, stop, whole=whole)
            found.include(self.inside.slope, offset)
            self.wholes[spot, stop, offset, whole] = found
        return found


class Row(msgspec.Struct, eq=False, gc=False):
    """Layers one after the other: each of ``layers`` is one, with its number and how many more are alike.

    ``live`` is what is alive before the first of them, ``step`` what comes between two numbers.
    """

    key: str
    live: Stock
    layers: list[tuple[Layer, int, int]]
    step: int = 1
    known: dict[int, Point] = msgspec.field(default_factory=dict)

    def points(self) -> Iterator[Point]:
        """The points of all layers."""
        live = self.live
        for layer, start, count in self.layers:
            yield Point(self.key, live, layer, start, count, self.step)
            live = live.grown(layer.slope, count)

    def point(self, index: int) -> Point:
        """One of them, which is made once."""
        found = self.known.get(index)
        if found is None:
            layer, start, count = self.layers[index]
            found = Point(self.key, self.after(index), layer, start, count, self.step)
            self.known[index] = found
        return found

    def after(self, many: int | None = None) -> Stock:
        """What is alive after so many of the layers (all of them)."""
        counts: dict[Stock, int] = {}
        for layer, _, count in self.layers[:many]:
            slope = layer.slope
            counts[slope] = counts.get(slope, 0) + count
        live = Stock(self.live)
        for slope, count in counts.items():
            live.include(slope, count)
        return live


Rows = tuple[Point | Row, ...]
"""Blocks outside the layers, and layers in a row."""
