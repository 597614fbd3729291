"""A training run on PyTorch's allocator: loading, the first step, the second; every further one is alike."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memgui.estimator.allocator import Allocator, Stream
from memgui.estimator.events import Thing, gradient_of
from memgui.estimator.loading import base_of, load
from memgui.estimator.overhead import cublas_workspace
from memgui.estimator.replay import Action, Held, Replay
from memgui.estimator.training import TrainingRun


class Simulated(msgspec.Struct, frozen=True):
    """Bytes that the allocator's counters show in the second step.

    ``loaded``, ``rest`` (before a step begins) and the peaks of ``forward``, ``backward`` and
    ``optimizer`` count blocks in use, and so does ``allocated``, the largest of them; ``reserved`` counts
    segments.
    """

    loaded: int
    rest: int
    forward: int
    backward: int
    optimizer: int
    reserved: int

    @property
    def allocated(self) -> int:
        """What ``torch.cuda.max_memory_allocated()`` shows."""
        return max(self.forward, self.backward, self.optimizer)


class _Pass(msgspec.Struct, frozen=True):
    """What happens in a micro batch: forward, backward, and what dies after it."""

    forward: list[list[Action]]
    backward: list[list[Action]]
    after: list[Action]


def _streams(run: TrainingRun, allocator: Allocator) -> dict[Thing, Allocator]:
    """What FSDP2 allocates in streams of its own: buffers to gather weights in, and shards of gradients."""
    if run.units is None:
        return {}
    gathering, reducing = Stream(allocator), Stream(allocator)
    found: dict[Thing, Allocator] = {}
    for unit in (run.units.root, *(run.units.of(kind) for kind in run.program.kinds)):
        found.update(dict.fromkeys(unit.buffer.things, gathering))
        found.update(dict.fromkeys(unit.shards.things, reducing))
    return found


def _shards(run: TrainingRun) -> frozenset[Thing]:
    """Shards of gradients, which FSDP2 keeps instead of these."""
    if run.units is None:
        return frozenset()
    units = (run.units.root, *(run.units.of(kind) for kind in run.program.kinds))
    return frozenset(thing for unit in units for thing in unit.shards.things)


class _Simulation:
    def __init__(self, run: TrainingRun, capability: tuple[int, int], *, emptied: bool) -> None:
        self.run = run
        self.emptied = emptied
        self.allocator = Allocator(expandable=run.scenario.training.expandable_segments)
        self.replay = Replay(self.allocator, run.numbers, _streams(run, self.allocator), _shards(run))
        self.workspace = cublas_workspace(capability, training=False)
        self.workspaces = 0
        weights = {one: count for some, count in run.program.beside for one in some if one.grad}
        self.beside: list[tuple[Thing, int]] = [(gradient_of(one), count) for one, count in weights.items()]
        """gradients of weights whose operators are not written"""
        if run.units is not None:
            self.beside = [one for one in run.account.gradients if one[0].of in weights]
        self._passes: dict[tuple[bool, bool], _Pass] = {}

    def simulate(self) -> Simulated:
        run, allocator = self.run, self.allocator
        base = base_of(run.scenario.training)
        if run.arrive_whole or not base.packed:
            load(run.program, run.account, base, allocator)
        else:  # each rank reads its shards of what is packed
            self._take_all((*run.account.weights, *run.account.buffers))
        loaded = allocator.allocated
        if run.main_gradients:
            self._take_all(run.account.gradients)
        self._take_all(one for one in run.account.states if one[0].name == "master copy")
        for size in run.input_sizes:
            allocator.take(size)
        gradients: list[Held] = []
        rest, phases = 0, (0, 0, 0)
        for step in range(2):
            rest = allocator.allocated
            if self.emptied:
                allocator.empty()
            there = run.gradients_before(steady=step > 0)
            forward, backward = self._micro_batch(accumulate=there)
            if there:
                self._free(self.replay.gradients())  # added to those
            else:
                gradients += self.replay.gradients()
                if run.account.consumer is None:
                    gradients += self._take_all(self.beside)
                if run.units is not None:  # reduced last
                    gradients += self.replay.taken(run.units.root.shards.things)
            if run.accumulates:
                further = self._micro_batch(accumulate=True)
                forward, backward = max(forward, further[0]), max(backward, further[1])
                self._free(self.replay.gradients())
            phases = forward, backward, self._optimizer(first=not step)
            self.replay.settle(run.walk(accumulate=there).all_referred())
            if not run.gradients_stay:
                self._free(gradients)
                gradients = []
        return Simulated(loaded, rest, *phases, allocator.reserved)

    def _micro_batch(self, *, accumulate: bool) -> tuple[int, int]:
        """The peaks of its forward and its backward pass."""
        walk = self.run.walk(accumulate=accumulate, ran=self.replay.holds, traced=True)
        which = walk.accumulate, self.replay.holds  # what the pass before has left dies in this one
        known = self._passes.get(which)
        named = self.replay.blocks_of(self.run.named(walk))
        self._begin(0)
        if known is None:
            forward = self.replay.record(walk, walk.forward())
        else:
            forward = known.forward
            for actions in forward:
                self.replay.play(actions)
        first = self.allocator.peak
        self._free(named)  # of the micro batch before: the loop's names stand for this one's now
        self._begin(1)
        if known is None:
            backward = self.replay.record(walk, walk.backward())
        else:
            backward = known.backward
            for actions in backward:
                self.replay.play(actions)
        second = self.allocator.peak
        if known is None:
            after = self.replay.settle(self.run.left(walk))
            self._passes[which] = _Pass(forward, backward, after)
        else:
            self.replay.play(known.after)
        return first, second

    def _begin(self, thread: int) -> None:
        """A phase begins; the first time that a thread multiplies, cuBLAS takes its workspace."""
        if self.workspaces <= thread:
            self.workspaces += 1
            self.allocator.take(self.workspace)
        self.allocator.peak = self.allocator.allocated

    def _optimizer(self, *, first: bool) -> int:
        account, allocator = self.run.account, self.allocator
        allocator.peak = allocator.allocated
        if first:
            self._take_all(one for one in account.states if one[0].name != "master copy")
        self._free(self._take_all(account.step_things))
        return allocator.peak

    def _take_all(self, things: Iterable[tuple[Thing, int]]) -> list[Held]:
        allocator = self.allocator
        return [
            (allocator, allocator.take(thing.coefficient)) for thing, count in things for _ in range(count)
        ]

    def _free(self, blocks: list[Held]) -> None:
        for allocator, block in blocks:
            allocator.give(block)


def simulated(run: TrainingRun, capability: tuple[int, int], *, emptied: bool = False) -> Simulated:
    """The allocator's counters in the steady step of ``run``, on a device of compute ``capability``.

    ``emptied``: the loop calls ``torch.cuda.empty_cache()`` before each step.
    """
    return _Simulation(run, capability, emptied=emptied).simulate()
