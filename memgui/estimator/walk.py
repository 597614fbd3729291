"""One micro batch through a program: forward through stem, layers and tail, and back.

Live bytes are linear along a run of equal layers, so a run costs what one layer costs.  Every stock is
what is alive beyond the step's base (weights, states, inputs, gradients of earlier micro batches).  A walk
is the same whatever the workload: who looks at its points counts bytes or things.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

from memgui.estimator.backward import Back
from memgui.estimator.between import Between
from memgui.estimator.block import Block
from memgui.estimator.events import Group, Pairs
from memgui.estimator.lifetimes import ALONE, Consumer, Role
from memgui.estimator.outcome import Outcome
from memgui.estimator.points import Layer, Outside, Place, Point, Spot
from memgui.estimator.program import Kind, Program, Stack, Stretch
from memgui.estimator.roles import Roles
from memgui.estimator.stock import NOTHING, Sorter, Stock


class Walk(Between):
    """Walks a program.

    ``accumulate``: gradients of weights exist already, or a ``consumer`` takes each.
    ``keep_outputs``: the model's result is referred to until the end of backward.  ``waiting``: how many
    micro batches have gone forward before, and not back yet.  ``refers``: modules keep something of a micro
    batch until they run again; ``ran``: one ran before.  ``traced``: each thing is followed from its birth to
    its death; else what a backward leaves is told without going through its events.
    """

    def __init__(
        self,
        program: Program,
        *,
        traced: bool = False,
        accumulate: bool = False,
        keep_outputs: bool = False,
        consumer: Consumer | None = None,
        waiting: int = 0,
        refers: bool = False,
        ran: bool = False,
    ) -> None:
        super().__init__(program, keep_outputs=keep_outputs, waiting=waiting, refers=refers, ran=ran)
        self.traced = traced
        self.accumulate = accumulate
        self.consumer = consumer
        self.adds = self.brief = accumulate
        """whether a new gradient is added where it is made, and whether it is there for a moment only"""
        self._ahead: dict[Kind, Layer] = {}
        self._behind: dict[tuple[Kind, Roles, str], Layer] = {}
        self._forward: tuple[Point, ...] = ()
        self._backward: tuple[Point, ...] = ()

    def forward(self) -> tuple[Point, ...]:
        """The points of the forward pass."""
        self._forward = self._forward or tuple(self._pass())
        return self._forward

    def backward(self) -> tuple[Point, ...]:
        """The points of the backward pass."""
        self._backward = self._backward or tuple(self._way_back())
        return self._backward

    # -- forward ----------------------------------------------------------------------------------

    def _pass(self) -> Iterator[Point]:
        tail = self.program.tail
        live = self.begun()
        for stack in self.program.stacks:
            frame, sort = stack.frame, stack.frame.sort_running
            live.add(frame.input, sort)
            yield Point(stack.frame_key, live, _run_forward(frame))
            live = Stock(live)
            live.happen(frame.running, sort)
            live.add(frame.output, sort, -1)
            index = 0
            embedded = self._input_held(stack)
            for kind, count in _first_apart(stack.runs):
                if index == 1:
                    live.include(embedded)
                layer = self.ahead(kind)
                yield Point(stack.layer_key, live, layer, index, count)
                live = Stock(live)
                live.include(layer.slope, count)
                live.add(kind.shared, sort)
                index += count
            if index > 1 and not stack.holds_input_outside and not stack.leaf_lies:
                live.include(embedded, -1)
            # The stack returns: what it alone referred to dies.
            live.add(stack.locals, sort, -1)
        live.add(tail.input, tail.sort_running)
        live.include(self.beside_tail())
        yield Point("loss", live, _run_forward(tail))

    def begun(self) -> Stock:
        """What is there as the forward pass begins."""
        live = self.in_flight()
        if self.ran:
            live.include(self.all_referred())
        return live

    def beside_tail(self) -> Stock:
        """What is there beside the block after the layers, both ways."""
        return NOTHING

    def _input_held(self, stack: Stack) -> Stock:
        """The first layer's input where only the model's code refers to it while further layers run."""
        first = stack.runs[0][0]
        held = Stock()
        stays = first.blocks[0].carried if not first.recomputed else not self.offloads
        if stack.holds_input and not stays:
            held.add(stack.frame.output, stack.frame.sort_passing)
        return held

    def ahead(self, kind: Kind) -> Layer:
        """A layer of ``kind`` on the way forward."""
        found = self._ahead.get(kind)
        if found is None:
            found = self._ahead[kind] = Layer(kind, None, self._left_forward(kind))
        return found

    def behind(self, kind: Kind, roles: Roles, end: str = "") -> Layer:
        """A layer of ``kind`` on the way back; ``end``: it is the first or last there, and they differ."""
        found = self._behind.get((kind, roles, end))
        if found is None:
            slope = self.left_back(kind, roles)
            slope.include(self.kept(kind), -1)
            found = self._behind[kind, roles, end] = Layer(kind, roles, slope, end)
        return found

    # -- inside -------------------------------------------------------------------------------------

    def spots(self, inside: Layer | Outside) -> tuple[Spot, ...]:
        """Where the peak inside may lie."""
        if not inside.spots:
            assert isinstance(inside, Layer)
            kind, roles = inside.kind, inside.roles
            found = (
                self.inside_forward(kind) if roles is None else self.inside_backward(kind, roles, inside.end)
            )
            inside.spots = tuple(found)
        return inside.spots

    def bounds(self, inside: Layer | Outside) -> Iterable[tuple[Stock, tuple[Pairs, ...]]]:
        """No more is ever alive inside than one of the stocks and what comes with it."""
        if isinstance(inside, Layer) and inside.roles is None:
            return self.bounds_forward(inside.kind)
        return [(spot.before, spot.most) for spot in self.spots(inside)]

    def bounds_forward(self, kind: Kind) -> list[tuple[Stock, tuple[Pairs, ...]]]:
        """Bounds on what is alive inside each block of a layer run forward, without going through events.

        Before a block there is no more than what those before it keep, hold or hand on, and their outputs.
        """
        found: list[tuple[Stock, tuple[Pairs, ...]]] = []
        before = Stock()
        before.add(kind.shared, kind.blocks[0].sort_running)
        for block in kind.blocks:
            sort = block.sort_running
            before.add(block.input, sort)
            found.append((before, (block.most_forward,)))
            before = Stock(before)
            held = (
                (block.held_passing, block.copies_passing)
                if kind.recomputed
                else (block.kept, block.returned, block.copies)
            )
            for group in (*held, block.pinned, block.cache, block.output):
                before.add(group, sort)
            for sparing in kind.sparing:
                before.add(sparing.kept, sort)
        return found

    def inside_forward(self, kind: Kind) -> Iterator[Spot]:
        """Where a layer's peak may lie on the way forward."""
        passing = kind.recomputed
        first = kind.blocks[0]
        rel = Stock()
        rel.add(first.input, first.sort_input if passing else first.sort_running)
        for index, block in enumerate(kind.blocks):
            sort: Sorter = block.sort_passing if passing else block.sort_running
            if kind.sparing:
                events = kind.sparing[index].passing
            else:
                events = block.passing if passing else block.running
            if index:
                rel.add(block.input, sort)
            most = (block.most_forward,)
            if self.ran and block.tape.referred and not block.tape.passing:
                yield Spot(rel, sort, partial(Place, events, events.after(block.tape.forgets)), most)
                rel = Stock(rel)
                rel.add(block.behind, block.sort_pinned, -1)
            yield Spot(rel, sort, partial(Place, events), most)
            rel = Stock(rel)
            rel.happen(events, sort)
            rel.add(block.output, sort, -1)
            if index and (passing or not block.carried):
                rel.add(block.input, sort, -1)

    def _left_forward(self, kind: Kind) -> Stock:
        """What a layer leaves behind while the forward pass goes on."""
        left = Stock()
        left.include(self.kept(kind))
        if self.ran:
            left.include(self.referred(kind), -1)
        for block in kind.blocks:
            left.add(block.copies_passing if kind.recomputed else block.copies, block.sort_running)
            left.add(block.pinned, block.sort_pinned)
            left.add(block.cache, block.sort_running)
            if not self.program.options.tuples:
                left.add(block.replaced, block.sort_running, -1)
        return left

    # -- backward ---------------------------------------------------------------------------------

    def _way_back(self) -> Iterator[Point]:
        program = self.program
        live = self.turned()
        yield self._tail_back(live)
        live = self._after_tail(live)
        for stack in reversed(program.stacks):
            index = sum(count for _, count in stack.runs)
            for (kind, roles, count), end in self.returning(stack):
                index -= count
                if not kind.differentiable:
                    continue
                layer = self.behind(kind, roles, end)
                yield Point(stack.layer_key, live, layer, index + count - 1, count, -1)
                live = Stock(live)
                live.include(layer.slope, count)
            frame = stack.frame
            live.add(stack.shared_kept, frame.sort_input, -1)
            if stack.leaf_is_input:
                live.add(stack.leaf, frame.sort_pinned)
            if frame.tape.out is None or not frame.tape.out.grad:
                continue
            sort = self.sort_back(frame)
            live.add(frame.start, sort)
            yield Point(stack.frame_key, *self.stem_back(stack, live))
            live = self._over(live, frame, stack.role, sort, self._outside_back(frame, stack.role))

    def turned(self) -> Stock:
        """What is alive as the backward pass begins."""
        return self.after_forward()

    def returning(self, stack: Stack) -> Iterator[tuple[Stretch, str]]:
        """The layers of a stack in the order of backward, and which of its ends they are."""
        for stretch in stack.back:
            yield stretch, ""

    def stem_back(self, stack: Stack, live: Stock) -> tuple[Stock, Outside]:
        """The block before the layers, run back, and what is alive before."""
        return live, self._back_outside(stack.frame, stack.role)

    def sort_back(self, block: Block) -> Sorter:
        """To which component things in a backward belong."""
        return block.sort_adding if self.brief else block.sort_running

    def _tail_back(self, live: Stock) -> Point:
        tail = self.program.tail
        live = Stock(live)
        live.add(tail.start, self.sort_back(tail))
        live.include(self.beside_tail())
        return Point("loss", live, self._back_outside(tail, self.program.tail_role))

    def _after_tail(self, live: Stock) -> Stock:
        """The loss and its gradient (4 bytes each) stay; what the tail kept has gone."""
        tail, role = self.program.tail, self.program.tail_role
        sort = self.sort_back(tail)
        live = Stock(live)
        live.add(tail.start, sort)
        return self._over(live, tail, role, sort, self._outside_back(tail, role))

    def _outside_back(self, block: Block, role: Role) -> partial[Back]:
        """What makes the backward of a block outside the layers."""
        return partial(_run_back, block, role, self.adds, False, False, self.consumer)

    def _back_outside(self, block: Block, role: Role) -> Outside:
        """A block outside the layers, run back."""
        back = self._outside_back(block, role)
        return Outside(self._spot_back(NOTHING, block, role, self.sort_back(block), back))

    def _over(
        self,
        live: Stock,
        block: Block,
        role: Role,
        sort: Sorter,
        back: partial[Back],
        *,
        repeated: bool = False,
    ) -> Stock:
        """What of ``live`` and of its own a block leaves that has run back, but for its input's gradient."""
        live = Stock(live)
        outcome = block.outcome(role, accumulate=self.adds)
        if self.traced or not outcome.whole:
            over = back()
            live.happen(over.events, sort)
            live.add(over.finish, sort, -1)
            return live
        live.add(outcome.left, sort)
        live.add(outcome.taken, sort, -1)
        live.add(block.freed(repeated=repeated), sort, -1)
        if not block.tape.final:
            live.add(block.start, sort, -1)
        return live

    def _spot_back(self, before: Stock, block: Block, role: Role, sort: Sorter, back: partial[Back]) -> Spot:
        """A block run back, with ``before`` there: its work, and gradients that begin to wait for others'."""
        most = [block.most_back(role)]
        if self.consumer is not None:
            work = self.consumer.work
            most.append(((sum([work.get(one, 0) for one in block.tape.parameters]), 0),))
        if role.starts:
            most.append(tuple([(one.coefficient, one.monomial) for one in role.starts.values()]))
        return Spot(before, sort, partial(_place_back, back), tuple(most))

    def inside_backward(self, kind: Kind, roles: Roles, end: str) -> Iterator[Spot]:
        """Where a layer's peak may lie on the way back."""
        blocks = kind.blocks
        first, last = blocks[0], blocks[-1]
        rel = Stock()
        if kind.recomputed and self.offloads:  # its input is fetched
            rel.add(first.input, first.sort_input)
        rel.add(last.start, self.sort_back(last))
        if kind.recomputed:
            again, rel = self._again(kind, roles, rel)
            yield from again
        for block in reversed(blocks):
            sort = self._sort_again(kind, block) if kind.recomputed else self.sort_back(block)
            if block is not last:
                rel.add(block.start, sort)
            role = role_of(kind, roles, block)
            back = self.back_of(kind, roles, block)
            yield self._spot_back(rel, block, role, sort, back)
            if block is first:
                break
            rel = self._over(rel, block, role, sort, back, repeated=kind.recomputed)

    def _again(self, kind: Kind, roles: Roles, rel: Stock) -> tuple[list[Spot], Stock]:
        """The layer runs forward again, up to the last tensor that is saved; what is alive then."""
        blocks = kind.blocks
        spots: list[Spot] = []
        held = Stock()
        born, gone = self.back_of(kind, roles, blocks[-1])().early()
        sort = self._sort_again(kind, blocks[-1])
        for passing in (rel, held):
            passing.add(born, sort)
            passing.add(gone, sort, -1)
        for index, block in enumerate(blocks):
            sort = self._sort_again(kind, block)
            events, made = block.running, block.made
            if kind.sparing:
                events, made = kind.sparing[index].running, kind.sparing[index].made
            if index:
                rel.add(block.input, sort)
            last = index == len(blocks) - 1
            stop = events.stop if last else None
            spots.append(Spot(rel, sort, partial(Place, events, stop), (block.most_forward,)))
            rel = Stock(rel)
            rel.add(made, sort)
            if kind.sparing:
                spared = kind.sparing[index]
                rel.add(spared.gone_early if last else spared.gone, sort, -1)
            if not last:
                for group in (block.held, block.copies):
                    rel.add(group, sort)
                    held.add(group, sort)
            if index and not block.carried:
                rel.add(block.input, sort, -1)
        rel.include(held, -1)
        return spots, rel

    def _sort_again(self, kind: Kind, block: Block) -> Sorter:
        """Computed again, it is a working set; what was kept through the checkpoint is not."""
        sort = block.sort_repeated if self.brief else block.sort_passing
        if not kind.sparing:
            return sort
        spared = kind.sparing[kind.blocks.index(block)].spared
        return lambda thing: "activations" if thing in spared else sort(thing)

    def back_of(self, kind: Kind, roles: Roles, block: Block) -> partial[Back]:
        """What makes the backward of one of a layer's blocks."""
        keep_input = kind.recomputed and block is kind.blocks[0]
        role = role_of(kind, roles, block)
        return partial(_run_back, block, role, self.adds, keep_input, kind.recomputed, self.consumer)

    def left_back(self, kind: Kind, roles: Roles) -> Stock:
        """What a layer's backward leaves: gradients of its weights, and what waits for other layers."""
        left = Stock()
        for block in kind.blocks:
            outcome, sort = self.outcome(kind, roles, block), self.sort_back(block)
            left.add(self.left_on(outcome), sort)
            left.add(outcome.taken, sort, -1)
        if self.refers:
            left.include(self.referred(kind, passing=True))
        return left

    def outcome(self, kind: Kind, roles: Roles, block: Block) -> Outcome:
        """What the backward of one of a layer's blocks leaves to others."""
        return block.outcome(role_of(kind, roles, block), accumulate=self.adds)

    def left_on(self, outcome: Outcome) -> Group:
        """The gradients that a block's backward leaves."""
        return outcome.left


def role_of(kind: Kind, roles: Roles, block: Block) -> Role:
    """The role of one of a layer's blocks."""
    return roles[kind.blocks.index(block)] if roles else ALONE


def _run_forward(block: Block) -> Outside:
    """A block outside the layers, run forward."""
    return Outside(Spot(NOTHING, block.sort_running, partial(_place, block), (block.most_forward,)))


def _place(block: Block) -> Place:
    return Place(block.running)


def _run_back(
    block: Block, role: Role, accumulate: bool, keep_input: bool, repeated: bool, consumer: Consumer | None
) -> Back:
    return block.back(
        role, accumulate=accumulate, keep_input=keep_input, repeated=repeated, consumer=consumer
    )


def _place_back(back: partial[Back]) -> Place:
    return Place(back().events, None, True)


def _first_apart(runs: list[tuple[Kind, int]]) -> list[tuple[Kind, int]]:
    """The runs with the first layer apart: after it the model's own reference to its input counts."""
    (kind, count), *rest = runs
    return [(kind, 1), (kind, count - 1), *rest] if count > 1 else [(kind, count), *rest]


@lru_cache(maxsize=64)
def walk_of(
    program: Program,
    accumulate: bool = False,
    keep_outputs: bool = False,
    consumer: Consumer | None = None,
    waiting: int = 0,
    refers: bool = False,
    ran: bool = False,
    traced: bool = False,
) -> Walk:
    """The walk through a program, which is the same for every workload."""
    return Walk(
        program,
        accumulate=accumulate,
        keep_outputs=keep_outputs,
        consumer=consumer,
        waiting=waiting,
        refers=refers,
        ran=ran,
        traced=traced,
    )
