"""Symbolic tensors: a shape, a format, whether a gradient flows, and no content.

Shapes are tuples of ints and symbol names.  Names with a value in :class:`Sizes` (model
dimensions) are folded into a coefficient at once; the others (micro batch, sequence length) stay
open: a size is ``coefficient x product of open symbols``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

Dims = tuple[int | str, ...]

MADE: Final = 0  # by an operator of this block
CARRIED: Final = 1  # the block's input, made by the block before
AMBIENT: Final = 2  # made once per step, outside the layers (rotary tables, masks, ids)
PARAMETER: Final = 3
HELD_BEFORE: Final = 4  # in the cache already, replaced by a longer one

LINEAR: Final = "linear"
"""The role of a linear layer of which nothing else is known."""

APART: Final = ("convolution", "heads")
"""Roles of weights that PyTorch holds with all their dimensions."""

BY_TOKEN: Final = 0  # in memory as (batch, tokens, heads, head size), as a projection leaves it
BY_HEAD: Final = 1  # in memory as (batch, heads, tokens, head size)
SPREAD: Final = 2  # one head seen as many


class _OtherHalf(int):
    """Two bytes in the one 16-bit format while autocast computes in the other: no width but itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OtherHalf)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, _OtherHalf)

    __hash__ = int.__hash__


OTHER_HALF: Final = _OtherHalf(2)
"""The width of weights in bf16 under autocast to fp16, or in fp16 under autocast to bf16."""


def promoted(a: int, b: int) -> int:
    """The width of what PyTorch makes of two formats: the wider one, of two halves fp32."""
    if a == b or a > b:
        return a
    return b if b > a else 4


class Sizes:
    """Values of the model's symbols, and every product of open symbols met so far.

    ``monomials[i]`` is a sorted tuple of open symbol names; ``of(dims)`` gives (coefficient, i), and
    ``known`` holds what it gave.
    """

    __slots__ = ("index", "known", "monomials", "values")

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values
        self.monomials: list[tuple[str, ...]] = [()]
        self.index: dict[tuple[str, ...], int] = {(): 0}
        self.known: dict[Dims, tuple[int, int]] = {}

    def beside(self, values: Mapping[str, int]) -> Sizes:
        """The same products with other values, for layers of other sizes."""
        other = Sizes(values)
        other.monomials, other.index = self.monomials, self.index
        return other

    def of(self, dims: Dims) -> tuple[int, int]:
        """Elements of a tensor of shape ``dims``: a coefficient and the index of its monomial."""
        return self.known.get(dims) or self.meet(dims)

    def meet(self, dims: Dims) -> tuple[int, int]:
        """The same of a shape that is met for the first time."""
        coefficient = 1
        names: list[str] = []
        values: Mapping[Any, int] = self.values
        for dim in dims:
            if dim in values:
                coefficient *= values[dim]
            elif isinstance(dim, str):
                names.append(dim)
            else:
                coefficient *= dim
        names.sort()
        monomial = tuple(names)
        index = self.index.get(monomial)
        if index is None:
            index = self.index[monomial] = len(self.monomials)
            self.monomials.append(monomial)
        self.known[dims] = (coefficient, index)
        return coefficient, index

    def count(self, dims: Dims) -> int:
        """Elements of a shape without open symbols; ``KeyError`` where one is open."""
        coefficient, monomial = self.of(dims)
        if monomial:
            raise KeyError(self.monomials[monomial])
        return coefficient


class Tensor(msgspec.Struct, eq=False, gc=False):
    """A tensor without content: shape, bytes per element, whether a gradient flows to it.

    ``base`` owns the storage where this is a view (no view itself); ``coefficient`` and ``monomial``
    give the bytes of this shape.  ``width`` is bytes per element.  ``loss`` marks what belongs to
    logits and loss, ``weight_copy`` autocast's copy of a weight, ``cached`` what a cache holds.
    ``stepwise`` is made token by token: unless it is saved, only one token's is alive at a time.
    ``layout`` is how queries, keys and values lie in memory; it decides which operators copy them.
    """

    name: str
    dims: Dims
    width: int
    coefficient: int
    monomial: int
    grad: bool
    origin: int
    block: str = ""
    part: str = ""
    module: str = ""
    loss: bool = False
    layout: int = BY_TOKEN
    weight_copy: bool = False
    stepwise: bool = False
    cached: bool = False
    base: Tensor | None = None

    @property
    def root(self) -> Tensor:
        """The tensor that owns the storage."""
        return self.base or self

    def __repr__(self) -> str:
        return f"{self.name}{list(self.dims)}x{self.width}"


class Parameter(Tensor, eq=False, gc=False, kw_only=True):
    """A weight: ``cut`` says what splits it (``column``, ``row``, ``vocabulary``, ``expert``, or nothing).

    ``role`` says what a linear layer does (``attention.v``, ``mlp.down``, ...), ``inputs`` how many of its
    last dimensions are what it reads: number formats store matrices, and mixes choose by role.
    ``tied`` marks a weight used in more than one place; ``copy`` is autocast's copy of it.  ``sizes`` are
    those of its layer: what the symbols in ``dims`` are worth.
    """

    sizes: Sizes
    elements: int = 0
    cut: str = ""
    role: str = ""
    inputs: int = 1
    tied: bool = False
    copy: Tensor | None = None

    @property
    def apart(self) -> bool:
        """Whether PyTorch holds it with all its dimensions: a convolution, or a matrix for each head."""
        return self.role in APART
