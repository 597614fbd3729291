"""fp8 products as Transformer Engine 2 runs them: copies of inputs and weights, one scale for each tensor.

An input is quantised for the product; for the weight's gradient a transposed copy is kept in place of the
input.  Before Blackwell products of fp8 want their operands in one order, so a weight has a copy in each;
they are made once per step and stay (``is_first_microbatch``).  Primary weights stay in bf16.
"""

from __future__ import annotations

from memgui.estimator.modules.context import Context
from memgui.estimator.tape import Parameter, Tape, Tensor

BLACKWELL = (10, 0)
FP32 = 4


def quantised(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """What the product reads, and what is kept for the backward pass."""
    used = t.tensor(f"{x.name}, fp8", x.dims, 1)
    scale = t.tensor("scale", (_scales(c),), FP32)
    t.run("quantize", (x,), (used, scale), (), ())
    if c.options.capability >= BLACKWELL and c.options.fp8 != "blockwise":
        return used, used
    kept = t.tensor(f"{x.name}, fp8, transposed", x.dims, 1)
    t.run("transpose", (used,), (kept,), (), ())
    return used, kept


def weight_copies(t: Tape, c: Context, w: Parameter) -> None:
    """Copies of a weight that stay from micro batch to micro batch."""
    copies = 1 if c.options.capability >= BLACKWELL and c.options.fp8 != "blockwise" else 2
    t.buffer(f"{w.name}, fp8", (copies, *w.dims), 1)
    if c.options.fp8 == "delayed":
        t.buffer("amax history", (HISTORY, 5), FP32)


HISTORY = 1024
"""How many steps Transformer Engine's delayed scaling looks back (``amax_history_len``)."""


def _scales(c: Context) -> int:
    return 1
