"""Weights that FSDP2 gathers unit by unit: each layer is a unit, all the rest the root.

Forward, a unit is gathered into one buffer and copied out of it into its weights; the buffer stays
until the next unit has been copied out.  Backward, a unit's weights are there, the next unit is
fetched ahead, full gradients are made, and the input of the reduction before has not gone yet.  The
root's weights are there all the time.  (torch.distributed.fsdp, PyTorch 2.13, measured on two
processes.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from math import prod

from memgui.estimator.events import Events, Group, Scratch, Thing, group
from memgui.estimator.keeping import Keeping
from memgui.estimator.layout import Layout
from memgui.estimator.once import once
from memgui.estimator.program import Program
from memgui.estimator.quantisation import stored
from memgui.estimator.shards import is_shared, shard
from memgui.estimator.stacks import Kind
from memgui.estimator.state import State
from memgui.estimator.tape import Op, Parameter
from memgui.spec.formats import WeightScheme


def _op(name: str) -> Op:
    return Op(name, "", "", (), (), (), (), None, None, None, None)


GATHER = _op("all_gather_into_tensor")
REDUCE = _op("reduce_scatter_tensor")


class Unit:
    """Weights that are gathered together.

    ``gathered`` are the whole weights in the format they compute in, or as they are ``packed`` (bytes of
    each), ``buffer`` what they are copied out of; ``reduced`` is the input of the reduction of their
    gradients, ``shards`` its result, unless that goes to the computer's memory at once, as the weights'
    shards lie there.  ``whole`` are gradients that wait for further micro batches.
    """

    def __init__(
        self, parameters: Iterable[Parameter], keeping: Keeping, packed: Mapping[Parameter, int]
    ) -> None:
        listed = list(dict.fromkeys(parameters))
        layout = keeping.layout
        sizes = {one: packed.get(one, one.coefficient) for one in listed}
        self.gathered = group([Scratch(one, size, 0) for one, size in sizes.items() if size])
        self.buffer = group([Scratch(one, size, 0) for one, size in sizes.items() if size])
        reduced: list[Scratch] = []
        shards: list[Scratch] = []
        flat = layout.flat and any(one.grad for one in listed)
        for one in listed:
            if one.grad or flat:
                width = keeping.master or one.width
                narrow = layout.reduce_width or width
                shape, often = shard(one, 1, layout)
                reduced.append(Scratch(one, one.elements * narrow, 0))
                if not layout.weights_on_host:
                    shards.append(Scratch(one, prod(shape) * often * width, 0))
        self.reduced = group(reduced)
        self.shards = group(shards)
        waiting = [Scratch(one.of, one.coefficient, 0) for one in reduced] if layout.whole_gradients else []
        self.whole = group(waiting)
        self.own = frozenset((*self.shards.things, *waiting))

    @once
    def sort(self) -> Callable[[Thing], str]:
        """Shards of gradients are gradients, all else is there for a moment."""
        return partial(_component, self.own)

    @once
    def gathering(self) -> Events:
        """It is gathered, and copied out, while the buffer of the unit before is still there."""
        return _born(GATHER, self.buffer, self.gathered)

    @once
    def reducing(self) -> Events:
        """Its gradients are copied into the reduction's input; they go before there is a result."""
        return _born(REDUCE, self.reduced)

    def reducing_after(self, before: Events, unit: Unit) -> Events:
        """The same after other events, when the input of the reduction of ``unit`` has gone."""
        events = before.copy()
        for thing in unit.reduced.things:
            events.dead(thing)
        for thing in self.reduced.things:
            events.born(thing)
        events.over(REDUCE)
        return events


def _component(own: frozenset[Thing], thing: Thing) -> str:
    return "gradients" if thing in own else "temporary"


def _born(op: Op, *groups: Group) -> Events:
    events = Events()
    for one in groups:
        for thing in one.things:
            events.born(thing)
    events.over(op)
    return events


class Units:
    """The units of a program, each made once."""

    def __init__(self, program: Program, keeping: Keeping, scheme: WeightScheme | None) -> None:
        self.again = keeping.layout.sharding == "zero3"
        """whether weights go after a unit's forward and are gathered again"""
        self.wait = keeping.layout.whole_gradients
        """whether gradients are reduced in the last micro batch of a step only"""
        self.adds = self.wait and (keeping.layout.reduce_width > 0 or not keeping.master)
        """whether autograd itself adds each to one of its format; to another FSDP adds all of a unit"""
        self._program = program
        self._keeping = keeping
        self._packed = {} if scheme is None else _packed(program, scheme, keeping.layout)
        self._known: dict[Kind, Unit] = {}
        self._last: dict[Events, Events] = {}

    @once
    def root(self) -> Unit:
        """What belongs to no layer."""
        outside = (parameter for block in self._program.frames for parameter in block.tape.parameters)
        return Unit(outside, self._keeping, self._packed)

    def of(self, kind: Kind) -> Unit:
        """A layer of this kind."""
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = Unit(kind.parameters, self._keeping, self._packed)
        return found

    def last(self, events: Events, unit: Unit) -> Events:
        """``events``, then the reduction of the root's gradients, once that of ``unit`` is done."""
        found = self._last.get(events)
        if found is None:
            found = self._last[events] = self.root.reducing_after(events, unit)
        return found


def _packed(program: Program, scheme: WeightScheme, layout: Layout) -> dict[Parameter, int]:
    """Bytes to gather of each weight that is packed: it is unpacked where it is used."""
    often: dict[Parameter, int] = {}
    for weights, count in program.weights():
        for one in weights:
            often[one] = often.get(one, 0) + count
    total: dict[Parameter, int] = {}
    for thing, count in stored(program, scheme):
        if isinstance(thing, State):
            size = thing.coefficient * count if is_shared(thing, layout) else 0
            total[thing.of] = total.get(thing.of, 0) + size
    return {one: size // often[one] for one, size in total.items()}


@lru_cache(maxsize=64)
def units_of(program: Program, keeping: Keeping, scheme: WeightScheme | None) -> Units:
    """The units of a program whose base is stored as ``scheme`` says."""
    return Units(program, keeping, scheme)
