"""Stretches of a layer that run as one kernel, as compilers and kernel libraries write them.

What lies between matrix products is fused: only what such a stretch reads is kept, and nothing
inside it is ever in memory.
"""

from __future__ import annotations

from memgui.estimator.modules.context import Context
from memgui.estimator.tape import NEW, Tape, Tensor

FP32 = 4


def rms_norm(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    """Keeps its input and one number for each row."""
    o = c.options
    part, t.part = t.part, "norm"
    w = t.parameter(f"{name}.weight", x.dims[-1:], o.width, o.base_trained)
    out = t.tensor("norm output", x.dims, x.width, x.grad or w.grad)
    rows = t.tensor("1/deviation", (*x.dims[:-1], 1), FP32)
    back = tuple((one, NEW) for one in (x, w) if one.grad)
    t.run("rms_norm", (x, w), (out, rows), (x, w, rows) if back else (), back)
    t.part = part
    return out


def rope(t: Tape, x: Tensor) -> Tensor:
    """Keeps nothing: the tables say all that its backward needs."""
    out = t.tensor(x.name, x.dims, x.width, x.grad)
    return t.record("rope", (x,), out, (), ((x, NEW),))


def gated(t: Tape, gate: Tensor, up: Tensor) -> Tensor:
    """``act(gate) * up``: keeps both."""
    out = t.tensor("product", gate.dims, gate.width, gate.grad or up.grad)
    back = tuple((one, NEW) for one in (gate, up) if one.grad)
    return t.record("gated", (gate, up), out, (gate, up), back)
