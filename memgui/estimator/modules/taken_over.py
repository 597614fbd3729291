"""Tapes of blocks that are like one that is written already: of the same tensors, but for what differs.

The first of a stack's layers may make something for all of them, and the last of those with keys and
values of their own lend these: all else that such a layer does the others do too.
"""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.modules.attention import lend
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.reach import LENDING, REACHES
from memgui.estimator.op import copy, on_others
from memgui.estimator.tape import Tape, Tensor


def taken_over(name: str, context: Context, written: Callable[[str], Tape | None]) -> Tape | None:
    """The tape of the block called ``name`` where one that it is like is ``written``."""
    first = written(f"{name}.first")
    if first is not None:
        return _further(first, name)
    like = LENDING.get(name)
    plain = written(like) if like is not None else None
    return None if plain is None else _lending(plain, name, context)


def _further(first: Tape, name: str) -> Tape | None:
    """The same as the first one's, but for what that made for all."""
    if first.inset is None or not _is_plain(first):
        return None
    operators, parameters = first.inset
    made = {out for op in first.written[operators] for out in op.outs}
    tape = first.like(name)
    tape.inset = None
    del tape.written[operators], tape.parameters[parameters]
    tape.cast_cache = [one for one in tape.cast_cache if one not in made]
    tape.held = tuple([one for one in tape.held if one not in made])
    tape.handed_out = tuple([one for one in tape.handed_out if one not in made])
    if tape.leaf in made:
        tape.leaf = None
    return tape


def _lending(plain: Tape, name: str, context: Context) -> Tape | None:
    """The same with keys and values of its own, which outlive the layer."""
    if plain.keys_and_values is None or plain.inset is not None or not _is_plain(plain):
        return None
    same: dict[Tensor, Tensor] = {}
    for one in plain.keys_and_values:
        if one.root not in same:
            same[one.root] = _copied(one.root, name)
    tape = plain.like(name)
    changed = same.keys()
    for index, op in enumerate(tape.written):
        if changed.isdisjoint(op.ins) and changed.isdisjoint(op.outs):
            continue
        for out in op.outs:
            if out.base is not None and out.base in same:
                same[out] = view = _copied(out, name)
                view.base = same[out.base]
        tape.written[index] = on_others(op, same)
    tape.cached = tuple([same.get(one, one) for one in tape.cached])
    tape.held = tuple([same.get(one, one) for one in tape.held])
    k, v = plain.keys_and_values
    tape.keys_and_values = None
    lend(tape, context, REACHES[name], same.get(k, k), same.get(v, v))
    return tape


def _is_plain(tape: Tape) -> bool:
    """Whether its operators stand one by one, for one block, and none of them is computed again."""
    return not (tape.folded or tape.regions) and tape.pool is None


def _copied(tensor: Tensor, block: str) -> Tensor:
    made = copy(tensor)
    made.block = block
    return made
