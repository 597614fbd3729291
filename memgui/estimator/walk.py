"""One micro batch through a program: forward through stem, layers and tail, and back.

Live bytes are linear along a run of equal layers, so a run costs what one layer costs.  Every
amount is what is alive beyond the step's base (weights, states, inputs, gradients of earlier micro
batches).  A walk is a generator of :class:`Point` objects; what a point holds has to be asked for
before the walk goes on, and is worked out only then.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from memgui.estimator.backward import Back
from memgui.estimator.between import Between
from memgui.estimator.block import Block
from memgui.estimator.events import Events, Group, Pairs
from memgui.estimator.lifetimes import ALONE, Consumer, Role
from memgui.estimator.measure import Measure, N, Sorter
from memgui.estimator.outcome import Outcome
from memgui.estimator.points import Inside, Layer, Outside, Place, Point
from memgui.estimator.program import Kind, Program, Stack, Stretch
from memgui.estimator.roles import Roles
from memgui.estimator.search import bounds


class Walk(Between[N]):
    """Walks a program with a measure.

    ``accumulate``: gradients of weights exist already, or a ``consumer`` takes each.
    ``keep_outputs``: the model's result is referred to until the end of backward.  ``guide`` is the
    same walk over bytes, which says where in a layer the peak lies; without one all candidates
    are compared.  ``waiting``: how many micro batches have gone forward before, and not back yet.
    ``refers``: modules keep something of a micro batch until they run again; ``ran``: one ran before.
    """

    def __init__(
        self,
        program: Program,
        measure: Measure[N],
        *,
        accumulate: bool = False,
        keep_outputs: bool = False,
        consumer: Consumer | None = None,
        guide: Walk[int] | None = None,
        waiting: int = 0,
        refers: bool = False,
        ran: bool = False,
    ) -> None:
        super().__init__(program, measure, keep_outputs=keep_outputs, waiting=waiting, refers=refers, ran=ran)
        self.accumulate = accumulate
        self.consumer = consumer
        self.adds = self.brief = accumulate
        """whether a new gradient is added where it is made, and whether it is there for a moment only"""
        self.guide = guide
        self._ahead: dict[Kind, Layer[N]] = {}
        self._behind: dict[tuple[Kind, Roles, str], Layer[N]] = {}

    # -- forward ----------------------------------------------------------------------------------

    def forward(self) -> Iterator[Point[N]]:
        """The points of the forward pass."""
        m, tail = self.m, self.program.tail
        live = self.begun()
        for stack in self.program.stacks:
            frame, sort = stack.frame, stack.frame.sort_running
            live = m.add(live, m.group(frame.input, sort))
            yield Point(stack.frame_key, self, live, Outside(Place(frame.running), sort))
            live = m.add(live, m.end(frame.running, sort))
            live = m.add(live, m.group(frame.output, sort), -1)
            index = 0
            embedded = self._input_held(stack)
            for kind, count in _first_apart(stack.runs):
                if index == 1:
                    live = m.add(live, embedded)
                layer = self.ahead(kind)
                yield Point(stack.layer_key, self, live, layer, index, count)
                live = m.add(live, layer.slope, count)
                if kind.shared.things:
                    live = m.add(live, m.group(kind.shared, sort))
                index += count
            if index > 1 and not stack.holds_input_outside and not stack.leaf_lies:
                live = m.add(live, embedded, -1)
            # The stack returns: what it alone referred to dies.
            live = m.add(live, m.group(stack.locals, sort), -1)
        live = m.add(live, m.group(tail.input, tail.sort_running))
        live = m.add(live, self.beside_tail())
        yield Point("loss", self, live, Outside(Place(tail.running), tail.sort_running))

    def begun(self) -> N:
        """What is there as the forward pass begins."""
        live = self.in_flight()
        return self.m.add(live, self.all_referred()) if self.ran else live

    def beside_tail(self) -> N:
        """What is there beside the block after the layers, both ways."""
        return self.m.nothing()

    def _input_held(self, stack: Stack) -> N:
        """The first layer's input where only the model's code refers to it while further layers run."""
        first = stack.runs[0][0]
        stays = first.blocks[0].carried if not first.recomputed else not self.offloads
        if not stack.holds_input or stays:
            return self.m.nothing()
        return self.m.add(self.m.nothing(), self.m.group(stack.frame.output, stack.frame.sort_passing))

    def ahead(self, kind: Kind) -> Layer[N]:
        """A layer of ``kind`` on the way forward."""
        found = self._ahead.get(kind)
        if found is None:
            guide = None if self.guide is None else self.guide.ahead(kind)
            found = self._ahead[kind] = Layer(kind, None, self._left_forward(kind), guide)
        return found

    def behind(self, kind: Kind, roles: Roles, end: str = "") -> Layer[N]:
        """A layer of ``kind`` on the way back; ``end``: it is the first or last there, and they differ."""
        found = self._behind.get((kind, roles, end))
        if found is None:
            guide = None if self.guide is None else self.guide.behind(kind, roles, end)
            slope = self.m.add(self.left_back(kind, roles), self.kept(kind), -1)
            found = self._behind[kind, roles, end] = Layer(kind, roles, slope, guide, end)
        return found

    # -- inside -------------------------------------------------------------------------------------

    def amount(self, live: N, inside: Layer[N] | Outside) -> N:
        """What is alive at the peak of ``inside``, with ``live`` before it."""
        m = self.m
        if isinstance(inside, Outside):
            peak = m.peak(inside.place.events, inside.sort)
        else:
            peak = self._chosen(inside)[0] if inside.peak is None else inside.peak
        return m.add(m.copy(live), peak)

    def slope(self, inside: Layer[N] | Outside) -> N:
        """What it leaves behind; a block outside the layers occurs once."""
        return self.m.nothing() if isinstance(inside, Outside) else inside.slope

    def place(self, inside: Layer[N] | Outside) -> Place:
        """Where its peak lies."""
        return inside.place if isinstance(inside, Outside) else self.choice(inside)[1]

    def choice(self, layer: Layer[N]) -> tuple[int, Place]:
        """The number of the largest candidate inside a layer, and where it lies."""
        if layer.guide is not None and self.guide is not None:
            return self.guide.choice(layer.guide)
        return self._chosen(layer)[1] if layer.choice is None else layer.choice

    def _chosen(self, layer: Layer[N]) -> tuple[N, tuple[int, Place]]:
        """The largest of the amounts inside a layer, and which it is."""
        m, kind, roles = self.m, layer.kind, layer.roles
        inside = self.inside_forward(kind) if roles is None else self.inside_backward(kind, roles, layer.end)
        wanted = -1 if layer.guide is None else self.choice(layer)[0]
        best: tuple[N, tuple[int, Place]] | None = None
        for at, (place, sort, rel) in enumerate(inside):
            if at < wanted:
                continue
            amount = m.add(m.copy(rel), m.peak(place.events, sort, place.stop))
            if best is None or m.larger(amount, best[0]):
                best = amount, (at, place)
            if at == wanted:
                break
        assert best is not None
        layer.peak, layer.choice = best
        return best

    def bound(self, layer: Layer[N]) -> Iterator[Pairs]:
        """Their sum is no less than what is ever alive inside a layer beyond what was before."""
        return bounds(layer, self.consumer)

    def inside_forward(self, kind: Kind) -> Inside[N]:
        """The candidates for a layer's peak on the way forward."""
        m, passing = self.m, kind.recomputed
        first = kind.blocks[0]
        rel = m.add(m.nothing(), m.group(first.input, first.sort_input if passing else first.sort_running))
        for block in kind.blocks:
            events, sort = self._events(kind, block)
            if block is not first:
                rel = m.add(rel, m.group(block.input, sort))
            if self.ran and block.tape.referred and not block.tape.passing:
                yield Place(events, events.after(block.tape.forgets)), sort, rel
                rel = m.add(rel, m.group(block.behind, block.sort_pinned), -1)
            yield Place(events), sort, rel
            rel = m.add(rel, m.end(events, sort))
            rel = m.add(rel, m.group(block.output, sort), -1)
            if block is not first and (passing or not block.carried):
                rel = m.add(rel, m.group(block.input, sort), -1)

    def _events(self, kind: Kind, block: Block) -> tuple[Events, Sorter]:
        if kind.sparing:
            return kind.sparing[kind.blocks.index(block)].passing, block.sort_passing
        if kind.recomputed:
            return block.passing, block.sort_passing
        return block.running, block.sort_running

    def _left_forward(self, kind: Kind) -> N:
        """What a layer leaves behind while the forward pass goes on."""
        m = self.m
        left = m.add(m.nothing(), self.kept(kind))
        if self.ran:
            left = m.add(left, self.referred(kind), -1)
        for block in kind.blocks:
            copies = block.copies_passing if kind.recomputed else block.copies
            left = m.add(left, m.group(copies, block.sort_running))
            left = m.add(left, m.group(block.pinned, block.sort_pinned))
            left = m.add(left, m.group(block.cache, block.sort_running))
            if not self.program.options.tuples:
                left = m.add(left, m.group(block.replaced, block.sort_running), -1)
        return left

    # -- backward ---------------------------------------------------------------------------------

    def backward(self) -> Iterator[Point[N]]:
        """The points of the backward pass."""
        m, program = self.m, self.program
        live = self.turned()
        yield from self._tail_back(live)
        live = self._after_tail(live)
        for stack in reversed(program.stacks):
            index = sum(count for _, count in stack.runs)
            for (kind, roles, count), end in self.returning(stack):
                index -= count
                if not kind.differentiable:
                    continue
                layer = self.behind(kind, roles, end)
                yield Point(stack.layer_key, self, live, layer, index + count - 1, count, -1)
                live = m.add(live, layer.slope, count)
            frame = stack.frame
            live = m.add(live, m.group(stack.shared_kept, frame.sort_input), -1)
            if stack.leaf_is_input:
                live = m.add(live, m.group(stack.leaf, frame.sort_pinned))
            if frame.tape.out is None or not frame.tape.out.grad:
                continue
            back = frame.back(stack.role, accumulate=self.adds, consumer=self.consumer)
            sort = self.sort_back(frame)
            live = m.add(live, m.group(back.start_group, sort))
            yield self.stem_back(stack, back, live)
            live = m.add(live, m.end(back.events, sort))
            live = m.add(live, m.group(back.finish_group, sort), -1)

    def turned(self) -> N:
        """What is alive as the backward pass begins."""
        return self.after_forward()

    def returning(self, stack: Stack) -> Iterator[tuple[Stretch, str]]:
        """The layers of a stack in the order of backward, and which of its ends they are."""
        for stretch in stack.back:
            yield stretch, ""

    def stem_back(self, stack: Stack, back: Back, live: N) -> Point[N]:
        """The block before the layers, run back."""
        outside = Outside(Place(back.events, None, True), self.sort_back(stack.frame))
        return Point(stack.frame_key, self, live, outside)

    def sort_back(self, block: Block) -> Sorter:
        """To which component things in a backward belong."""
        return block.sort_adding if self.brief else block.sort_running

    def _tail_back(self, live: N) -> Iterator[Point[N]]:
        m, tail = self.m, self.program.tail
        back = tail.back(self.program.tail_role, accumulate=self.adds, consumer=self.consumer)
        sort = self.sort_back(tail)
        live = m.add(m.copy(live), m.group(back.start_group, sort))
        live = m.add(live, self.beside_tail())
        yield Point("loss", self, live, Outside(Place(back.events, None, True), sort))

    def _after_tail(self, live: N) -> N:
        """The loss and its gradient (4 bytes each) stay; what the tail kept has gone."""
        m, tail = self.m, self.program.tail
        back = tail.back(self.program.tail_role, accumulate=self.adds, consumer=self.consumer)
        sort = self.sort_back(tail)
        live = m.add(live, m.group(back.start_group, sort))
        live = m.add(live, m.end(back.events, sort))
        return m.add(live, m.group(back.finish_group, sort), -1)

    def inside_backward(self, kind: Kind, roles: Roles, end: str) -> Inside[N]:
        """The candidates for a layer's peak on the way back."""
        m, blocks = self.m, kind.blocks
        first, last = blocks[0], blocks[-1]
        rel = m.nothing()
        if kind.recomputed and self.offloads:  # its input is fetched
            rel = m.add(rel, m.group(first.input, first.sort_input))
        rel = m.add(rel, m.group(self.back(kind, roles, last).start_group, self.sort_back(last)))
        if kind.recomputed:
            rel = yield from self._again(kind, roles, rel)
        for block in reversed(blocks):
            back = self.back(kind, roles, block)
            sort = self._sort_again(kind, block) if kind.recomputed else self.sort_back(block)
            if block is not last:
                rel = m.add(rel, m.group(back.start_group, sort))
            yield Place(back.events, None, True), sort, rel
            rel = m.add(rel, m.end(back.events, sort))
            rel = m.add(rel, m.group(back.finish_group, sort), -1)

    def _again(self, kind: Kind, roles: Roles, rel: N) -> Generator[tuple[Place, Sorter, N], None, N]:
        """The layer runs forward again, up to the last tensor that is saved; returns what is alive then."""
        m, blocks = self.m, kind.blocks
        held = m.nothing()
        early = self.back(kind, roles, blocks[-1]).early()
        for group, times in zip(early, (1, -1), strict=True):
            rel = m.add(rel, m.group(group, self._sort_again(kind, blocks[-1])), times)
            held = m.add(held, m.group(group, self._sort_again(kind, blocks[-1])), times)
        for index, block in enumerate(blocks):
            sort = self._sort_again(kind, block)
            events, made = block.running, block.made
            if kind.sparing:
                events, made = kind.sparing[index].running, kind.sparing[index].made
            if index:
                rel = m.add(rel, m.group(block.input, sort))
            last = index == len(blocks) - 1
            stop = events.stop if last else None
            yield Place(events, stop), sort, rel
            rel = m.add(rel, m.group(made, sort))
            if kind.sparing:
                gone = kind.sparing[index].gone_early if last else kind.sparing[index].gone
                rel = m.add(rel, m.group(gone, sort), -1)
            if not last:
                for passing in (block.held, block.copies):
                    rel = m.add(rel, m.group(passing, sort))
                    held = m.add(held, m.group(passing, sort))
            if index and not block.carried:
                rel = m.add(rel, m.group(block.input, sort), -1)
        return m.add(rel, held, -1)

    def _sort_again(self, kind: Kind, block: Block) -> Sorter:
        """Computed again, it is a working set; what was kept through the checkpoint is not."""
        sort = block.sort_repeated if self.brief else block.sort_passing
        if not kind.sparing:
            return sort
        spared = kind.sparing[kind.blocks.index(block)].spared
        return lambda thing: "activations" if thing in spared else sort(thing)

    def back(self, kind: Kind, roles: Roles, block: Block) -> Back:
        """The backward of one of a layer's blocks."""
        return block.back(
            _role(kind, roles, block),
            accumulate=self.adds,
            keep_input=kind.recomputed and block is kind.blocks[0],
            repeated=kind.recomputed,
            consumer=self.consumer,
        )

    def left_back(self, kind: Kind, roles: Roles) -> N:
        """What a layer's backward leaves: gradients of its weights, and what waits for other layers."""
        m, left = self.m, self.m.nothing()
        for block in kind.blocks:
            outcome, sort = self.outcome(kind, roles, block), self.sort_back(block)
            left = m.add(left, m.group(self.left_on(outcome), sort))
            left = m.add(left, m.group(outcome.taken, sort), -1)
        return m.add(left, self.referred(kind, passing=True)) if self.refers else left

    def outcome(self, kind: Kind, roles: Roles, block: Block) -> Outcome:
        """What the backward of one of a layer's blocks leaves to others."""
        return block.outcome(_role(kind, roles, block), accumulate=self.adds)

    def left_on(self, outcome: Outcome) -> Group:
        """The gradients that a block's backward leaves."""
        return outcome.left


def _role(kind: Kind, roles: Roles, block: Block) -> Role:
    return roles[kind.blocks.index(block)] if roles else ALONE


def _first_apart(runs: list[tuple[Kind, int]]) -> list[tuple[Kind, int]]:
    """The runs with the first layer apart: after it the model's own reference to its input counts."""
    (kind, count), *rest = runs
    return [(kind, 1), (kind, count - 1), *rest] if count > 1 else [(kind, count), *rest]
