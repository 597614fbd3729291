"""One operator, and patterns: stretches of operators that kinds of layers have in common.

A pattern is written once, operator by operator.  Where it is met again one operator stands for all of it:
it saves what they save, its edges lead where theirs lead, and it knows what they allocate.  That is all
that is asked of most blocks; where the order of births and deaths matters, it is taken apart again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from memgui.estimator.tensor import AMBIENT, MADE, PARAMETER, Parameter, Tensor

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


class Stretch(Op, eq=False, gc=False, kw_only=True):
    """Stands for the operators of a ``pattern`` on ``tensors``.

    What these allocate is told by the pattern: ``extra`` and ``back_extra`` are there, and nothing; so is
    what they save of their own, beside ``saves``.
    """

    pattern: Pattern
    tensors: Sequence[Tensor]


class Short(Op, eq=False, gc=False, kw_only=True):
    """Stands for the few operators that ``spell`` writes out where their order matters.

    What comes and goes among them is told in ``extra`` and ``back_extra``; what they save is there.
    """

    spell: Callable[[Op], list[Op]]


def copy(struct: Some) -> Some:
    """One like ``struct``; faster than what ``copy.copy`` asks first."""
    made: Some = struct.__copy__()  # type: ignore[attr-defined]
    return made


_copied: Final[Callable[[Any], Any]] = methodcaller("__copy__")
_NOTHING: Final = 0, 0


def on_others(op: Op, same: Mapping[Tensor, Tensor]) -> Op:
    """The operator with the tensors that stand for others in place of these."""
    made = copy(op)
    made.ins = tuple([same.get(one, one) for one in op.ins])
    made.outs = tuple([same.get(one, one) for one in op.outs])
    made.saves = tuple([same.get(one, one) for one in op.saves])
    made.back = tuple([(same.get(one, one), how) for one, how in op.back])
    return made


def spelled(
    short: Op, ops: list[Op], made: Sequence[Tensor], given: Mapping[Tensor, Tensor] = MappingProxyType({})
) -> list[Op]:
    """``ops``, which are nobody else's, onto the tensors that ``short`` was said with.

    ``made`` are its first results; what it saves tells of the others which is which, ``given`` of its inputs.
    """
    same: dict[Tensor, Tensor] = {**given}
    same |= zip([tensor for op in ops for tensor in op.saves], short.saves, strict=True)
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
        if type(op) is Short:
            found += op.spell(op)
        else:
            found.append(op)
    return found


def backwards(ops: Sequence[Op]) -> Iterator[Op]:
    """Operators from the last one on; one that is short is spelled out as its turn comes."""
    for op in reversed(ops):
        if type(op) is Short:
            yield from reversed(op.spell(op))
        else:
            yield op


def unfolded(ops: Iterable[Op]) -> list[Op]:
    """The same but for short ones, which stay."""
    found: list[Op] = []
    for op in ops:
        if type(op) is Stretch:
            found += op.pattern.operators(op)
        else:
            found.append(op)
    return found


class Pattern:
    """A stretch of operators that makes ``outs`` of the ``given`` tensors, with weights of its own.

    It is looked at only when it is met a second time.  ``born`` (beside its differentiable results) and
    ``born_back`` are what it allocates forward and backward, as if none of it were freed: (coefficient,
    monomial) pairs; ``inward`` are the places among its tensors of those it makes gradients for that are no
    weights.
    """

    def __init__(
        self,
        ops: Sequence[Op],
        given: tuple[Tensor, ...],
        outs: tuple[Tensor, ...],
        reused: Sequence[Parameter],
        weights: Sequence[Parameter],
        buffers: Sequence[Tensor],
        named: int,
        end: tuple[str, str],
        *,
        folded: bool,
    ) -> None:
        self.written = ops
        self.ops = unfolded(ops) if folded else ops
        self.outs = outs
        self.weights = weights
        self.buffers = buffers
        self.given = given
        self.reused = reused
        self.named = named
        """of how many of its results, the first ones, nothing is made outside: they are referred to"""
        self.end = end
        """the part and the module that follow"""
        self._usable: bool | None = None

    @property
    def usable(self) -> bool:
        """Whether nothing else comes in, and backward comes by all of it."""
        if self._usable is None:
            self._usable = self._forth() and self._back()
        return self._usable

    def _forth(self) -> bool:
        """Go through it: what it makes and saves, and what else comes in."""
        ops = self.ops
        there: set[Tensor] = {*self.given, *self.weights, *self.reused}
        made: dict[Tensor, None] = {}
        whole: dict[Tensor, None] = {}
        kept: dict[Tensor, None] = {}
        saves: list[Tensor] = []
        total: defaultdict[int, int] = defaultdict(int)
        passed = {out for out in self.outs[self.named :] if out.grad}
        for op in ops:
            if not there.issuperset(op.ins):
                for tensor in op.ins:
                    if tensor not in there:
                        if tensor.origin != AMBIENT:
                            return False
                        there.add(tensor)
                        whole[tensor] = None
            for tensor in op.outs:
                there.add(tensor)
                made[tensor] = None
                if tensor.base is None and tensor not in passed:
                    total[tensor.monomial] += tensor.coefficient
            for tensor in op.saves:
                root = tensor.base or tensor
                if root.origin != PARAMETER:
                    saves.append(root)
                    if root in made:
                        kept[root] = None
            if op.extra is not None:
                total[op.extra[1]] += op.extra[0]
            if op.inner is not None:
                total[op.inner[1]] += op.inner[0]
        self.born = tuple([(coefficient, monomial) for monomial, coefficient in total.items()])
        own: dict[Tensor, None] = {}
        for out in self.outs:
            if out.base is not None and out.base in made:
                own[out.base] = None
            own[out] = None
        for weight in self.weights:
            weight.first = weight
        self._own = tuple(own)
        self._lent = tuple([tensor for tensor in kept if tensor not in own])
        self._made = made
        self._whole = tuple(whole)
        fixed = (*self.given, *self.reused, *self._whole, *self.weights)
        self._open = len(fixed)
        self.tensors = (*fixed, *self._lent, *self._own)
        self.where = where = {tensor: index for index, tensor in enumerate(self.tensors)}
        if not where.keys() >= {*saves}:
            return False
        self._saves: list[int] = []
        self.saved: dict[Tensor, int] = {}
        lent = {*self._lent}
        for root in saves:
            if root in lent:
                self.saved[root] = self.saved.get(root, 0) + 1
            else:
                self._saves.append(where[root])
        self._outs = [where[out] for out in self.outs]
        self._passed = [where[out] for out in self.outs[self.named :] if out.grad]
        self._views = [(where[view], where[view.base]) for view in own if view.base is not None]
        self._handed = [where[one] for one in own if one.base is None and one.origin == AMBIENT]
        return True

    def _back(self) -> bool:
        """Go back through it, and note the edges that lead out; whether all of it is reached."""
        total: defaultdict[int, int] = defaultdict(int)
        reached = {out for out in self.outs[self.named :] if out.grad}
        where, most = self.where, self._open
        self._edges: list[int] = []
        for op in reversed(self.ops):
            edges = op.back
            if not edges:
                continue
            if reached.isdisjoint(op.outs):
                return False
            for tensor, how in edges:
                if how != ALIAS:
                    total[tensor.monomial] += tensor.coefficient
                    if how == PROMOTED:
                        total[tensor.monomial] += tensor.coefficient // tensor.width * op.outs[0].width
                index = where.get(tensor, most)
                if index < most:
                    self._edges.append(index)
                elif tensor in reached:
                    total[tensor.monomial] += tensor.coefficient
                else:
                    reached.add(tensor)
            if op.back_extra is not None:
                total[op.back_extra[1]] += op.back_extra[0]
            if op.back_inner is not None:
                total[op.back_inner[1]] += op.back_inner[0]
        self.born_back = tuple([(coefficient, monomial) for monomial, coefficient in total.items()])
        self.inward = [index for index in self._edges if self.tensors[index].origin != PARAMETER]
        return True

    def on(
        self, given: tuple[Tensor, ...], reused: Sequence[Parameter], block: str
    ) -> tuple[Stretch, list[Parameter], tuple[Tensor, ...]]:
        """One operator that stands for the pattern in a ``block``; its weights, and what it makes.

        What is made and saved inside is lent by the pattern until the block is taken apart.
        """
        weights: list[Parameter] = list(map(_copied, self.weights))
        own: list[Tensor] = list(map(_copied, self._own))
        for weight in weights:
            weight.block = block
        for made in own:
            made.block = block
        tensors = (*given, *reused, *self._whole, *weights, *self._lent, *own)
        for view, base in self._views:
            tensors[view].base = tensors[base]
        for index in self._handed:  # to others by now, where it was made first
            tensors[index].origin = MADE
        return self.standing(tensors), weights, tuple([tensors[index] for index in self._outs])

    def standing(self, tensors: tuple[Tensor, ...]) -> Stretch:
        """What stands for the pattern where these are its tensors: others, or those it was written on."""
        return Stretch(
            "",
            "",
            "",
            tensors[: self._open - len(self.weights)],
            tuple([tensors[index] for index in self._passed]),
            tuple([tensors[index] for index in self._saves]),
            tuple([(tensors[index], ALIAS) for index in self._edges]),
            _NOTHING,
            _NOTHING,
            None,
            None,
            pattern=self,
            tensors=tensors,
        )

    def operators(self, op: Stretch) -> list[Op]:
        """The operators that ``op`` stands for."""
        if op.tensors is self.tensors:
            return list(self.ops)
        same: dict[Tensor, Tensor] = dict(zip(self.tensors, op.tensors, strict=True))
        block = op.tensors[-1].block
        for one in (*self._lent, *[one for one in self._made if one not in same]):
            same[one] = made = copy(one)
            made.block = block
            if made.base is not None:
                made.base = same[made.base]
        return [on_others(one, same) for one in self.ops]
