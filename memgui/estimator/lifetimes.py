"""From a tape to lifetimes: when each tensor is born and dies, going forward and going back.

The result of each walk is a list of :class:`Events`: signed sizes in order, so that live bytes at
any operator are a running sum and a peak is its maximum.  Sizes stay open in micro batch and
sequence length.

Forward, a tensor dies after its last use unless autograd saved it.  Backward, operators run in
the reverse of the order they were recorded in (autograd takes the ready one with the highest
sequence number, which is the same): gradients are born, then the operator's own output gradient
and what it saved die.  Where two gradients meet they are summed in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from memgui.estimator.events import Events, Gradient, Group, Inner, Scratch, Thing
from memgui.estimator.saved import Saved
from memgui.estimator.tape import (
    ALIAS,
    CARRIED,
    HELD_BEFORE,
    MADE,
    PARAMETER,
    PROMOTED,
    REPLACES,
    Op,
    Tape,
    Tensor,
)


class Role:
    """A block's place, in the order of backward, among the blocks that use the same tensor or weight.

    Such a tensor has one gradient, which waits in autograd's buffer from the first contribution to
    the last.  ``waiting`` are those that wait already when the block's backward begins, ``starts``
    those that it is the first to contribute to; of the weights in ``ends`` it is the last.
    """

    __slots__ = ("ends", "starts", "waiting")

    def __init__(
        self,
        waiting: Mapping[Tensor, Gradient],
        starts: Mapping[Tensor, Gradient],
        ends: frozenset[Tensor] = frozenset(),
    ) -> None:
        self.waiting = waiting
        self.starts = starts
        self.ends = ends


ALONE: Final = Role({}, {})
"""The role of a block that uses nothing another one uses."""


class Consumer:
    """An optimizer that steps in the backward pass: it takes each gradient as soon as its weight has it.

    ``work`` is what a weight's update holds for a moment, in bytes, while ``operator`` runs.
    """

    __slots__ = ("op", "work")

    def __init__(self, work: Mapping[Tensor, int], operator: str) -> None:
        self.work = work
        self.op = Op(operator, "optimizer", "", (), (), (), (), None, None, None, None)


def forward(tape: Tape, saved: Collection[Tensor], there: Collection[Tensor] = ()) -> Events:
    """Births and deaths while the block runs; what is in ``saved`` does not die.

    Results that are ``there`` already are not computed.  The block's input is freed only where
    ``tape.frees_input``; its output, what it caches or holds, and autocast's copies of trained weights
    stay.  ``stop`` is where a recomputation ends: PyTorch stops it once the last saved tensor is there
    again.
    """
    stay = set(saved)
    stay.update(tensor.root for tensor in tape.cached)
    stay.update(tape.held)
    stay.update(tape.cast_cache)
    stay.update(tape.pinned)
    if tape.out is not None:
        stay.add(tape.out.root)
    last: dict[Tensor, int] = {}
    stop_op = -1
    for index, op in enumerate(tape.ops):
        for tensor in op.ins:
            last[tensor.root] = index
        for tensor in op.outs:
            if tensor in saved or not tensor.stepwise:
                last[tensor.root] = index
        if op.saves:
            stop_op = index
    dying: dict[int, list[Tensor]] = {}
    for root, index in last.items():
        mortal = root.origin in (MADE, HELD_BEFORE) or (root.origin == CARRIED and tape.frees_input)
        if mortal and root not in stay:
            dying.setdefault(index, []).append(root)
    events = Events()
    for index, op in enumerate(tape.ops):
        if index == stop_op and not any(tensor in op.outs for tensor in op.saves):
            events.stop = len(events.things)  # it saves inputs only: PyTorch never runs it again
        scratch = Scratch(op.outs[0], op.extra) if op.extra is not None else None
        if scratch is not None:
            events.born(scratch, op)
        for tensor in op.outs:
            if tensor.root is tensor and tensor not in there and (tensor in saved or not tensor.stepwise):
                events.born(tensor, op)
        if op.inner is not None:
            events.inside(Inner(op.outs[0], op.inner), op)
        if scratch is not None:
            events.dead(scratch, op)
        if index == stop_op and not events.stop:
            events.stop = len(events.things)
        for root in dying.get(index, ()):
            events.dead(root, op)
    return events


class Back:
    """A block's backward: ``start`` is its output's gradient, ``finish`` its input's, if there is one.

    ``left`` are the gradients it leaves on its weights and in autograd's buffers, ``taken`` those
    that waited for it and are gone.  After the first ``unaided`` events it wants something saved.
    """

    __slots__ = (
        "events",
        "finish",
        "finish_group",
        "left",
        "left_group",
        "start",
        "start_group",
        "taken",
        "taken_group",
        "unaided",
    )

    def __init__(self, start: Gradient) -> None:
        self.events = Events()
        self.start = start
        self.finish: Gradient | None = None
        self.left: list[Gradient] = []
        self.taken: list[Gradient] = []
        self.unaided = -1

    def close(self, finish: Gradient | None) -> None:
        """The walk is over: nothing more is added."""
        self.finish = finish
        self.start_group = Group((self.start,))
        self.finish_group = Group((finish,) if finish is not None else ())
        self.left_group = Group(self.left)
        self.taken_group = Group(self.taken)

    def early(self) -> tuple[Group, Group]:
        """What is born, and what has died, before anything saved is wanted."""
        count: dict[Thing, int] = {}
        events = self.events
        for thing, coefficient in zip(events.things[: self.unaided], events.coefficients, strict=False):
            if coefficient:
                count[thing] = count.get(thing, 0) + (1 if coefficient > 0 else -1)
        born = Group(thing for thing, times in count.items() if times > 0)
        return born, Group(thing for thing, times in count.items() if times < 0)


def backward(
    tape: Tape,
    saved: dict[Tensor, int],
    role: Role,
    *,
    accumulate: bool,
    keep_input: bool,
    repeated: bool = False,
    consumer: Consumer | None = None,
) -> Back:
    """Births and deaths while autograd runs the block back, and the gradients it leaves.

    At its start the gradient of the block's output and all of ``saved`` are alive, at its end the
    gradient of its input and of its weights.  ``accumulate``: gradients of weights exist already,
    so each new one is added to them and dies, or a ``consumer`` takes it.  ``keep_input``: someone
    else keeps the block's input (checkpointing does).  ``repeated``: what is run back was computed a
    second time, and the graph that pinned tensors hang on is gone.
    """
    assert tape.out is not None
    back = Back(Gradient(tape.out))
    if tape.final:
        back.start.refs += 1  # the caller of backward() holds the gradient of the loss
    events = back.events
    held = Saved(tape, saved, () if repeated else tape.pinned, keep_input=keep_input)
    grads = {tape.out: back.start}
    twice = _used_twice(tape) if tape.reused else ()
    for tensor, gradient in role.waiting.items():
        if tensor.origin != PARAMETER:
            gradient.refs = 1
            grads[tensor] = gradient
    for op in reversed(tape.ops):
        if not op.back:
            continue
        arrived = [grads.pop(tensor) for tensor in op.outs if tensor in grads]
        if not arrived:
            continue
        if op.saves and back.unaided < 0:
            back.unaided = len(events.things)
        held.compute_again(events, op)
        scratch = Scratch(op.outs[0], op.back_extra) if op.back_extra is not None else None
        if scratch is not None:
            events.born(scratch, op)
        replaces = any(how == REPLACES for _, how in op.back)
        if replaces:
            _used_up(back, arrived, role, op)
            held.free(events, op)
        results: list[tuple[Tensor, Gradient]] = []
        wider: list[tuple[Gradient, Scratch]] = []
        for tensor, how in op.back:
            if how == ALIAS:
                gradient = arrived[0]
                gradient.refs += 1
            else:
                gradient = Gradient(tensor)
                if how == PROMOTED:
                    elements = tensor.coefficient // tensor.width
                    raw = Scratch(tensor, (elements * op.outs[0].width, tensor.monomial))
                    wider.append((gradient, raw))
                    events.born(raw, op)
                else:
                    events.born(gradient, op)
            results.append((tensor, gradient))
        if op.back_inner is not None:
            events.inside(Inner(op.outs[0], op.back_inner), op)
        if scratch is not None:
            events.dead(scratch, op)
        if not replaces:
            _used_up(back, arrived, role, op)
            held.free(events, op)
        for gradient, raw in wider:
            events.born(gradient, op)
            events.dead(raw, op)
        for tensor, gradient in results:
            if tensor in twice and tensor not in grads:
                grads[tensor] = gradient  # waits for that of the first use
            elif tensor.origin == PARAMETER:
                if tensor in twice:
                    _release(events, grads.pop(tensor), op)
                _deliver(back, tensor, gradient, op, role, accumulate=accumulate, consumer=consumer)
            elif tensor in role.waiting:
                _release(events, gradient, op)  # summed into the one that waits
            else:
                waiting = grads.get(tensor)
                if waiting is None:
                    grads[tensor] = gradient
                else:
                    _release(events, waiting, op)
                    _release(events, gradient, op)
                    grads[tensor] = total = Gradient(tensor)
                    events.born(total, op)
    for tensor, gradient in role.starts.items():
        if tensor.origin != PARAMETER:
            _keep(back, grads[tensor], gradient, tape.ops[0])
    back.close(grads.get(tape.carried) if tape.carried is not None else None)
    return back


def _used_up(back: Back, arrived: list[Gradient], role: Role, op: Op) -> None:
    """The gradients of the operator's results are let go."""
    for gradient in arrived:
        if gradient is role.waiting.get(gradient.of):
            back.taken.append(gradient)
        _release(back.events, gradient, op)


def _used_twice(tape: Tape) -> set[Tensor]:
    """Weights that get two gradients in the block, and not one through autocast's copy."""
    found = Counter(tensor for op in tape.ops for tensor, _ in op.back if tensor in tape.reused)
    return {tensor for tensor, count in found.items() if count > 1}


def _release(events: Events, gradient: Gradient, op: Op) -> None:
    gradient.refs -= 1
    if not gradient.refs:
        events.dead(gradient, op)


def _keep(back: Back, made: Gradient, waiting: Gradient, op: Op) -> None:
    """``made`` becomes the gradient that waits for other blocks."""
    _release(back.events, made, op)
    back.events.born(waiting, op)
    back.left.append(waiting)


def _deliver(
    back: Back,
    weight: Tensor,
    gradient: Gradient,
    op: Op,
    role: Role,
    *,
    accumulate: bool,
    consumer: Consumer | None,
) -> None:
    """A gradient reaches its weight; one that other blocks use too waits for theirs."""
    waiting = role.waiting.get(weight)
    gradient.of = weight  # one that was only passed on belongs to the weight from here on
    if waiting is not None:
        back.events.dead(gradient, op)
        if accumulate and weight in role.ends:
            _consume(back.events, weight, consumer)
            back.events.dead(waiting, op)
            back.taken.append(waiting)
    elif weight in role.starts:
        _keep(back, gradient, role.starts[weight], op)
    elif accumulate:
        _consume(back.events, weight, consumer)
        back.events.dead(gradient, op)
    else:
        back.left.append(gradient)


def _consume(events: Events, weight: Tensor, consumer: Consumer | None) -> None:
    """The weight is updated."""
    if consumer is not None and consumer.work.get(weight):
        scratch = Scratch(weight, (consumer.work[weight], 0))
        events.born(scratch, consumer.op)
        events.dead(scratch, consumer.op)
