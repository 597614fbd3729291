"""A training step's births and deaths in their order, played on an allocator.

The walk (:mod:`memgui.estimator.walk`) says what is alive as each block begins, its events what happens
while it runs.  Between blocks things pass from hand to hand under other names: what goes and what comes
with as many bytes is one block.  Of alike layers the second stands for all that follow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from memgui.estimator.allocator import Allocator, Block
from memgui.estimator.events import Gradient, Thing
from memgui.estimator.measure import Bytes
from memgui.estimator.points import Place, Point
from memgui.estimator.stock import Stock
from memgui.estimator.tape import Parameter
from memgui.estimator.walk import Walk

Alive = dict[Thing, int]
"""How many of each thing are alive."""

BORN: Final = 0
DEAD: Final = 1
PASSED: Final = 2

Slot = list[Block]
"""The blocks of one thing, the newest last."""

Held = tuple[Allocator, Block]
"""A block, and of whom it was asked."""

Action = tuple[int, Slot, Slot, int, Allocator]
"""What happens, to whom, who has it then, the bytes that are asked for, and of whom."""


class _Counting:
    """Things in stocks, by number."""

    def __init__(self) -> None:
        self._known: dict[Stock, Alive] = {}

    def of(self, stock: Stock) -> Alive:
        """What is in ``stock``, and how many of each."""
        found = self._known.get(stock)
        if found is None:
            found = self._known[stock] = {} if stock.before is None else dict(self.of(stock.before))
            for one, _, times in stock.entries:
                if isinstance(one, Stock):
                    for thing, number in self.of(one).items():
                        _count(found, thing, number * times)
                else:
                    for thing in one.things:
                        _count(found, thing, times)
        return found


def _count(alive: Alive, thing: Thing, number: int) -> None:
    left = alive.get(thing, 0) + number
    if left:
        alive[thing] = left
    else:
        alive.pop(thing, None)


class Replay:
    """Plays passes through a program on ``allocator``; ``numbers`` says how many bytes a thing has.

    What is in ``streams`` is allocated there; ``shards`` stay instead of gradients of weights.
    """

    def __init__(
        self,
        allocator: Allocator,
        numbers: Bytes,
        streams: Mapping[Thing, Allocator] = MappingProxyType({}),
        shards: Collection[Thing] = (),
    ) -> None:
        self.allocator = allocator
        self._streams = streams
        self._shards = shards
        self._numbers = numbers
        self._counting = _Counting()
        self._slots: dict[Thing, Slot] = {}
        self._actions: list[Action] = []
        self._sizes: dict[Thing, int] = {}

    @property
    def holds(self) -> bool:
        """Whether anything is alive."""
        return any(self._slots.values())

    def record(self, walk: Walk, points: Iterable[Point]) -> list[list[Action]]:
        """Play a pass; what was done, to be played again from the same beginning."""
        done: list[list[Action]] = []
        for point in points:
            for layer in range(min(point.count, 2)):
                for alive, place in _places(walk, point, layer):
                    self._become(self._counting.of(alive))
                    self._happen(place)
                done.append(self._flush())
            done += [done[-1]] * max(point.count - 2, 0)
            for again in done[len(done) - max(point.count - 2, 0) :]:
                self.play(again)
        return done

    def play(self, actions: list[Action]) -> None:
        """Do once more what was done."""
        for what, one, other, size, allocator in actions:
            if what == BORN:
                one.append(allocator.take(size))
            elif what == DEAD:
                allocator.give(one.pop())
            else:
                other.append(one.pop())

    def settle(self, alive: Stock) -> list[Action]:
        """Everything dies but ``alive`` and the gradients of weights."""
        staying = dict(self._counting.of(alive))
        for thing, slot in self._slots.items():
            if slot and self._stays(thing):
                staying[thing] = len(slot)
        self._become(staying)
        return self._flush()

    def gradients(self) -> list[Held]:
        """The blocks of the gradients of weights, which belong to the caller from here on."""
        return self._handed_out([thing for thing in self._slots if self._stays(thing)])

    def _stays(self, thing: Thing) -> bool:
        """Whether it is a gradient of a weight, or what is kept instead of these."""
        if self._shards:
            return thing in self._shards
        return isinstance(thing, Gradient) and isinstance(thing.of, Parameter)

    def blocks_of(self, alive: Stock) -> list[Held]:
        """The blocks that are left of what is in ``alive``, likewise."""
        return self._handed_out(self._counting.of(alive))

    def taken(self, things: Iterable[Thing]) -> list[Held]:
        """Blocks for things that come after a pass, likewise."""
        asked = [(self._of(thing), self._size(thing)) for thing in things]
        return [(allocator, allocator.take(size)) for allocator, size in asked]

    def _handed_out(self, things: Iterable[Thing]) -> list[Held]:
        found: list[Held] = []
        for thing in things:
            slot = self._slots.get(thing)
            if slot:
                found += [(self._of(thing), block) for block in slot]
                slot.clear()
        return found

    def _happen(self, place: Place) -> None:
        events = place.events
        stop = len(events.things) if place.stop is None else place.stop
        for thing, size in zip(events.things[:stop], events.sizes, strict=False):
            if size > 0:
                self._born(thing)
            elif size < 0:
                self._dead(thing)

    def _become(self, alive: Alive) -> None:
        """What is alive changes to ``alive``."""
        going: dict[tuple[int, Allocator], list[Thing]] = {}
        coming: list[Thing] = []
        for thing, slot in self._slots.items():
            surplus = len(slot) - alive.get(thing, 0)
            if surplus > 0:
                going.setdefault((self._size(thing), self._of(thing)), []).extend([thing] * surplus)
        for thing, count in alive.items():
            coming += [thing] * (count - len(self._slots.get(thing, ())))
        unmet: list[Thing] = []
        for thing in coming:
            before = going.get((self._size(thing), self._of(thing)))
            if before:
                self._do(PASSED, before.pop(0), thing)
            else:
                unmet.append(thing)
        for things in going.values():
            for thing in things:
                self._dead(thing)
        for thing in unmet:
            self._born(thing)

    def _born(self, thing: Thing) -> None:
        self._do(BORN, thing, thing)

    def _dead(self, thing: Thing) -> None:
        self._do(DEAD, thing, thing)

    def _do(self, what: int, one: Thing, other: Thing) -> None:
        size = self._size(one)
        if size:  # nothing is asked of the allocator for a tensor without elements
            action = what, self._slot(one), self._slot(other), size, self._of(one)
            self._actions.append(action)
            self.play([action])

    def _flush(self) -> list[Action]:
        done, self._actions = self._actions, []
        return done

    def _slot(self, thing: Thing) -> Slot:
        found = self._slots.get(thing)
        if found is None:
            found = self._slots[thing] = []
        return found

    def _of(self, thing: Thing) -> Allocator:
        return self._streams.get(thing, self.allocator)

    def _size(self, thing: Thing) -> int:
        found = self._sizes.get(thing)
        if found is None:
            found = self._sizes[thing] = self._numbers.of(thing)
        return found


def _places(walk: Walk, point: Point, layer: int) -> Iterator[tuple[Stock, Place]]:
    """Where a point leads to in its ``layer``-th layer, and what is alive as each place begins."""
    for spot in walk.spots(point.inside):
        live = Stock(point.live)
        live.include(point.inside.slope, layer)
        live.include(spot.before)
        yield live, spot.place()
