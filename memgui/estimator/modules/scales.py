"""Learned scales of channels, kept as small numbers times a factor (nGPT)."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import Dims, Tape, Tensor


def learned(t: Tape, c: Context, name: str, dims: Dims) -> Tensor:
    """``scale * factor``, in the model's format."""
    return op.scale(t, t.parameter(name, dims, c.options.width, c.options.base_trained))


def squared(t: Tape, c: Context, name: str, dims: Dims) -> Tensor:
    """The square of it, for queries and gates."""
    return op.power(t, learned(t, c, name, dims))


def towards(t: Tape, c: Context, x: Tensor, y: Tensor, name: str) -> Tensor:
    """``x + |rate| * (y - x)``, at a rate of each channel's own."""
    before, t.part = t.part, "norm"
    rate = op.pointwise(t, "abs", learned(t, c, name, ("h",)), "rate", saves="input")
    t.part = before
    return op.add(t, x, op.mul(t, op.minus(t, y, x), rate, "step", x.dims), "residual stream")
