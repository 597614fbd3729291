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
from memgui.estimator.modules.projection import matrix, projection
from memgui.estimator.modules.reach import REACHES
from memgui.estimator.modules.shorts import in_short, plainly
from memgui.estimator.tape import ALIAS, NEW, Parameter, Tape, Tensor

FP32 = 4
ROUTER = "streams.router"
PREDICTION = "streams.prediction"
CORRECTION = "correction_coefs.weight"

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
    y = norm(t, c, op.piece(t, x, "stream", c.hidden), "router_norm", part="norm")
    predicted = (_predicted_in_short if _in_half(t, c, x) else _predicted)(t, c, x, y)
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
    t.use_again(router)
    t.part = "streams"
    y = norm(t, c, activated, "router_norm", part="norm")
    corrected = (_corrected_in_short if _in_half(t, c, predicted) else _corrected)(
        t, c, predicted, activated, y
    )
    first = op.clone(t, op.piece(t, corrected, "stream", c.hidden))
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


def _in_half(t: Tape, c: Context, x: Tensor) -> bool:
    """Whether it may be said in short, with copies in fp32."""
    return x.width < FP32 and plainly(t, c, x)


def _routed(t: Tape, c: Context, y: Tensor, width: int) -> Tensor:
    """How much of each copy, for each token, of a norm's output ``y``."""
    y = op.scale(t, y)
    y = projection(t, c, y, ROUTER, "routed", (c.model.altup_num_inputs,), ("h",), cut="")
    y = op.pointwise(t, "tanh", op.cast(t, y, FP32), "routed", saves="output")
    return op.cast(t, y, width)


def _predicted(t: Tape, c: Context, x: Tensor, normed: Tensor) -> Tensor:
    """All streams, and what each token mixes of them."""
    n = c.model.altup_num_inputs
    modalities = _routed(t, c, normed, c.options.width)
    coefficients = projection(t, c, modalities, PREDICTION, "coefficients", (n, n), (n,), cut="")
    made = op.matmul(t, x, coefficients, "predicted", (*c.hidden, n))
    summed = t.view(made, "predicted", made.dims)
    whole = (made.coefficient, made.monomial)
    t.run("add_", (made, x), (summed,), (), ((made, NEW), (x, ALIAS)), None, whole)
    out = op.clone(t, summed, "predicted", x.dims)
    t.use(made, modalities)
    return op.cast(t, out, x.width)


def _predicted_in_short(t: Tape, c: Context, x: Tensor, normed: Tensor) -> Tensor:
    n, rows = c.model.altup_num_inputs, c.rows
    router = matrix(t, c, ROUTER, (n,), ("h",), "")
    mixes = matrix(t, c, PREDICTION, (n, n), (n,), "")
    scaled, opened, modalities, behind = _routed_in_short(t, c, normed)
    coefficients = t.tensor("coefficients", (*rows, n, n), x.width, True)
    out = t.tensor("predicted", x.dims, x.width, True)
    return in_short(
        t,
        c,
        _predicted,
        (x, normed),
        (router, mixes),
        (out, scaled, opened, modalities, coefficients),
        (router, scaled, opened, mixes, modalities, coefficients, x),
        ((x, ALIAS), (x, NEW), (mixes, NEW), (router, NEW), (normed, NEW)),
        out.coefficient + modalities.coefficient + opened.coefficient,
        2 * out.coefficient + coefficients.coefficient + behind,
    )


def _routed_in_short(t: Tape, c: Context, y: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """What is made and saved as copies are weighed, and bytes of gradients within."""
    width, dims = y.width, (*c.rows, c.model.altup_num_inputs)
    scaled = t.tensor(y.name, y.dims, width, True)
    opened, routed = t.tensor("routed", dims, FP32, True), t.tensor("routed", dims, width, True)
    return scaled, opened, routed, scaled.coefficient + 2 * opened.coefficient + 2 * routed.coefficient


def _beside(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The narrow way: ``x + norm(right(left(x)))``."""
    t.part = "streams"
    rank = c.model.laurel_rank
    y = projection(t, c, x, "laurel.left", "narrow", (rank,), ("h",))
    y = projection(t, c, y, "laurel.right", "wide", ("h",), (rank,), cut="row")
    return op.add(t, x, norm(t, c, y, "post_laurel_norm"), "residual stream")


def _corrected(t: Tape, c: Context, predicted: Tensor, activated: Tensor, normed: Tensor) -> Tensor:
    """All streams, and for each token of each how far it is led by what the layer made of its own."""
    n, o = c.model.altup_num_inputs, c.options
    modalities = _routed(t, c, normed, activated.width)
    new = op.minus(t, activated, op.piece(t, predicted, "stream", c.hidden))
    repeated = t.tensor("innovation", predicted.dims, new.width, new.grad)
    t.record("repeat", (new,), repeated, (), ((new, NEW),))
    w = t.parameter(CORRECTION, (n, n), o.width, o.base_trained)
    used: Tensor = op.cast(t, op.pointwise(t, "clamp", w, "clamped", saves="input"), o.width)
    coefficients = op.shift(t, op.linear(t, modalities, used, None, "coefficients", (*c.rows, n)))
    y = op.mul(t, repeated, coefficients, "corrected", predicted.dims)
    y = op.add_in_place(t, y, predicted)
    t.use(new, repeated, coefficients, modalities)
    return op.cast(t, y, activated.width)


def _corrected_in_short(t: Tape, c: Context, predicted: Tensor, activated: Tensor, normed: Tensor) -> Tensor:
    n, width, o = c.model.altup_num_inputs, activated.width, c.options
    router = matrix(t, c, ROUTER, (n,), ("h",), "")
    w = t.parameter(CORRECTION, (n, n), o.width, True)
    scaled, opened, modalities, behind = _routed_in_short(t, c, normed)
    used = t.tensor("clamped", w.dims, width, True)
    coefficients = t.tensor("coefficients", modalities.dims, width, True)
    repeated = t.tensor("innovation", predicted.dims, width, True)
    y = t.tensor("corrected", predicted.dims, width, True)
    small = modalities.coefficient
    return in_short(
        t,
        c,
        _corrected,
        (predicted, activated, normed),
        (router, w),
        (t.view(y, y.name, y.dims), y, scaled, opened, modalities, used, coefficients, repeated),
        (router, scaled, opened, w, used, modalities, coefficients, repeated),
        ((predicted, ALIAS), (w, NEW), (activated, ALIAS), (predicted, NEW), (router, NEW), (normed, NEW)),
        2 * small + opened.coefficient + activated.coefficient,
        2 * y.coefficient + small + 2 * activated.coefficient + behind,
        used.coefficient,
    )
