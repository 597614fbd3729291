"""LFM2's gated short convolution: a layer that looks back over a few tokens and no further."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mamba import short_convolution
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.states import convolution_state, without_padding
from memgui.estimator.tape import Dims, Tape, Tensor


def short_conv(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Project in to three, gate, convolve, gate again, project out."""
    m = c.model
    t.part = "mixer"
    read = without_padding(t, c, x)
    both = projection(t, c, read, "conv.in", "B, C, x", (3, "h"), ("h",), bias=m.mamba_conv_bias)
    wide: Dims = (*c.rows, "h")
    fed, gate, u = op.split(t, both, ("B", "C", "x"), (wide, wide, wide))
    mixed = op.mul(t, fed, u, "gated", wide)
    if c.options.cache:
        mixed = convolution_state(t, c, mixed, "h", "K")
    y = short_convolution(t, c, mixed, "h", activated=False)
    y = op.mul(t, gate, y, "gated", wide)
    out = projection(t, c, y, "conv.out", "output", ("h",), ("h",), bias=m.mamba_conv_bias, cut="row")
    t.use(both, mixed, x)
    return out
