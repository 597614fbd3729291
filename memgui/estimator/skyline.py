"""Where along a way most may be alive, told once for all workloads.

What is alive after an event is linear in the numbers that monomials stand for, and so is a bound on it.
Where there is always as much elsewhere no workload has its peak: a handful of places is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from memgui.estimator.events import Pairs, Tops
from memgui.estimator.inside import Inside
from memgui.estimator.measure import Bytes
from memgui.estimator.once import once
from memgui.estimator.points import Layer, Outside, Point, Row, Rows
from memgui.estimator.stock import Stock

Sizes = dict[int, int]
"""Bytes: the coefficient of each monomial."""

ANY: Final = -1
"""Of a form, instead of the spot: all that are inside."""
BOUND: Final = -1
"""Of a form, instead of how many events have happened: a bound on what is alive whenever that is."""


class Form(NamedTuple):
    """What is alive (``sizes``) in one of the layers of a row, the one after ``offset`` others of its run.

    It is that after the first ``stop`` events of a spot inside, or a bound: on all that happens there, or on
    the ``rest`` of where most may be alive.  ``live`` is there before.  ``at`` is the number of the row,
    ``run`` that of the run in it.
    """

    at: int
    run: int
    offset: int
    spot: int
    stop: int
    sizes: Sizes
    live: Sizes
    inside: Layer | Outside
    rest: Tops = ()


class Skyline:
    """The forms of a way, in order.  Where a bound is highest one looks closer: who comes later need not."""

    def __init__(self, rows: Rows, walk: Inside, *, whole: bool) -> None:
        self.whole = whole
        before: dict[Layer | Outside, list[Form]] = {}
        for form in _before(rows):
            before.setdefault(form.inside, []).append(form)
        highest = [form for forms in before.values() for form in _uncovered(forms)]
        self.forms = _uncovered([bound for form in highest for bound in _bounds(form, walk)])

    def highest(self, values: Sequence[int]) -> tuple[int, Form | None]:
        """The most bytes, and the first form with them, where monomials have these (positive) ``values``."""
        most, best = -1, None
        for form in self.forms:
            size = 0
            for monomial, coefficient in form.sizes.items():
                size += coefficient * values[monomial]
            if size > most:
                most, best = size, form
        return most, best

    def look(self, bound: Form, walk: Inside, values: Sequence[int]) -> None:
        """Look closer at where a form is a bound, as far as these values need it."""
        others = [form for form in self.forms if form is not bound]
        closer = _on_each(bound, walk) if bound.spot == ANY else self._highest(bound, values)
        self.forms = _uncovered([*others, *closer])

    def _highest(self, bound: Form, values: Sequence[int]) -> Iterator[Form]:
        """In place of a bound on a spot what is alive after the highest event, and a bound on the rest."""
        spot = bound.inside.spots[bound.spot]
        events, end, _ = spot.place()
        tops = bound.rest or events.tops(end, whole=self.whole)
        before = _sum(bound.live, spot.before.summed())
        highest = max(tops, key=lambda top: sum([size * values[monomial] for size, monomial in top[0]]))
        yield bound._replace(stop=highest[1], sizes=_sum(before, highest[0]), rest=())
        rest = tuple([top for top in tops if top is not highest])
        if rest:
            yield bound._replace(sizes=_sum(before, _most(rest)), rest=rest)


class Way:
    """Points that a walk comes by one after the other: layers in a row together."""

    def __init__(self, rows: Iterable[Point | Row]) -> None:
        self.rows = tuple(rows)
        self._first = 0
        self._skylines: dict[bool, Skyline] = {}

    @once
    def points(self) -> tuple[Point, ...]:
        """Each layer on its own, as far as they are not alike."""
        return tuple([point for row in self.rows for point in row.points()])

    def known(self, numbers: Bytes) -> bool:
        """Whether somebody else has asked before: for one workload alone a look at the numbers does.

        Never where a monomial stands for 0: there the first of several that hold as much may be another one.
        """
        self._first = self._first or numbers.number
        return self._first != numbers.number and numbers.positive

    def skyline(self, walk: Inside, *, whole: bool) -> Skyline:
        """Where most may be alive; ``whole``: what kernels allocate themselves counts."""
        found = self._skylines.get(whole)
        if found is None:
            found = self._skylines[whole] = Skyline(self.rows, walk, whole=whole)
        return found


def _bounds(form: Form, walk: Inside) -> Iterable[Form]:
    """Bounds where nothing is known but what is there before: the loose one, if there is one."""
    loose = walk.loose(form.inside) if isinstance(form.inside, Layer) else ()
    if not loose:
        return _on_each(form, walk)
    return (form._replace(stop=BOUND, sizes=_sum(form.live, *loose)),)


def _on_each(form: Form, walk: Inside) -> Iterator[Form]:
    """A bound on each spot."""
    for number, spot in enumerate(walk.spots(form.inside)):
        sizes = _sum(form.live, spot.before.summed(), *spot.most)
        yield form._replace(spot=number, stop=BOUND, sizes=sizes)


def _before(rows: Rows) -> Iterator[Form]:
    """What is there before anything happens: at all points that are not between two others like them."""
    for at, row in enumerate(rows):
        for inside, index, offset, counts in _ends(row):
            live = _sum({}, row.live.summed())
            for slope, count in counts.items():
                for coefficient, monomial in slope.summed():
                    live[monomial] = live.get(monomial, 0) + coefficient * count
            yield Form(at, index, offset, ANY, 0, live, live, inside)


Counts = dict[Stock, int]
"""How many layers there have been, by what each leaves."""


def _ends(row: Row | Point) -> list[tuple[Layer | Outside, int, int, Counts]]:
    """Layers of a row with most before them: inside, its run, which one of it that is, what came before.

    It is the first or the last of a run.  Where kinds take turns, each time as many more layers of each have
    come before: then most is alive before the first turn, or before the last.
    """
    found: dict[tuple[Layer | Outside, int], list[tuple[int, Counts]]] = {}
    counts: Counts = {}
    for index, (inside, _, count) in enumerate(row.layers):
        slope = inside.slope
        for offset in (0, count - 1) if count > 1 else (0,):
            there = {**counts, slope: counts.get(slope, 0) + offset}
            alike = found.setdefault((inside, offset), [])
            if len(alike) > 1 and _between(alike[-2][1], alike[-1][1], there):
                alike.pop()
            alike.append((index, there))
        counts[slope] = counts.get(slope, 0) + count
    return [
        (inside, index, offset, there) for (inside, offset), ends in found.items() for index, there in ends
    ]


def _between(first: Counts, one: Counts, last: Counts) -> bool:
    """Whether one is on a line between two others; counts only grow."""
    nearer = {slope: count - first.get(slope, 0) for slope, count in one.items()}
    wider = {slope: count - first.get(slope, 0) for slope, count in last.items()}
    part, all_of_it = sum(nearer.values()), sum(wider.values())
    return all(nearer.get(slope, 0) * all_of_it == count * part for slope, count in wider.items())


def _uncovered(forms: Sequence[Form]) -> tuple[Form, ...]:
    """The forms, but for those than which another one always has as much (more, where it comes later)."""
    covering: list[Sizes] = []
    found: list[Form] = []
    for form in sorted(forms, key=lambda form: (-sum(form.sizes.values()), form[:5])):
        if not any(_covers(other, form.sizes) for other in covering):
            found.append(form)
            if form.stop != BOUND:
                covering.append(form.sizes)
    found.sort(key=itemgetter(slice(5)))
    return tuple(found)


def _covers(one: Sizes, other: Sizes) -> bool:
    """Whether there is as much of each monomial."""
    for monomial, coefficient in other.items():
        if one.get(monomial, 0) < coefficient:
            return False
    return all(coefficient >= 0 or monomial in other for monomial, coefficient in one.items())


def _sum(sizes: Sizes, *parts: Pairs) -> Sizes:
    total = {**sizes}
    for pairs in parts:
        for coefficient, monomial in pairs:
            total[monomial] = total.get(monomial, 0) + coefficient
    return total


def _most(tops: Tops) -> Pairs:
    """No less of any monomial than at one of the tops."""
    each = [{monomial: coefficient for coefficient, monomial in pairs} for pairs, _ in tops]
    return tuple([(max([one.get(monomial, 0) for one in each]), monomial) for monomial in set().union(*each)])
