"""A model's weights in the order in which they come to the device: what blocks they leave behind.

A model made in the computer's memory is moved weight by weight, in the order of its modules.  One that
bitsandbytes packs as it loads is read in the order of its checkpoint's names, a weight at a time in 16
bits, after Transformers has taken and freed room for all of it at once (``caching_allocator_warmup``);
what ``prepare_model_for_kbit_training`` widens is widened then.  Adapters come last; PEFT makes them
in the format of the base and widens them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby
from typing import NamedTuple

import msgspec
from msgspec import structs

from memgui.estimator.account import Account, account
from memgui.estimator.allocator import Allocator, Block, filled
from memgui.estimator.cut_to_size import CutToSize
from memgui.estimator.options import ADAPTERS, BITSANDBYTES, UPCAST
from memgui.estimator.overhead import OWN_SEGMENT, SMALL
from memgui.estimator.program import Program, compiled
from memgui.estimator.stacks import Kind
from memgui.estimator.state import State
from memgui.estimator.tape import Parameter
from memgui.spec.formats import WeightScheme
from memgui.spec.scenario import Training

FEW = 4 << 30
"""Bytes of a model up to which weights of 1 to 10 MiB are most of it."""

DEEP = 256
"""Layers of a model up to which each is played; no published one has more."""

LONGEST_TURN = 8
"""How many kinds of layers at most are expected to come in turn."""

_FULL = {"fp32": 4}
"""Bytes per number of the formats in which a model is read, where they are not two."""


class Base(msgspec.Struct, frozen=True):
    """What decides how weights come to the device: the method of training, and formats by name."""

    method: str
    format: str
    precision: str

    @property
    def adapted(self) -> bool:
        """Whether adapters are trained beside a frozen base."""
        return self.method in ADAPTERS

    @property
    def read_width(self) -> int:
        """Bytes per number in which a model is read."""
        return _FULL.get(self.precision, 2)

    @property
    def packed(self) -> bool:
        """Whether the base is packed while it loads."""
        return self.adapted and self.format in BITSANDBYTES


def base_of(training: Training) -> Base:
    """How the weights of a training step come."""
    return Base(training.method, training.base_format, training.precision)


class Loaded(NamedTuple):
    """What blocks add to the weights, and what segments have beside the blocks, in bytes."""

    excess: int
    unused: int = 0


def loaded(held: Account, program: Program, scheme: WeightScheme | None, base: Base) -> Loaded:
    """What weights take beside their sizes, as they come one after the other.

    That is played where a base is packed while it loads, and where weights share segments: those of 1
    to 10 MiB, most of those of small models.  All others have blocks that follow from their size.
    """
    shared = held.weight_bytes < FEW and any(SMALL < w.coefficient < OWN_SEGMENT for w, _ in held.weights)
    if not (base.packed or shared):
        return Loaded(held.weight_excess)
    if not base.adapted:
        return Loaded(_filled(program))
    return _played(program, scheme, base) if _layers_of(program) <= DEEP else _deep(program, scheme, base)


def _deep(program: Program, scheme: WeightScheme | None, base: Base) -> Loaded:
    """The same of a very deep model: as many layers are played as tell what one adds."""
    few, many = (
        _played(
            compiled(structs.replace(program.model, num_hidden_layers=layers), program.options), scheme, base
        )
        for layers in (DEEP // 2, DEEP)
    )
    further = _layers_of(program) - DEEP
    return Loaded(*(b + (b - a) * further // (DEEP // 2) for a, b in zip(few, many, strict=True)))


def _layers_of(program: Program) -> int:
    return program.model.num_hidden_layers


@lru_cache(maxsize=64)
def _filled(program: Program) -> int:
    """The same where weights come as they are, and nothing that comes goes again."""
    runs = [([p.coefficient for p in group], count) for group, count in _groups(program)]
    runs += [([b.coefficient], count) for block, count in program.blocks for b in block.tape.buffers]
    return filled(runs) - sum([sum(sizes) * count for sizes, count in runs])


@lru_cache(maxsize=64)
def _played(program: Program, scheme: WeightScheme | None, base: Base) -> Loaded:
    """The same beside adapters, played; it does not matter what is kept of the weights that are trained."""
    allocator = _frozen(_Frozen(program, scheme, base)).copy()
    _adapt(program, allocator)
    return Loaded(allocator.allocated - account(program, scheme=scheme).weight_bytes, allocator.unused)


class _Frozen:
    """What comes before the adapters, and how: the same whatever is computed, and whatever is trained.

    Formats whose pieces are as large come alike.
    """

    __slots__ = ("base", "held", "program", "same")

    def __init__(self, program: Program, scheme: WeightScheme | None, base: Base) -> None:
        self.program, self.base = program, base
        self.held = account(program, scheme=scheme)
        weights = [
            (tuple([p.coefficient for p in group if not p.grad]), count) for group, count in _groups(program)
        ]
        held = self.held.weights
        pieces = [(one.name, one.coefficient, count) for one, count in held if isinstance(one, State)]
        buffers = [(b.coefficient, count) for block, count in program.blocks for b in block.tape.buffers]
        o = program.options
        how = base.packed, base.format == "int8", base.read_width, o.width, o.base in UPCAST, o.split
        self.same = (program.model, how, (*(one for one in weights if one[0]), *pieces, *buffers))

    def __hash__(self) -> int:
        return hash(self.same)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self.same == other.same


@lru_cache(maxsize=16)
def _frozen(what: _Frozen) -> CutToSize:
    allocator = CutToSize()
    _load(what.program, what.held, what.base, allocator)
    return allocator


def load(program: Program, held: Account, base: Base, allocator: Allocator) -> None:
    """Bring the weights, buffers and adapters of a program to the device."""
    _load(program, held, base, allocator)
    if base.adapted:
        _adapt(program, allocator)


def _load(program: Program, held: Account, base: Base, allocator: Allocator) -> None:
    """Weights and buffers; adapters come later."""
    if base.packed:
        _pack(program, held, base, allocator)
    else:
        parts = _parts(held)
        for group, count in _groups(program):
            sizes = [part.coefficient for p in _loaded(group, base) for part in parts.get(p, (p,))]
            allocator.repeat(partial(allocator.take_all, tuple(sizes)), count)
    for buffer, count in held.buffers:
        allocator.repeat(partial(allocator.take_all, (buffer.coefficient,)), count)


def _loaded(group: Iterable[Parameter], base: Base) -> list[Parameter]:
    """Those of some weights that come with the model, and not with the adapters."""
    return [parameter for parameter in group if not (base.adapted and parameter.grad)]


def _adapt(program: Program, allocator: Allocator) -> None:
    """Adapters, at first in the format of a base that is not packed."""
    narrow = program.options.width if not program.options.base else 4
    widened: list[tuple[Block, int]] = []

    def arrive(adapters: Iterable[Parameter]) -> None:
        for parameter in adapters:
            width = min(narrow, parameter.width)
            block = allocator.take(parameter.coefficient // parameter.width * width)
            if width < parameter.width:
                widened.append((block, parameter.coefficient))

    for group, count in _groups(program):
        adapters = [parameter for parameter in group if parameter.grad]
        if any(parameter.width > narrow for parameter in adapters):
            for _ in range(count):
                arrive(adapters)
        elif adapters:
            allocator.repeat(partial(arrive, adapters), count, [block for block, _ in widened])
    _widen(widened, allocator)


def _widen(blocks: Iterable[tuple[Block, int]], allocator: Allocator) -> None:
    for block, size in blocks:
        allocator.take(size)
        allocator.give(block)


def _pack(program: Program, held: Account, base: Base, allocator: Allocator) -> None:
    """Read, pack and widen what is not packed."""
    half = base.read_width
    parts = _parts(held).items()
    packed = {one: tuple([part.coefficient for part in own]) for one, own in parts if one not in own}
    factor = 1 if base.format == "int8" else 2
    groups = [(_loaded(group, base), count) for group, count in _groups(program)]
    each = [sum(p.elements // factor if p in packed else p.elements * half for p in g) * n for g, n in groups]
    allocator.give(allocator.take(sum(each)))
    widens = program.options.base in UPCAST
    loose: dict[Parameter, list[Block]] = {}

    def read(group: Iterable[Parameter]) -> None:
        for parameter in group:
            size = parameter.elements * half
            if parameter in packed:
                allocator.pack(size, packed[parameter])
                continue
            block = allocator.take(size)
            if widens and parameter.width != half:
                loose.setdefault(parameter, []).append(block)

    def widen(group: Iterable[Parameter]) -> None:
        for parameter in group:
            if parameter in loose:
                blocks = loose[parameter]
                block = blocks.pop(0) if len(blocks) > 1 else blocks[0]
                allocator.take(parameter.coefficient)
                allocator.give(block)

    def repeat(play: Callable[[Iterable[Parameter]], None], group: list[Parameter], times: int) -> None:
        if widens and any(p.elements * half > SMALL for p in group if p not in packed):
            for _ in range(times):  # what is given back later is one of many
                play(group)
        else:
            there = list(chain.from_iterable(loose.values()))
            allocator.repeat(partial(play, group), times, there)

    for group, count in _in_rows(_by_name(program)):
        repeat(read, _loaded(group, base), count)
    for group, count in _in_rows(groups):
        repeat(widen, group, count)


def _parts(held: Account) -> dict[Parameter, list[Parameter | State]]:
    """What stands for each weight in memory, told once where several blocks have it."""
    found: dict[Parameter, dict[object, Parameter | State]] = {}
    for thing, _ in held.weights:
        if isinstance(thing, State):
            found.setdefault(thing.of, {}).setdefault((thing.name, thing.coefficient), thing)
        else:
            found.setdefault(thing, {}).setdefault(thing, thing)
    return {weight: list(parts.values()) for weight, parts in found.items()}


Groups = Iterator[tuple[list[Parameter], int]]
"""Weights that come together, with how many such layers follow each other."""


def _groups(program: Program) -> Groups:
    """Weights in the order of the modules."""
    yield from _layers(program)
    yield program.tail.tape.parameters, 1
    yield from program.beside


def _layers(program: Program) -> Groups:
    for stack in program.stacks:
        yield stack.frame.tape.parameters, 1
        alike: dict[object, list[Parameter]] = {}
        lists: dict[Kind, list[Parameter]] = {}
        for kind in stack.kinds:
            weights = list(kind.parameters)
            lists[kind] = alike.setdefault(tuple([_traits(weight) for weight in weights]), weights)
        runs = [(lists[kind], count) for kind, count in stack.runs]
        for _, same in groupby(runs, key=lambda run: id(run[0])):
            row = list(same)
            yield row[0][0], sum([count for _, count in row])


def _in_rows(groups: Iterable[tuple[list[Parameter], int]]) -> Groups:
    """The same where layers of several kinds that come in turn, again and again, are together."""
    runs = list(groups)
    while runs:
        for many in range(2, LONGEST_TURN + 1):
            turn, times = runs[:many], 1
            while runs[times * many : (times + 1) * many] == turn:
                times += 1
            if times > 1:
                yield [weight for group, count in turn for _ in range(count) for weight in group], times
                del runs[: many * times]
                break
        else:
            yield runs.pop(0)


def _traits(weight: Parameter) -> tuple[object, ...]:
    """What decides how a weight comes."""
    name, part, role = weight.name, weight.part, weight.role
    return name, part, role, weight.inputs, weight.dims, weight.elements, weight.width, weight.grad


def _by_name(program: Program) -> Groups:
    """Weights in the order of their names in a checkpoint: the head, the embeddings, the layers."""
    first: list[Parameter] = []
    last: list[Parameter] = []
    for parameter in program.tail.tape.parameters:
        (first if parameter.part == "lm_head" else last).append(parameter)
    yield first, 1
    for group, count in _layers(program):
        yield sorted(group, key=_name), count
    yield last, 1
    yield from program.beside


def _name(parameter: Parameter) -> str:
    """The name within a layer as checkpoints have it, as far as their order goes."""
    module = {"attention": "self_attn", "mlp": "mlp", "experts": "mlp"}.get(parameter.part, "")
    return f"{module}.{parameter.name}" if module else parameter.name
