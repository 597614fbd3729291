"""Norms, each as its family writes it; how a norm is written decides what it keeps."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import Dims, Tape, Tensor

FP32 = 4


def norm(t: Tape, c: Context, x: Tensor, name: str, *, part: str = "norm") -> Tensor:
    """The model's norm over the last dimension of ``x``."""
    before, t.part = t.part, part
    rows = (*x.dims[:-1], 1)
    y = NORMS[c.model.norm](t, c, x, name, x.dims[-1:], rows)
    t.part = before
    return y


def rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims) -> Tensor:
    """Llama's RMSNorm: ``weight * (x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    o = c.options
    w = t.parameter(f"{name}.weight", width, o.width, o.base_trained)
    x32 = op.cast(t, x, FP32)
    deviation = op.pointwise(
        t,
        "rsqrt",
        op.shift(t, op.mean(t, op.power(t, x32), rows)),
        "1/deviation",
        saves="output",
    )
    y32 = op.mul(t, x32, deviation, "normalised", x.dims)
    y = op.cast(t, y32, x.width)
    out = op.mul(t, y, w, "norm output", x.dims)
    t.use(y32, deviation)
    return out


def layer_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims) -> Tensor:
    """``nn.LayerNorm``, one fused operator."""
    o = c.options
    w = t.parameter(f"{name}.weight", width, o.width, o.base_trained)
    bias = t.parameter(f"{name}.bias", width, o.width, o.base_trained)
    return op.layer_norm(t, x, w, bias, rows)


NORMS = {"rms_norm": rms_norm, "layer_norm": layer_norm}
