"""What stays from step to step: weights, buffers, gradients, optimizer states, counts of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from memgui.estimator.keeping import Keeping
from memgui.estimator.lifetimes import Gradient
from memgui.estimator.optimizers import OPTIMIZERS, Kept, Weight
from memgui.estimator.overhead import block_bytes
from memgui.estimator.program import Program
from memgui.estimator.quantisation import stored
from memgui.estimator.result import Parameters
from memgui.estimator.state import State
from memgui.estimator.tape import Parameter, Sizes, Tensor
from memgui.spec.formats import WeightScheme

PAGED_FROM = 100_000
"""Numbers from which on bitsandbytes puts a weight's states into managed memory."""


class Account(NamedTuple):
    """Bytes and counts that do not depend on the workload.

    ``weights``, ``buffers``, ``gradients`` and ``states`` list (thing, how often); ``*_bytes`` are
    their sums, ``*_excess`` what the allocator's blocks add to them.  ``paged_bytes``: states in managed
    memory, which are not in ``states``.  ``doubt_bytes``: what the states take more where an
    implementation keeps them in fp32.  ``clip_bytes``: clipping takes the norm of each gradient, stacks
    the norms, and takes theirs.  ``step_things`` are what the optimizer's step holds for a moment, while
    ``stepper`` runs.
    """

    weights: tuple[tuple[Parameter | State, int], ...]
    buffers: tuple[tuple[Tensor, int], ...]
    gradients: tuple[tuple[Gradient, int], ...]
    states: tuple[tuple[State, int], ...]
    weight_bytes: int
    gradient_bytes: int
    state_bytes: int
    weight_excess: int
    gradient_excess: int
    state_excess: int
    paged_bytes: int
    doubt_bytes: int
    clip_bytes: int
    step_bytes: int
    step_things: tuple[tuple[State, int], ...]
    stepper: str
    parameters: Parameters


@lru_cache(maxsize=64)
def account(program: Program, keeping: Keeping | None = None, scheme: WeightScheme | None = None) -> Account:
    """The account of a program; of one that is trained, as ``keeping`` says.

    ``scheme``: how weights that are not trained are stored, where that is not the format they compute in.
    """
    weights = tuple(
        (parameter, count) for block, count in program.blocks() for parameter in block.tape.parameters
    )
    buffers = tuple((buffer, count) for block, count in program.blocks() for buffer in block.tape.buffers)
    trained = [(parameter, count) for parameter, count in weights if parameter.grad]
    gradients = tuple((Gradient(parameter), count) for parameter, count in trained)
    kept = stored(program, scheme) if scheme is not None else weights
    held = [*kept, *buffers]
    tensors = sum(count for _, count in trained)
    states = _States(program, keeping) if keeping is not None else None
    listed = tuple(states.listed) if states is not None else ()
    step = tuple(states.step) if states is not None else ()
    return Account(
        kept,
        buffers,
        gradients,
        listed,
        _bytes(held),
        _bytes(gradients),
        _bytes(listed),
        _excess(held),
        _excess(gradients),
        _excess(listed),
        states.paged if states is not None else 0,
        states.doubt if states is not None else 0,
        (2 * tensors + 1) * max((parameter.width for parameter, _ in trained), default=0),
        _bytes(step),
        step,
        states.stepper if states is not None else "",
        _counted(program, weights),
    )


def _bytes(things: Iterable[tuple[Tensor | Gradient | State, int]]) -> int:
    return sum(thing.coefficient * count for thing, count in things)


def _excess(things: Iterable[tuple[Tensor | Gradient | State, int]]) -> int:
    return sum((block_bytes(thing.coefficient) - thing.coefficient) * count for thing, count in things)


class _States:
    """What the optimizer keeps of every trained weight, and what its step holds."""

    def __init__(self, program: Program, keeping: Keeping) -> None:
        settings = keeping.settings
        rule = OPTIMIZERS[settings.name]
        trained = list(trained_weights(program, keeping))
        self.listed: list[tuple[State, int]] = []
        self.paged = 0
        self.doubt = 0
        for weight, count in trained:
            if keeping.master:
                self.listed.append((State("master copy", weight.of, 4), count))
            paged = rule.paged and weight.elements >= PAGED_FROM
            for one in rule.states(weight, settings):
                if paged and one.shape is None:
                    self.paged += one.bytes(weight) * count
                    continue
                self.listed.append((_state(weight, one), count))
                if rule.wide_elsewhere and one.width < 4 and not settings.state_width:
                    self.doubt += one.bytes(weight) // one.width * (4 - one.width) * count
        if rule.tables and trained:
            self.listed.append((State("tables", trained[0][0].of, rule.tables, ()), 1))
        step = rule.step(trained, settings)
        self.step = [(_state(weight, one), count) for weight, one, count in step.held]
        self.stepper = step.operator


def trained_weights(program: Program, keeping: Keeping) -> Iterable[tuple[Weight, int]]:
    """The trained weights as the optimizer meets them, in the model's order, with how often each occurs."""
    for block, count in program.blocks():
        for parameter in block.tape.parameters:
            if parameter.grad:
                width = 4 if keeping.master else parameter.width
                gradient = 4 if keeping.master else parameter.width
                yield Weight(parameter, shape_of(parameter, program.sizes), width, gradient), count


def _state(weight: Weight, kept: Kept) -> State:
    if kept.shape is None and weight.whole:
        return State(kept.name, weight.of, kept.width)
    shape = weight.shape if kept.shape is None else kept.shape
    return State(kept.name, weight.of, kept.width, shape, prod(shape))


def shape_of(parameter: Parameter, sizes: Sizes) -> tuple[int, ...]:
    """The shape of a weight as PyTorch holds it: what it makes, what it reads; experts stacked."""
    counts = [sizes.count((dim,)) for dim in parameter.dims]
    if parameter.name.endswith("bias") or len(counts) == 1:
        return (prod(counts),)
    stacked = counts[:1] if parameter.cut == "expert" else []
    rest = counts[len(stacked) :]
    inputs = len(rest) - 1 if parameter.name.endswith("lora_A") else parameter.inputs
    made, read = rest[:-inputs], rest[-inputs:]
    return (*stacked, prod(made), prod(read)) if made else (*stacked, prod(read))


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
