"""A model's weights in the order in which they come to the device: what blocks they leave behind.

A model made in the computer's memory is moved weight by weight, in the order of its modules.  One that
bitsandbytes packs as it loads is read in the order of its checkpoint's names, a weight at a time in 16
bits, after Transformers has taken and freed room for all of it at once (``caching_allocator_warmup``);
what ``prepare_model_for_kbit_training`` widens is widened then.  Adapters come last; PEFT makes them
in the format of the base and widens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memgui.estimator.allocator import Allocator, Block
from memgui.estimator.options import ADAPTERS, BITSANDBYTES, UPCAST
from memgui.estimator.program import Program
from memgui.estimator.state import State
from memgui.estimator.tape import Parameter
from memgui.estimator.training import TrainingRun

_FULL = {"fp32": 4}
"""Bytes per number of the formats in which a model is read, where they are not two."""


def load(run: TrainingRun, allocator: Allocator) -> None:
    """Bring the weights, buffers and adapters of ``run`` to the device."""
    training = run.scenario.training
    adapters = training.method in ADAPTERS
    base = [p for group in _modules(run.program) for p in group if not (adapters and p.grad)]
    if training.base_format in BITSANDBYTES and adapters:
        _pack(run, allocator, base)
    else:
        parts = _parts(run)
        for parameter in base:
            for part in parts.get(parameter, (parameter,)):
                allocator.take(part.coefficient)
    for buffer, count in run.account.buffers:
        for _ in range(count):
            allocator.take(run.numbers.of(buffer))
    if adapters:
        _adapt(run, allocator)


def _adapt(run: TrainingRun, allocator: Allocator) -> None:
    """Adapters, at first in the format of a base that is not packed."""
    options = run.program.options
    narrow = options.width if not options.base else 4
    widened: list[tuple[Block, int]] = []
    for group in _modules(run.program):
        for parameter in group:
            if parameter.grad:
                width = min(narrow, parameter.width)
                block = allocator.take(parameter.coefficient // parameter.width * width)
                if width < parameter.width:
                    widened.append((block, parameter.coefficient))
    _widen(widened, allocator)


def _widen(blocks: Iterable[tuple[Block, int]], allocator: Allocator) -> None:
    for block, size in blocks:
        allocator.take(size)
        allocator.give(block)


def _pack(run: TrainingRun, allocator: Allocator, base: list[Parameter]) -> None:
    """Read, pack and widen what is not packed."""
    training = run.scenario.training
    parts = _parts(run)
    half = _FULL.get(training.precision, 2)
    packed = {parameter for parameter, stored in parts.items() if parameter not in stored}
    factor = 1 if training.base_format == "int8" else 2
    whole = sum(p.elements // factor if p in packed else p.elements * half for p in base)
    allocator.give(allocator.take(whole))
    loose: dict[int, list[Block]] = {}
    for parameter in _by_name(run.program, {id(p) for p in base}):
        read = allocator.take(parameter.elements * half)
        if parameter in packed:
            for part in parts[parameter]:
                allocator.take(part.coefficient)
            allocator.give(read)
        elif parameter.width == half or run.program.options.base not in UPCAST:
            continue
        else:
            loose.setdefault(id(parameter), []).append(read)
    _widen(((loose[id(p)].pop(0), p.coefficient) for p in base if id(p) in loose), allocator)


def _parts(run: TrainingRun) -> dict[Parameter, list[Parameter | State]]:
    """What stands for each weight in memory."""
    found: dict[Parameter, list[Parameter | State]] = {}
    for thing, _ in run.account.weights:
        found.setdefault(thing.of if isinstance(thing, State) else thing, []).append(thing)
    return found


def _modules(program: Program) -> Iterator[list[Parameter]]:
    """Weights in the order of the modules, those of a layer together."""
    for stack in program.stacks:
        yield stack.frame.tape.parameters
        for kind, count in stack.runs:
            layer = list(kind.parameters)
            for _ in range(count):
                yield layer
    yield program.tail.tape.parameters
    yield program.beside.tape.parameters


def _by_name(program: Program, wanted: set[int]) -> Iterator[Parameter]:
    """Weights in the order of their names in a checkpoint: the head, the embeddings, the layers."""
    first: list[Parameter] = []
    last: list[Parameter] = []
    for parameter in program.tail.tape.parameters:
        (first if parameter.part == "lm_head" else last).append(parameter)
    yield from (parameter for parameter in first if id(parameter) in wanted)
    *groups, _, beside = _modules(program)
    for group in groups:
        yield from sorted((p for p in group if id(p) in wanted), key=_name)
    yield from last
    yield from beside


def _name(parameter: Parameter) -> str:
    """The name within a layer as checkpoints have it, as far as their order goes."""
    module = {"attention": "self_attn", "mlp": "mlp", "experts": "mlp"}.get(parameter.part, "")
    return f"{module}.{parameter.name}" if module else parameter.name
