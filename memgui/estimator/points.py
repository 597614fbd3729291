"""What a walk through a program comes by: blocks and layers, what is alive in them, and where it is most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple

from memgui.estimator.events import Events
from memgui.estimator.measure import Measure, N, Sorter


class Place(NamedTuple):
    """Where in the program a peak lies: the events that lead to it (the first ``stop`` of them).

    ``back``: they are those of a backward.
    """

    events: Events
    stop: int | None = None
    back: bool = False


Inside = Iterator[tuple[Place, Callable[[], N]]]


class Outside(Generic[N]):
    """A block outside the layers, run forward or ``back``."""

    __slots__ = ("_events", "_m", "_sort", "place")

    def __init__(self, m: Measure[N], events: Events, sort: Sorter, *, back: bool = False) -> None:
        self._m = m
        self._events = events
        self._sort = sort
        self.place = Place(events, None, back)

    @property
    def peak(self) -> N:
        """What is alive in it at its peak."""
        return self._m.peak(self._events, self._sort)

    @property
    def slope(self) -> N:
        """It occurs once."""
        return self._m.nothing()


class Layer(Generic[N]):
    """A layer of one kind, run forward or back.

    ``slope`` is what each such layer leaves behind, less what it takes away.  ``guide`` is the same
    layer over bytes: it says which of the candidates is the largest.
    """

    __slots__ = ("_choice", "_guide", "_inside", "_m", "_peak", "slope")

    def __init__(
        self, m: Measure[N], slope: N, inside: Callable[[], Inside[N]], guide: Layer[int] | None
    ) -> None:
        self._m = m
        self._inside = inside
        self._guide = guide
        self._choice: tuple[int, Place] | None = None
        self._peak: N | None = None
        self.slope = slope

    @property
    def peak(self) -> N:
        """The largest of the amounts inside the layer."""
        if self._peak is None:
            self._choose()
            assert self._peak is not None
        return self._peak

    @property
    def place(self) -> Place:
        """Where the peak lies."""
        return self.choice[1]

    @property
    def choice(self) -> tuple[int, Place]:
        """The number of the largest candidate, and where it lies."""
        if self._guide is not None:
            return self._guide.choice
        if self._choice is None:
            self._choose()
            assert self._choice is not None
        return self._choice

    def _choose(self) -> None:
        wanted = None if self._guide is None else self._guide.choice[0]
        found: N | None = None
        for at, (place, amount) in enumerate(self._inside()):
            if wanted is not None and at != wanted:
                continue
            candidate = amount()
            if found is None or self._m.larger(candidate, found):
                found = candidate
                self._choice = at, place
            if at == wanted:
                break
        self._peak = found


class Point(Generic[N]):
    """``count`` alike points, at layers ``start``, ``start + step``, ... (one where it is no layer).

    ``amount()`` is what is alive at the first of them in the order of the walk, ``slope()`` what
    each further one adds, ``place()`` where the peak lies.
    """

    __slots__ = ("_inside", "_live", "_m", "count", "key", "start", "step")

    def __init__(
        self,
        key: str,
        m: Measure[N],
        live: N,
        inside: Layer[N] | Outside[N],
        start: int = -1,
        count: int = 1,
        step: int = 1,
    ) -> None:
        self.key = key
        self.start = start
        self.count = count
        self.step = step
        self._m = m
        self._live = live
        self._inside = inside

    def amount(self) -> N:
        """What is alive at the first point."""
        return self._m.add(self._m.copy(self._live), self._inside.peak)

    def slope(self) -> N:
        """What each further point has more."""
        return self._inside.slope

    def place(self) -> Place:
        """Where the peak lies."""
        return self._inside.place
