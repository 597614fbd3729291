"""From a tape to lifetimes: when each tensor is born and dies.

The result of each walk is a list of :class:`Events`: signed sizes in order, so that live bytes at
any operator are a running sum and a peak is its maximum.  Sizes stay open in micro batch and
sequence length.

Forward, a tensor dies after its last use unless autograd saved it; :mod:`memgui.estimator.backward`
goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from memgui.estimator.events import Events, Gradient, Group, Inner, Scratch, group
from memgui.estimator.once import once
from memgui.estimator.state import State
from memgui.estimator.tape import AMBIENT, CARRIED, HELD_BEFORE, MADE, Op, Tape, Tensor


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

    ``work`` is what a weight's update holds for a moment, in bytes, while ``operator`` runs; ``states`` are
    what the optimizer keeps of the weights, and ``made`` those of each that this step makes.
    """

    def __init__(
        self,
        work: Mapping[Tensor, int],
        operator: str,
        states: Callable[[], Iterable[tuple[State, int]]] = tuple,
    ) -> None:
        self.work = work
        self.operator = operator
        self.op = Op(operator, "optimizer", "", (), (), (), (), None, None, None, None)
        self.made: dict[Tensor, list[State]] = {}
        self._states = states

    @once
    def first(self) -> Consumer:
        """The same in its first step: each weight's states are made as its first gradient arrives.

        A weight of layers that are alike is listed again with those of each kind.
        """
        first = Consumer(self.work, self.operator)
        last: Tensor | None = None
        for state, _ in self._states():
            if state.of is last:
                first.made[state.of].append(state)
            elif state.of not in first.made:
                first.made[state.of] = [state]
                last = state.of
            else:
                last = None
        return first


def forward(tape: Tape, saved: Collection[Tensor], there: Collection[Tensor] = ()) -> Events:
    """Births and deaths while the block runs; what is in ``saved`` does not die.

    Results that are ``there`` already are not computed.  The block's input is freed only where
    ``tape.frees_input``; its output, what it caches or holds, and autocast's copies of trained weights
    stay.  ``stop`` is where a recomputation ends: PyTorch stops it once the last saved tensor is there
    again.
    """
    stop_op, dying = _last_uses(tape, saved)
    events = Events()
    things, sizes = events.things, events.sizes
    for index, op in enumerate(tape.ops):
        if index == stop_op and not any(tensor in op.outs for tensor in op.saves):
            events.stop = len(things)  # it saves inputs only: PyTorch never runs it again
        scratch = Scratch(op.outs[0], *op.extra) if op.extra is not None else None
        if scratch is not None:
            events.born(scratch)
        for tensor in op.outs:
            if tensor.base is None and tensor not in there and (not tensor.stepwise or tensor in saved):
                things.append(tensor)
                sizes.append(tensor.coefficient)
        if op.inner is not None:
            inner = Inner(op.outs[0], *op.inner)
            events.born(inner)
            events.dead(inner)
        if scratch is not None:
            events.dead(scratch)
        if index == stop_op and not events.stop:
            events.stop = len(things)
        if index in dying:
            for root in dying[index]:
                things.append(root)
                sizes.append(-root.coefficient)
        events.over(op)
    return events


def _last_uses(tape: Tape, saved: Collection[Tensor]) -> tuple[int, dict[int, list[Tensor]]]:
    """The last operator that saves anything, and what dies with which."""
    last: dict[Tensor, int] = {}
    stop_op = -1
    for index, op in enumerate(tape.ops):
        for tensor in op.ins:
            last[tensor.base or tensor] = index
        for tensor in op.outs:
            if not tensor.stepwise or tensor in saved:
                last[tensor.base or tensor] = index
        if op.saves:
            stop_op = index
    if not saved:
        for end, tensors in tape.dangling:
            last.update(dict.fromkeys([tensor.root for tensor in tensors], tape.ops.index(end)))
    for stays in _staying(tape, saved):
        for root in stays:
            last.pop(root, None)
    mortal = _mortal(tape)
    dying: dict[int, list[Tensor]] = {}
    for root, index in last.items():
        if root.origin in mortal:
            if index in dying:
                dying[index].append(root)
            else:
                dying[index] = [root]
    return stop_op, dying


def _staying(tape: Tape, saved: Iterable[Tensor]) -> tuple[Iterable[Tensor], ...]:
    """What does not die with its last use."""
    out = () if tape.out is None else (tape.out.root,)
    return saved, tape.held, tape.cast_cache, tape.pinned, [tensor.root for tensor in tape.cached], out


def _mortal(tape: Tape) -> tuple[int, ...]:
    """Where that comes from which may die in the block."""
    return (MADE, HELD_BEFORE, CARRIED) if tape.frees_input else (MADE, HELD_BEFORE)


def alive_forward(
    tape: Tape, saved: Collection[Tensor], values: Sequence[int], born: int, enough: int
) -> int:
    """No less than is ever alive beyond the start while the block runs, in bytes, told from its end.

    There it is known what is alive: what stays, and what is used from there on.  ``born`` is all that is ever
    allocated; where less than ``enough`` has been so far, nobody asks how much of that is alive.
    """
    there = set(chain(*_staying(tape, saved), tape.handed_out))
    if not saved:
        there.update([tensor.root for _, tensors in tape.dangling for tensor in tensors])
    live = sum([one.coefficient * values[one.monomial] for one in there if one.origin in (MADE, AMBIENT)])
    most = live
    for op in reversed(tape.written):
        if born < enough:
            break
        for tensor in (*op.ins, *op.outs):
            root = tensor.base or tensor
            if root.origin == MADE and root not in there:
                there.add(root)
                live += root.coefficient * values[root.monomial]
        passing = 0
        for beside in (op.extra, op.inner):
            if beside is not None:
                coefficient, monomial = beside
                passing += coefficient * values[monomial]
        most = max(most, live + passing)
        born -= passing
        for tensor in op.outs:
            if tensor.base is None:
                size = tensor.coefficient * values[tensor.monomial]
                born -= size
                if tensor in there:
                    live -= size
    return max(most, born)


def left_forward(tape: Tape, saved: Collection[Tensor]) -> tuple[Group, Group]:
    """What is there after :func:`forward` and was not before, and what has gone, without their order."""
    stays = dict.fromkeys(chain.from_iterable(_staying(tape, saved)))
    born = [one for one in stays if one.origin == MADE and (not one.stepwise or one in saved)]
    given = [one for one in stays if one.origin == AMBIENT and one.block == tape.key]
    if given:  # to other blocks, or by a batch
        made = {tensor for op in tape.written for tensor in op.outs}
        born += [one for one in given if one in made]
    going = [*tape.replaced]
    if tape.frees_input and tape.carried is not None:
        going.append(tape.carried)
    gone = [one for one in going if one not in stays and one.origin in _mortal(tape)]
    if gone:
        used = {tensor.base or tensor for op in tape.written for tensor in op.ins}
        gone = [one for one in gone if one in used]
    return group(born), group(gone)
