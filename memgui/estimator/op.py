"""One operator, and stretches of them that kinds of layers have in common.

A stretch is written once, operator by operator, and all that have it list the same.  It knows what its
operators save and what they allocate.  That is all that is asked of most blocks; where the order of births
and deaths matters, a tape is written out on tensors of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from memgui.estimator.tensor import Parameter, Tensor

if TYPE_CHECKING:
    from memgui.estimator.events import Group

Some = TypeVar("Some", bound=msgspec.Struct)

NEW: Final = 0  # the operator's backward allocates this input's gradient
ALIAS: Final = 1  # the gradient of the output is passed on as it is
PROMOTED: Final = 2  # computed in the output's wider format, then cast to the input's
REPLACES: Final = 3  # takes the place of what was saved, and of the output's gradient, piece by piece

Back = tuple[tuple[Tensor, int], ...]


class Op(msgspec.Struct, eq=False, gc=False):
    """One operator that ran: tensors in and out, what its backward keeps and makes.

    ``extra`` and ``back_extra`` are sizes (coefficient, monomial) that forward and backward hold
    for a moment beside their results; ``inner`` and ``back_inner`` are what the kernels behind them
    allocate themselves, where no tracer of tensors sees it.  ``region`` is the number of the stretch
    that is computed again in backward, 0 outside of any.

    One in short stands for the few operators that ``spell`` writes out where their order matters: what comes
    and goes among them is told in its sizes, what they save is there.  It is no type of its own, as the
    interpreter finds attributes of one type several times faster than those of two by turns.
    """

    name: str
    part: str
    module: str
    ins: tuple[Tensor, ...]
    outs: tuple[Tensor, ...]
    saves: tuple[Tensor, ...]
    back: Back
    extra: tuple[int, int] | None
    back_extra: tuple[int, int] | None
    back_inner: tuple[int, int] | None
    inner: tuple[int, int] | None
    region: int = 0
    spell: Callable[[Op], list[Op]] | None = None


class Stretch(Op, eq=False, gc=False, kw_only=True):
    """Stands for operators that tapes have in common, on the same tensors.

    They are ``written`` on what was ``given`` where they were met first; what else is given stands for it in
    ``same``.  ``kept`` is what they made and save; ``saves`` lists what else they save.
    ``born`` and ``born_back`` are what they allocate forward and backward, as if none of it were freed, in
    (coefficient, monomial) pairs: ``extra`` and ``back_extra`` are there, and nothing.  Of ``inward``, to
    which gradients may come from elsewhere too, they count all but the first.  ``weights`` and ``buffers``
    are of their own, ``reused`` those used once already; ``results`` is what others go on from, ``end`` the
    part and the module that follow.
    """

    written: Sequence[Op]
    given: tuple[Tensor, ...]
    kept: Group
    born: tuple[tuple[int, int], ...]
    born_back: tuple[tuple[int, int], ...]
    inward: Sequence[Tensor]
    weights: Sequence[Parameter]
    buffers: Sequence[Tensor]
    reused: Sequence[Parameter]
    results: tuple[Tensor, ...]
    end: tuple[str, str]
    same: dict[Tensor, Tensor] | None = None

    def ops(self) -> Sequence[Op]:
        """The operators."""
        same = self.same
        return self.written if same is None else [on_others(op, same) for op in self.written]

    def on(self, given: tuple[Tensor, ...]) -> Stretch:
        """The same, of something else that is given."""
        made = copy(self)
        made.given = given
        made.same = same = {**(self.same or {}), **dict(zip(self.given, given, strict=True))}
        made.saves = tuple([same.get(one, one) for one in self.saves])
        made.inward = [same.get(one, one) for one in self.inward]
        return made


def copy(struct: Some) -> Some:
    """One like ``struct``; faster than what ``copy.copy`` asks first."""
    made: Some = struct.__copy__()  # type: ignore[attr-defined]
    return made


def on_others(op: Op, same: Mapping[Tensor, Tensor]) -> Op:
    """The operator with the tensors that stand for others in place of these."""
    made, get = copy(op), same.get
    made.ins, made.outs = tuple(map(get, op.ins, op.ins)), tuple(map(get, op.outs, op.outs))
    if op.saves:
        made.saves = tuple(map(get, op.saves, op.saves))
    if op.back:
        made.back = tuple([(get(one, one), how) for one, how in op.back])
    return made


def spelled(
    short: Op, ops: list[Op], made: Sequence[Tensor], given: Mapping[Tensor, Tensor] = MappingProxyType({})
) -> list[Op]:
    """``ops``, which are nobody else's, onto the tensors that ``short`` was said with.

    ``made`` are its first results; what it saves tells of the others which is which, ``given`` of its inputs.
    """
    same: dict[Tensor, Tensor] = {**given}
    for tensor, stands in zip([one for op in ops for one in op.saves], short.saves, strict=True):
        same[tensor] = stands
        if tensor.base is not None and stands.base is not None:
            same[tensor.base] = stands.base
    same |= zip(made, short.outs, strict=False)
    get = same.get
    for one in ops:
        one.ins, one.outs = tuple(map(get, one.ins, one.ins)), tuple(map(get, one.outs, one.outs))
        if one.back:
            one.saves = tuple(map(get, one.saves, one.saves))
            one.back = tuple([(get(tensor, tensor), how) for tensor, how in one.back])
    return ops


def one_by_one(ops: Iterable[Op]) -> list[Op]:
    """Operators, and those that some of them stand for."""
    found: list[Op] = []
    for op in unfolded(ops):
        if op.spell is not None:
            found += op.spell(op)
        else:
            found.append(op)
    return found


def backwards(ops: Sequence[Op]) -> Iterator[Op]:
    """Operators from the last one on; one that is short is spelled out as its turn comes."""
    for op in reversed(ops):
        if op.spell is not None:
            yield from reversed(op.spell(op))
        else:
            yield op


def unfolded(ops: Iterable[Op]) -> list[Op]:
    """The same but for short ones, which stay."""
    found: list[Op] = []
    for op in ops:
        if type(op) is Stretch:
            found += op.ops()
        else:
            found.append(op)
    return found
