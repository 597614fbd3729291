"""A residual stream of several copies of one magnitude: made before the layers, merged after them."""

from __future__ import annotations

from collections.abc import Sequence

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.projection import matrix, projection
from memgui.estimator.modules.shorts import in_short, plainly
from memgui.estimator.tape import ALIAS, NEW, Back, Dims, Parameter, Tape, Tensor


def copies(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The embedded tokens, and projections of them brought to the same magnitude, stacked."""
    part, t.part = t.part, "streams"
    out = (_copies_in_short if plainly(t, c, x) else _copies)(t, c, x)
    t.part = part
    return out


def merged(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The mean of all copies, projected back and brought to the magnitude of the first."""
    part, t.part = t.part, "streams"
    y = (_merged_in_short if plainly(t, c, x) else _merged)(t, c, x)
    t.part = part
    return y


# -- operator by operator --------------------------------------------------------------------------


def _copies(t: Tape, c: Context, x: Tensor) -> Tensor:
    n = c.model.altup_num_inputs
    target = op.power(t, _magnitude(t, x))
    made = [x]
    for i in range(1, n):
        one = projection(t, c, x, f"streams.{i}", "stream", ("h",), ("h",))
        made.append(_scaled(t, op.cast(t, one, c.options.width), target))
    out = _stacked(t, tuple(made), (n, *x.dims))
    t.use(*made, target)
    return out


def _merged(t: Tape, c: Context, x: Tensor) -> Tensor:
    n = c.model.altup_num_inputs
    first = op.piece(t, x, "stream", c.hidden)
    target = op.power(t, _magnitude(t, first))
    made = [op.piece(t, x, "stream", c.hidden)]
    for i in range(1, n):
        one = projection(t, c, op.piece(t, x, "stream", c.hidden), f"unstreams.{i}", "stream", ("h",), ("h",))
        made.append(_scaled(t, op.cast(t, one, c.options.width), target))
    stacked = _stacked(t, tuple(made), (n, *c.hidden))
    y = op.mean(t, stacked, c.hidden)
    t.use(x, *made, target, stacked)
    return y


def _magnitude(t: Tape, x: Tensor) -> Tensor:
    return op.mean(t, op.power(t, x), (*x.dims[:-1], 1))


def _scaled(t: Tape, x: Tensor, target: Tensor) -> Tensor:
    """``x * target / sqrt(clamp(mean(x²)))``."""
    least = op.pointwise(t, "clamp", _magnitude(t, x), "magnitude", saves="input")
    own = op.pointwise(t, "sqrt", least, "magnitude", saves="output")
    y = op.mul(t, x, target, "stream", x.dims)
    width = max(y.width, own.width)
    out = t.tensor("stream", x.dims, width, y.grad or own.grad)
    extra = (2 * out.coefficient, out.monomial)
    back = tuple([(one, NEW) for one in (y, own) if one.grad])
    t.record("div", (y, own), out, (y, own), back, None, extra)
    t.use(x, own)
    return out


def _stacked(t: Tape, parts: tuple[Tensor, ...], dims: Dims) -> Tensor:
    width = max(one.width for one in parts)
    parts = tuple([op.cast(t, one, width) for one in parts])
    out = t.tensor("streams", dims, width, any(one.grad for one in parts))
    return t.record("stack", parts, out, (), tuple([(one, ALIAS) for one in parts if one.grad]))


# -- as one operator each --------------------------------------------------------------------------


def _copies_in_short(t: Tape, c: Context, x: Tensor) -> Tensor:
    n = c.model.altup_num_inputs
    weights = [matrix(t, c, f"streams.{i}", ("h",), ("h",)) for i in range(1, n)]
    kept, saves, ahead, behind = _all_scaled(t, x, [x] * len(weights), weights)
    out = t.tensor("streams", (n, *x.dims), x.width, True)
    back: Back = ((x, ALIAS),)
    for w in reversed(weights):
        back += (x, NEW), (w, NEW)
    return in_short(t, c, _copies, (x,), weights, (out, *kept), saves, (*back, (x, NEW)), ahead, behind)


def _merged_in_short(t: Tape, c: Context, x: Tensor) -> Tensor:
    hidden = c.hidden
    n = c.model.altup_num_inputs
    weights = [matrix(t, c, f"unstreams.{i}", ("h",), ("h",)) for i in range(1, n)]
    first, *given = [t.view(x, "stream", hidden) for _ in range(n)]
    kept, saves, ahead, behind = _all_scaled(t, first, given, weights)
    y = t.tensor("mean", hidden, x.width, True)
    back: Back = ()
    for w in reversed(weights):
        back += (w, NEW), (x, NEW)
    stacked = x.coefficient
    return in_short(
        t,
        c,
        _merged,
        (x,),
        weights,
        (y, *kept),
        saves,
        (*back, (x, NEW), (x, NEW)),
        ahead + stacked,
        behind + stacked + n * first.coefficient,
    )


def _all_scaled(
    t: Tape, first: Tensor, given: Sequence[Tensor], weights: Sequence[Parameter]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], int, int]:
    """What is made and saved, what is saved, where products of all that is given get the first's magnitude.

    And bytes that come and go forward and backward, but for gradients of what is given.
    """
    dims, rows, width = first.dims, (*first.dims[:-1], 1), first.width
    mean, target = t.tensor("mean", rows, width, True), t.tensor("power", rows, width, True)
    kept, saves = [mean, target], [first, mean]
    for x, w in zip(given, weights, strict=True):
        y, z = t.tensor("stream", dims, width, True), t.tensor("stream", dims, width, True)
        least, own = t.tensor("mean", rows, width, True), t.tensor("magnitude", rows, width, True)
        kept += y, least, own, z
        saves += w, x, y, least, own, target, y, z, own
    many, whole, row = len(weights), first.coefficient, mean.coefficient
    # Squares, and of each other one what is clamped and the quotient.
    ahead = whole + many * (2 * whole + row)
    # Of each: two beside the quotient's gradients, the product's, one of full size beside; two of squares and
    # theirs; the product's own two and their sum.  Of the first: squares' three.  Roots are three of a row.
    behind = 3 * whole + many * (10 * whole + 4 * row) + (many - 1) * row + 3 * row
    return tuple(kept), tuple(saves), ahead, behind
