"""What stays from step to step: weights, buffers, gradients, optimizer states, counts of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from memgui.estimator.lifetimes import Gradient
from memgui.estimator.optimizers import OPTIMIZERS
from memgui.estimator.overhead import block_bytes
from memgui.estimator.program import Program
from memgui.estimator.quantisation import stored
from memgui.estimator.result import Parameters
from memgui.estimator.state import State
from memgui.estimator.tape import Parameter, Tensor
from memgui.spec.formats import WeightScheme


class Account(NamedTuple):
    """Bytes and counts that do not depend on the workload.

    ``weights``, ``buffers``, ``gradients`` and ``states`` list (thing, how often); ``*_bytes`` are
    their sums, ``*_excess`` what the allocator's blocks add to them.  ``clip_bytes``: clipping takes
    the norm of each gradient, stacks the norms, and takes theirs.  ``step_things`` are what the
    optimizer's step holds for a moment.
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
    trained_tensors: int
    clip_bytes: int
    largest_trained: Parameter | None
    step_bytes: int
    step_things: tuple[tuple[State, int], ...]
    parameters: Parameters


@lru_cache(maxsize=64)
def account(
    program: Program, optimizer: str, implementation: str, master: bool, scheme: WeightScheme | None = None
) -> Account:
    """The account of a program trained by ``optimizer`` (``""``: not trained).

    ``master``: an fp32 copy of each weight is kept, and the states are fp32.  ``scheme``: how weights that
    are not trained are stored, where that is not the format they compute in.
    """
    weights = tuple(
        (parameter, count) for block, count in program.blocks() for parameter in block.tape.parameters
    )
    buffers = tuple((buffer, count) for block, count in program.blocks() for buffer in block.tape.buffers)
    trained = [(parameter, count) for parameter, count in weights if parameter.grad]
    gradients = tuple((Gradient(parameter), count) for parameter, count in trained)
    states: list[tuple[State, int]] = []
    tensors = sum(count for _, count in trained)
    step: list[tuple[State, int]] = []
    largest = max(trained, key=lambda pair: pair[0].elements, default=(None, 0))[0]
    if optimizer:
        rule = OPTIMIZERS[optimizer]
        for parameter, count in trained:
            width = 4 if master else parameter.width
            if master:
                states.append((State("master copy", parameter, 4), count))
            states.extend((State(name, parameter, width), count) for name in rule.states)
            if rule.counter and implementation == "fused":
                states.append((State("step", parameter, 4, ()), count))
        if implementation == "foreach" and rule.foreach:
            name = "list of temporaries"
            step = [(State(name, p, 4 if master else p.width), count * rule.foreach) for p, count in trained]
        elif implementation == "forloop" and rule.forloop and largest is not None:
            step = [(State("temporary", largest, 4 if master else largest.width), rule.forloop)]
    kept = stored(program, scheme) if scheme is not None else weights
    held = [*kept, *buffers]
    return Account(
        kept,
        buffers,
        gradients,
        tuple(states),
        sum(thing.coefficient * count for thing, count in held),
        sum(thing.coefficient * count for thing, count in gradients),
        sum(thing.coefficient * count for thing, count in states),
        sum((block_bytes(thing.coefficient) - thing.coefficient) * count for thing, count in held),
        sum((block_bytes(thing.coefficient) - thing.coefficient) * count for thing, count in gradients),
        sum((block_bytes(thing.coefficient) - thing.coefficient) * count for thing, count in states),
        tensors,
        (2 * tensors + 1) * max((parameter.width for parameter, _ in trained), default=0),
        largest,
        sum(thing.coefficient * count for thing, count in step),
        tuple(step),
        _counted(program, weights),
    )


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
