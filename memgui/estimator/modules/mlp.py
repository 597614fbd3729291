"""Feed-forward layers: gated or plain, by activation."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.projection import projection
from memgui.estimator.tape import Tape, Tensor


def mlp(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The model's dense feed-forward: ``down(act(gate(x)) * up(x))`` or ``down(act(up(x)))``."""
    m = c.model
    t.part = "mlp"
    inner = (*c.rows, "f")
    activate = ACTIVATIONS[m.hidden_act]
    if m.gated_mlp:
        gate = projection(t, c, x, "mlp.gate", "gate", ("f",), ("h",), bias=m.mlp_bias)
        gate = activate(t, gate)
        up = projection(t, c, x, "mlp.up", "up", ("f",), ("h",), bias=m.mlp_bias)
        product = op.mul(t, gate, up, "product", inner)
    else:
        up = projection(t, c, x, "mlp.up", "up", ("f",), ("h",), bias=m.mlp_bias)
        product = activate(t, up)
    y = projection(t, c, product, "mlp.down", "down", ("h",), ("f",), bias=m.mlp_bias, cut="row")
    t.use(x)
    return y


def silu(t: Tape, x: Tensor) -> Tensor:
    """One operator that keeps its input."""
    return op.pointwise(t, "silu", x, "activated", saves="input")


def gelu(t: Tape, x: Tensor) -> Tensor:
    """One operator (exact or tanh) that keeps its input."""
    return op.pointwise(t, "gelu", x, "activated", saves="input")


def relu(t: Tape, x: Tensor) -> Tensor:
    """Keeps its output, which the next linear layer keeps anyway."""
    return op.pointwise(t, "relu", x, "activated", saves="output")


def gelu_new(t: Tape, x: Tensor) -> Tensor:
    """GPT-2's GELU, written out in Python: ``0.5 * x * (1 + tanh(c * (x + 0.044715 * x³)))``."""
    half = op.scale(t, x, "half")
    cubed = op.scale(t, op.power(t, x), "power")
    inner = op.scale(t, op.add(t, x, cubed), "inner")
    one = op.shift(t, op.pointwise(t, "tanh", inner, "tanh", saves="output"))
    one.name = "1 + tanh"
    y = op.mul(t, half, one, "activated", x.dims)
    t.use(x)
    return y


ACTIVATIONS: dict[str, Callable[[Tape, Tensor], Tensor]] = {
    "silu": silu,
    "gelu": gelu,
    "gelu_pytorch_tanh": gelu,
    "gelu_new": gelu_new,
    "relu": relu,
}
