"""Feed-forward layers: gated or plain, by activation."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.mixing import softplus
from memgui.estimator.modules import fused
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.scales import learned
from memgui.estimator.modules.shorts import in_short
from memgui.estimator.tape import ALIAS, BY_TOKEN, NEW, Dims, Tape, Tensor

FP32 = 4
AT_ONCE = ("opt", "biogpt")
"""Models whose layers give the first linear layer's output the name of its input."""
IN_LINE = frozenset(
    (
        *("bart", "mbart", "pegasus", "marian", "m2m_100", "blenderbot", "blenderbot-small", "plbart", "mvp"),
        *("whisper", "xglm", *AT_ONCE),
    )
)
"""Models whose layers have no module for the feed-forward: they give each output the name of its input."""


def mlp(t: Tape, c: Context, x: Tensor, width: str = "f", part: str = "mlp", *, few: bool = False) -> Tensor:
    """A dense feed-forward ``width`` wide: ``down(act(gate(x)) * up(x))`` or ``down(act(up(x)))``.

    ``few``: only gates far above their mean are let through.
    """
    m = c.model
    t.part = part
    inner = (*c.rows, width)
    activate = ACTIVATIONS.get(m.hidden_act, silu)
    into = m.mlp_bias and (m.gate_bias or not m.gated_mlp)
    named: tuple[Tensor, ...] = ()
    if not m.gated_mlp:
        up = projection(t, c, x, "mlp.up", "up", (width,), ("h",), bias=m.mlp_bias)
        product = xielu(t, c, up) if m.hidden_act == "xielu" else activate(t, up)
        if m.model_type in IN_LINE and m.model_type not in AT_ONCE:
            t.use(x)
    elif m.fused_gate_up:
        both = projection(t, c, x, "mlp.gate_up", "gate and up", (2, width), ("h",), bias=into)
        if m.hidden_act == "swiglu_clamped":
            y = clamped_swiglu(t, both, inner)
            y = projection(t, c, y, "mlp.down", "down", ("h",), (width,), bias=m.mlp_bias, cut="row")
            t.use(x)
            return y
        gate, up = op.split(t, both, ("gate", "up"), (inner, inner))
        if c.options.fused:
            product = fused.gated(t, *(fused.contiguous(t, one) for one in (gate, up)), in_place=True)
        else:
            product = op.mul(t, up, activate(t, gate), "product", inner)
        named = (gate, up)
    elif m.hidden_act == "silu_upcast":
        gate = projection(t, c, x, "mlp.gate", "gate", (width,), ("h",), bias=into)
        up = projection(t, c, x, "mlp.up", "up", (width,), ("h",), bias=into)
        product = upcast_silu(t, gate, up)
        named = (gate, up, product)
    elif m.channel_scales:
        gate, up = (
            op.mul(
                t,
                projection(t, c, x, f"mlp.{name}", name, (width,), ("h",), bias=into),
                learned(t, c, f"suv_{name}", (width,)),
                name,
                inner,
            )
            for name in ("gate", "up")
        )
        product = op.mul(t, activate(t, gate), up, "product", inner)
        named = (gate, up)
    else:
        gate = projection(t, c, x, "mlp.gate", "gate", (width,), ("h",), bias=into)
        if few:
            gate = _few(t, gate)
        if not c.options.fused:
            gate = activate(t, op.scale(t, gate) if m.mup_scaling else gate)
        up = projection(t, c, x, "mlp.up", "up", (width,), ("h",), bias=into)
        if m.hidden_act == "silu_clamped":
            up = op.pointwise(t, "clamp", up, "up, clamped", saves="input")
        if c.options.fused:
            product = fused.gated(t, gate, up, in_place=True)
        else:
            product = op.mul(t, gate, up, "product", inner)
    product = op.dropout(t, product, c.options.activation_dropout)
    if m.mlp_in_weight_format:
        product = wide = op.cast(t, product, c.options.width)
    if m.inner_norms:
        product = norm(t, c, product, "ffn_sub_norm")
    c.give(product)
    y = projection(t, c, product, "mlp.down", "down", ("h",), (width,), bias=m.mlp_bias, cut="row")
    if m.bias_added:
        named = (*named, product)  # which autocast casts for the product, not for the sum
    if m.model_type not in IN_LINE:
        t.use(x, *named)
    if m.mlp_in_weight_format:
        t.use(wide)  # given to the layer, which autocast casts for itself
    return op.scale(t, y) if m.mup_scaling else y


def _few(t: Tape, x: Tensor) -> Tensor:
    """Gemma 3n: ``relu(x - (mean(x) + std(x) * factor))``."""
    rows = (*x.dims[:-1], 1)
    mean = op.mean(t, x, rows)
    spread = t.tensor("deviation", rows, x.width, x.grad)
    extra = (2 * x.coefficient, x.monomial)
    t.record("std", (x,), spread, (x, spread), ((x, NEW),), None, extra)
    factor = t.tensor("factor", (), x.width)
    t.run("_to_copy", (), (factor,), (), ())
    cut = t.tensor("cut", rows, x.width, x.grad)
    t.record("mul", (spread, factor), cut, (factor,), ((spread, NEW),))
    y = relu(t, op.sub(t, x, op.add(t, mean, cut), "above the cut"))
    t.use(x, mean, spread, factor, cut)
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


def relu_squared(t: Tape, x: Tensor) -> Tensor:
    """``relu(x)²``: keeps what relu returns, under autocast in fp32 too."""
    return op.power(t, relu(t, x))


def gelu_new(t: Tape, x: Tensor) -> Tensor:
    """GPT-2's GELU, written out in Python; said in short where it is trained and nothing is cast."""
    if t.ordered or t.autocast or not x.grad or x.layout != BY_TOKEN:
        return _gelu_new(t, None, x)
    names = "activated", "half", "tanh", "1 + tanh"
    y, half, tanh, one = made = tuple([t.tensor(name, x.dims, x.width, True) for name in names])
    size, edges = y.coefficient, ((x, ALIAS), (x, NEW), (x, NEW))
    # The power, scaled, the sum, scaled; backward of all but that sum and one more of it, two for the power.
    return in_short(t, None, _gelu_new, (x,), (), made, (x, tanh, one, half), edges, 4 * size, 7 * size)


def _gelu_new(t: Tape, _: None, x: Tensor) -> Tensor:
    """``0.5 * x * (1 + tanh(c * (x + 0.044715 * x³)))``, operator by operator."""
    half = op.scale(t, x, "half")
    cubed = op.scale(t, op.power(t, x), "power")
    inner = op.scale(t, op.add(t, x, cubed), "inner")
    one = op.shift(t, op.pointwise(t, "tanh", inner, "tanh", saves="output"))
    one.name = "1 + tanh"
    y = op.mul(t, half, one, "activated", x.dims)
    t.use(x)
    return y


def gelu_erf(t: Tape, x: Tensor) -> Tensor:
    """ESM's GELU, written out in Python: ``x * 0.5 * (1 + erf(x / sqrt(2)))``."""
    half = op.scale(t, x, "half")
    divided = op.scale(t, x, operator="div")
    out = t.tensor("erf", x.dims, x.width, x.grad)
    extra = (4 * out.coefficient, out.monomial)  # its derivative is one expression
    one = op.shift(t, t.record("erf", (divided,), out, (divided,), ((divided, NEW),), None, extra))
    y = op.mul(t, half, one, "activated", x.dims)
    t.use(x)
    return y


def quick_gelu(t: Tape, x: Tensor) -> Tensor:
    """CLIP's GELU, written out in Python: ``x * sigmoid(1.702 * x)``."""
    opened = op.pointwise(t, "sigmoid", op.scale(t, x), "sigmoid", saves="output")
    return op.mul(t, x, opened, "activated", x.dims)


def xielu(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Apertus's activation, written out in Python: two weights of its own, one for each side of 0."""
    o = c.options
    steep, low = (t.parameter(f"act_fn.alpha_{side}", (1,), o.width, o.base_trained) for side in ("p", "n"))
    for name in ("beta", "eps"):
        t.buffer(f"act_fn.{name}", (), o.width)
    positive = t.tensor("positive", x.dims, 1)
    t.run("gt", (x,), (positive,), (), ())
    rising, falling = softplus(t, steep), op.shift(t, softplus(t, low))
    above = op.mul(t, op.mul(t, x, rising, "slope", x.dims), x, "above", x.dims)
    above = op.add(t, above, op.scale(t, x))
    lower = t.tensor("below", x.dims, x.width, x.grad)
    t.record("minimum", (x,), lower, (x,), ((x, NEW),))
    curve = op.pointwise(
        t, "expm1", op.cast(t, lower, FP32) if t.autocast else lower, "curve", saves="output"
    )
    t.use(lower)  # autocast's copy is made of it within the call
    below = op.mul(t, op.minus(t, curve, x), falling, "below", x.dims)
    below = op.add(t, below, op.scale(t, x))
    out = t.tensor("activated", x.dims, max(above.width, below.width), x.grad)
    t.record("where", (positive, above, below), out, (positive,), ((above, NEW), (below, NEW)))
    t.use(rising, falling)
    return out


def bloom_gelu(t: Tape, x: Tensor) -> Tensor:
    """BLOOM's GELU, a function of its own: keeps its input, and works with five tensors of that size."""
    out = t.tensor("activated", x.dims, x.width, x.grad)
    working = (3 * out.coefficient, out.monomial)
    back = (4 * out.coefficient, out.monomial)  # beside its result
    return t.record("mul", (x,), out, (x,), ((x, NEW),), working, back)


def clamped_swiglu(t: Tape, both: Tensor, inner: Dims) -> Tensor:
    """gpt-oss: ``(up + 1) * gate * sigmoid(a * gate)`` with gate and up clamped."""
    gate, up = op.split(t, both, ("gate", "up"), (inner, inner))
    gate = op.pointwise(t, "clamp", gate, "gate, clamped", saves="input")
    up = op.pointwise(t, "clamp", up, "up, clamped", saves="input")
    opened = op.pointwise(t, "sigmoid", op.scale(t, gate), "sigmoid", saves="output")
    product = op.mul(t, gate, opened, "gate", inner)
    one = op.shift(t, up)
    one.name = "up + 1"
    y = op.mul(t, one, product, "product", inner)
    t.use(gate, up, product)
    return y


def clamped_silu(t: Tape, x: Tensor) -> Tensor:
    """DeepSeek V4's, of what is held to a limit."""
    return silu(t, op.pointwise(t, "clamp", x, "gate, clamped", saves="input"))


def upcast_silu(t: Tape, gate: Tensor, up: Tensor) -> Tensor:
    """Beam: ``(silu(gate32) * up32).to(dtype)``."""
    activated = silu(t, op.cast(t, gate, FP32))
    return op.cast(t, op.mul(t, activated, op.cast(t, up, FP32), "product", gate.dims), gate.width)


ACTIVATIONS: dict[str, Callable[[Tape, Tensor], Tensor]] = {
    "silu": silu,
    "gelu": gelu,
    "gelu_pytorch_tanh": gelu,
    "gelu_new": gelu_new,
    "gelu_erf": gelu_erf,
    "quick_gelu": quick_gelu,
    "bloom_gelu": bloom_gelu,
    "relu": relu,
    "relu2": relu_squared,
    "silu_clamped": clamped_silu,
    "silu_upcast": silu,
}
"""Activations of one tensor, by their names in configurations."""
