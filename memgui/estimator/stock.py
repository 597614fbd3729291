"""What is alive at a point of a walk, told as what it is made of; counting it is for who asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import msgspec

from memgui.estimator.events import Events, Group, Pairs, Table, Thing

Sorter = Callable[[Thing], str]
"""Says to which component a thing belongs."""

Part = tuple[Group, Sorter, int]
"""Things that come together (or go), to which components they belong, and how often they come."""


def _each(thing: Thing) -> str:
    raise NotImplementedError("what is in another stock belongs to the components that it says")


@final
class Stock(msgspec.Struct, eq=False, gc=False):
    """Groups of things and other stocks, each so many times, beside what was there ``before``.

    What a stock is looked at for does not change any more: who goes on from it makes the next one.
    ``counted`` and ``listed``: its bytes, or what they belong to, have been counted for one workload (the
    number of who did); for further ones ``pairs`` (see :meth:`summed`) and ``table`` say once what there is.
    """

    before: Stock | None = None
    entries: list[tuple[Group | Stock, Sorter, int]] = []
    counted: bool = False
    pairs: Pairs | None = None
    listed: int = 0
    table: Table | None = None

    def add(self, group: Group, sort: Sorter, times: int = 1) -> None:
        """The things of ``group`` come (or go) ``times`` times."""
        if group.alike or group.within:
            self.entries.append((group, sort, times))

    def include(self, other: Stock, times: int = 1) -> None:
        """All that is in another stock comes (or goes) ``times`` times."""
        self.entries.append((other, _each, times))

    def grown(self, other: Stock, times: int = 1) -> Stock:
        """What is there when all that is in another stock has come (or gone) ``times`` times."""
        return Stock(self, [(other, _each, times)])

    def happen(self, events: Events, sort: Sorter, stop: int | None = None, *, whole: bool = True) -> None:
        """The first ``stop`` events happen (all of them); see :meth:`Events.net`."""
        self.exchange(events.net(stop, whole=whole), sort)

    def exchange(self, change: tuple[Group, Group], sort: Sorter) -> None:
        """The things of the first group come, those of the second go."""
        come, gone = change
        self.add(come, sort)
        self.add(gone, sort, -1)

    def summed(self) -> Pairs:
        """The bytes of all that is in it, as (coefficient, monomial) pairs."""
        if self.pairs is None:
            total: dict[int, int] = {}
            for coefficient, monomial in self.before.summed() if self.before is not None else ():
                total[monomial] = coefficient
            for one, _, times in self.entries:
                for coefficient, monomial in one.summed() if type(one) is Stock else one.pairs:
                    total[monomial] = total.get(monomial, 0) + coefficient * times
            self.pairs = tuple([(coefficient, monomial) for monomial, coefficient in total.items()])
        return self.pairs

    def size(self) -> int:
        """How many things come or go, at most."""
        before = 0 if self.before is None else self.before.size()
        sizes = [
            abs(times) * (one.size() if type(one) is Stock else one.size) for one, _, times in self.entries
        ]
        return before + sum(sizes)

    def links(self) -> list[Stock]:
        """This one and those before it, the last first."""
        found = [self]
        while (before := found[-1].before) is not None:
            found.append(before)
        return found

    def parts(self) -> list[Part]:
        """All groups in it, in the order in which they came first."""
        often: dict[tuple[Group | Stock, Sorter], int] = {}
        for link in reversed(self.links()):
            for one, sort, times in link.entries:
                key = one, sort
                often[key] = often.get(key, 0) + times
        found: list[Part] = []
        for (one, sort), count in often.items():
            parts = one.parts() if type(one) is Stock else ((one, sort, 1),)
            found += [(group, sort, times * count) for group, sort, times in parts if count]
        return found


NOTHING = Stock()
"""An empty one, which stays so."""
