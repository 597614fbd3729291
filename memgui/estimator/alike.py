"""What tapes have in common, written once.

Kinds of layers whose inputs are alike run mostly the same operators.  Their tapes are made of the same
stretches (:class:`~memgui.estimator.op.Stretch`), on tensors that stand for those of each tape until it is
written out (:meth:`~memgui.estimator.tape.Tape.apart`); what a tape is asked for before is its own from the
start: its input, its weights, what it hands on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgui.estimator.bounds import add_born, add_born_back, pairs
from memgui.estimator.events import Group
from memgui.estimator.op import Op, Stretch, on_others
from memgui.estimator.own import Own
from memgui.estimator.tape import MADE, PARAMETER, Parameter, Tape, Tensor


class Common:
    """Stretches that tapes have in common, by what they are called and given; what comes of each."""

    __slots__ = ("_like", "_same", "inputs", "results")

    def __init__(self) -> None:
        self.inputs: dict[object, Tensor] = {}
        self.results: dict[tuple[str, Tensor], tuple[Tensor, ...]] = {}
        self._same: dict[object, Stretch] = {}
        self._like: dict[object, Stretch] = {}

    def add(self, called: object, made: Stretch) -> None:
        """Another one has been written."""
        self._same[called, made.given] = self._like[called, made.given[0]] = made

    def find(self, called: object, given: tuple[Tensor, ...]) -> Stretch | None:
        """One that is called so: of what is given, or of what is like it but for the first."""
        found = self._same.get((called, given))
        if found is None:
            like = self._like.get((called, given[0]))
            if like is not None and all(map(_is_like, like.given, given)):
                found = self._same[called, given] = like.on(given)
        return found

    def forget(self) -> None:
        """All tapes are written: nobody looks for stretches any more, and these lead back to who has them."""
        for known in (self.inputs, self.results, self._same, self._like):
            known.clear()


def common_input(t: Tape, common: Common, x: Tensor, trained: str, width: int) -> Tensor:
    """What stands for the input of all tapes whose inputs are like ``x``.

    Of models ``trained`` in one way, with weights so wide: no copies of which autocast remembers.
    """
    if t.recomputed or t.pool is not None or t.autocast not in (0, width):
        return x
    t.own = Own(t.key)
    known = common.inputs.setdefault((t.sizes, trained, x.dims, x.width, x.grad, x.layout), x)
    if known is not x:
        t.own.same[known] = x
        t.folded = True
    return known


def alike(
    t: Tape,
    common: Common,
    name: str,
    write: Callable[[], tuple[Tensor, ...]],
    *given: Tensor,
    variant: object = None,
    reused: Sequence[Parameter] = (),
) -> tuple[tuple[Tensor, ...], Sequence[Parameter]]:
    """What ``write`` makes of ``given`` and of weights used once already; the weights it has of its own.

    Other tapes may have written the same.  Any ``variant``, and whatever further tensors it is given, ends in
    what the first of that ``name`` made, where that is alike.
    """
    if t.own is None:
        first = len(t.listed)
        return write(), t.listed[first:]
    called = name, variant, t.part, t.module
    found = common.find(called, given)
    if found is not None:
        _go_on(t, found)
        return found.results, found.weights
    start, first, buffers = len(t.written), len(t.listed), len(t.buffers)
    before = _beside(t)
    outs = write()
    weights = t.listed[first:]
    if before == _beside(t):
        ops = t.written[start:]
        outs = _ending(ops, outs, common.results.setdefault((name, given[0]), outs))
        made = stretch_of(t, ops, given, outs, weights, t.buffers[buffers:], reused)
        common.add(called, made)
        t.written[start:] = (made,)
        t.folded = True
    return outs, weights


def stretch_of(
    t: Tape,
    ops: Sequence[Op],
    given: tuple[Tensor, ...],
    results: tuple[Tensor, ...],
    weights: Sequence[Parameter],
    buffers: Sequence[Tensor],
    reused: Sequence[Parameter] = (),
) -> Stretch:
    """What stands for ``ops``, the last of a tape."""
    outside = {*given, *results, *[one.base for one in results if one.base is not None]}
    kept: list[Tensor] = []
    others: list[Tensor] = []
    for root in {one.base or one: None for op in ops for one in op.saves}:
        origin = root.origin
        if origin == MADE and root not in outside:
            kept.append(root)
        elif origin != PARAMETER:
            others.append(root)
    total, back = [0] * len(t.sizes.monomials), [0] * len(t.sizes.monomials)
    met: set[Tensor] = set()
    add_born(ops, total)
    add_born_back(ops, back, met)
    return Stretch(
        *("", "", "", (), (), tuple(others), (), (0, 0), (0, 0), None, None),
        written=ops,
        given=given,
        kept=Group(tuple(kept), "activations"),
        born=pairs(total),
        born_back=pairs(back),
        inward=[one for one in met if one.origin != MADE or one in outside],
        weights=weights,
        buffers=buffers,
        reused=reused,
        results=results,
        end=(t.part, t.module),
    )


def own(t: Tape, tensor: Tensor) -> Tensor:
    """What of the tape stands for a tensor that others may have, too, once it is handed out."""
    if t.own is None:
        return tensor
    if tensor.base is not None:
        t.own.of(tensor.base)
    return t.own.of(tensor)


def _go_on(t: Tape, found: Stretch) -> None:
    """Others have written it: it is listed."""
    t.written.append(found)
    t.folded = True
    t.part, t.module = found.end
    t.listed += found.weights
    t.reused.update(found.reused)
    for buffer in found.buffers:
        t.buffer(buffer.name, buffer.dims, buffer.width)


def _ending(ops: list[Op], outs: tuple[Tensor, ...], known: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Let operators end in what is ``known`` to be made elsewhere, where that is like what they make."""
    if outs is known or not all(map(_is_like, outs, known)):
        return outs
    same = dict(zip(outs, known, strict=True))
    for index, op in enumerate(ops):
        for out in op.outs:
            if out.base in same:
                out.base = same[out.base]
        if not (same.keys().isdisjoint(op.outs) and same.keys().isdisjoint(op.ins)):
            ops[index] = on_others(op, same)
    return known


def _is_like(one: Tensor, other: Tensor) -> bool:
    """Whether one may stand for the other."""
    if one is other:
        return True
    traits = one.dims, one.width, one.grad, one.layout, one.loss, one.base
    return traits == (other.dims, other.width, other.grad, other.layout, other.loss, None)


def _beside(t: Tape) -> tuple[object, ...]:
    """What operators leave on the tape beside themselves."""
    lists = len(t.cast_cache), len(t.replaced), t.regions, t.forgets, t.leaf
    return (*lists, t.held, t.cached, t.handed_out, t.passed, t.pinned, t.referred, t.dangling)
