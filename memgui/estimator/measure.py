"""Two ways to add up what is alive: as bytes, and as the tensors themselves.

The walk through a step (:mod:`memgui.estimator.walk`) is written once, over a measure.  With
:class:`Bytes` it yields ints and is fast; with :class:`Contents` it yields piles of lots, which know every
tensor, how often it is alive and to which component it belongs.  So every part that is shown comes
from the walk that made the totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from operator import mul
from typing import Protocol, TypeVar

from memgui.estimator.events import Events, Group, Table, Thing
from memgui.estimator.overhead import block_bytes

Sorter = Callable[[Thing], str]
"""Says to which component a thing belongs."""

Bag = dict[tuple[Thing, str], int]
"""How many of each thing are alive, by the component that each counts for."""


class Lot:
    """Things that the walk adds and takes away together: a group, or what lives after ``stop`` events.

    ``parts`` are listed when looked at.
    """

    __slots__ = ("parts", "sort", "source", "stop")

    def __init__(self, source: Group | Events, sort: Sorter, stop: int) -> None:
        self.source = source
        self.sort = sort
        self.stop = stop
        self.parts: Bag | None = None


Pile = dict[Lot, int]
"""How many of each lot are alive."""

N = TypeVar("N")


class Measure(Protocol[N]):
    """What the walk needs of a measure."""

    def nothing(self) -> N:
        """An amount to start from."""
        ...

    def add(self, amount: N, more: N, times: int = 1) -> N:
        """``amount`` with ``times`` ``more``; ``amount`` itself is used up."""
        ...

    def copy(self, amount: N) -> N:
        """An amount of its own."""
        ...

    def larger(self, one: N, other: N) -> bool:
        """Whether ``one`` is more."""
        ...

    def peak(self, events: Events, sort: Sorter, stop: int | None = None) -> N:
        """What is alive at the event with the most bytes (of the first ``stop``), beyond the start."""
        ...

    def end(self, events: Events, sort: Sorter) -> N:
        """What is alive beyond the start when all events have happened."""
        ...

    def group(self, group: Group, sort: Sorter) -> N:
        """The things of a group."""
        ...


class Bytes:
    """Bytes alone.  ``values[i]`` is the value of monomial ``i``.

    ``whole``: what kernels allocate themselves counts too, as the allocator's counter has it.
    """

    __slots__ = ("_running", "values", "whole")

    def __init__(self, values: list[int], *, whole: bool = False) -> None:
        self.values = values
        self.whole = whole
        self._running: dict[Events, list[int]] = {}

    def running(self, events: Events) -> list[int]:
        """Bytes alive after each event, beyond the start."""
        found = self._running.get(events)
        if found is None:
            values = self.values
            factors = [values[thing.monomial] for thing in events.things]
            found = list(accumulate(map(mul, self.coefficients(events), factors)))
            self._running[events] = found
        return found

    def coefficients(self, events: Events) -> list[int]:
        """Those of the events that count here."""
        return events.sizes if self.whole else events.coefficients

    def nothing(self) -> int:
        return 0

    def add(self, amount: int, more: int, times: int = 1) -> int:
        return amount + more * times

    def copy(self, amount: int) -> int:
        return amount

    def larger(self, one: int, other: int) -> bool:
        return one > other

    def peak(self, events: Events, sort: Sorter, stop: int | None = None) -> int:
        running = self.running(events)
        return max(0, max(running if stop is None else running[:stop], default=0))

    def end(self, events: Events, sort: Sorter) -> int:
        running = self.running(events)
        return running[-1] if running else 0

    def group(self, group: Group, sort: Sorter) -> int:
        total = 0
        for coefficient, monomial in group.pairs:
            total += coefficient * self.values[monomial]
        return total

    def sum(self, pairs: Iterable[tuple[int, int]]) -> int:
        """The bytes of (coefficient, monomial) pairs."""
        total = 0
        for coefficient, monomial in pairs:
            total += coefficient * self.values[monomial]
        return total

    def of(self, thing: Thing) -> int:
        """The bytes of one thing."""
        return thing.coefficient * self.values[thing.monomial]

    def stop_at_peak(self, events: Events, stop: int | None = None) -> int:
        """How many events have happened when :meth:`peak` is reached."""
        running = self.running(events)
        if stop is not None:
            running = running[:stop]
        most = max(running, default=0)
        return running.index(most) + 1 if most > 0 else 0


class Contents:
    """The tensors themselves, at the same events where ``numbers`` finds the peaks."""

    __slots__ = ("_lots", "_sums", "numbers")

    def __init__(self, numbers: Bytes) -> None:
        self.numbers = numbers
        self._lots: dict[tuple[Group | Events, Sorter, int], Lot] = {}
        self._sums: dict[Lot, tuple[dict[str, int], int]] = {}

    def nothing(self) -> Pile:
        return {}

    def add(self, amount: Pile, more: Pile, times: int = 1) -> Pile:
        for lot, number in more.items():
            amount[lot] = amount.get(lot, 0) + number * times
        return amount

    def copy(self, amount: Pile) -> Pile:
        return dict(amount)

    def larger(self, one: Pile, other: Pile) -> bool:
        return self.bytes(one) > self.bytes(other)

    def bytes(self, pile: Pile) -> int:
        """The bytes of everything in ``pile``."""
        return sum(sum(self.sums(lot)[0].values()) * number for lot, number in pile.items())

    def sums(self, lot: Lot) -> tuple[dict[str, int], int]:
        """The bytes of a lot by component, and what the allocator's blocks add to them."""
        found = self._sums.get(lot)
        if found is None:
            components: dict[str, int] = {}
            excess = 0
            values = self.numbers.values
            for component, coefficient, monomial, count in self._table(lot):
                size = coefficient * values[monomial]
                components[component] = components.get(component, 0) + size * count
                excess += (block_bytes(size) - size) * count
            found = self._sums[lot] = components, excess
        return found

    def _table(self, lot: Lot) -> Table:
        """What a lot holds, alike things together; the same for each workload, so it is kept.

        A sorter that is a method sorts alike each time.  Its owner belongs to the program that the lot's
        source belongs to; it is kept by its number, so that neither holds the other.
        """
        owner = getattr(lot.sort, "__self__", None)
        key = id(owner), getattr(lot.sort, "__name__", ""), lot.stop, self.numbers.whole
        tables = lot.source.tables
        table = None if tables is None else tables.get(key)
        if table is None:
            alike: dict[tuple[str, int, int], int] = {}
            for (thing, component), count in self.parts(lot).items():
                kind = component, thing.coefficient, thing.monomial
                alike[kind] = alike.get(kind, 0) + count
            table = tuple([(*kind, count) for kind, count in alike.items()])
            if tables is None:
                tables = lot.source.tables = {}
            if owner is not None:
                tables[key] = table
        return table

    def bag(self, pile: Pile) -> Bag:
        """Every thing in ``pile``."""
        bag: Bag = {}
        for lot, times in pile.items():
            for key, number in self.parts(lot).items():
                bag[key] = bag.get(key, 0) + number * times
        return bag

    def peak(self, events: Events, sort: Sorter, stop: int | None = None) -> Pile:
        return self._until(events, sort, self.numbers.stop_at_peak(events, stop))

    def end(self, events: Events, sort: Sorter) -> Pile:
        return self._until(events, sort, len(events.things))

    def _until(self, events: Events, sort: Sorter, stop: int) -> Pile:
        return self._lot(events, sort, stop) if stop else {}

    def group(self, group: Group, sort: Sorter) -> Pile:
        return self._lot(group, sort, 0) if group.things else {}

    def _lot(self, source: Group | Events, sort: Sorter, stop: int) -> Pile:
        key = source, sort, stop
        lot = self._lots.get(key)
        if lot is None:
            lot = self._lots[key] = Lot(source, sort, stop)
        return {lot: 1}

    def parts(self, lot: Lot) -> Bag:
        """The things of a lot, with the component that each counts for, and how many there are of each."""
        if lot.parts is None:
            sort, source = lot.sort, lot.source
            if isinstance(source, Group):
                lot.parts = {(thing, sort(thing)): 1 for thing in source.things}
            else:
                alive = self._alive(source, lot.stop)
                lot.parts = {(thing, sort(thing)): number for thing, number in alive.items() if number}
        return lot.parts

    def _alive(self, events: Events, stop: int) -> dict[Thing, int]:
        count: dict[Thing, int] = {}
        for thing, size in zip(events.things[:stop], self.numbers.coefficients(events), strict=False):
            if size:
                count[thing] = count.get(thing, 0) + (1 if size > 0 else -1)
        return count
