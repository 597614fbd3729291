"""A micro batch through a program whose weights FSDP2 gathers unit by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from memgui.estimator.events import NONE, Group, Pairs
from memgui.estimator.inside import role_of
from memgui.estimator.once import once
from memgui.estimator.outcome import Outcome
from memgui.estimator.points import Beside, Layer, Outside, Place, Spot
from memgui.estimator.program import Program
from memgui.estimator.roles import Roles
from memgui.estimator.stacks import Kind, Stack, Stretch
from memgui.estimator.stock import NOTHING, Sorter, Stock
from memgui.estimator.units import Unit, Units
from memgui.estimator.walk import Walk

FIRST, LAST, ONLY = "first", "last", "only"


class UnitWalk(Walk):
    """Adds what is gathered and reduced: a full gradient waits for the reduction of its unit.

    ``reduced``: shards of gradients exist already, which new ones are added to.
    """

    def __init__(
        self,
        program: Program,
        units: Units,
        *,
        accumulate: bool = False,
        reduced: bool = False,
        keep_outputs: bool = False,
        refers: bool = False,
        ran: bool = False,
        traced: bool = False,
    ) -> None:
        super().__init__(
            program, accumulate=accumulate, keep_outputs=keep_outputs, refers=refers, ran=ran, traced=traced
        )
        self.units = units
        self.reduced = reduced
        self.adds = accumulate and units.adds
        self.brief = True
        self.reduces = accumulate or not units.wait
        """whether gradients are reduced: further micro batches end with the last one"""

    def begun(self) -> Stock:
        live, root = super().begun(), self.units.root
        live.add(root.gathered, root.sort)
        return live

    def beside_tail(self) -> Stock:
        """The last layer's buffer: not gone yet in forward, fetched ahead in backward."""
        unit = self.units.of(self.program.stacks[-1].runs[-1][0])
        live = Stock(super().beside_tail())
        live.add(unit.buffer, unit.sort)
        return live

    def inside_forward(self, kind: Kind) -> Iterator[Spot]:
        """The layer is gathered while the buffer of the unit before is there, which its own follows."""
        unit, first = self.units.of(kind), kind.blocks[0]
        rel = Stock()
        rel.add(first.input, first.sort_input if kind.recomputed else first.sort_running)
        rel.add(unit.buffer, unit.sort)
        most = unit.buffer.pairs, unit.gathered.pairs
        yield Spot(rel, unit.sort, partial(Place, unit.gathering), most)
        there = Stock()
        there.add(unit.buffer, unit.sort)
        there.add(unit.gathered, unit.sort)
        for spot in super().inside_forward(kind):
            yield spot.beside(there)

    def loose(self, layer: Layer) -> tuple[Pairs, ...]:
        if layer.roles is not None:
            return ()
        unit = self.units.of(layer.kind)
        return (*super().loose(layer), unit.gathered.pairs, unit.buffer.pairs, unit.buffer.pairs)

    def bounds_forward(self, kind: Kind) -> list[tuple[Stock, tuple[Pairs, ...]]]:
        unit = self.units.of(kind)
        there = Stock()
        there.add(unit.gathered, unit.sort)
        there.add(unit.buffer, unit.sort, 2)
        found: list[tuple[Stock, tuple[Pairs, ...]]] = []
        for before, most in super().bounds_forward(kind):
            before = Stock(before)
            before.include(there)
            found.append((before, most))
        return found

    def kept(self, kind: Kind) -> Stock:
        kept = super().kept(kind)
        if self.units.again:
            return kept
        unit = self.units.of(kind)
        kept = Stock(kept)
        kept.add(unit.gathered, unit.sort)
        return kept

    def after_forward(self) -> Stock:
        live, root = super().after_forward(), self.units.root
        if not self.units.again:
            live.add(root.gathered, root.sort)
        return live

    def turned(self) -> Stock:
        live, root = super().turned(), self.units.root
        if self.units.again:
            live.add(root.gathered, root.sort)
        return live

    def returning(self, stack: Stack) -> Iterator[tuple[Stretch, str]]:
        """The very first and the very last layer are apart."""
        stacks, runs = self.program.stacks, [*self.program.back[stack][0]]
        begins, ends = stack is stacks[-1], stack is stacks[0]
        kind, roles, layers = runs[0]
        if begins and layers > 1:
            runs[:1] = [(kind, roles, 1), (kind, roles, layers - 1)]
        kind, roles, layers = runs[-1]
        if ends and layers > 1:
            runs[-1:] = [(kind, roles, layers - 1), (kind, roles, 1)]
        for index, run in enumerate(runs):
            first, last = begins and not index, ends and index == len(runs) - 1
            yield run, (ONLY if last else FIRST) if first else LAST if last else ""

    def inside_backward(self, kind: Kind, roles: Roles, end: str) -> Iterator[Spot]:
        """Beside the layer's weights there are those fetched ahead and the reduction of the unit before.

        After the first layer its own gradients are reduced, when nothing else of it is there.
        """
        unit = self.units.of(kind)
        there = Stock()
        if self.units.again:
            there.add(unit.gathered, unit.sort)
            if end not in (LAST, ONLY):
                there.add(unit.buffer, unit.sort)
        if self.reduces and end not in (FIRST, ONLY):
            there.add(unit.reduced, unit.sort)
        for spot in super().inside_backward(kind, roles, end):
            yield spot.beside(there)
        if self.reduces and end in (FIRST, ONLY):
            yield self._reduced_first(kind, roles, there)

    def _reduced_first(self, kind: Kind, roles: Roles, there: Stock) -> Spot:
        unit, first = self.units.of(kind), kind.blocks[0]
        rel = Stock(there)
        rel.add(unit.gathered, unit.sort, -1)
        rel.include(super().kept(kind), -1)
        if self.refers:
            rel.include(self.referred(kind, passing=True))
        for block in kind.blocks:
            outcome, sort = self.outcome(block, role_of(kind, roles, block)), self.sort_back(block)
            if not self.units.wait:
                rel.add(outcome.left, sort)
            rel.add(outcome.waiting, sort)
            rel.add(outcome.taken, sort, -1)
        rel.add(self.back(first, role_of(kind, roles, first), kind).finish, self.sort_back(first))
        return Spot(rel, unit.sort, partial(Place, unit.reducing), (unit.reduced.pairs,))

    def stem_back(self, stack: Stack, live: Stock) -> tuple[Stock, Outside]:
        """The root's gradients are reduced after those of the first stack's first layer."""
        before, outside = super().stem_back(stack, live)
        if not self.reduces:
            return before, outside
        root, first = self.units.root, self.units.of(stack.runs[0][0])
        before = Stock(before)
        before.add(first.reduced, first.sort)
        (spot,) = outside.spots
        sort = spot.sort
        either: Sorter = lambda thing: "gradients" if thing in root.own else sort(thing)  # noqa: E731
        place, most = spot.place, spot.most
        if stack is self.program.stacks[0]:
            place = partial(_then_reduced, place, self.units, first)
            most = (*most, root.reduced.pairs)
        return before, Outside(Spot(NOTHING, either, place, most))

    @once
    def beside_loss(self) -> Beside | None:
        return None

    def left_on(self, outcome: Outcome) -> Group:
        return NONE

    def left_back(self, kind: Kind, roles: Roles) -> Stock:
        left = super().left_back(kind, roles)
        unit = self.units.of(kind)
        if self.units.wait:
            left.add(unit.whole, unit.sort, -1 if self.reduces else 1)
        if self.reduces and not self.reduced:
            left.add(unit.shards, unit.sort)
        return left


def _then_reduced(place: Callable[[], Place], units: Units, first: Unit) -> Place:
    """The root's gradients are reduced once those of ``first`` have been."""
    return place()._replace(events=units.last(place().events, first))


@lru_cache(maxsize=64)
def unit_walk_of(
    program: Program,
    units: Units,
    accumulate: bool,
    reduced: bool,
    keep_outputs: bool,
    refers: bool,
    ran: bool,
    traced: bool,
) -> UnitWalk:
    """The walk through a program by units, which is the same for every workload."""
    return UnitWalk(
        program,
        units,
        accumulate=accumulate,
        reduced=reduced,
        keep_outputs=keep_outputs,
        refers=refers,
        ran=ran,
        traced=traced,
    )
