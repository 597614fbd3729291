"""A block run back: which gradients are born and die, and what it leaves to others.

Operators run in the reverse of the order they were recorded in (autograd takes the ready one with the
highest sequence number, which is the same): gradients are born, then the operator's own output
gradient and what it saved die.  Where two gradients meet they are summed in place.
"""

from __future__ import annotations

from typing import Final

from memgui.estimator.events import NONE, Events, Gradient, Group, Inner, Scratch, Until, gradient_of
from memgui.estimator.lifetimes import Consumer, Role
from memgui.estimator.op import backwards
from memgui.estimator.outcome import coming_to
from memgui.estimator.saved import FREED, Saved, copies_made, staying_in
from memgui.estimator.tape import ALIAS, NEW, PARAMETER, REPLACES, Op, Tape, Tensor

STATES_MADE = Op("zeros_like", "optimizer", "", (), (), (), (), None, None, None, None)
"""What runs as an optimizer that steps in the backward pass makes a weight's states."""


FEW: Final = 12
"""So many events are worth looking at together."""


class Back:
    """A block's backward: its events, and the gradient of its input (``finish``), if there is one.

    After the first ``unaided`` events it wants something saved.  Where it is not ``whole`` there are the
    first events alone.
    """

    __slots__ = ("events", "finish", "unaided", "whole")

    def __init__(self) -> None:
        self.events = Events()
        self.finish = NONE
        self.unaided = -1
        self.whole = False

    def early(self) -> tuple[Group, Group]:
        """What is born, and what has died, before anything saved is wanted."""
        return self.events.net(self.unaided, whole=False)

    def release(self, gradient: Gradient) -> None:
        """One who waited for ``gradient`` has it."""
        gradient.refs -= 1
        if not gradient.refs:
            self.events.dead(gradient)

    def keep(self, made: Gradient, waiting: Gradient) -> None:
        """``made`` becomes the gradient that waits for other blocks."""
        self.release(made)
        self.events.born(waiting)


def backward(
    tape: Tape,
    start: Gradient,
    saved: dict[Tensor, int],
    role: Role,
    *,
    accumulate: bool,
    keep_input: bool,
    repeated: bool = False,
    consumer: Consumer | None = None,
    until: Until | None = None,
) -> Back:
    """Births and deaths while autograd runs the block back.

    At its beginning the gradient of the block's output (``start``) and all of ``saved`` are alive, at its
    end the gradient of its input and of its weights.  ``accumulate``: gradients of weights exist already,
    so each new one is added to them and dies, or a ``consumer`` takes it.  ``keep_input`` and
    ``repeated``: see :func:`memgui.estimator.saved.staying_in`.  After some events each ``until`` is asked
    whether that is enough.
    """
    assert tape.out is not None
    back = Back()
    start.refs = 2 if tape.final else 1  # the caller of backward() holds the gradient of the loss
    events = back.events
    things, sizes, ends, operators = events.things, events.sizes, events.ends, events.operators
    left = dict(saved)
    staying = staying_in(tape, keep_input=keep_input, repeated=repeated)
    # its own: who was given the first does not use the second
    again = tape.handed_out if repeated else copies_made(tape)
    held = Saved(tape, left, staying) if tape.regions else None
    grads = {tape.out: start}
    coming = coming_to(tape)
    weights = _Weights(back, role, accumulate, consumer)
    waiting = role.waiting
    for tensor, gradient in waiting.items():
        if tensor.origin != PARAMETER:
            gradient.refs = 1
            grads[tensor] = gradient
    meeting: list[tuple[Tensor, Gradient]] = []
    later: list[tuple[Gradient, Scratch | None]] = []
    wide: list[tuple[Gradient, Scratch]] = []
    dying: list[Tensor] = []
    asked = FEW
    # a weight's gradient stays as it is: nobody adds to it, takes it or waits for another
    simple = not (accumulate or waiting or role.starts or coming)
    for op in reversed(tape.ops) if tape.folded or tape.regions else backwards(tape.written):
        edges = op.back
        if not edges:
            continue
        outs = op.outs
        if len(outs) == 1:
            came = grads.pop(outs[0], None)
            if came is None:
                continue
            arrived = [came]
        else:
            arrived = [grads.pop(tensor) for tensor in outs if tensor in grads]
            if not arrived:
                continue
        saves = op.saves
        if saves and back.unaided < 0:
            back.unaided = len(things)
        if held is not None:
            held.compute_again(events, op)
        scratch = None
        if op.back_extra is not None:
            scratch = Scratch(outs[0], *op.back_extra)
            events.born(scratch)
        for tensor, how in edges:
            if how == NEW:
                size = tensor.coefficient
                gradient = Gradient(tensor, size, tensor.monomial)
                things.append(gradient)
                sizes.append(size)
                if simple and tensor.origin == PARAMETER:
                    continue
            elif how == ALIAS:
                gradient = arrived[0]
                gradient.refs += 1
            else:
                gradient = gradient_of(tensor)
                if how == REPLACES:
                    later.append((gradient, scratch))
                    scratch = None
                else:
                    elements = tensor.coefficient // tensor.width
                    raw = Scratch(tensor, elements * outs[0].width, tensor.monomial)
                    wide.append((gradient, raw))
                    events.born(raw)
            if tensor.origin == PARAMETER or tensor in grads:
                meeting.append((tensor, gradient))
            else:
                grads[tensor] = gradient
        if op.back_inner is not None:
            inner = Inner(outs[0], *op.back_inner)
            events.born(inner)
            events.dead(inner)
        if held is not None:
            dying += held.let_go(op)
        else:
            for tensor in saves:
                root = tensor.base or tensor
                count = left.get(root)
                if count == 1:  # the last that keeps it
                    if (root.origin in FREED or root in again) and root not in staying:
                        dying.append(root)
                elif count is not None:
                    left[root] = count - 1
        if wide:
            if repeated or op.region:  # what was computed again dies as it is read
                for root in dying:
                    events.dead(root)
                dying.clear()
            for gradient, raw in wide:  # cast while all that the operator was given is there
                events.born(gradient)
                events.dead(raw)
            wide.clear()
        if scratch is not None:
            events.dead(scratch)
        for gradient in arrived:
            gradient.refs -= 1
            if not gradient.refs:
                things.append(gradient)
                sizes.append(-gradient.coefficient)
        if dying:
            for root in dying:
                things.append(root)
                sizes.append(-root.coefficient)
            dying.clear()
        if later:
            for gradient, beside in later:
                events.born(gradient)
                if beside is not None:
                    events.dead(beside)
            later.clear()
        if meeting:
            for tensor, gradient in meeting:
                if tensor.origin != PARAMETER:
                    if tensor in waiting:  # the sum is the one that waits
                        back.release(gradient)
                    else:
                        back.release(grads[tensor])
                        back.release(gradient)
                        grads[tensor] = total = gradient_of(tensor)
                        events.born(total)
                elif tensor in coming:
                    coming[tensor] -= 1
                    if tensor in grads:
                        back.release(gradient)
                    else:
                        grads[tensor] = gradient  # waits for those of earlier uses
                    if not coming[tensor]:
                        weights.deliver(tensor, grads.pop(tensor), op)
                else:
                    weights.deliver(tensor, gradient, op)
            meeting.clear()
        ends.append(len(things))
        operators.append(op)
        if until is not None and len(things) >= asked:
            if until(events):
                return back
            asked = len(things) + FEW
    back.whole = True
    for tensor, gradient in role.starts.items():
        if tensor.origin != PARAMETER:
            back.keep(grads[tensor], gradient)
    events.over(op)
    if tape.carried is not None and tape.carried in grads:
        back.finish = Group((grads[tape.carried],))
    return back


class _Weights:
    """What becomes of the gradients of weights."""

    __slots__ = ("accumulate", "back", "consumer", "role")

    def __init__(self, back: Back, role: Role, accumulate: bool, consumer: Consumer | None) -> None:
        self.back = back
        self.role = role
        self.accumulate = accumulate
        self.consumer = consumer

    def deliver(self, weight: Tensor, gradient: Gradient, op: Op) -> None:
        """A gradient reaches its weight; one that other blocks use too waits for theirs."""
        back, role = self.back, self.role
        gradient.of = weight  # one that was only passed on belongs to the weight from here on
        if weight in role.waiting:
            waiting = role.waiting[weight]
            back.events.dead(gradient)
            if self.accumulate and weight in role.ends:
                self._consume(weight, op)
                back.events.dead(waiting)
        elif weight in role.starts:
            back.keep(gradient, role.starts[weight])
        elif self.accumulate:
            self._consume(weight, op)
            back.events.dead(gradient)

    def _consume(self, weight: Tensor, op: Op) -> None:
        """The weight is updated, after what ``op`` did so far."""
        consumer = self.consumer
        if consumer is None:
            return
        events = self.back.events
        made = consumer.made.get(weight)
        if made is not None:
            events.over(op)
            for state in made:
                events.born(state)
            events.over(STATES_MADE)
        if consumer.work.get(weight):
            events.over(op)
            scratch = Scratch(weight, consumer.work[weight], 0)
            events.born(scratch)
            events.dead(scratch)
            events.over(consumer.op)
