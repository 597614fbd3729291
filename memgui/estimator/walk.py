"""One micro batch through a program: forward through stem, layers and tail, and back.

Live bytes are linear along a run of equal layers, so a run costs what one layer costs.  Every stock is
what is alive beyond the step's base (weights, states, inputs, gradients of earlier micro batches).  A walk
is the same whatever the workload: who looks at its points counts bytes or things.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from memgui.estimator.block import Block
from memgui.estimator.bounds import born_in_any
from memgui.estimator.events import NONE, Group, Pairs, group
from memgui.estimator.inside import Inside, role_of
from memgui.estimator.lifetimes import ALONE, Consumer, Role, alive_forward
from memgui.estimator.once import once
from memgui.estimator.outcome import Outcome
from memgui.estimator.points import Beside, Layer, Outside, Place, Point, Row, Spot
from memgui.estimator.program import Program
from memgui.estimator.roles import Roles
from memgui.estimator.skyline import Way
from memgui.estimator.stacks import Kind, Stack, Stretch
from memgui.estimator.stock import NOTHING, Stock


class Walk(Inside):
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
        self._ahead: dict[Kind, Layer] = {}
        self._behind: dict[tuple[Kind, Roles, str], Layer] = {}

    @once
    def way_forward(self) -> Way:
        """The forward pass."""
        return Way(self._pass())

    @once
    def way_backward(self) -> Way:
        """The backward pass."""
        return Way(self._way_back())

    def forward(self) -> tuple[Point, ...]:
        """The points of the forward pass."""
        return self.way_forward.points

    def backward(self) -> tuple[Point, ...]:
        """The points of the backward pass."""
        return self.way_backward.points

    # -- forward ----------------------------------------------------------------------------------

    def _pass(self) -> Iterator[Point | Row]:
        tail = self.program.tail
        live = self.begun()
        for stack in self.program.stacks:
            frame, sort = stack.frame, stack.frame.sort_running
            live.add(frame.input, sort)
            yield Point(stack.frame_key, live, _run_forward(frame))
            live = Stock(live)
            live.exchange(frame.left_running, sort)
            live.add(frame.output, sort, -1)
            index = 0
            embedded = self._input_held(stack)
            row = Row(stack.layer_key, live, [])
            trailing = NONE
            ahead = self._ahead
            for kind, count in _first_apart(stack.runs, all_of_them=stack.trails):
                if trailing.alike:  # of the layer before, until this one returns
                    if row.layers:
                        yield row
                        live = row.after()
                    live.add(trailing, stack.frame.sort_passing)
                    row = Row(stack.layer_key, live, [])
                row.layers.append((ahead.get(kind) or self.ahead(kind), index, count))
                index += count
                held = index == 1 and embedded.entries
                if held or kind.shared.alike or trailing.alike:
                    yield row
                    live = row.after()
                    live.add(trailing, stack.frame.sort_passing, -1)
                    live.add(kind.shared, sort)
                    if held:
                        live.include(embedded)
                    row = Row(stack.layer_key, live, [])
                trailing = kind.trailing if stack.trails else NONE
            if row.layers:
                yield row
                live = row.after()
            if not stack.holds_input_outside and not stack.leaf_lies:
                live.include(embedded, -1)
            # The stack returns: what it alone referred to dies.
            live.add(stack.locals, sort, -1)
            live.add(stack.passed_last, stack.frame.sort_input, -1)
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
        """The first layer's input where only the model's code refers to it while further layers run.

        With it what each layer passes on to the next one.
        """
        first = stack.runs[0][0]
        held = Stock()
        stays = first.blocks[0].carried if not first.recomputed else not self.offloads
        if stack.holds_input and not stays:
            held.add(stack.frame.output, stack.frame.sort_passing)
        held.add(stack.passed_forward, stack.frame.sort_passing)
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

    def _left_forward(self, kind: Kind) -> Stock:
        """What a layer leaves behind while the forward pass goes on."""
        left = Stock()
        left.include(self.kept(kind))
        if self.ran:
            left.include(self.referred(kind), -1)
        for block in kind.blocks:
            tape = block.tape
            if tape.cast_cache:
                left.add(block.copies_passing if kind.recomputed else block.copies, block.sort_running)
            if tape.pinned:
                left.add(block.pinned, block.sort_pinned)
            if tape.cached:
                left.add(block.cache, block.sort_running)
            if tape.replaced and not self.program.options.tuples:
                left.add(block.replaced, block.sort_running, -1)
        return left

    # -- backward ---------------------------------------------------------------------------------

    @once
    def loss_back(self) -> Point:
        """The block after the layers, run back."""
        return self._tail_back(self._turned)

    @once
    def after_loss(self) -> Stock:
        """What is alive when it has."""
        return self._after_tail(self._turned)

    @once
    def _turned(self) -> Stock:
        return self.turned()

    @once
    def beside_loss(self) -> Beside | None:
        """What bounds the rest of the backward pass, but for layers' insides; nothing where that is hard."""
        program = self.program
        if self.consumer is not None or self.refers or any(kind.recomputed for kind in program.kinds):
            return None
        there = program.tail_role.starts.values()
        buffers = [one for one in program.cast.buffers if one not in there]
        waiting = [group(buffers).pairs]
        for stack in program.stacks:
            frame = stack.frame
            waiting += frame.starting, stack.leaf.pairs, stack.results_kept.pairs
            if stack is not program.stacks[0]:
                waiting += frame.most_left
        return Beside(tuple(waiting), (program.stacks[0].frame.most_back_in_any,))

    @once
    def inside_each(self) -> tuple[tuple[Pairs, ...], ...]:
        """What each kind of layers, and each block between stacks, allocates at most as it runs back."""
        frames = [stack.frame for stack in self.program.stacks[1:]]
        found: list[tuple[Pairs, ...]] = [(frame.most_back_in_any,) for frame in frames]
        for kind in self.program.kinds:
            blocks = kind.blocks
            found.append((*[one.starting for one in blocks], *[one.most_back_in_any for one in blocks]))
        return tuple(found)

    @once
    def inside_any(self) -> tuple[tuple[Pairs, ...], tuple[Pairs, ...]]:
        """What any of them allocates at most, forward and back: sooner known, and looser."""
        kinds = self.program.kinds
        blocks = dict.fromkeys([block.like or block for kind in kinds for block in kind.blocks])
        frames = [stack.frame for stack in self.program.stacks[1:]]
        forward, back = born_in_any([block.tape for block in (*frames, *blocks)])
        shared = [kind.shared.pairs for kind in kinds]
        entering, starting = [one.entering for one in blocks], [one.starting for one in blocks]
        return (forward, *shared, *entering), (back, *starting)

    def _way_back(self) -> Iterator[Point | Row]:
        program, behind = self.program, self._behind
        yield self.loss_back
        live = self.after_loss
        for stack in reversed(program.stacks):
            last = sum([kind.count for kind in stack.kinds]) - 1
            again = dict(stack.made_again)
            row = Row(stack.layer_key, live, [], -1)
            early = [*stack.going_early]
            passed = stack.passed_last
            for (kind, roles, count), end in self.returning(stack):
                changes: list[tuple[Group, int]] = []
                while early and last < early[0][0]:
                    changes.append((early.pop(0)[1], -1))
                if kind in again:
                    changes.append((again.pop(kind), -1))
                if passed.alike and kind.recomputed and kind.passed.things != passed.things:
                    changes += (passed, 1), (kind.passed, -1)  # what the later layer kept came from this one
                    passed = kind.passed
                if changes:
                    if row.layers:
                        yield row
                    live = row.after()
                    for one, times in changes:
                        live.add(one, stack.frame.sort_input, times)
                    row = Row(stack.layer_key, live, [], -1)
                if kind.out.grad:
                    layer = behind.get((kind, roles, end)) or self.behind(kind, roles, end)
                    row.layers.append((layer, last, count))
                last -= count
            if row.layers:
                yield row
                live = row.after()
            frame = stack.frame
            if self.refers:
                for kind in stack.kinds:
                    live.include(self.referred(kind, passing=True), -kind.count)
                    live.include(self.referred(kind), kind.count)
            live.add(stack.shared_last, frame.sort_input, -1)
            if self.keep_outputs:
                live.add(stack.results_kept, frame.sort_input)
            live.add(passed, frame.sort_input)
            for kind, made in stack.made_again.items():
                if kind not in again:
                    live.add(made, frame.sort_input)
            if stack.leaf_is_input:
                live.add(stack.leaf, frame.sort_pinned)
            if frame.tape.out is None or not frame.tape.out.grad:
                continue
            sort = self.sort_back(frame)
            live.add(frame.start, sort)
            yield Point(stack.frame_key, *self.stem_back(stack, live))
            if stack is not program.stacks[0]:  # nothing comes after the first one's
                live = self._over(live, frame, program.back[stack][1], sort)

    def turned(self) -> Stock:
        """What is alive as the backward pass begins."""
        return self.after_forward()

    def returning(self, stack: Stack) -> Iterator[tuple[Stretch, str]]:
        """The layers of a stack in the order of backward, and which of its ends they are."""
        for stretch in self.program.back[stack][0]:
            yield stretch, ""

    def stem_back(self, stack: Stack, live: Stock) -> tuple[Stock, Outside]:
        """The block before the layers, run back, and what is alive before."""
        return live, self._back_outside(stack.frame, self.program.back[stack][1])

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
        return self._over(live, tail, role, sort)

    def _back_outside(self, block: Block, role: Role) -> Outside:
        """A block outside the layers, run back."""
        return Outside(self._spot_back(NOTHING, block, role, self.sort_back(block)))

    def left_back(self, kind: Kind, roles: Roles) -> Stock:
        """What a layer's backward leaves: gradients of its weights, and what waits for other layers."""
        left = Stock()
        for block in kind.blocks:
            role, sort = role_of(kind, roles, block), self.sort_back(block)
            outcome = self.outcome(block, role)
            left.add(self.left_on(outcome), sort)
            if role is not ALONE:
                left.add(outcome.waiting, sort)
                left.add(outcome.taken, sort, -1)
            if block.tape.handed_out and not kind.recomputed:
                left.add(block.last_used, sort, -1)
            if self.consumer is not None:
                left.add(self.made(block, role), sort)
            if self.keep_outputs and block.tape.cached and self.gives_cache:
                left.add(block.cache_kept, block.sort_running)
        if self.refers:
            left.include(self.referred(kind, passing=True))
        return left

    def left_on(self, outcome: Outcome) -> Group:
        """The gradients that a block's backward leaves on weights."""
        return outcome.left


def _run_forward(block: Block) -> Outside:
    """A block outside the layers, run forward."""
    spot = Spot(NOTHING, block.sort_running, partial(_place, block), (block.most_forward,))
    return Outside(spot, None if block.tape.folded else partial(alive_forward, block.tape, block.saved))


def _place(block: Block) -> Place:
    return Place(block.running)


def _first_apart(runs: list[tuple[Kind, int]], *, all_of_them: bool = False) -> list[tuple[Kind, int]]:
    """The runs with the first layer apart: after it the model's own reference to its input counts.

    ``all_of_them``: so the first layer of each run, which another one comes before.
    """
    if all_of_them:
        return [one for run in runs for one in _first_apart([run])]
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
