"""Gemma 3n: a residual stream of several copies, of which layers see one; a narrow way beside attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from memgui.estimator import operators as op
from memgui.estimator.alike import alike, common_input, own
from memgui.estimator.modules.attention import attention
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import ACTIVATIONS, mlp
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import REACHES
from memgui.estimator.tape import ALIAS, NEW, Dims, Parameter, Tape, Tensor

FP32 = 4
PREDICTION = "streams.prediction"

# -- before and after the layers -------------------------------------------------------------------


def copies(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The embedded tokens, and projections of them brought to the same magnitude, stacked."""
    part, t.part = t.part, "streams"
    n = c.model.altup_num_inputs
    target = _root(t, _magnitude(t, x))
    made = [x]
    for i in range(1, n):
        one = projection(t, c, x, f"streams.{i}", "stream", ("h",), ("h",))
        made.append(_scaled(t, op.cast(t, one, c.options.width), target))
    out = _stacked(t, tuple(made), (n, *x.dims))
    t.use(*made, target)
    t.part = part
    return out


def merged(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The mean of all copies, projected back and brought to the magnitude of the first."""
    part, t.part = t.part, "streams"
    n = c.model.altup_num_inputs
    first = op.piece(t, x, "stream", c.hidden)
    target = _root(t, _magnitude(t, first))
    made = [op.piece(t, x, "stream", c.hidden)]
    for i in range(1, n):
        one = projection(t, c, op.piece(t, x, "stream", c.hidden), f"unstreams.{i}", "stream", ("h",), ("h",))
        made.append(_scaled(t, op.cast(t, one, c.options.width), target))
    stacked = _stacked(t, tuple(made), (n, *c.hidden))
    y = op.mean(t, stacked, c.hidden)
    t.use(x, *made, target, stacked)
    t.part = part
    return y


def _magnitude(t: Tape, x: Tensor) -> Tensor:
    return op.mean(t, op.power(t, x), (*x.dims[:-1], 1))


def _root(t: Tape, x: Tensor) -> Tensor:
    return op.power(t, x)


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


# -- a layer ---------------------------------------------------------------------------------------


@cache
def layer(mixer: str, few: bool) -> Callable[[Tape, Context, Tensor], Tensor]:
    """The whole layer with ``mixer``; ``few``: of its feed-forward only the largest gates are let through."""

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        return _layer(t, c, x, mixer, few=few)

    return write


def _layer(t: Tape, c: Context, x: Tensor, mixer: str, *, few: bool) -> Tensor:
    common = c.common
    x = common_input(t, common, x, c.options.trained, c.options.width)
    made, weights = alike(t, common, "before attention", lambda: _before(t, c, x), x)
    predicted, active, normed, beside = made
    router = weights[: [one.role for one in weights].index(PREDICTION)]
    y = attention(t, c, normed, REACHES[mixer])
    made, _ = alike(t, common, "between", lambda: _between(t, c, y, active, beside), y, active, beside)
    gated, middle, inner = made
    (fed,), _ = alike(t, common, "mlp", lambda: (mlp(t, c, inner, few=few),), inner, variant=few)
    used = (predicted, active, normed, beside, gated, middle, inner)
    (out,), _ = alike(
        t, common, "after", lambda: (_after(t, c, router, fed, *used),), fed, *used, reused=router
    )
    return own(t, out)


def _between(t: Tape, c: Context, attended: Tensor, active: Tensor, beside: Tensor) -> tuple[Tensor, ...]:
    """What comes between attention and feed-forward."""
    y = norm(t, c, attended, "post_attention_layernorm")
    gated = op.add(t, active, y, "residual stream")
    middle = op.scale(t, op.add(t, gated, beside, "residual stream"), operator="div")
    t.use(y)
    return gated, middle, norm(t, c, middle, "pre_feedforward_layernorm")


def _before(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What comes before attention: the predicted streams, the layer's own, normed, and a narrow way.

    The weights of the router come first.
    """
    t.part = "streams"
    t.buffer("router_input_scale", (), c.options.width)
    routed = _routed(t, c, op.piece(t, x, "stream", c.hidden), again=False)
    predicted = _predicted(t, c, x, routed)
    active = op.piece(t, predicted, "stream", c.hidden)
    normed = norm(t, c, active, "input_layernorm")
    return predicted, active, normed, _beside(t, c, normed)


def _after(
    t: Tape,
    c: Context,
    router: Sequence[Parameter],
    fed: Tensor,
    predicted: Tensor,
    active: Tensor,
    normed: Tensor,
    beside: Tensor,
    gated: Tensor,
    middle: Tensor,
    inner: Tensor,
) -> Tensor:
    """What comes after the feed-forward."""
    fed = norm(t, c, fed, "post_feedforward_layernorm")
    activated = op.add(t, middle, fed, "residual stream")
    corrected = _corrected(t, c, router, predicted, activated)
    first = op.clone(t, op.piece(t, corrected, "stream", c.hidden))
    t.part = "streams"
    scale = t.parameter("correct_output_scale", ("h",), c.options.width, c.options.base_trained)
    first = op.mul(t, first, scale, "stream", first.dims)
    assert c.own is not None
    t.part = "per_layer"
    given = op.piece(t, c.own, "embedding of its own", (*c.rows, "pl"))
    gate = projection(t, c, first, "per_layer.gate", "gate", ("pl",), ("h",))
    gate = ACTIVATIONS[c.model.hidden_act](t, gate)
    own = op.mul(t, gate, given, "gated", gate.dims)
    own = projection(t, c, own, "per_layer.projection", "projected", ("h",), ("pl",))
    own = norm(t, c, own, "post_per_layer_norm")
    out = t.view(corrected, "streams", corrected.dims)
    out.grad = corrected.grad or own.grad
    whole = (corrected.coefficient, corrected.monomial)
    t.run("add_", (corrected, own), (out,), (), ((corrected, NEW), (own, NEW)), None, whole)
    t.use(predicted, active, normed, beside, gated, middle, inner, fed, activated, first, own)
    return out


def _routed(t: Tape, c: Context, x: Tensor, again: bool) -> Tensor:
    """How much of each copy, for each token."""
    n = c.model.altup_num_inputs
    y = op.scale(t, norm(t, c, x, "router_norm", part="norm"))
    y = projection(t, c, y, "streams.router", "routed", (n,), ("h",), cut="")
    y = op.pointwise(t, "tanh", op.cast(t, y, FP32), "routed", saves="output")
    return op.cast(t, y, c.options.width if not again else x.width)


def _predicted(t: Tape, c: Context, x: Tensor, modalities: Tensor) -> Tensor:
    n = c.model.altup_num_inputs
    t.part = "streams"
    coefficients = projection(t, c, modalities, PREDICTION, "coefficients", (n, n), (n,), cut="")
    made = op.matmul(t, x, coefficients, "predicted", (*c.hidden, n))
    summed = t.view(made, "predicted", made.dims)
    whole = (made.coefficient, made.monomial)
    t.run("add_", (made, x), (summed,), (), ((made, NEW), (x, ALIAS)), None, whole)
    out = op.clone(t, summed, "predicted", x.dims)
    t.use(made, modalities)
    return op.cast(t, out, x.width)


def _beside(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The narrow way: ``x + norm(right(left(x)))``."""
    t.part = "streams"
    rank = c.model.laurel_rank
    y = projection(t, c, x, "laurel.left", "narrow", (rank,), ("h",))
    y = projection(t, c, y, "laurel.right", "wide", ("h",), (rank,), cut="row")
    return op.add(t, x, norm(t, c, y, "post_laurel_norm"), "residual stream")


def _corrected(
    t: Tape, c: Context, router: Sequence[Parameter], predicted: Tensor, activated: Tensor
) -> Tensor:
    n, o = c.model.altup_num_inputs, c.options
    t.use_again(router)
    t.part = "streams"
    modalities = _routed(t, c, activated, again=True)
    t.part = "streams"
    new = op.minus(t, activated, op.piece(t, predicted, "stream", c.hidden))
    repeated = t.tensor("innovation", predicted.dims, new.width, new.grad)
    t.record("repeat", (new,), repeated, (), ((new, NEW),))
    w = t.parameter("correction_coefs.weight", (n, n), o.width, o.base_trained)
    used: Tensor = op.cast(t, op.pointwise(t, "clamp", w, "clamped", saves="input"), o.width)
    coefficients = op.shift(t, op.linear(t, modalities, used, None, "coefficients", (*c.rows, n)))
    y = op.mul(t, repeated, coefficients, "corrected", predicted.dims)
    y = op.add_in_place(t, y, predicted)
    t.use(new, repeated, coefficients, modalities)
    return op.cast(t, y, activated.width)
