"""Where most is alive: exact inside the layers that may hold the peak, bounded inside all others."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from memgui.estimator.measure import Bytes, Contents, Watch
from memgui.estimator.points import Layer, Outside, Point, Row, Spot
from memgui.estimator.program import Program
from memgui.estimator.skyline import BOUND, Way
from memgui.estimator.stock import Stock
from memgui.estimator.walk import Walk

SEVERAL = 4
"""A bound on what a layer holds as it runs back is seldom less than so many times what it kept."""


class Highest(msgspec.Struct, frozen=True):
    """The most bytes, in which of the rows that is, at which point and how many layers on from its first.

    It is after the first ``stop`` events of ``spot``.
    """

    bytes: int
    at: int
    point: Point
    offset: int
    spot: Spot
    stop: int


Inside = Layer | Outside


class Sight(msgspec.Struct):
    """What has been seen inside: most bytes beyond what was before, at which of the spots; what has not.

    They are there after the first ``stop`` events of that spot.
    ``there``: what is alive before each of the spots.  ``bounds`` each come with the negative number of a
    spot, the highest first; so many of them have been ``seen``.
    """

    spots: tuple[Spot, ...]
    there: list[int]
    bounds: list[tuple[int, int]]
    seen: int = 0
    most: int = -1
    at: int = 0
    stop: int = 0

    @property
    def bound(self) -> int:
        """No more than the most that has not been seen; -1 where no more than has been seen."""
        unseen = self.bounds[self.seen][0] if self.seen < len(self.bounds) else -1
        return unseen if unseen >= self.most else -1


class Heights:
    """How many bytes are alive at the points of a walk; each is worked out when asked for, once."""

    __slots__ = ("_bounds", "_sights", "numbers", "walk")

    def __init__(self, walk: Walk, numbers: Bytes) -> None:
        self.walk = walk
        self.numbers = numbers
        self._sights: dict[Layer | Outside, Sight] = {}
        self._bounds: dict[Layer | Outside, int] = {}

    def spots(self, inside: Layer | Outside) -> tuple[Spot, ...]:
        """Where the peak inside may lie."""
        return inside.spots or self.walk.spots(inside)

    def peak(self, inside: Layer | Outside) -> tuple[int, Spot]:
        """The most that is alive inside beyond what was before, and the first spot where that is."""
        sight = self._look(inside, -1)
        return sight.most, sight.spots[sight.at]

    def _sight(self, inside: Layer | Outside) -> Sight:
        """What is seen of it so far: at first where it may be looked at."""
        sight = self._sights.get(inside)
        if sight is None:
            numbers, spots = self.numbers, self.spots(inside)
            there = [numbers.bytes(spot.before) for spot in spots]
            bounds = [
                (before + numbers.sums(spot.most), -index)
                for index, (spot, before) in enumerate(zip(spots, there, strict=True))
            ]
            bounds.sort(reverse=True)
            sight = self._sights[inside] = Sight(spots, there, bounds)
        return sight

    def _look(self, inside: Layer | Outside, floor: int) -> Sight:
        """What is seen of the events inside where these are looked at only if a bound says that it pays.

        That is where the peak may lie there, and where no less than ``floor`` may be alive.
        """
        numbers, sight = self.numbers, self._sight(inside)
        bounds, seen = sight.bounds, sight.seen
        while seen < len(bounds):
            bound, negative = bounds[seen]
            if bound < sight.most or bound < floor:
                break
            before = sight.there[-negative]
            watch = Watch(numbers, bound - before)
            place = sight.spots[-negative].up_to(watch)
            watch.see(place.events, place.stop)
            amount = before + watch.most
            if amount > sight.most or (amount == sight.most and -negative < sight.at):
                sight.most, sight.at, sight.stop = amount, -negative, watch.stop
            seen += 1
            sight.seen = max(seen, sight.seen)  # last: another thread may look at the same meanwhile
        return sight

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
        most = self._most(inside)
        if point.count > 1:
            most += max(0, numbers.bytes(inside.slope) * (point.count - 1))
        return most + numbers.bytes(point.live)

    def _most(self, inside: Layer | Outside) -> int:
        """No less than is ever alive inside."""
        most = self._bounds.get(inside)
        if most is None:
            if isinstance(inside, Layer) and inside.roles is None:
                numbers, bounds = self.numbers, self.walk.bounds_forward(inside.kind)
                most = max([numbers.bytes(before) + numbers.sums(pairs) for before, pairs in bounds])
            else:
                most = self._sight(inside).bounds[0][0]
            self._bounds[inside] = most
        return most

    def _loose(self, inside: Layer | Outside) -> int:
        """No less either, and sooner known, where that is so."""
        if isinstance(inside, Outside):
            return self._most(inside)
        if inside.most is None:
            inside.most = self.walk.loose(inside)
        return self.numbers.sums(inside.most) if inside.most else self._most(inside)

    def _tight(self, inside: Layer | Outside, enough: int) -> int:
        """No less either, but where ``enough`` is more; later known, where that is so."""
        most = self._most(inside)
        if isinstance(inside, Outside) and inside.closer is not None:
            return min(most, inside.closer(self.numbers.values, most, enough))
        return most

    def top(self, point: Point) -> tuple[Spot, int]:
        """In which spot the peak of a point is, and how many events of it have happened then."""
        sight = self._look(point.inside, -1)
        return sight.spots[sight.at], sight.stop

    def whole(self, point: Point) -> Stock:
        """All that is alive at the peak of a point."""
        return point.whole(*self.top(point), whole=self.numbers.whole)

    def highest_on(self, way: Way, ahead: int, behind: int | None = None, floor: int = 0) -> Highest | None:
        """The first of the points on a way with the most bytes; ``None`` where none holds ``floor``.

        ``ahead`` is there beside it, ``behind`` beside the walk's way back, if that follows.
        """
        if way.known(self.numbers):
            ways = [(way, ahead)]
            if behind is not None:
                ways.append((self.walk.way_backward, behind))
            return self._told(ways, floor)
        rows = [(row, ahead) for row in way.rows]
        if behind is not None:
            best = self.at_loss(rows, behind, floor)
            if best is not None:
                return best
            rows += [(row, behind) for row in self.walk.way_backward.rows]
        return self.highest_of(rows, floor)

    def _told(self, ways: Sequence[tuple[Way, int]], floor: int) -> Highest | None:
        """The same where it is known, for all workloads, where most may be alive."""
        numbers, walk = self.numbers, self.walk
        values = numbers.values
        while True:
            most, before, found = -1, 0, None
            for way, beside in ways:
                skyline = way.skyline(walk, whole=numbers.whole)
                size, form = skyline.highest(values)
                if form is not None and size + beside > most:
                    most, found = size + beside, (skyline, form, way.rows[form.at], before + form.at)
                before += len(way.rows)
            if found is None or most < floor:
                return None
            skyline, form, row, at = found
            if form.stop != BOUND:
                spot = form.inside.spots[form.spot]
                return Highest(most, at, row.point(form.run), form.offset, spot, form.stop)
            skyline.look(form, walk, values)

    def highest_of(self, rows: Sequence[tuple[Row | Point, int]], floor: int = 0) -> Highest | None:
        """The first of the points with the most bytes; ``None`` where all hold less than ``floor``.

        Each comes with what is there beside it.  Of alike layers the one that most is alive before is looked
        at, and nothing inside any before its bound says that the peak may lie there: first the loose one.
        """
        tops, orders = self._tops(rows)
        bounded: list[tuple[int, int, Layer | Outside, bool]] = []
        for inside, top in tops.items():
            loose = self._loose(inside)
            bounded.append((top + loose, -orders[inside], inside, False))
        bounded.sort()  # no two have the same number: what comes after it is never compared
        best = -1
        while bounded:
            bound, negative, inside, tight = bounded.pop()
            if bound < floor:
                break
            top = tops[inside]
            enough = max(floor, bounded[-1][0] if bounded else floor) - top
            if not tight:
                insort(bounded, (top + self._tight(inside, enough), negative, inside, True))
                continue
            sight = self._look(inside, enough)
            most = top + sight.most
            if most > floor or (most == floor and (best < 0 or -negative < best)):
                floor, best = most, -negative
            if sight.bound >= 0:
                insort(bounded, (top + sight.bound, negative, inside, True))
        return None if best < 0 else self._highest(rows, floor, best)

    def at_loss(self, rows: Sequence[tuple[Row | Point, int]], behind: int, floor: int = 0) -> Highest | None:
        """As :meth:`highest_of`, where that point is known to be the block after the layers, forward or back.

        ``rows`` are those of the forward pass; ``behind`` is there beside the backward pass, in which layers
        are not asked then whose turn it is and what they leave.
        """
        numbers = self.numbers
        last, ahead = rows[-1]
        assert isinstance(last, Point)
        loss = [(last, ahead), (self.walk.loss_back, behind)]
        bound = max([self._most(point.inside) + numbers.bytes(point.live) + there for point, there in loss])
        left = self.left_by_loss(behind, bound)
        if left is None:
            return None
        for together in (True, False) if len(self.walk.program.kinds) > 1 else (False,):
            below = self.beside_loss(rows[:-1], left, together=together)
            best = self.highest_of(loss, max(floor, below + 1)) if below < bound else None
            if best is not None:
                return msgspec.structs.replace(best, at=best.at + len(rows) - 1)
        return None

    def left_by_loss(self, behind: int, enough: int | None = None) -> tuple[int, int] | None:
        """No less than is alive before any layer runs back after that block, and while the first block does.

        ``None`` where that is hard to tell, or where ``enough`` may be alive inside layers.
        """
        walk, numbers = self.walk, self.numbers
        live = behind + numbers.bytes(walk.after_loss)
        kinds = walk.program.kinds
        kept = [numbers.bytes(walk.kept(kind)) for kind in kinds]
        reach = live + SEVERAL * max(kept, default=0)
        if enough is not None and reach >= enough:
            return None
        grown = rise = 0
        for kind, each in zip(kinds, kept, strict=True):
            left = [pairs for block in kind.blocks for pairs in block.most_left]
            more = (numbers.sums(left) - each) * kind.count
            grown += more
            rise += max(0, more)
        if enough is not None and reach + rise >= enough:
            return None
        beside = walk.beside_loss
        if beside is None:
            return None
        live += numbers.sums(beside.waiting)
        return live + rise, live + grown + numbers.sums(beside.last)

    def beside_loss(
        self, rows: Sequence[tuple[Row | Point, int]], left: tuple[int, int], *, together: bool
    ) -> int:
        """No less than is ever alive before that block runs forward (in ``rows``) or after it has run back.

        ``left``: see :meth:`left_by_loss`.  ``together``: inside layers it is a looser bound, sooner known.
        """
        sums, forward = self.numbers.sums, 0
        before, below = left
        if together:
            forward, back = map(sums, self.walk.inside_any)
        else:
            back = max(map(sums, self.walk.inside_each), default=0)
        below = max(below, before + back)
        for inside, top in self._tops(rows)[0].items():
            loose = forward if together and isinstance(inside, Layer) else self._loose(inside)
            below = max(below, top + loose)
        return below

    def _tops(self, rows: Iterable[tuple[Row | Point, int]]) -> tuple[dict[Inside, int], dict[Inside, int]]:
        """The most that is alive before any of alike layers; how many points the first such comes after."""
        numbers = self.numbers
        slopes: dict[Inside, int] = {}
        tops: dict[Inside, int] = {}
        orders: dict[Inside, int] = {}
        order = 0
        for row, beside in rows:
            live = numbers.bytes(row.live) + beside
            for inside, _, count in row.layers:
                if inside in slopes:
                    slope = slopes[inside]
                else:
                    slope = slopes[inside] = numbers.bytes(inside.slope)
                    tops[inside] = -1
                rise = slope * count
                top = live if count == 1 or slope <= 0 else live + rise - slope
                if top > tops[inside]:
                    tops[inside] = top
                    orders[inside] = order
                live += rise
                order += 1
        return tops, orders

    def _highest(self, rows: Iterable[tuple[Row | Point, int]], most: int, order: int) -> Highest:
        """The point that so many others are before, in the order of the rows."""
        for at, (row, _) in enumerate(rows):
            if order < len(row.layers):
                point = row.point(order)
                offset = point.count - 1 if self.numbers.bytes(point.inside.slope) > 0 else 0
                return Highest(most, at, point, offset, *self.top(point))
            order -= len(row.layers)
        raise IndexError(order)


class Measured:
    """A program's things in the numbers of a workload: as ``numbers``, as ``tensors``, along its walks.

    Runs that differ in what lies beside the walk look at the same.
    """

    __slots__ = ("_heights", "numbers", "tensors")

    def __init__(self, values: Iterable[int], *, whole: bool) -> None:
        self.numbers = Bytes(list(values), whole=whole)
        self.tensors = Contents(self.numbers)
        self._heights: dict[Walk, Heights] = {}

    def heights(self, walk: Walk) -> Heights:
        """How many bytes are alive at the points of a walk."""
        found = self._heights.get(walk)
        if found is None:
            found = self._heights[walk] = Heights(walk, self.numbers)
        return found


@lru_cache(maxsize=4)
def measured(program: Program, values: tuple[int, ...], *, whole: bool = False) -> Measured:
    """What ``program`` holds where its monomials have these ``values``; ``whole``: see :class:`Bytes`."""
    return Measured(values, whole=whole)
