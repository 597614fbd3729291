"""What stays from step to step: weights, buffers, gradients, optimizer states, counts of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec

from memgui.estimator.events import Gradient, gradient_of
from memgui.estimator.keeping import Keeping
from memgui.estimator.layout import ALONE, Layout
from memgui.estimator.lifetimes import Consumer
from memgui.estimator.optimizer_states import NO_STATES, Listed, States
from memgui.estimator.overhead import block_bytes
from memgui.estimator.program import Program
from memgui.estimator.quantisation import stored
from memgui.estimator.result import Parameters
from memgui.estimator.shards import (
    backward_buffers,
    buckets,
    gathered_stage,
    gathered_window,
    gradient_shards,
    lasting_buffers,
    saved_whole,
    sized,
    weight_shards,
    whole_gradients,
    whole_on_each,
)
from memgui.estimator.state import State, state_of
from memgui.estimator.tape import Parameter, Tensor
from memgui.estimator.weights import counted
from memgui.spec.formats import WeightScheme

Weights = Sequence[tuple[Parameter, int]]
Buffers = tuple[tuple[Tensor, int], ...]


class Heap(NamedTuple):
    """Things (each with how often), their bytes, and what the allocator's blocks add to them."""

    things: tuple[tuple[State, int], ...] = ()
    bytes: int = 0
    excess: int = 0


def _heap(things: tuple[tuple[State, int], ...]) -> Heap:
    return Heap(things, sized(things), _excess(things)) if things else _NOTHING


_NOTHING = Heap()


class Account(msgspec.Struct, frozen=True, eq=False):
    """Bytes and counts that do not depend on the workload.

    ``weights``, ``buffers``, ``gradients`` and ``states`` list (thing, how often); ``*_bytes`` are
    their sums, ``*_excess`` what the allocator's blocks add to them.  ``lengthy`` are buffers that grow
    with the workload, which no sum here has.  ``paged_bytes``: states in managed
    memory, ``host_bytes``: in the computer's; neither is in ``states``.  ``doubt_bytes``: what the
    states take more where an implementation keeps them in fp32.  ``clip_bytes``: clipping takes the
    norm of each gradient, stacks the norms, and takes theirs.  ``step_things`` are what the optimizer's
    step holds for a moment, while ``stepper`` runs.  ``consumer`` is there where gradients do not wait
    for a step.  Of what ranks share out there is one rank's.  ``buckets`` are DDP's; ``lasting`` is what
    sharing keeps from step to step, ``running`` what it holds while a micro batch runs, ``returning``
    while it runs back.  ``fills``: new gradients go into a buffer of shards at once; ``adds``: they are
    added to whole ones in ``running``.  ``whole`` is there instead of gradients' shards from the first
    micro batch of a step to the last.  ``saving`` is there while the model is saved.
    """

    weights: Sequence[tuple[Parameter | State, int]]
    buffers: tuple[tuple[Tensor, int], ...]
    lengthy: tuple[Tensor, ...]
    gradients: Listed[Gradient | State]
    states: Listed[State]
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
    whole: Heap
    saving: Heap


@lru_cache(maxsize=64)
def account(program: Program, keeping: Keeping | None = None, scheme: WeightScheme | None = None) -> Account:
    """The account of a program; of one that is trained, as ``keeping`` says.

    ``scheme``: how weights that are not trained are stored, where that is not the format they compute in.
    """
    weights, buffers, trained = _held(program)
    grown, resting, parameters = counted(program)
    kept: Sequence[tuple[Parameter | State, int]] = stored(program, scheme) if scheme is not None else weights
    layout = keeping.layout if keeping is not None else ALONE
    host = 0
    gathered = gathered_stage(kept, layout, keeping) if keeping is not None else ()
    if keeping is not None and layout.shares_weights:
        kept = weight_shards(kept, layout, keeping)
        if layout.weights_on_host:
            shards, kept = kept, whole_on_each(kept, layout)
            host = _bytes(shards) - _bytes(kept)
    lengthy = tuple([one for one, _ in buffers if one.monomial])
    fixed = [pair for pair in buffers if not pair[0].monomial]
    tensors = sum([sum(one.values()) for one in grown.values()])
    states = States(program, keeping) if keeping is not None else NO_STATES
    gradients = Listed(partial(_gradients, program, trained, keeping))
    alike = _like_weights(program, keeping)
    if layout.weights_on_host or (keeping is not None and keeping.gradients_on_host):
        host, gradients, alike = host + _bytes(gradients), Listed(tuple), False
    rests: dict[int, int] = {}
    own = {width: _blocks(one.items(), rests, width) for width, one in grown.items()}
    trained_bytes, trained_excess = _added(own.values())
    if kept is weights:
        weight_bytes, weight_excess = _added(
            [_blocks(one.items(), rests, width) for width, one in resting.items()]
        )
        weight_bytes, weight_excess = weight_bytes + trained_bytes, weight_excess + trained_excess
    else:
        weight_bytes, weight_excess = _sizes(kept, rests)
    if alike:
        gradient_bytes, gradient_excess = trained_bytes, trained_excess
    else:
        gradient_bytes, gradient_excess = _sizes(gradients, rests)
    if fixed:
        beside, over = _sizes(fixed, rests)
        weight_bytes, weight_excess = weight_bytes + beside, weight_excess + over
    state_bytes, state_excess = _blocks(states.sizes.items(), rests)
    for (width, wide), many in states.uniform.items():
        bytes_, over = own[width] if wide == width else _blocks(grown[width].items(), rests, wide)
        state_bytes, state_excess = state_bytes + bytes_ * many, state_excess + over * many
    return Account(
        weights=kept,
        buffers=buffers,
        lengthy=lengthy,
        gradients=gradients,
        states=Listed(states.listed),
        weight_bytes=weight_bytes,
        gradient_bytes=gradient_bytes,
        state_bytes=state_bytes,
        weight_excess=weight_excess,
        gradient_excess=gradient_excess,
        state_excess=state_excess,
        paged_bytes=states.paged,
        host_bytes=states.host + host,
        doubt_bytes=states.doubt,
        clip_bytes=(2 * tensors + 1) * max(grown, default=0),
        step_bytes=_bytes(states.step),
        step_things=tuple(states.step),
        stepper=states.stepper,
        consumer=states.consumer,
        parameters=parameters,
        buckets=_heap(buckets(trained, layout)),
        lasting=_heap(lasting_buffers(trained, layout)),
        running=_heap((*gathered_window(program, layout), *gathered)),
        returning=_heap(backward_buffers(trained, layout)),
        fills=layout.library == "deepspeed" and layout.shares_gradients,
        adds=bool(gathered),
        whole=_heap(whole_gradients(_reduced(program, trained, layout), layout, keeping))
        if keeping is not None
        else _NOTHING,
        saving=_heap(saved_whole(program, layout, keeping)) if keeping is not None else _NOTHING,
    )


@lru_cache(maxsize=64)
def _held(program: Program) -> tuple[Weights, Buffers, Weights]:
    """Weights, buffers and trained weights of a program, with how often each occurs."""
    buffers = tuple([(one, count) for block, count in program.blocks for one in block.tape.buffers])
    weights = Listed(lambda: [(one, count) for together, count in program.weights() for one in together])
    return weights, buffers, Listed(lambda: [one for one in weights if one[0].grad])


def _gradients(
    program: Program, trained: Weights, keeping: Keeping | None
) -> tuple[tuple[Gradient | State, int], ...]:
    """One for each trained weight: its own, or a main gradient; none that waits where each is consumed."""
    if keeping is not None and keeping.consumes:
        return ()
    if keeping is not None and keeping.layout.shares_gradients:
        reduced = _reduced(program, trained, keeping.layout)
        return gradient_shards(reduced, keeping.layout, keeping)
    if keeping is not None and keeping.gradient_width:
        width = keeping.gradient_width
        return tuple([(state_of("main gradient", parameter, width), count) for parameter, count in trained])
    return tuple([(_gradient(program, parameter), count) for parameter, count in trained])


def _reduced(program: Program, trained: Weights, layout: Layout) -> Weights:
    """The weights that have gradients to reduce: where a layer is one flat parameter, all it has.

    (torch.distributed.fsdp, ``FlatParameter``: what is frozen gets zeros; seen in PyTorch 2.13.)
    """
    if not (layout.flat and layout.fsdp):
        return trained
    whole = [kind for kind in program.kinds if any(one.grad for one in kind.parameters)]
    inside = {one for kind in whole for one in kind.parameters}
    layers = [(one, kind.count) for kind in whole for one in kind.parameters]
    return (*layers, *[(one, count) for one, count in trained if one not in inside])


def _gradient(program: Program, parameter: Parameter) -> Gradient | State:
    """A weight's gradient.  Transformers' tensor parallel embedding gets one of all rows on each rank.

    (DTensor's ``embedding_dense_backward`` returns a partial sum; measured, PyTorch 2.13.)
    """
    if parameter.part == "embedding" and _all_rows(program):
        dims = ("V", *parameter.dims[1:])
        return state_of("gradient of all rows", parameter, parameter.width, dims, program.sizes.count(dims))
    return gradient_of(parameter)


def _like_weights(program: Program, keeping: Keeping | None) -> bool:
    """Whether every trained weight has a gradient that is as large as it."""
    if _all_rows(program):
        return False
    if keeping is None:
        return True
    return not (keeping.consumes or keeping.layout.shares_gradients or keeping.gradient_width)


def _all_rows(program: Program) -> bool:
    """Whether an embedding that ranks share has a gradient of all rows on each of them."""
    o = program.options
    return o.split.vocabulary > 1 and o.implementation == "transformers"


def _sizes(things: Iterable[tuple[Tensor | Gradient | State, int]], rests: dict[int, int]) -> tuple[int, int]:
    """Bytes, and what the allocator's blocks add to them; ``rests``: to one thing of each size."""
    counts: dict[int, int] = {}
    for thing, count in things:
        size = thing.coefficient
        counts[size] = counts.get(size, 0) + count
    return _blocks(counts.items(), rests)


def _blocks(counts: Iterable[tuple[int, int]], rests: dict[int, int], width: int = 1) -> tuple[int, int]:
    """The same of so many things of each number of elements, which have so many bytes each."""
    total = excess = 0
    for elements, count in counts:
        size = elements * width
        rest = rests.get(size)
        if rest is None:
            rest = rests[size] = block_bytes(size) - size
        total += size * count
        excess += rest * count
    return total, excess


def _added(amounts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """All of them together."""
    total = excess = 0
    for bytes_, over in amounts:
        total += bytes_
        excess += over
    return total, excess


def _bytes(things: Iterable[tuple[Tensor | Gradient | State, int]]) -> int:
    return _sizes(things, {})[0]


def _excess(things: Iterable[tuple[Tensor | Gradient | State, int]]) -> int:
    return _sizes(things, {})[1]
