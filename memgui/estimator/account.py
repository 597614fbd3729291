"""What stays from step to step: weights, buffers, gradients, optimizer states, counts of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from memgui.estimator.events import Gradient, gradient_of
from memgui.estimator.keeping import Keeping
from memgui.estimator.layout import ALONE, Layout
from memgui.estimator.lifetimes import Consumer
from memgui.estimator.optimizers import OPTIMIZERS, Kept, Step, Trained, Weight
from memgui.estimator.overhead import block_bytes
from memgui.estimator.program import Program
from memgui.estimator.quantisation import stored
from memgui.estimator.result import Parameters
from memgui.estimator.shards import (
    FLATTEN,
    backward_buffers,
    buckets,
    flattened,
    flattens,
    gathered_stage,
    gathered_window,
    gradient_shards,
    lasting_buffers,
    saved_whole,
    shape_of,
    shard,
    sized,
    weight_shards,
)
from memgui.estimator.state import State, state_of
from memgui.estimator.tape import Parameter, Tensor
from memgui.spec.formats import WeightScheme

PAGED_FROM = 100_000
"""Numbers from which on bitsandbytes puts a weight's states into managed memory."""


Weights = tuple[tuple[Parameter, int], ...]
Buffers = tuple[tuple[Tensor, int], ...]


class Heap(NamedTuple):
    """Things (each with how often), their bytes, and what the allocator's blocks add to them."""

    things: tuple[tuple[State, int], ...] = ()
    bytes: int = 0
    excess: int = 0


def _heap(things: tuple[tuple[State, int], ...]) -> Heap:
    return Heap(things, sized(things), _excess(things)) if things else _NOTHING


_NOTHING = Heap()


class Account(NamedTuple):
    """Bytes and counts that do not depend on the workload.

    ``weights``, ``buffers``, ``gradients`` and ``states`` list (thing, how often); ``*_bytes`` are
    their sums, ``*_excess`` what the allocator's blocks add to them.  ``paged_bytes``: states in managed
    memory, ``host_bytes``: in the computer's; neither is in ``states``.  ``doubt_bytes``: what the
    states take more where an implementation keeps them in fp32.  ``clip_bytes``: clipping takes the
    norm of each gradient, stacks the norms, and takes theirs.  ``step_things`` are what the optimizer's
    step holds for a moment, while ``stepper`` runs.  ``consumer`` is there where gradients do not wait
    for a step.  Of what ranks share out there is one rank's.  ``buckets`` are DDP's; ``lasting`` is what
    sharing keeps from step to step, ``running`` what it holds while a micro batch runs, ``returning``
    while it runs back.  ``fills``: new gradients go into a buffer of shards at once; ``adds``: they are
    added to whole ones in ``running``.  ``saving`` is there while the model is saved.
    """

    weights: tuple[tuple[Parameter | State, int], ...]
    buffers: tuple[tuple[Tensor, int], ...]
    gradients: tuple[tuple[Gradient | State, int], ...]
    states: tuple[tuple[State, int], ...]
    weight_bytes: int
    gradient_bytes: int
    state_bytes: int
    weight_excess: int
    gradient_excess: int
    state_excess: int
    paged_bytes: int
    host_bytes: int
    doubt_bytes: int
    clip_bytes: int
    step_bytes: int
    step_things: tuple[tuple[State, int], ...]
    stepper: str
    consumer: Consumer | None
    parameters: Parameters
    buckets: Heap
    lasting: Heap
    running: Heap
    returning: Heap
    fills: bool
    adds: bool
    saving: Heap


@lru_cache(maxsize=64)
def account(program: Program, keeping: Keeping | None = None, scheme: WeightScheme | None = None) -> Account:
    """The account of a program; of one that is trained, as ``keeping`` says.

    ``scheme``: how weights that are not trained are stored, where that is not the format they compute in.
    """
    weights, buffers, trained, counted = _held(program)
    kept = stored(program, scheme) if scheme is not None else weights
    layout = keeping.layout if keeping is not None else ALONE
    host = 0
    gathered = gathered_stage(kept, layout, keeping) if keeping is not None else ()
    if keeping is not None and layout.shares_weights:
        kept = weight_shards(kept, layout, keeping, program.sizes)
        if layout.weights_on_host:
            host, kept = _bytes(kept), ()
    held = [*kept, *buffers]
    tensors = sum([count for _, count in trained])
    states = _States(program, keeping) if keeping is not None else _NO_STATES
    gradients = _gradients(program, trained, keeping)
    if layout.weights_on_host or (keeping is not None and keeping.gradients_on_host):
        host, gradients = host + _bytes(gradients), ()
    weight_bytes, weight_excess = _sizes(held)
    gradient_bytes, gradient_excess = _sizes(gradients)
    state_bytes, state_excess = _sizes(states.listed)
    return Account(
        weights=kept,
        buffers=buffers,
        gradients=gradients,
        states=tuple(states.listed),
        weight_bytes=weight_bytes,
        gradient_bytes=gradient_bytes,
        state_bytes=state_bytes,
        weight_excess=weight_excess,
        gradient_excess=gradient_excess,
        state_excess=state_excess,
        paged_bytes=states.paged,
        host_bytes=states.host + host,
        doubt_bytes=states.doubt,
        clip_bytes=(2 * tensors + 1) * max((parameter.width for parameter, _ in trained), default=0),
        step_bytes=_bytes(states.step),
        step_things=tuple(states.step),
        stepper=states.stepper,
        consumer=states.consumer,
        parameters=counted,
        buckets=_heap(buckets(trained, layout)),
        lasting=_heap(lasting_buffers(trained, layout)),
        running=_heap((*gathered_window(program, layout), *gathered)),
        returning=_heap(backward_buffers(trained, layout)),
        fills=layout.library == "deepspeed" and layout.shares_gradients,
        adds=bool(gathered),
        saving=_heap(saved_whole(program, layout, keeping)) if keeping is not None else _NOTHING,
    )


@lru_cache(maxsize=64)
def _held(program: Program) -> tuple[Weights, Buffers, Weights, Parameters]:
    """Weights, buffers and trained weights of a program, with how often each occurs; parameters, counted."""
    blocks = tuple(program.blocks())
    weights = tuple([(one, count) for block, count in blocks for one in block.tape.parameters])
    buffers = tuple([(one, count) for block, count in blocks for one in block.tape.buffers])
    trained = tuple([(one, count) for one, count in weights if one.grad])
    return weights, buffers, trained, _counted(program, weights)


def _gradients(
    program: Program, trained: Weights, keeping: Keeping | None
) -> tuple[tuple[Gradient | State, int], ...]:
    """One for each trained weight: its own, or a main gradient; none that waits where each is consumed."""
    if keeping is not None and keeping.consumes:
        return ()
    if keeping is not None and keeping.layout.shares_gradients:
        return gradient_shards(trained, keeping.layout, keeping, program.sizes)
    if keeping is not None and keeping.gradient_width:
        width = keeping.gradient_width
        return tuple([(state_of("main gradient", parameter, width), count) for parameter, count in trained])
    return tuple([(_gradient(program, parameter), count) for parameter, count in trained])


def _gradient(program: Program, parameter: Parameter) -> Gradient | State:
    """A weight's gradient.  Transformers' tensor parallel embedding gets one of all rows on each rank.

    (DTensor's ``embedding_dense_backward`` returns a partial sum; measured, PyTorch 2.13.)
    """
    o = program.options
    if o.split.vocabulary > 1 and o.implementation == "transformers" and parameter.part == "embedding":
        dims = ("V", *parameter.dims[1:])
        return state_of("gradient of all rows", parameter, parameter.width, dims, program.sizes.count(dims))
    return gradient_of(parameter)


def _sizes(things: Iterable[tuple[Tensor | Gradient | State, int]]) -> tuple[int, int]:
    """Bytes, and what the allocator's blocks add to them."""
    counts: dict[int, int] = {}
    for thing, count in things:
        size = thing.coefficient
        counts[size] = counts.get(size, 0) + count
    total = excess = 0
    for size, count in counts.items():
        total += size * count
        excess += (block_bytes(size) - size) * count
    return total, excess


def _bytes(things: Iterable[tuple[Tensor | Gradient | State, int]]) -> int:
    return _sizes(things)[0]


def _excess(things: Iterable[tuple[Tensor | Gradient | State, int]]) -> int:
    return _sizes(things)[1]


class _States:
    """What the optimizer keeps of every trained weight, and what its step holds."""

    def __init__(self, program: Program | None, keeping: Keeping | None) -> None:
        self.listed: list[tuple[State, int]] = []
        self.step: list[tuple[State, int]] = []
        self.paged = self.host = self.doubt = 0
        self.stepper = ""
        self.consumer: Consumer | None = None
        self._rules: dict[tuple[object, ...], tuple[Kept, ...]] = {}
        if program is None or keeping is None:
            return
        trained = trained_weights(program, keeping.master, keeping.layout)
        here = self._offload(trained, keeping)
        for weight, count in here:
            self._keep(weight, count, keeping)
        tables = OPTIMIZERS[keeping.settings.name].tables
        if tables and here:
            self.listed.append((state_of("tables", here[0][0].of, tables, ()), 1))
        if keeping.consumes:
            steps = {weight.of: _step(((weight, 1),), keeping) for weight, _ in trained}
            operator = next((step.operator for step in steps.values()), "")
            work: dict[Tensor, int] = {weight: step.bytes for weight, step in steps.items()}
            self.consumer = Consumer(work, operator.removeprefix("aten."))
        else:
            step = _step(here, keeping)
            self.step = [(_state(weight, one), count) for weight, one, count in step.held]
            self.step += flattened(here, keeping)
            self.stepper = step.operator or (FLATTEN if self.step else "")

    def _keep(self, weight: Weight, count: int, keeping: Keeping) -> None:
        settings = keeping.settings
        rule = OPTIMIZERS[settings.name]
        if keeping.master and not keeping.layout.fsdp:  # whose shards of weights are the master copies
            self.listed.append((_state(weight, Kept("master copy", keeping.master)), count))
        paged = rule.paged and weight.elements >= PAGED_FROM
        alike = weight.shape, weight.width, weight.whole, weight.of.part
        states = self._rules.get(alike)
        if states is None:
            states = self._rules[alike] = rule.states(weight, settings)
        for one in states:
            if paged and one.shape is None:
                self.paged += one.bytes(weight) * count
                continue
            self.listed.append((_state(weight, one), count))
            if rule.wide_elsewhere and one.width < 4 and not settings.state_width:
                self.doubt += one.bytes(weight) // one.width * (4 - one.width) * count

    def _offload(self, trained: Trained, keeping: Keeping) -> Trained:
        """The weights whose states stay on the device: the last ones, the share of the first has left."""
        if not keeping.offloaded:
            return trained
        rule = OPTIMIZERS[keeping.settings.name]
        goal = sum(weight.elements * count for weight, count in trained) * keeping.offloaded
        here: list[tuple[Weight, int]] = []
        gone = 0
        for weight, count in trained:
            room = max(0, goal - gone)
            leaving = min(count, -(-room // (weight.elements * 1000)))
            gone += weight.elements * 1000 * leaving
            size = sum(one.bytes(weight) for one in rule.states(weight, keeping.settings))
            self.host += (size + weight.elements * keeping.master) * leaving
            if count > leaving:
                here.append((weight, count - leaving))
        return here


_NO_STATES = _States(None, None)


def _step(trained: Trained, keeping: Keeping) -> Step:
    """The step's working set; an fp32 copy of a weight needs an fp32 copy of its gradient."""
    settings = keeping.settings
    step = OPTIMIZERS[settings.name].step(trained, settings)
    layout = keeping.layout
    copied = keeping.master and keeping.gradient_width != keeping.master
    if not copied or layout.fsdp or flattens(layout):
        return step
    copies = [(weight, Kept("gradient in fp32", keeping.master), count) for weight, count in trained]
    return Step((*copies, *step.held), step.operator)


@lru_cache(maxsize=64)
def trained_weights(program: Program, master: int, layout: Layout) -> tuple[tuple[Weight, int], ...]:
    """The trained weights as the optimizer meets them, in the model's order, with how often each occurs.

    ``master``: bytes per number of what is updated where that is a copy, else 0.
    """
    found: list[tuple[Weight, int]] = []
    shapes: dict[tuple[object, ...], tuple[int, ...]] = {}
    for block, count in program.blocks():
        for parameter in block.tape.parameters:
            if parameter.grad:
                width = gradient = master or parameter.width
                if layout.shares_states:
                    shape, often = shard(parameter, count, layout, program.sizes)
                    found.append((Weight(parameter, shape, width, gradient, whole=False), often))
                    continue
                alike = parameter.dims, parameter.cut, parameter.inputs, parameter.name[-6:]
                known = shapes.get(alike)
                if known is None:
                    known = shapes[alike] = shape_of(parameter, program.sizes)
                found.append((Weight(parameter, known, width, gradient), count))
    return tuple(found)


def _state(weight: Weight, kept: Kept) -> State:
    if kept.shape is None and weight.whole:
        return state_of(kept.name, weight.of, kept.width)
    shape = weight.shape if kept.shape is None else kept.shape
    return state_of(kept.name, weight.of, kept.width, shape, prod(shape))


def _counted(program: Program, weights: tuple[tuple[Parameter, int], ...]) -> Parameters:
    by_part: dict[str, int] = {}
    trainable = resting = 0
    model = program.model
    for parameter, count in weights:
        elements = parameter.elements * count
        by_part[parameter.part] = by_part.get(parameter.part, 0) + elements
        if parameter.grad:
            trainable += elements
        if parameter.cut == "expert" and model.num_experts:
            resting += elements - elements // model.num_experts * model.num_experts_per_tok
    total = sum(by_part.values())
    parts: Mapping[str, int] = MappingProxyType(by_part)
    return Parameters(total, trainable, total - resting, parts)
