"""Qwen 4's residual streams: what a layer reads of them and writes to them is opened by low-rank gates."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.tape import NEW, Dims, Tape, Tensor
from memgui.estimator.tensor import promoted


def streams(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Every stream begins as the embedded tokens."""
    return op.clone(t, x, "streams", (*c.rows, c.model.hc_count, "h"))


def connected(
    t: Tape, c: Context, x: Tensor, module: Callable[[Tape, Context, Tensor], Tensor], before: str
) -> Tensor:
    """``x + inject * module(mean(gates * norm(x)))``: one of all streams goes in, what comes out to each."""
    normed, mixed = _read(t, c, x, f"{before}.hc_norm")
    part, t.part = t.part, "streams"
    opened = projection(t, c, normed, "streams.inject", "injection", (c.model.hc_count,), _wide(c))
    opened = op.pointwise(t, "sigmoid", op.scale(t, opened, operator="div"), "injection", saves="output")
    weights = op.scale(t, opened)
    t.use(normed)
    t.part = part
    y = module(t, c, mixed)
    t.part = "streams"
    out = t.tensor("injected", x.dims, promoted(weights.width, y.width), weights.grad or y.grad)
    both = (2 * out.coefficient, out.monomial)  # of each a product of full size, summed
    back = op.edges(weights, NEW, y, NEW)
    t.record("mul", (weights, y), out, op.partners(weights, y), back, None, both)
    t.hold(out, weights)
    return op.add(t, x, out, "streams")


def merged(t: Tape, c: Context, x: Tensor) -> Tensor:
    """After the layers: the same without anything written back."""
    normed, mixed = _read(t, c, x, "hyper_connection_mixer.hc_norm")
    t.use(x, normed)
    return mixed


def _wide(c: Context) -> Dims:
    return (c.model.hc_count, "h")


def _read(t: Tape, c: Context, x: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """The streams, each normed, and their mean, each element by a gate of its own."""
    m = c.model
    normed = norm(t, c, x, name, part="streams", own=1)
    part, t.part = t.part, "streams"
    narrow = projection(t, c, normed, "streams.down", "narrowed", (m.hc_lowrank,), _wide(c))
    scaled = op.scale(t, narrow, operator="div")
    narrow = op.pointwise(t, "silu", scaled, "narrowed", saves="input")
    gates = projection(t, c, narrow, "streams.up", "gates", _wide(c), (m.hc_lowrank,))
    gates = op.pointwise(t, "sigmoid", gates, "gates", saves="output")
    product = op.mul(t, gates, normed, "gated streams", x.dims)
    mixed = op.mean(t, product, c.hidden)
    t.use(gates)
    t.part = part
    return normed, mixed
