"""Differential attention: two calls share queries and keys, each over half of the values; the difference."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import exponential
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.reach import Reach
from memgui.estimator.tape import ALIAS, BY_HEAD, BY_TOKEN, NEW, Dims, Tape, Tensor

FP32 = 4


def differential(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, reach: Reach) -> Tensor:
    """``norm(attended[:half] - lambda * attended[half:])``, halves of the heads; each head reads both values.

    A half of two heads' outputs side by side has as many elements as all heads have queries.
    """
    heads: Dims = (*c.rows, "a", "d")
    halves = [_half(t, v) for _ in range(2)]
    each = [attend(t, c, q, k, half, reach) for half in halves]
    both = op.cat(t, (each[0], each[1]), "attention output", (*c.rows, "a", 2, "d"))
    both.layout = BY_TOKEN
    first, second = op.split(t, both, ("first half", "second half"), (heads, heads))
    one, other = (_exponent(t, c, which, q.width) for which in ("1", "2"))
    factor = op.shift(t, op.minus(t, one, other))
    weighed = op.mul(t, second, factor, "second half", heads)
    out = op.scale(t, _rms_norm(t, op.minus(t, first, weighed)))
    t.use(*halves, *each, one, other, factor, both)
    return out


def _half(t: Tape, v: Tensor) -> Tensor:
    """Values of half of the heads, for all heads of keys."""
    out = t.tensor("values", v.dims, v.width, v.grad)
    out.layout = BY_HEAD
    return t.record("repeat", (v,), out, (), ((v, NEW),))


def _exponent(t: Tape, c: Context, which: str, width: int) -> Tensor:
    """``exp(q · k)`` of two vectors, in fp32, cast back."""
    o = c.options
    q, k = (t.parameter(f"lambda_{name}{which}", ("d",), o.width, o.base_trained) for name in ("q", "k"))
    product = op.mul(t, q, k, "lambda", ("d",))
    total = t.tensor("lambda", (), FP32, product.grad)
    t.record("sum", (product,), total, (), ((product, ALIAS),))
    return op.cast(t, exponential(t, total, "lambda"), width)


def _rms_norm(t: Tape, x: Tensor) -> Tensor:
    """``nn.RMSNorm`` of two heads together: one operator, which keeps its input and a number for each row."""
    x = op.cast(t, x, FP32) if t.autocast else x
    out = t.tensor("norm output", x.dims, x.width, x.grad)
    rows = t.tensor("1/deviation", (*x.dims[:-2], "a2"), FP32)
    back = ((x, NEW),) if x.grad else ()
    t.run("_fused_rms_norm", (x,), (out, rows), (x, rows) if back else (), back)
    return out
