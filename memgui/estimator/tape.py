"""Symbolic tensors and the tape of operators that makes them.

A module of a model is written as PyTorch runs it: one call per operator, on tensors that have a
symbolic shape and no content.  The tape keeps what PyTorch's autograd would keep: which operators
ran, which tensors each saves for its backward, which gradients each makes.  Everything else
(saved bytes, working sets, peaks) is read off the tape by :mod:`memgui.estimator.lifetimes`; no
module states a sum.

Shapes are tuples of ints and symbol names.  Names with a value in :class:`Sizes` (model
dimensions) are folded into a coefficient at once; the others (micro batch, sequence length) stay
open: a size is ``coefficient x product of open symbols``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

Dims = tuple[int | str, ...]

MADE: Final = 0  # by an operator of this block
CARRIED: Final = 1  # the block's input, made by the block before
AMBIENT: Final = 2  # made once per step, outside the layers (rotary tables, masks, ids)
PARAMETER: Final = 3
HELD_BEFORE: Final = 4  # in the cache already, replaced by a longer one

BY_TOKEN: Final = 0  # in memory as (batch, tokens, heads, head size), as a projection leaves it
BY_HEAD: Final = 1  # in memory as (batch, heads, tokens, head size)
SPREAD: Final = 2  # one head seen as many


class Sizes:
    """Values of the model's symbols, and every product of open symbols met so far.

    ``monomials[i]`` is a sorted tuple of open symbol names; ``of(dims)`` gives (coefficient, i).
    """

    __slots__ = ("_known", "index", "monomials", "values")

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values
        self.monomials: list[tuple[str, ...]] = [()]
        self.index: dict[tuple[str, ...], int] = {(): 0}
        self._known: dict[Dims, tuple[int, int]] = {}

    def of(self, dims: Dims) -> tuple[int, int]:
        """Elements of a tensor of shape ``dims``: a coefficient and the index of its monomial."""
        known = self._known.get(dims)
        if known is not None:
            return known
        coefficient = 1
        names: list[str] = []
        values = self.values
        for dim in dims:
            if isinstance(dim, int):
                coefficient *= dim
            elif dim in values:
                coefficient *= values[dim]
            else:
                names.append(dim)
        names.sort()
        monomial = tuple(names)
        index = self.index.get(monomial)
        if index is None:
            index = self.index[monomial] = len(self.monomials)
            self.monomials.append(monomial)
        self._known[dims] = (coefficient, index)
        return coefficient, index

    def count(self, dims: Dims) -> int:
        """Elements of a shape without open symbols; ``KeyError`` where one is open."""
        total = 1
        for dim in dims:
            total *= dim if isinstance(dim, int) else self.values[dim]
        return total


class Tensor:
    """A tensor without content: shape, bytes per element, whether a gradient flows to it.

    ``root`` owns the storage (itself, unless this is a view); ``coefficient`` and ``monomial``
    give the bytes of this shape.  ``width`` is bytes per element.  ``loss`` marks what belongs to
    logits and loss, ``weight_copy`` autocast's copy of a weight, ``cached`` what a cache holds.
    ``stepwise`` is made token by token: unless it is saved, only one token's is alive at a time.
    ``layout`` is how queries, keys and values lie in memory; it decides which operators copy them.
    """

    __slots__ = (
        "block",
        "cached",
        "coefficient",
        "dims",
        "grad",
        "layout",
        "loss",
        "module",
        "monomial",
        "name",
        "origin",
        "part",
        "root",
        "stepwise",
        "weight_copy",
        "width",
    )

    def __init__(
        self, name: str, dims: Dims, width: int, coefficient: int, monomial: int, grad: bool, origin: int
    ) -> None:
        self.name = name
        self.dims = dims
        self.width = width
        self.coefficient = coefficient
        self.monomial = monomial
        self.grad = grad
        self.origin = origin
        self.root = self
        self.layout = BY_TOKEN
        self.block = ""
        self.part = ""
        self.module = ""
        self.loss = False
        self.weight_copy = False
        self.stepwise = False
        self.cached = False

    def __repr__(self) -> str:
        return f"{self.name}{list(self.dims)}x{self.width}"


class Parameter(Tensor):
    """A weight: ``cut`` says what splits it (``column``, ``row``, ``vocabulary``, ``expert``, or nothing).

    ``role`` says what a linear layer does (``attention.v``, ``mlp.down``, ...), ``inputs`` how many of its
    last dimensions are what it reads: number formats store matrices, and mixes choose by role.
    ``tied`` marks a weight used in more than one place; ``copy`` is autocast's copy of it.
    """

    __slots__ = ("copy", "cut", "elements", "inputs", "role", "tied")

    def __init__(
        self, name: str, dims: Dims, width: int, elements: int, grad: bool, cut: str, role: str, inputs: int
    ) -> None:
        super().__init__(name, dims, width, elements * width, 0, grad, PARAMETER)
        self.elements = elements
        self.cut = cut
        self.role = role
        self.inputs = inputs
        self.tied = False
        self.copy: Tensor | None = None


NEW: Final = 0  # the operator's backward allocates this input's gradient
ALIAS: Final = 1  # the gradient of the output is passed on as it is
PROMOTED: Final = 2  # computed in the output's wider format, then cast to the input's
REPLACES: Final = 3  # takes the place of what was saved, and of the output's gradient, piece by piece

Back = tuple[tuple[Tensor, int], ...]


class Op:
    """One operator that ran: tensors in and out, what its backward keeps and makes.

    ``extra`` and ``back_extra`` are sizes (coefficient, monomial) that forward and backward hold
    for a moment beside their results; ``inner`` and ``back_inner`` are what the kernels behind them
    allocate themselves, where no tracer of tensors sees it.  ``region`` is the number of the stretch
    that is computed again in backward, 0 outside of any.
    """

    __slots__ = (
        "back",
        "back_extra",
        "back_inner",
        "extra",
        "inner",
        "ins",
        "module",
        "name",
        "outs",
        "part",
        "region",
        "saves",
    )

    def __init__(
        self,
        name: str,
        part: str,
        module: str,
        ins: tuple[Tensor, ...],
        outs: tuple[Tensor, ...],
        saves: tuple[Tensor, ...],
        back: Back,
        extra: tuple[int, int] | None,
        back_extra: tuple[int, int] | None,
        back_inner: tuple[int, int] | None,
        inner: tuple[int, int] | None,
    ) -> None:
        self.name = name
        self.part = part
        self.module = module
        self.ins = ins
        self.outs = outs
        self.saves = saves
        self.back = back
        self.extra = extra
        self.back_extra = back_extra
        self.back_inner = back_inner
        self.inner = inner
        self.region = 0


class Tape:
    """Records one block of a model: operators in the order they run, parameters, what it caches.

    ``part`` and ``module`` name where the operators that follow belong; modules set them.
    ``autocast`` is the width that matrix products compute in under autocast, else 0; ``half`` which
    two-byte format the step uses (``bf16`` or ``fp16``).  The caller of
    a layer holds its input until it returns; a block between stacks or after them (``frees_input``)
    lets it go after use.  The ``final`` one ends in the loss, whose gradient the caller holds.
    ``recomputed`` names the stretches that are computed again in backward.
    """

    __slots__ = (
        "again",
        "autocast",
        "buffers",
        "cached",
        "carried",
        "cast_cache",
        "drawn",
        "final",
        "frees_input",
        "half",
        "handed_out",
        "held",
        "key",
        "leaf",
        "loss",
        "module",
        "ops",
        "out",
        "outside",
        "parameters",
        "part",
        "pinned",
        "pool",
        "recomputed",
        "region",
        "regions",
        "replaced",
        "results",
        "reused",
        "sizes",
        "training",
    )

    def __init__(
        self,
        key: str,
        sizes: Sizes,
        autocast: int = 0,
        training: bool = True,
        half: str = "bf16",
        recomputed: tuple[str, ...] = (),
    ) -> None:
        self.key = key
        self.sizes = sizes
        self.autocast = autocast
        self.half = half
        self.training = training
        self.recomputed = recomputed
        self.region = 0
        self.regions: list[str] = []
        self.ops: list[Op] = []
        self.parameters: list[Parameter] = []
        self.buffers: list[Tensor] = []
        self.cached: list[Tensor] = []
        self.cast_cache: list[Tensor] = []
        self.replaced: list[Tensor] = []
        self.held: list[Tensor] = []
        self.handed_out: list[Tensor] = []
        self.results: list[Tensor] = []
        self.pinned: list[Tensor] = []
        self.outside: list[Tensor] = []
        self.leaf: Tensor | None = None
        self.carried: Tensor | None = None
        self.again: list[Parameter] = []
        self.reused: set[Parameter] = set()
        self.pool: list[Parameter] | None = None
        self.drawn = 0
        self.final = False
        self.frees_input = False
        self.out: Tensor | None = None
        self.part = ""
        self.module = ""
        self.loss = False

    # -- tensors ------------------------------------------------------------------------------

    def tensor(self, name: str, dims: Dims, width: int, grad: bool = False, origin: int = MADE) -> Tensor:
        """A tensor of shape ``dims`` with ``width`` bytes per element."""
        coefficient, monomial = self.sizes.of(dims)
        made = Tensor(name, dims, width, coefficient * width, monomial, grad, origin)
        made.block = self.key
        made.part = self.part
        made.module = self.module
        made.loss = self.loss
        return made

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
        made = Parameter(
            name,
            dims,
            width,
            self.sizes.count(dims),
            trainable and self.training,
            cut,
            role,
            inputs,
        )
        made.block = self.key
        made.part = part or self.part
        made.module = self.module
        self.parameters.append(made)
        if self.pool is not None:
            made.tied = made.grad
            self.pool.append(made)
            self.drawn += 1
        return made

    def use_again(self, parameters: list[Parameter]) -> None:
        """The next weights asked for are these, which a module of this block has used once already."""
        self.again = list(parameters)
        self.reused.update(parameters)

    def buffer(self, name: str, dims: Dims, width: int) -> None:
        """A tensor that lies beside the weights and is not trained."""
        self.buffers.append(self.tensor(name, dims, width, origin=AMBIENT))

    def input(self, dims: Dims, width: int, grad: bool) -> Tensor:
        """The block's input, made and counted by the block before."""
        self.carried = made = self.tensor("input", dims, width, grad, CARRIED)
        return made

    def view(self, x: Tensor, name: str, dims: Dims) -> Tensor:
        """A view of ``x``: another shape, the same storage and gradient path."""
        coefficient, monomial = self.sizes.of(dims)
        made = Tensor(name, dims, x.width, coefficient * x.width, monomial, x.grad, x.origin)
        made.root = x.root
        made.layout = x.layout
        made.block = self.key
        made.part, made.module, made.loss = self.part, self.module, x.loss
        return made

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """The operators of a stretch that may be computed again in backward, by its name."""
        if self.region or name not in self.recomputed:
            yield
            return
        self.regions.append(name)
        self.region = len(self.regions)
        yield
        self.region = 0

    def use(self, *tensors: Tensor) -> None:
        """Python still refers to ``tensors`` up to here (an argument of a call that returns now)."""
        self.run("", tensors, (), (), ())

    def hold(self, *tensors: Tensor) -> None:
        """Python refers to ``tensors`` until the layer returns (a result that is not used)."""
        self.held.extend(tensor.root for tensor in tensors)

    def hand_out(self, *tensors: Tensor) -> None:
        """``tensors`` are handed to the blocks that follow (and so kept by checkpoints)."""
        self.hold(*tensors)
        self.handed_out.extend(tensor.root for tensor in tensors)

    def return_(self, tensor: Tensor) -> None:
        """``tensor`` is handed out, and part of what the model returns."""
        self.hand_out(tensor)
        self.results.append(tensor.root)

    def pin(self, *tensors: Tensor) -> None:
        """The graph itself refers to ``tensors`` (as attributes of a node): until the loss dies."""
        self.pinned.extend(tensor.root for tensor in tensors)

    def make_leaf(self, x: Tensor) -> None:
        """``x.requires_grad_()``: graph, ``x`` and its gradient live until the loss dies."""
        if not x.grad:  # else it is no leaf: nothing changes
            x.grad = True
            self.leaf = x
            self.hold(x)

    def hold_outside(self, *tensors: Tensor) -> None:
        """Who calls the model refers to ``tensors`` until it has returned, the loss with it."""
        self.hold(*tensors)
        self.outside.extend(tensor.root for tensor in tensors)

    def cache(self, tensor: Tensor) -> None:
        """``tensor`` stays in the cache after the layer."""
        tensor.cached = True
        self.cached.append(tensor)

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
        op = Op(name, self.part, self.module, ins, outs, saves, back, extra, back_extra, back_inner, inner)
        op.region = self.region
        self.ops.append(op)

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
        self.run(name, ins, (out,), saves, back, extra, back_extra, back_inner, inner)
        return out
