"""Two ways to count what is alive: as bytes, and as the tensors themselves.

The walk through a step (:mod:`memgui.estimator.walk`) says what is alive as stocks of things.
:class:`Bytes` adds them up; :class:`Contents` knows every tensor, how often it is alive and to which
component it belongs.  So every part that is shown comes from the walk that made the totals.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from memgui.estimator.events import Events, Group, Inner, Pairs, Table, Thing
from memgui.estimator.overhead import block_bytes
from memgui.estimator.stock import Sorter, Stock

Bag = dict[tuple[Thing, str], int]
"""How many of each thing are alive, by the component that each counts for."""


_NUMBERS = count(1)


def _known(thing: Thing) -> str:
    raise NotImplementedError("what several groups have within belongs to the component that it says")


class Bytes:
    """Bytes alone.  ``values[i]`` is the value of monomial ``i``.

    ``whole``: what kernels allocate themselves counts too, as the allocator's counter has it.
    """

    __slots__ = ("_groups", "_known", "number", "positive", "values", "whole")

    def __init__(self, values: list[int], *, whole: bool = False) -> None:
        self.values = values
        self.whole = whole
        self.number = next(_NUMBERS)
        """tells one workload from another"""
        self.positive = 0 not in values
        """whether no monomial stands for 0"""
        self._known: dict[Stock, int] = {}
        self._groups: dict[Group, int] = {}

    def bytes(self, stock: Stock) -> int:
        """The bytes of all that is in ``stock``."""
        known = self._known
        found = known.get(stock)
        if found is None:
            values, before = self.values, stock.before
            found = 0
            if stock.counted:
                for coefficient, monomial in stock.pairs or stock.summed():
                    found += coefficient * values[monomial]
                known[stock] = found
                return found
            stock.counted = True
            groups = self._groups
            if before is not None:
                found = known[before] if before in known else self.bytes(before)
            for one, _, times in stock.entries:
                if type(one) is Stock:
                    found += (known[one] if one in known else self.bytes(one)) * times
                else:
                    size = groups.get(one)
                    if size is None:
                        size = 0
                        for thing in one.alike:
                            size += thing.coefficient * values[thing.monomial]
                        if one.within:
                            size += sum(map(self.together, one.within))
                        groups[one] = size
                    found += size * times
            known[stock] = found
        return found

    def together(self, group: Group) -> int:
        """The bytes of the things in a group."""
        size = self._groups.get(group)
        if size is None:
            values = self.values
            size = sum([one.coefficient * values[one.monomial] for one in group.alike])
            size += sum(map(self.together, group.within))
            self._groups[group] = size
        return size

    def sums(self, parts: Iterable[Pairs]) -> int:
        """The bytes of (coefficient, monomial) pairs."""
        total = 0
        values = self.values
        for pairs in parts:
            for coefficient, monomial in pairs:
                total += coefficient * values[monomial]
        return total

    def of(self, thing: Thing) -> int:
        """The bytes of one thing."""
        return thing.coefficient * self.values[thing.monomial]


class Watch:
    """Goes along with events as they come; says when no further one can have more alive than there has been.

    Where no more than ``bound`` is born at all, it is less by what has been freed that is alive from then on.
    They may come once more from the first one on: what has been seen is not counted again.  ``most`` is alive
    after the first ``stop`` of those seen, beyond the start.
    """

    __slots__ = ("_bound", "_live", "_numbers", "_seen", "most", "stop")

    def __init__(self, numbers: Bytes, bound: int) -> None:
        self._numbers = numbers
        self._bound = bound
        self._live = self._seen = self.most = self.stop = 0

    def __call__(self, events: Events) -> bool:
        self.see(events)
        return self._bound <= self.most

    def see(self, events: Events, stop: int | None = None) -> None:
        """Look at all that have come (at the first ``stop``)."""
        values, whole = self._numbers.values, self._numbers.whole
        live, seen, most, bound = self._live, self._seen, self.most, self._bound
        for thing, size in zip(events.things[seen:stop], events.sizes[seen:stop], strict=True):
            seen += 1
            amount = size * values[thing.monomial]
            if whole or type(thing) is not Inner:
                live += amount
            if amount < 0:
                bound += amount
            elif live > most:
                most, self.stop = live, seen
        self._live, self._seen, self.most, self._bound = live, seen, most, bound


class Contents:
    """The tensors themselves, with the sizes that ``numbers`` gives them."""

    __slots__ = ("_known", "_rests", "numbers")

    def __init__(self, numbers: Bytes) -> None:
        self.numbers = numbers
        self._rests: dict[int, int] = {}
        """what the allocator's block adds to a thing of so many bytes"""
        self._known: dict[Stock, tuple[dict[str, int], int]] = {}

    def sums(self, stock: Stock) -> tuple[dict[str, int], int]:
        """The bytes of a stock by component, and what the allocator's blocks add to them."""
        found = self._known.get(stock)
        if found is None:
            found = self._known[stock] = self._further(stock) if self._known else self._first(stock)
        return found

    def _first(self, stock: Stock) -> tuple[dict[str, int], int]:
        """The same where nothing is known: what comes and goes again is not looked at."""
        components: dict[str, int] = {}
        excess = 0
        often: dict[tuple[Group, Sorter], int] = {}
        number = self.numbers.number
        inside = {stock: 1}
        while inside:
            link, many = inside.popitem()
            if not many:
                continue
            if link.listed not in (0, number):
                excess += self._add(link.table or _listed(link), many, components)
                continue
            link.listed = number
            if link.before is not None:
                inside[link.before] = inside.get(link.before, 0) + many
            for one, sort, times in link.entries:
                if type(one) is Stock:
                    inside[one] = inside.get(one, 0) + times * many
                elif one.within:  # in several groups: looked at once
                    for part in one.within:
                        often[part, _known] = often.get((part, _known), 0) + times * many
                else:
                    often[one, sort] = often.get((one, sort), 0) + times * many
        for (group, sort), times in often.items():
            if times:
                excess += self._add_group(group, sort, times, components)
        return components, excess

    def _further(self, stock: Stock) -> tuple[dict[str, int], int]:
        """The same of one that goes on from others."""
        links: list[Stock] = []
        link: Stock | None = stock
        there, number = None, self.numbers.number
        while link is not None:
            there = self._known.get(link)
            if there is not None or link.listed not in (0, number):
                break
            link.listed = number
            links.append(link)
            link = link.before
        components, excess = ({}, 0) if there is None else (dict(there[0]), there[1])
        if there is None and link is not None:
            excess = self._add(link.table or _listed(link), 1, components)
        others: dict[Stock, int] = {}
        for link in links:
            for one, sort, times in link.entries:
                if type(one) is Stock:
                    others[one] = others.get(one, 0) + times
                else:
                    excess += self._add_group(one, sort, times, components)
        for other, times in others.items():
            if times:
                more, over = self.sums(other)
                excess += over * times
                for component, size in more.items():
                    components[component] = components.get(component, 0) + size * times
        return components, excess

    def _add_group(self, group: Group, sort: Sorter, times: int, components: dict[str, int]) -> int:
        """Add a group to ``components``; returns what the allocator's blocks add to it."""
        if group.within:
            return sum([self._add_group(part, _known, times, components) for part in group.within])
        if group.tables is None:  # looked at for the first time: not worth a table
            group.tables = {}
            return self._add_each(group, sort, times, components)
        return self._add(_listed_of(group, sort), times, components)

    def _add(self, table: Table, times: int, components: dict[str, int]) -> int:
        """Add what is listed to ``components``; returns what the allocator's blocks add to it."""
        values = self.numbers.values
        excess = 0
        for component, pairs in table.components:
            size = 0
            for coefficient, monomial in pairs:
                size += coefficient * values[monomial]
            components[component] = components.get(component, 0) + size * times
        rests = self._rests
        for size, monomial, many in table.sizes:
            size *= values[monomial]
            rest = rests.get(size)
            if rest is None:
                rest = rests[size] = block_bytes(size) - size
            excess += rest * many
        return excess * times

    def _add_each(self, group: Group, sort: Sorter, times: int, components: dict[str, int]) -> int:
        """The same of what is not listed yet."""
        excess = 0
        values, rests = self.numbers.values, self._rests
        for thing in group.alike:
            size = thing.coefficient * values[thing.monomial]
            rest = rests.get(size)
            if rest is None:
                rest = rests[size] = block_bytes(size) - size
            excess += rest
        if group.component:
            known = components.get(group.component, 0)
            components[group.component] = known + self.numbers.together(group) * times
        else:
            for thing in group.alike:
                component = sort(thing)
                size = thing.coefficient * values[thing.monomial]
                components[component] = components.get(component, 0) + size * times
        return excess * times

    def bag(self, stock: Stock) -> Bag:
        """Every thing in ``stock``."""
        bag: Bag = {}
        for group, sort, times in stock.parts():
            for thing in group.things:
                key = thing, sort(thing)
                bag[key] = bag.get(key, 0) + times
        return bag


def _listed(stock: Stock) -> Table:
    """What a stock holds, alike things together: made and kept where it is asked for a second time."""
    if stock.table is None:
        tables = [] if stock.before is None else [(_listed(stock.before), 1)]
        for one, sort, times in stock.entries:
            tables.append((_listed(one) if type(one) is Stock else _listed_of(one, sort), times))
        total: dict[tuple[str, int, int], int] = {}
        for table, times in tables:
            for component, coefficient, monomial, often in table.rows:
                kind = component, coefficient, monomial
                total[kind] = total.get(kind, 0) + often * times
        stock.table = Table([(*kind, often) for kind, often in total.items() if often])
    return stock.table


def _listed_of(group: Group, sort: Sorter) -> Table:
    """What a group holds, alike things together, made and kept: it is the same for each workload.

    A sorter sorts alike each time; it holds what it looks things up in, and never the group.
    """
    known = None if group.tables is None else group.tables.get(sort)
    if known is not None:
        return known
    alike: dict[tuple[str, int, int], int] = {}
    for thing in group.alike:
        kind = group.component or sort(thing), thing.coefficient, thing.monomial
        alike[kind] = alike.get(kind, 0) + 1
    for part in group.within:
        for component, coefficient, monomial, often in _listed_of(part, _known).rows:
            kind = component, coefficient, monomial
            alike[kind] = alike.get(kind, 0) + often
    table = Table([(*kind, often) for kind, often in alike.items()])
    if group.tables is None:
        group.tables = {}
    group.tables[sort] = table
    return table
