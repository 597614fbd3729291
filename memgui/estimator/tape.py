"""The tape of operators that makes a module's tensors.

A module of a model is written as PyTorch runs it: one call per operator, on symbolic tensors
(:mod:`memgui.estimator.tensor`).  The tape keeps what PyTorch's autograd would keep: which operators
ran, which tensors each saves for its backward, which gradients each makes.  Everything else
(saved bytes, working sets, peaks) is read off the tape by :mod:`memgui.estimator.lifetimes`; no
module states a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import msgspec

from memgui.estimator.once import TURN
from memgui.estimator.op import ALIAS, NEW, PROMOTED, REPLACES, Back, Op, copy, one_by_one
from memgui.estimator.own import Own
from memgui.estimator.tensor import (
    AMBIENT,
    BY_HEAD,
    BY_TOKEN,
    CARRIED,
    HELD_BEFORE,
    LINEAR,
    MADE,
    PARAMETER,
    SPREAD,
    Dims,
    Parameter,
    Sizes,
    Tensor,
)

__all__ = [  # a module needs the tensors wherever it needs the tape
    "ALIAS",
    "AMBIENT",
    "BY_HEAD",
    "BY_TOKEN",
    "CARRIED",
    "HELD_BEFORE",
    "LINEAR",
    "MADE",
    "NEW",
    "PARAMETER",
    "PROMOTED",
    "REPLACES",
    "SPREAD",
    "Back",
    "Dims",
    "Op",
    "Parameter",
    "Sizes",
    "Tape",
    "Tensor",
]


class Tape(msgspec.Struct, eq=False):
    """Records one block of a model: operators in the order they run, parameters, what it caches.

    ``part`` and ``module`` name where the operators that follow belong; modules set them.
    ``autocast`` is the width that matrix products compute in under autocast, else 0; ``half`` which
    two-byte format the step uses (``bf16`` or ``fp16``).  The caller of
    a layer holds its input until it returns; a block between stacks or after them (``frees_input``)
    lets it go after use.  The ``final`` one ends in the loss, whose gradient the caller holds.
    ``recomputed`` names the stretches that are computed again in backward; a ``compiled`` block went
    through torch.compile.  Of an ``ordered`` one it will be asked what runs after what, so that nothing is
    said in short.  ``old``: PyTorch before 1.11 runs it.  What is ``written`` may be on tensors of several
    tapes, and so the weights that are ``listed``; ``own`` are those of this one that stand for them, as far
    as there are any.
    """

    key: str
    sizes: Sizes
    autocast: int = 0
    training: bool = True
    half: str = "bf16"
    recomputed: tuple[str, ...] = ()
    old: bool = False
    region: int = 0
    regions: tuple[str, ...] = ()
    written: list[Op] = []
    folded: bool = False
    own: Own | None = None
    short: bool = False
    spelled: list[Op] | None = None
    inset: tuple[slice, slice] | None = None
    keys_and_values: tuple[Tensor, Tensor] | None = None
    listed: list[Parameter] = []
    buffers: tuple[Tensor, ...] = ()
    cached: tuple[Tensor, ...] = ()
    cast_cache: list[Tensor] = []
    replaced: list[Tensor] = []
    held: tuple[Tensor, ...] = ()
    handed_out: tuple[Tensor, ...] = ()
    results: tuple[Tensor, ...] = ()
    pinned: tuple[Tensor, ...] = ()
    outside: tuple[Tensor, ...] = ()
    referred: tuple[Tensor, ...] = ()
    passed: tuple[Tensor, ...] = ()
    trailing: tuple[Tensor, ...] = ()
    dangling: tuple[tuple[Op, tuple[Tensor, ...]], ...] = ()
    passing: bool = False
    forgets: int = 0
    leaf: Tensor | None = None
    carried: Tensor | None = None
    again: list[Parameter] = []
    reused: set[Parameter] = set()
    pool: list[Parameter] | None = None
    drawn: int = 0
    final: bool = False
    compiled: bool = False
    ordered: bool = False
    frees_input: bool = False
    out: Tensor | None = None
    part: str = ""
    module: str = ""
    loss: bool = False

    @property
    def ops(self) -> list[Op]:
        """The operators one by one; of those ``written`` some may stand for a stretch of them."""
        if self.folded or not self.short:
            return self.apart().written
        return self.spelled or self._spell()

    def _spell(self) -> list[Op]:
        with TURN:  # who goes through them twice comes by the same
            if self.spelled is None:
                self.spelled = one_by_one(self.written)
            return self.spelled

    def apart(self) -> Tape:
        """The tape, written out on tensors of its own."""
        with TURN:
            if self.folded:
                ops, own = one_by_one(self.written), self.own
                if own is not None:
                    self.listed = own.weights(self.listed)
                    self.reused = {*own.weights(self.reused)}
                    ops = own.written_out(ops)
                self.written = ops
                self.folded = self.short = False
        return self

    @property
    def parameters(self) -> list[Parameter]:
        """The weights of this block."""
        if self.own is not None and self.folded:
            with TURN:
                self.listed = self.own.weights(self.listed)
        return self.listed

    def set_apart(self, operators: int, parameters: int) -> None:
        """Of blocks that are alike this first one alone does what was written since there were so many."""
        self.inset = slice(operators, len(self.written)), slice(parameters, len(self.parameters))

    def like(self, key: str) -> Tape:
        """A tape of the same tensors and operators, to change."""
        tape = copy(self)
        tape.key, tape.spelled = key, None
        tape.written, tape.listed = self.written[:], self.listed[:]
        return tape

    # -- tensors ------------------------------------------------------------------------------

    def tensor(self, name: str, dims: Dims, width: int, grad: bool = False, origin: int = MADE) -> Tensor:
        """A tensor of shape ``dims`` with ``width`` bytes per element."""
        sizes = self.sizes
        size, monomial = sizes.known.get(dims) or sizes.meet(dims)
        return Tensor(
            name,
            dims,
            width,
            size * width,
            monomial,
            grad,
            origin,
            self.key,
            self.part,
            self.module,
            self.loss,
        )

    def parameter(
        self,
        name: str,
        dims: Dims,
        width: int,
        trainable: bool = True,
        cut: str = "",
        part: str = "",
        role: str = "",
        inputs: int = 1,
    ) -> Parameter:
        """A weight of this block, listed once.

        One of those to use ``again`` where there are any, of the ``pool`` where blocks share weights.
        """
        if self.again:
            return self.again.pop(0)
        if self.pool is not None and self.drawn < len(self.pool):
            self.drawn += 1
            return self.pool[self.drawn - 1]
        sizes = self.sizes
        elements, monomial = sizes.known.get(dims) or sizes.meet(dims)
        if monomial:
            elements = sizes.count(dims)
        made = Parameter(
            name,
            dims,
            width,
            elements * width,
            0,
            trainable and self.training,
            PARAMETER,
            self.key,
            part or self.part,
            self.module,
            sizes=sizes,
            elements=elements,
            cut=cut,
            role=role,
            inputs=inputs,
        )
        self.listed.append(made)
        if self.pool is not None:
            made.tied = made.grad
            self.pool.append(made)
            self.drawn += 1
        return made

    def use_again(self, parameters: Sequence[Parameter]) -> None:
        """The next weights asked for are these, which a module of this block has used once already."""
        self.again = list(parameters)
        self.reused.update(parameters)

    def buffer(self, name: str, dims: Dims, width: int) -> None:
        """A tensor that lies beside the weights and is not trained."""
        self.buffers += (self.tensor(name, dims, width, origin=AMBIENT),)

    def input(self, dims: Dims, width: int, grad: bool) -> Tensor:
        """The block's input, made and counted by the block before."""
        self.carried = made = self.tensor("input", dims, width, grad, CARRIED)
        return made

    def view(self, x: Tensor, name: str, dims: Dims) -> Tensor:
        """A view of ``x``: another shape, the same storage and gradient path."""
        size, monomial = self.sizes.of(dims)
        return Tensor(
            name,
            dims,
            x.width,
            size * x.width,
            monomial,
            x.grad,
            x.origin,
            self.key,
            self.part,
            self.module,
            x.loss,
            x.layout,
            base=x.base or x,
        )

    def within(self, name: str) -> AbstractContextManager[None]:
        """The operators of a stretch that may be computed again in backward, by its name."""
        return _Within(self, name) if name in self.recomputed and not self.region else _AS_IT_IS

    def use(self, *tensors: Tensor) -> None:
        """Python still refers to ``tensors`` up to here (an argument of a call that returns now)."""
        part, module, region = self.part, self.module, self.region
        self.written.append(Op("", part, module, tensors, (), (), (), None, None, None, None, region))

    def cut_off(self, *tensors: Tensor) -> None:
        """From here on a graph alone refers to ``tensors``, and leads nowhere: who saves nothing has none."""
        self.dangling += ((self.written[-1], tensors),)

    def hold(self, *tensors: Tensor) -> None:
        """Python refers to ``tensors`` until the layer returns (a result that is not used)."""
        self.held += tuple([tensor.root for tensor in tensors])

    def hand_out(self, *tensors: Tensor) -> None:
        """``tensors`` are handed to the blocks that follow (and so kept by checkpoints)."""
        self.hold(*tensors)
        self.handed_out += tuple([tensor.root for tensor in tensors])

    def pass_on(self, tensor: Tensor) -> None:
        """``tensor`` is given to the next layer (and so kept by its checkpoint), be it used there or not."""
        self.hold(tensor)
        self.passed += (tensor.root,)

    def trail(self, tensor: Tensor) -> None:
        """The model's code refers to ``tensor`` until the next layer returns (a result that is not used)."""
        self.hold(tensor)
        self.trailing += (tensor.root,)

    def return_(self, tensor: Tensor) -> None:
        """``tensor`` is handed out, and part of what the model returns."""
        self.hand_out(tensor)
        self.results += (tensor.root,)

    def pin(self, *tensors: Tensor) -> None:
        """The graph itself refers to ``tensors`` (as attributes of a node): until the loss dies."""
        self.pinned += tuple([tensor.root for tensor in tensors])

    def forget(self) -> None:
        """The module lets go here of what it refers to since it ran last (see :meth:`refer`)."""
        self.forgets = len(one_by_one(self.written))

    def refer(self, tensor: Tensor, *, passing: bool = False) -> None:
        """The module refers to ``tensor`` until it runs again, or (``passing``) all layers have run back.

        With the tensor it keeps the graph behind it.  That holds nothing once it has run back; but a graph
        that was computed again never runs back, and what it saved stays until then.
        """
        self.referred = (*self.referred, tensor)
        self.passing = passing

    def make_leaf(self, x: Tensor) -> None:
        """``x.requires_grad_()``: graph, ``x`` and its gradient live until the loss dies."""
        if not x.grad:  # else it is no leaf: nothing changes
            x.grad = True
            self.leaf = x
            self.hold(x)

    def hold_outside(self, *tensors: Tensor) -> None:
        """Who calls the model refers to ``tensors`` until it has returned, the loss with it."""
        self.hold(*tensors)
        self.outside += tuple([tensor.root for tensor in tensors])

    def cache(self, tensor: Tensor) -> None:
        """``tensor`` stays in the cache after the layer."""
        tensor.cached = True
        self.cached += (tensor,)

    def cached_before(self, name: str, dims: Dims, width: int, *, stays: bool = False) -> Tensor:
        """What the cache holds when the layer begins; it dies after its last use, or with the pass."""
        made = self.tensor(name, dims, width, origin=AMBIENT if stays else HELD_BEFORE)
        made.cached = True
        self.replaced.append(made)
        return made

    def run(
        self,
        name: str,
        ins: tuple[Tensor, ...],
        outs: tuple[Tensor, ...],
        saves: tuple[Tensor, ...],
        back: Back,
        extra: tuple[int, int] | None = None,
        back_extra: tuple[int, int] | None = None,
        back_inner: tuple[int, int] | None = None,
        inner: tuple[int, int] | None = None,
    ) -> None:
        """Add an operator."""
        self.written.append(
            Op(
                name,
                self.part,
                self.module,
                ins,
                outs,
                saves,
                back,
                extra,
                back_extra,
                back_inner,
                inner,
                self.region,
            )
        )

    def record(
        self,
        name: str,
        ins: tuple[Tensor, ...],
        out: Tensor,
        saves: tuple[Tensor, ...],
        back: Back,
        extra: tuple[int, int] | None = None,
        back_extra: tuple[int, int] | None = None,
        back_inner: tuple[int, int] | None = None,
        inner: tuple[int, int] | None = None,
    ) -> Tensor:
        """Add an operator with one result; ``out.grad`` decides whether it has a backward."""
        if not out.grad:
            saves = back = ()
            back_extra = back_inner = None
        self.written.append(
            Op(
                name,
                self.part,
                self.module,
                ins,
                (out,),
                saves,
                back,
                extra,
                back_extra,
                back_inner,
                inner,
                self.region,
            )
        )
        return out


class _Within:
    """What runs inside is a stretch that is computed again."""

    __slots__ = ("_name", "_tape")

    def __init__(self, tape: Tape, name: str) -> None:
        self._tape = tape
        self._name = name

    def __enter__(self) -> None:
        self._tape.regions += (self._name,)
        self._tape.region = len(self._tape.regions)

    def __exit__(self, *_: object) -> None:
        self._tape.region = 0


_AS_IT_IS: Final = nullcontext()
