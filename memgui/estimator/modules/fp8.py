"""fp8 products as Transformer Engine 2 runs them: copies of inputs and weights, and their scales.

An input is quantised for the product; for the weight's gradient a transposed copy is kept in place of the
input.  Before Blackwell, and with scales for blocks, products want their operands in one order, so a weight
has a copy in each; they are made once per step and stay (``is_first_microbatch``).  Primary weights stay
in bf16.
"""

from __future__ import annotations

from math import prod
from typing import Final

import msgspec

from memgui.estimator.modules.context import Context
from memgui.estimator.tape import Dims, Parameter, Tape, Tensor

BLACKWELL: Final = (10, 0)
HISTORY: Final = 1024
"""How many steps delayed scaling looks back (``amax_history_len``)."""


class Scaling(msgspec.Struct, frozen=True):
    """Numbers that share a scale: of an input, of a weight (0: all of it), and the scale's bytes."""

    of_input: int
    of_weight: int
    width: int


SCALINGS: Final = {
    "tensorwise": Scaling(0, 0, 4),
    "delayed": Scaling(0, 0, 4),
    "blockwise": Scaling(128, 128 * 128, 4),
    "mxfp8": Scaling(32, 32, 1),
}
"""By ``training.fp8_scaling``."""


def quantised(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """What the product reads, and what is kept for the backward pass."""
    used, scales = _copy(t, c, x, "fp8")
    t.run("quantize", (x,), (used, scales), (), ())
    if _one_order(c):
        return used, (used, scales)
    kept, others = _copy(t, c, x, "fp8, transposed")
    t.run("quantize", (x, used), (kept, others), (), ())
    return used, (kept, others)


def weight_copies(t: Tape, c: Context, w: Parameter) -> None:
    """Copies of a weight that stay from micro batch to micro batch."""
    scaling, copies = SCALINGS[c.options.fp8], 1 if _one_order(c) else 2
    t.buffer(f"{w.name}, fp8", (copies, *w.dims), 1)
    blocks = -(-w.elements // scaling.of_weight) if scaling.of_weight else 1
    t.buffer(f"{w.name}, scales", (copies, blocks), scaling.width)
    if c.options.fp8 == "delayed":  # of input, weight and output, of the output's gradient and the input's
        t.buffer("amax history", (HISTORY, 5), 4)


def _one_order(c: Context) -> bool:
    return c.options.capability >= BLACKWELL and not SCALINGS[c.options.fp8].of_input


def _copy(t: Tape, c: Context, x: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """A copy in fp8, and its scales."""
    scaling, known = SCALINGS[c.options.fp8], c.sizes.values
    copy = t.tensor(f"{x.name}, {name}", x.dims, 1)
    dims: Dims = (1,)
    if scaling.of_input:
        rows = tuple([dim for dim in x.dims if isinstance(dim, str) and dim not in known])
        wide = prod(known[dim] if isinstance(dim, str) else dim for dim in x.dims if dim not in rows)
        dims = (*rows, -(-wide // scaling.of_input))
    return copy, t.tensor("scales", dims, scaling.width)
