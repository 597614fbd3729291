"""What autograd keeps of a block, what is computed again instead, and when it is let go.

A stretch of operators that is computed again (see ``Tape.within``) keeps its inputs; what was made in
it is alive from the moment backward reaches it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from memgui.estimator.events import Events, Inner, Scratch
from memgui.estimator.op import copy, one_by_one
from memgui.estimator.tape import CARRIED, MADE, PARAMETER, Op, Tape, Tensor

DISCARDED: Final = frozenset(("layernorm",))
"""Stretches whose result is thrown away too, and computed again before who saved it needs it."""


class Region:
    """A stretch of operators that is computed again in backward.

    ``inputs`` is what it is given: kept until it has run back.  ``made`` counts the operators that
    save each tensor made in it; these are alive from the second time it runs only.
    """

    __slots__ = ("first", "inputs", "last", "made", "ops", "result_needed")

    def __init__(self, ops: list[Op], *, result_needed: bool) -> None:
        self.ops = ops
        self.first = next((op for op in ops if op.back), ops[0])
        self.last = ops[-1]
        self.inputs: dict[Tensor, None] = {}
        self.made: dict[Tensor, int] = {}
        self.result_needed = result_needed


def regions(tape: Tape) -> tuple[dict[int, Region], dict[Tensor, int]]:
    """The stretches that are computed again, and in which of them a tensor was made."""
    inside: dict[Tensor, int] = {}
    found: dict[int, list[Op]] = {}
    for op in tape.ops:
        if op.region:
            found.setdefault(op.region, []).append(op)
            for out in op.outs:
                if out.base is None:
                    inside[out] = op.region
    known = {
        number: Region(ops, result_needed=tape.regions[number - 1] in DISCARDED)
        for number, ops in found.items()
    }
    for op in tape.ops:
        for tensor in op.saves:
            number = inside.get(tensor.root, 0)
            if number and (number == op.region or known[number].result_needed):
                made = known[number].made
                made[tensor.root] = made.get(tensor.root, 0) + 1
        if op.region:
            for tensor in op.ins:
                root = tensor.base or tensor
                if inside.get(root) != op.region and root.origin != PARAMETER:
                    known[op.region].inputs[root] = None
    return known, inside


def saving(tape: Tape) -> list[Op]:
    """The operators of a tape, each with what it keeps until it has run back.

    Of a stretch that is computed again its inputs are kept, by its last operator, and what was made in it is
    not.
    """
    if not tape.regions:
        return tape.written
    known, inside = regions(tape)
    made_again = {tensor for tensor, number in inside.items() if known[number].result_needed}
    found: list[Op] = []
    for op in tape.ops:
        keeping = copy(op)
        if not op.region:
            keeping.saves = tuple([tensor for tensor in op.saves if tensor.root not in made_again])
        else:
            keeping.saves = tuple(known[op.region].inputs) if op is known[op.region].last else ()
        found.append(keeping)
    return found


def saved_roots(tape: Tape) -> dict[Tensor, int]:
    """Every storage that autograd keeps, in order, with how many operators keep it; no parameters.

    What a stretch in common with other tapes made and keeps is not among them until the tape is written out.
    """
    saved: dict[Tensor, int] = {}
    folded = tape.folded
    for op in saving(tape):
        for tensor in op.saves:
            root = tensor.base or tensor
            if root in saved:
                saved[root] += 1
            elif root.origin != PARAMETER:
                saved[root] = 1
    for stands, own in tape.own.same.items() if folded and tape.own is not None else ():
        if stands in saved:
            saved[own] = saved.pop(stands)
    return saved


def first_to_save(tape: Tape) -> dict[Tensor, Op]:
    """The same with the first operator that keeps it: what is kept is shown under its part and module."""
    first: dict[Tensor, Op] = {}
    for op in one_by_one(saving(tape.apart())):
        for root in [tensor.root for tensor in op.saves if tensor.root.origin != PARAMETER]:
            first.setdefault(root, op)
    return first


def behind(tape: Tape) -> dict[Tensor, None]:
    """What the graph behind the tensors that the module refers to saves, in order; no parameters."""
    wanted: set[Tensor] = set(tape.referred)
    found: list[Tensor] = []
    for op in reversed(tape.ops):
        if op.back and not wanted.isdisjoint(op.outs):
            wanted.update([tensor for tensor, _ in op.back])
            found += [tensor.root for tensor in op.saves]
    return dict.fromkeys([root for root in reversed(found) if root.origin in FREED])


FREED: Final = (MADE, CARRIED)
"""Where what a backward frees comes from."""


def copies_made(tape: Tape) -> tuple[Tensor, ...]:
    """Copies of weights that a layer made for all that follow and use the same weights."""
    return tuple([one for one in tape.handed_out if one.weight_copy]) if tape.handed_out else ()


def staying_in(tape: Tape, *, keep_input: bool, repeated: bool) -> set[Tensor]:
    """What of the saved tensors outlives the block's backward.

    ``keep_input``: someone else keeps the block's input (checkpointing does).  ``repeated``: what is run
    back was computed a second time, and the graph that pinned tensors hang on is gone, but for what the
    module refers to.
    """
    staying: set[Tensor] = set(behind(tape) if tape.referred else ()) if repeated else set(tape.pinned)
    if keep_input and tape.carried is not None:
        staying.add(tape.carried)
    return staying


class Saved:
    """What is saved of a block with stretches that are computed again, while autograd runs it back.

    ``left`` counts the operators that still keep each tensor.  What is in ``staying`` does not die with
    the last of them.
    """

    def __init__(self, tape: Tape, left: dict[Tensor, int], staying: Container[Tensor]) -> None:
        self._left = left
        self._known, self._inside = regions(tape)
        self._waiting = dict(self._known)
        self._staying = staying

    def compute_again(self, events: Events, op: Op) -> None:
        """The stretches that ``op`` needs before it can run back run a second time."""
        if not self._waiting:
            return
        needed = {self._inside.get(tensor.root, 0) for tensor in op.saves}
        found = {number for number in needed if number in self._waiting}
        found = {number for number in found if self._waiting[number].result_needed}
        for number in sorted(found | ({op.region} & self._waiting.keys())):
            region = self._waiting.pop(number)
            self._left.update(region.made)
            _again(events, region)

    def let_go(self, op: Op) -> list[Tensor]:
        """What the operator saved and dies with its backward, because no other one saved it too."""
        roots = [tensor.base or tensor for tensor in op.saves]
        kept = [
            root
            for root in roots
            if root in self._left and (not op.region or self._inside.get(root) == op.region)
        ]
        if op.region and op is self._known[op.region].first:
            kept += self._known[op.region].inputs
        dying: list[Tensor] = []
        for root in kept:
            self._left[root] -= 1
            if self._left[root] <= 0 and root.origin in FREED and root not in self._staying:
                dying.append(root)
        return dying


def _again(events: Events, region: Region) -> None:
    """The stretch runs a second time; without need for its result it stops at the last tensor it saves."""
    ops = region.ops
    if not region.result_needed:
        saving = [index for index, op in enumerate(ops) if op.saves]
        stop = saving[-1] if saving else -1
        runs = stop >= 0 and any(tensor in ops[stop].outs for tensor in ops[stop].saves)
        ops = ops[: stop + 1 if runs else max(stop, 0)]
    last: dict[Tensor, int] = {}
    for index, op in enumerate(ops):
        for tensor in (*op.ins, *op.outs):
            last[tensor.base or tensor] = index
    born: dict[Tensor, None] = {}
    for index, op in enumerate(ops):
        scratch = Scratch(op.outs[0], *op.extra) if op.extra is not None else None
        if scratch is not None:
            events.born(scratch)
        for tensor in op.outs:
            if tensor.base is None and not tensor.stepwise:
                events.born(tensor)
                born[tensor] = None
        if op.inner is not None:
            inner = Inner(op.outs[0], *op.inner)
            events.born(inner)
            events.dead(inner)
        if scratch is not None:
            events.dead(scratch)
        for root in [root for root in born if last[root] == index]:
            del born[root]
            if root not in region.made:
                events.dead(root)
        events.over(op)
