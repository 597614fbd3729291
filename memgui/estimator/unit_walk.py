"""A micro batch through a program whose weights FSDP2 gathers unit by unit."""

from __future__ import annotations

from collections.abc import Iterator

from memgui.estimator.backward import Back
from memgui.estimator.events import Group, Pairs
from memgui.estimator.measure import Measure, N, Sorter
from memgui.estimator.outcome import Outcome
from memgui.estimator.points import Inside, Layer, Outside, Place, Point
from memgui.estimator.program import Kind, Program, Stack, Stretch
from memgui.estimator.roles import Roles
from memgui.estimator.units import Units
from memgui.estimator.walk import Walk

FIRST, LAST, ONLY = "first", "last", "only"


class UnitWalk(Walk[N]):
    """Adds what is gathered and reduced: a full gradient waits for the reduction of its unit."""

    def __init__(
        self,
        program: Program,
        measure: Measure[N],
        units: Units,
        *,
        accumulate: bool = False,
        keep_outputs: bool = False,
        guide: Walk[int] | None = None,
        refers: bool = False,
        ran: bool = False,
    ) -> None:
        super().__init__(
            program,
            measure,
            accumulate=accumulate,
            keep_outputs=keep_outputs,
            guide=guide,
            refers=refers,
            ran=ran,
        )
        self.units = units
        self.adds = False
        self.brief = True

    def begun(self) -> N:
        root = self.units.root
        return self.m.add(super().begun(), self.m.group(root.gathered, root.sort))

    def beside_tail(self) -> N:
        """The last layer's buffer: not gone yet in forward, fetched ahead in backward."""
        unit = self.units.of(self.program.stacks[-1].runs[-1][0])
        return self.m.add(super().beside_tail(), self.m.group(unit.buffer, unit.sort))

    def inside_forward(self, kind: Kind) -> Inside[N]:
        """The layer is gathered while the buffer of the unit before is there, which its own follows."""
        m, unit, first = self.m, self.units.of(kind), kind.blocks[0]
        sort = first.sort_input if kind.recomputed else first.sort_running
        rel = m.add(m.nothing(), m.group(first.input, sort))
        rel = m.add(rel, m.group(unit.buffer, unit.sort))
        yield Place(unit.gathering), unit.sort, rel
        there = m.add(m.nothing(), m.group(unit.buffer, unit.sort))
        there = m.add(there, m.group(unit.gathered, unit.sort))
        for place, sorter, amount in super().inside_forward(kind):
            yield place, sorter, m.add(m.copy(amount), there)

    def bound(self, layer: Layer[N]) -> Iterator[Pairs]:
        unit = self.units.of(layer.kind)
        both = unit.reduced if layer.roles is not None else unit.buffer
        yield from (unit.gathered.pairs, unit.buffer.pairs, both.pairs, both.pairs)
        yield from super().bound(layer)

    def kept(self, kind: Kind) -> N:
        kept = super().kept(kind)
        if self.units.again:
            return kept
        unit = self.units.of(kind)
        return self.m.add(self.m.copy(kept), self.m.group(unit.gathered, unit.sort))

    def after_forward(self) -> N:
        live, root = super().after_forward(), self.units.root
        return live if self.units.again else self.m.add(live, self.m.group(root.gathered, root.sort))

    def turned(self) -> N:
        live, root = super().turned(), self.units.root
        return self.m.add(live, self.m.group(root.gathered, root.sort)) if self.units.again else live

    def returning(self, stack: Stack) -> Iterator[tuple[Stretch, str]]:
        """The very first and the very last layer are apart."""
        stacks, runs = self.program.stacks, [*stack.back]
        begins, ends = stack is stacks[-1], stack is stacks[0]
        if begins and runs[0].layers > 1:
            runs[:1] = [runs[0]._replace(layers=1), runs[0]._replace(layers=runs[0].layers - 1)]
        if ends and runs[-1].layers > 1:
            runs[-1:] = [runs[-1]._replace(layers=runs[-1].layers - 1), runs[-1]._replace(layers=1)]
        for index, run in enumerate(runs):
            first, last = begins and not index, ends and index == len(runs) - 1
            yield run, (ONLY if last else FIRST) if first else LAST if last else ""

    def inside_backward(self, kind: Kind, roles: Roles, end: str) -> Inside[N]:
        """Beside the layer's weights there are those fetched ahead and the reduction of the unit before.

        After the first layer its own gradients are reduced, when nothing else of it is there.
        """
        m, unit = self.m, self.units.of(kind)
        there = m.nothing()
        if self.units.again:
            there = m.add(there, m.group(unit.gathered, unit.sort))
            if end not in (LAST, ONLY):
                there = m.add(there, m.group(unit.buffer, unit.sort))
        if end not in (FIRST, ONLY):
            there = m.add(there, m.group(unit.reduced, unit.sort))
        for place, sort, rel in super().inside_backward(kind, roles, end):
            yield place, sort, m.add(m.copy(rel), there)
        if end in (FIRST, ONLY):
            yield from self._reduced_first(kind, roles, there)

    def _reduced_first(self, kind: Kind, roles: Roles, there: N) -> Inside[N]:
        m, unit, first = self.m, self.units.of(kind), kind.blocks[0]
        rel = m.add(m.copy(there), m.group(unit.gathered, unit.sort), -1)
        rel = m.add(rel, super().kept(kind), -1)
        if self.refers:
            rel = m.add(rel, self.referred(kind, passing=True))
        for block in kind.blocks:
            outcome, sort = self.outcome(kind, roles, block), self.sort_back(block)
            rel = m.add(rel, m.group(outcome.left, sort))
            rel = m.add(rel, m.group(outcome.taken, sort), -1)
        rel = m.add(rel, m.group(self.back(kind, roles, first).finish_group, self.sort_back(first)))
        yield Place(unit.reducing), unit.sort, rel

    def stem_back(self, stack: Stack, back: Back, live: N) -> Point[N]:
        """The root's gradients are reduced after those of the first stack's first layer."""
        m, root, sort = self.m, self.units.root, self.sort_back(stack.frame)
        first = self.units.of(stack.runs[0][0])
        live = m.add(m.copy(live), m.group(first.reduced, first.sort))
        events = self.units.last(back.events, first) if stack is self.program.stacks[0] else back.events
        either: Sorter = lambda thing: "gradients" if thing in root.own else sort(thing)  # noqa: E731
        return Point(stack.frame_key, self, live, Outside(Place(events, None, True), either))

    def left_on(self, outcome: Outcome) -> Group:
        return outcome.waiting

    def left_back(self, kind: Kind, roles: Roles) -> N:
        left = super().left_back(kind, roles)
        unit = self.units.of(kind)
        return left if self.accumulate else self.m.add(left, self.m.group(unit.shards, unit.sort))
