"""One training step after another: what is alive at each moment, and where the peak is.

The first step has no optimizer state before its end; every later one (the steady step) has.  With
gradient accumulation the second micro batch stands for all further ones: gradients exist while it
runs.  So the peak lies in the steady step's last kind of micro batch, or at its optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial

from memgui.estimator.account import account
from memgui.estimator.assumed import assumed
from memgui.estimator.between import referring
from memgui.estimator.keeping import keeping_of
from memgui.estimator.layout import layout_of
from memgui.estimator.loading import Loaded, base_of, loaded
from memgui.estimator.moments import FURTHER, STEADY, Amount, Overhead, amount_of
from memgui.estimator.once import once
from memgui.estimator.overhead import MOST_EXCESS, block_bytes
from memgui.estimator.program import Program
from memgui.estimator.quantisation import base_scheme
from memgui.estimator.result import Moment
from memgui.estimator.run import Floor, Found, Held, Run, batch_input, monomial_values, operator_at
from memgui.estimator.search import Heights, Highest, measured
from memgui.estimator.steps import steps
from memgui.estimator.stock import NOTHING, Stock
from memgui.estimator.symbols import TRAINING
from memgui.estimator.walk import Walk, walk_of
from memgui.spec.messages import Message
from memgui.spec.scenario import Scenario

_NOTHING = Amount({}, 0)


def _in_blocks(amount: Amount) -> int:
    return amount.bytes + amount.excess


class TrainingRun(Run):
    """A training scenario's program with its workload put in.

    ``whole``: what kernels allocate themselves counts, as in the allocator's own counter.  ``held`` is
    the program of all that the rank has, where ``program`` is a chunk of it; ``waiting`` micro batches
    are in the rank beside the one that runs, ``unused_buffers`` lie ready to receive further ones in.
    """

    def __init__(
        self,
        scenario: Scenario,
        program: Program,
        *,
        whole: bool = True,
        held: Program | None = None,
        waiting: int = 0,
        unused_buffers: int = 0,
    ) -> None:
        self.scenario = scenario
        self.program = program
        self.waiting = waiting
        training = scenario.training
        layout = layout_of(scenario)
        keeping = keeping_of(scenario, layout)
        scheme = base_scheme(scenario)
        self.account = account(held or program, keeping, scheme)
        a = self.account
        self.arrive_whole = held is None and not layout.shares_weights
        """whether weights come to the device as they are, one after the other"""
        beside = a.buckets, a.lasting, a.running, a.returning, a.whole, a.saving
        self.played = held in (None, program) and not any(heap.things for heap in beside)
        """whether nothing lies beside what the walk and the lists of weights, gradients and states tell"""
        sharing = layout.fsdp and not self.account.adds
        self.units = None
        if sharing:
            from memgui.estimator.units import units_of  # a start shares nothing out

            self.units = units_of(program, keeping, scheme)
        self.inputs = [batch_input(program, one.name, one.dims, one.width) for one in program.inputs]
        if unused_buffers:
            dims = (unused_buffers, *program.context.residual)
            self.inputs.append(batch_input(program, "receive buffers", dims, program.options.width))
        self.measured = measured(program, tuple(monomial_values(scenario, program, TRAINING)), whole=whole)
        self.numbers, self.tensors = self.measured.numbers, self.measured.tensors
        self.values = self.numbers.values
        self.accumulates = training.gradient_accumulation_steps > 1
        self.main_gradients = keeping.gradients_lie
        self.gradients_stay = self.main_gradients or not training.zero_grad_set_to_none
        self.gradients_met = self.accumulates or self.gradients_stay
        """whether the last micro batch of a step finds gradients there"""
        self.waits = bool(self.account.whole.things)
        """whether gradients stay whole until a step's last micro batch, which reduces them"""
        self.reduced_met = self.gradients_stay if self.waits else self.gradients_met
        """whether the last micro batch of a step finds reduced gradients there"""
        self.input_sizes = [self.numbers.of(tensor) for tensor in self.inputs]
        self.lengthy_sizes = [self.numbers.of(tensor) for tensor in self.account.lengthy]
        self.refers = any(referring(kind) for kind in program.kinds)
        """whether modules keep something of a micro batch until they run again"""

    # -- what stays -----------------------------------------------------------------------------

    @cached_property
    def loaded(self) -> Loaded:
        """What the allocator's blocks add to the weights, and what it holds beside them."""
        if not self.arrive_whole:
            return Loaded(self.account.weight_excess)
        base = base_of(self.scenario.training)
        return loaded(self.account, self.program, base_scheme(self.scenario), base)

    def lying(
        self, *, states: bool, gradients: bool, whole: bool = False, inputs: bool = True
    ) -> dict[str, int]:
        """What stays through a micro batch, in bytes; ``whole``: with gradients that wait to be reduced."""
        a = self.account
        reduced = a.gradient_bytes if gradients else 0
        return {
            "weights": a.weight_bytes + sum(self.lengthy_sizes),
            "gradients": reduced + (a.whole.bytes if whole else 0) + a.buckets.bytes,
            "optimizer_states": a.state_bytes if states else 0,
            "activations": sum(self.input_sizes) if inputs else 0,
            "temporary": a.lasting.bytes,
        }

    def base(self, *, states: bool, gradients: bool, whole: bool = False, inputs: bool = True) -> Amount:
        """The same, with what the allocator's blocks add."""
        a = self.account
        sizes = self.lengthy_sizes + (self.input_sizes if inputs else [])
        return Amount(
            self.lying(states=states, gradients=gradients, whole=whole, inputs=inputs),
            self.loaded.excess
            + (a.gradient_excess if gradients else 0)
            + (a.whole.excess if whole else 0)
            + (a.state_excess if states else 0)
            + a.buckets.excess
            + a.lasting.excess
            + sum(block_bytes(size) - size for size in sizes),
        )

    def between(self, *, states: bool, stay: bool) -> Amount:
        """What stays from one micro batch of a step to the next; ``stay``: gradients were there before it.

        Shards that were there are added to when all micro batches have run back, and lie beside what waits.
        """
        return self.base(states=states, gradients=stay or not self.waits, whole=self.waits)

    def busy(self, base: Amount, *, back: bool) -> Amount:
        """``base`` while a micro batch runs, forward or ``back``: with what sharing holds for a moment."""
        for amount in self._sharing(base.components, back=back):
            base = base.plus(amount)
        return base

    def _sharing(self, lying: Mapping[str, int], *, back: bool) -> Iterator[Amount]:
        """What sharing holds beside what lies while a micro batch runs.

        Shards of gradients that DeepSpeed fills as they are reduced are there from the first one on.
        """
        a = self.account
        for heap in (a.running, a.returning) if back else (a.running,):
            if heap.things:
                yield Amount({"temporary": heap.bytes}, heap.excess)
        if back and a.fills and not lying["gradients"]:
            yield Amount({"gradients": a.gradient_bytes}, a.gradient_excess)

    def persistent(self) -> int:
        a = self.account
        return a.weight_bytes + sum(self.lengthy_sizes) + a.state_bytes

    def floors(self) -> tuple[Floor, ...]:
        """As the optimizer steps, and as the backward pass begins."""
        a, accumulate = self.account, self.gradients_met
        stepping = self.lying(states=True, gradients=True)
        stepping["temporary"] += a.step_bytes
        turning = self.lying(states=True, gradients=self.reduced_met or a.fills, whole=self.waits)
        turning["temporary"] += a.running.bytes + a.returning.bytes
        turning["activations"] += self.numbers.bytes(
            self.walk(accumulate=accumulate, stay=self.gradients_stay).turned()
        )
        return stepping, turning

    def walks_as(self, other: Run) -> bool:
        return isinstance(other, TrainingRun) and self._walked == other._walked and self.units is other.units

    @property
    def _walked(self) -> tuple[object, ...]:
        """What decides the walk of a micro batch beside what ranks gather."""
        a, keep = self.account, self.scenario.training.keep_outputs
        met = self.gradients_met
        return id(self.program), self.values, keep, met, a.consumer, a.fills, a.adds, self.waiting

    def held(self, found: Found) -> Held:
        a = self.account
        base = found.base.components
        listed: Held = {
            "weights": [*a.weights, *a.buffers],
            "optimizer_states": list(a.states) if base["optimizer_states"] else [],
            "gradients": [*a.buckets.things],
            "activations": [(tensor, 1) for tensor in self.inputs],
            "temporary": [*a.lasting.things],
        }
        waiting = self.waits and found.stage not in ("optimizer", "save")
        if waiting:
            listed["gradients"] += a.whole.things
        if base["gradients"] > a.buckets.bytes + (a.whole.bytes if waiting else 0):
            listed["gradients"] += a.gradients
        if found.stage == "save":
            listed["temporary"] += a.saving.things
        elif found.stage == "optimizer":
            listed["temporary"] += a.step_things
        else:
            listed["temporary"] += a.running.things
            listed["temporary"] += a.returning.things if found.stage.startswith("backward") else ()
        return listed

    def assumptions(self) -> tuple[Message, ...]:
        return assumed(self)

    def extra(self) -> dict[str, int]:
        return {"host_bytes": self.account.host_bytes} if self.account.host_bytes else {}

    def doubt(self, found: Found) -> int:
        states = self.account.doubt_bytes if found.base.components["optimizer_states"] else 0
        return states + self._rushed(found)

    # -- the peak -------------------------------------------------------------------------------

    def gradients_before(self, *, steady: bool) -> bool:
        """Whether gradients are there before the first micro batch of a step."""
        return self.gradients_stay and (steady or self.main_gradients)

    def walk(
        self,
        *,
        accumulate: bool,
        stay: bool = False,
        ran: bool = True,
        traced: bool = False,
        first: bool = False,
    ) -> Walk:
        """The walk of a micro batch; ``accumulate``: gradients are there before it; ``ran``: one was.

        ``stay``: gradients were there before its step, which is asked where whole ones wait beside them.
        ``first``: it is the first of all, in which an optimizer that steps in backward makes its states.
        """
        a, keep = self.account, self.scenario.training.keep_outputs
        consumer = a.consumer.first if first and a.consumer is not None else a.consumer
        accumulate = accumulate or consumer is not None or a.fills or a.adds
        ran = ran and self.refers
        if self.units is not None:
            from memgui.estimator.unit_walk import unit_walk_of

            there = stay if self.waits else accumulate
            return unit_walk_of(self.program, self.units, accumulate, there, keep, self.refers, ran, traced)
        return walk_of(self.program, accumulate, keep, consumer, self.waiting, self.refers, ran, traced)

    def micro_batch(self, *, steady: bool, stay: bool, further: bool = False) -> Walk:
        """The walk of a step's first micro batch, or of a ``further`` one; ``stay``: gradients stayed.

        ``steady``: the step is not the first one.
        """
        accumulate = further or (stay and not self.waits)
        ran = steady or further
        return self.walk(accumulate=accumulate, stay=stay, ran=ran, first=not ran)

    def heights(self, walk: Walk) -> Heights:
        """How many bytes are alive at the points of a walk."""
        return self.measured.heights(walk)

    def peak(self) -> Found:
        return self._saving(self._stepping())

    def most(self) -> int:
        stepping, _, best = self._highest
        return stepping if best is None else best.bytes

    @once
    def _highest(self) -> tuple[int, Heights, Highest | None]:
        """Bytes as the optimizer steps; the heights along a walk, and the point there with more bytes."""
        accumulate = self.gradients_met
        walk = self.walk(accumulate=accumulate, stay=self.gradients_stay)
        lying = self.lying(states=True, gradients=self.reduced_met, whole=self.waits)
        start = sum(lying.values())
        ahead, behind = (
            start + sum([one.bytes for one in self._sharing(lying, back=back)]) for back in (False, True)
        )
        if self.accumulates:
            ahead += self.numbers.bytes(self.named(walk))
        stepping = sum(self.lying(states=True, gradients=True).values())
        stepping += self.account.step_bytes + self.numbers.bytes(self.left(walk))
        heights = self.heights(walk)
        return stepping, heights, heights.highest_on(walk.way_forward, ahead, behind, stepping)

    def _stepping(self) -> Found:
        _, heights, best = self._highest
        walk = heights.walk
        if best is None:
            base = self.base(states=True, gradients=True)
            step = Amount({"temporary": self.account.step_bytes}, 0)
            left = self.left(walk)
            amount = step.plus(amount_of(left, self.tensors))
            bag = partial(self.tensors.bag, left)
            stage = "optimizer"
            return Found(f"step2.{stage}", stage, STEADY[stage], base, amount, bag, -1, self.stepper())
        start = self.base(states=True, gradients=self.reduced_met, whole=self.waits)
        point, offset, forward = best.point, best.offset, best.at < len(walk.way_forward.rows)
        whole = point.whole(best.spot, best.stop, offset, whole=self.numbers.whole)
        if forward and self.accumulates:
            whole = whole.grown(self.named(walk))
        found = self._found(best, offset, whole, forward=forward, base=start)
        beyond = point.count - 1 - 2 * offset  # to the other end of alike layers
        if not beyond or self.scenario.training.expandable_segments:
            return found
        slope = point.inside.slope
        if abs(self.numbers.bytes(slope)) > slope.size() * MOST_EXCESS:
            return found
        # nearly as many bytes, of other things: blocks tell which is more
        whole = whole.grown(point.inside.slope, beyond)
        if _in_blocks(amount_of(whole, self.tensors)) <= _in_blocks(found.amount):
            return found
        return self._found(best, offset + beyond, whole, forward=forward, base=start)

    def segments_loaded(self) -> int:
        excess, unused = self.loaded
        if not unused or self.scenario.training.expandable_segments:  # these grow by what is missing alone
            return 0
        return self.account.weight_bytes + excess + unused

    def _saving(self, found: Found) -> Found:
        """``found``, or the moment at which the model is saved where more is there then."""
        saving = self.account.saving
        if not saving.things:
            return found
        base = self.base(states=True, gradients=self.gradients_stay).plus(self.referred())
        if base.bytes + saving.bytes <= found.base.bytes + found.amount.bytes:
            return found
        amount = Amount({"temporary": saving.bytes}, saving.excess)
        return Found("step2.save", "save", STEADY["save"], base, amount, dict, -1, "")

    def _rushed(self, found: Found) -> int:
        """What the peak may be more where no gather waits for the layer before: all weights are there."""
        if self.units is None or not self.units.again or self.scenario.parallelism.limit_all_gathers:
            return 0
        accumulate = self.gradients_met
        walk = self.walk(accumulate=accumulate, stay=self.gradients_stay)
        heights = self.heights(walk)
        busiest = max(heights.highest(point)[0] for point in (*walk.forward(), *walk.backward()))
        whole = sum(one.coefficient * count for weights, count in self.program.weights() for one in weights)
        base = self.busy(self.base(states=True, gradients=self.reduced_met, whole=self.waits), back=False)
        there = base.bytes + busiest + whole
        return max(0, there - found.base.bytes - found.amount.bytes)

    def named(self, walk: Walk) -> Stock:
        """What the loop calls outputs and loss of a micro batch until the model has returned the next."""
        return walk.lingering() if self.scenario.training.outputs_in_step else NOTHING

    def left(self, walk: Walk) -> Stock:
        """What of a micro batch is alive in the optimizer's step."""
        left = Stock(self.named(walk))
        if self.refers:
            left.include(walk.all_referred())
        return left

    def referred(self) -> Amount:
        """What modules keep of the last micro batch until they run again."""
        if not self.refers:
            return _NOTHING
        return amount_of(self.walk(accumulate=False).all_referred(), self.tensors)

    def stepper(self) -> str:
        """The operator at the optimizer's peak."""
        return self.account.stepper

    def _found(self, best: Highest, offset: int, whole: Stock, *, forward: bool, base: Amount) -> Found:
        point = best.point
        stage = f"{'forward' if forward else 'backward'}.{point.key}"
        layer = point.start + offset * point.step if point.start >= 0 else -1
        key = f"{'step2.micro2' if self.accumulates else 'step2'}.{stage}" + (
            f".{layer}" if layer >= 0 else ""
        )
        return Found(
            key,
            stage,
            (FURTHER if self.accumulates else STEADY)[stage],
            self.busy(base, back=not forward),
            amount_of(whole, self.tensors),
            partial(self.tensors.bag, whole),
            layer,
            operator_at(best.spot, best.stop),
        )

    def moments(self, overhead: Overhead) -> Iterator[Moment]:
        return steps(self, overhead)
