"""DeepSeek V4's residual streams, mixed by weights that follow from each token (hyper-connections)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from memgui.estimator import operators as op
from memgui.estimator.modules import rms
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.shorts import apart
from memgui.estimator.op import copy, spelled
from memgui.estimator.tape import ALIAS, NEW, Dims, Op, Parameter, Sizes, Tape, Tensor
from memgui.estimator.tensor import promoted

FP32 = 4


def streams(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Every stream begins as the embedded tokens."""
    return op.clone(t, x, "streams", _wide(c))


def _wide(c: Context) -> Dims:
    return (*c.rows, c.model.hc_mult, "h")


def connected(
    t: Tape, c: Context, x: Tensor, module: Callable[[Tape, Context, Tensor], Tensor], before: str
) -> Tensor:
    """``post * module(norm(pre · x)) + combᵀ @ x``: one of all streams goes in, what comes out to each."""
    if not c.model.hc_sinkhorn_iters:
        return _independent(t, c, x, module, before)
    t.part = "streams"
    post, comb, collapsed = _connection(t, c, x)
    y = module(t, c, norm(t, c, collapsed, before))
    t.hold(y)
    t.part = "streams"
    own = op.cast(t, post, x.width)
    out = t.tensor("expanded", x.dims, promoted(own.width, y.width), own.grad or y.grad)
    both = (2 * out.coefficient, out.monomial)  # of each a product of full size, summed
    t.record("mul", (own, y), out, op.partners(own, y), op.edges(own, NEW, y, NEW), None, both)
    mixed = op.matmul(t, op.cast(t, comb, x.width), x, "mixed", x.dims)
    result = op.add(t, out, mixed, "streams")
    t.use(post, comb, collapsed, out, mixed)
    return result


def _connection(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each token how it is spread and mixed, and the sum of its streams, all by weights in fp32.

    Said as one operator where order does not matter, with what it saves.  ``ahead`` and ``behind`` are bytes
    of the rest for each token, which comes and goes forward and backward.
    """
    m = c.model
    if not (x.grad and c.options.base_trained) or t.ordered or t.autocast or m.hc_upcast or x.width == FP32:
        return _written(t, c, x)
    weights = _weights_of_connection(t, c)
    mixed = t.tensor("mixed", (*c.rows, (2 + m.hc_mult) * m.hc_mult), FP32, True)
    pre, post, comb, *steps = _mixtures(t, c, grad=True)
    x32, y = t.tensor("streams", x.dims, FP32, True), t.tensor("normalised", x.dims, FP32, True)
    deviation = t.tensor("1/deviation", (*c.rows, 1), FP32, True)
    collapsed = t.tensor("collapsed", c.hidden, x.width, True)
    sums = collapsed.coefficient // x.width * FP32
    # Squares and weighed streams; means and what is added to them; what is cast.
    ahead = 2 * x32.coefficient + 2 * deviation.coefficient + sums
    # Seven in the norm and what comes to it, two in the product; one more beside what was cast.
    behind = 10 * x32.coefficient + 2 * deviation.coefficient + sums + pre.coefficient + mixed.coefficient
    fn, base, scale = weights
    t.short = True
    t.written.append(
        Op(
            "connection",
            t.part,
            t.module,
            (x, *weights),
            (collapsed, post, comb, pre, x32, deviation, y, mixed, *steps),
            (x32, deviation, deviation, x32, fn, y, mixed, *steps, x, pre),
            ((base, NEW), (scale, NEW), (fn, NEW), (x, NEW), (x, NEW)),
            (ahead, x.monomial),
            (behind, x.monomial),
            None,
            None,
            spell=partial(_spelled, c, weights, t.sizes),
        )
    )
    return post, comb, collapsed


def _spelled(c: Context, weights: Sequence[Parameter], sizes: Sizes, short: Op) -> list[Op]:
    """The operators of a connection."""
    t = apart(short, sizes, weights)
    post, comb, collapsed = _written(t, copy(c), short.ins[0])
    return spelled(short, t.written, [collapsed, post, comb])


def _weights_of_connection(t: Tape, c: Context) -> tuple[Parameter, Parameter, Parameter]:
    """What tokens are mixed by, in the order in which it is used."""
    n, trained = c.model.hc_mult, c.options.base_trained
    rows = (2 + n) * n
    return (
        _matrix(t, c, "hc.fn", rows),
        t.parameter("hc.base", (rows,), FP32, trained),
        t.parameter("hc.scale", (3,), FP32, trained),
    )


def _mixtures(t: Tape, c: Context, *, grad: bool) -> tuple[Tensor, ...]:
    """What streams are summed, spread and mixed by; what is opened and balanced on the way."""
    n, steps = c.model.hc_mult, 2 * c.model.hc_sinkhorn_iters - 1
    rows: Dims = (*c.rows, n)
    return (
        t.tensor("weights of streams", rows, FP32, grad),
        t.tensor("weights of streams", rows, FP32, grad),
        t.tensor("comb", (*rows, n), FP32, grad),
        t.tensor("opened", (*rows, 2), FP32),
        t.tensor("balanced, step by step", (steps + 1, *rows, n), FP32),
        t.tensor("sums, step by step", (steps, *rows), FP32),
    )


def _written(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same, operator by operator.

    Three pieces of what a token is mixed to are scaled and shifted: two of them opened, one balanced by
    Sinkhorn's steps, which divide rows and columns by their sums in turn.  One operator stands for all that;
    it saves what is scaled, opened and balanced, and each step's dividend and divisor.
    """
    trained = c.options.base_trained
    fn, base, scale = _weights_of_connection(t, c)
    _, mixed = _mixed(t, c, x, fn)
    made = _mixtures(t, c, grad=mixed.grad or trained)
    back = tuple((one, NEW) for one in (mixed, base, scale) if one.grad)
    scaled = (mixed,) if trained else ()  # saved for the gradient of what it is scaled by
    t.run("div", (mixed,), made, (*scaled, *made[3:]) if back else (), back)
    pre, post, comb, *_ = made
    collapsed = _collapsed(t, c, pre, x)
    t.use(mixed, pre)
    return post, comb, collapsed


def _independent(
    t: Tape, c: Context, x: Tensor, module: Callable[[Tape, Context, Tensor], Tensor], before: str
) -> Tensor:
    """HunYuan 4: ``(post * module(norm(pre · x))32 + x32).to(dtype)``, streams that are not mixed."""
    post, collapsed = _opened(t, c, x)
    y = module(t, c, norm(t, c, collapsed, before))
    t.part = "streams"
    y32 = op.cast(t, y, FP32)
    out = t.tensor("expanded", x.dims, FP32, post.grad or y.grad)
    both = (2 * out.coefficient, out.monomial)  # of each a product of full size, summed
    t.record("mul", (post, y32), out, op.partners(post, y32), op.edges(post, NEW, y32, NEW), None, both)
    result = op.cast(t, op.add(t, out, op.cast(t, x, FP32), "streams"), x.width)
    t.use(y, post)
    return result


def _opened(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """For each token how it is spread, and the sum of its streams, by weights in fp32, autocast or not."""
    t.part = "streams"
    m, trained, autocast = c.model, c.options.base_trained, t.autocast
    n = m.hc_mult
    t.autocast = 0
    flat, mixed = _mixed_then_normed(t, c, x, "hc.fn", 2 * n)
    base = t.parameter("hc.base", (2 * n,), FP32, trained)
    scale = t.parameter("hc.scale", (2,), FP32, trained)
    half: Dims = (*c.rows, n)
    pieces = [op.piece(t, mixed, "mixed", half) for _ in range(2)]
    shifted = [op.add_broadcast(t, op.mul(t, one, scale, "mixed", half), base, "mixed") for one in pieces]
    pre, post = (op.pointwise(t, "sigmoid", one, "weights of streams", saves="output") for one in shifted)
    pre, post = op.shift(t, pre), op.shift(t, op.scale(t, post))
    collapsed = _collapsed(t, c, pre, x)
    t.use(flat, mixed, *pieces, *shifted, pre)
    t.autocast = autocast
    return post, collapsed


def _mixed_then_normed(t: Tape, c: Context, x: Tensor, name: str, out: int) -> tuple[Tensor, Tensor]:
    """All streams of a token in fp32; and what one matrix makes of them, divided by their size."""
    flat = op.cast(t, op.reshaped(t, x, "streams", x.dims), FP32)
    mixed = op.linear(t, flat, _matrix(t, c, name, out), None, "mixed", (*c.rows, out))
    deviation = rms.inverse_deviation(t, flat, (*c.rows, 1))
    return flat, op.mul(t, mixed, deviation, "mixed", mixed.dims)


def _matrix(t: Tape, c: Context, name: str, out: int) -> Parameter:
    """What makes so much of all streams of a token; one that is cast is in the model's format."""
    o = c.options
    own = o.width if c.model.hc_upcast else FP32
    return t.parameter(f"{name}.weight", (out, c.model.hc_mult, "h"), own, o.base_trained, inputs=2)


def _mixed(t: Tape, c: Context, x: Tensor, w: Parameter) -> tuple[Tensor, Tensor]:
    """All streams of a token, normed in fp32 without a weight; and what one matrix makes of them."""
    x32 = op.cast(t, op.reshaped(t, x, "streams", x.dims), FP32)
    y = rms.normalised(t, x32, None, (*c.rows, 1), rms.PLAIN)
    used = op.copy_of_weight(t, w, FP32) if c.model.hc_upcast else w
    return y, op.linear(t, y, used, None, "mixed", (*c.rows, *w.dims[:1]))


def _collapsed(t: Tape, c: Context, pre: Tensor, x: Tensor) -> Tensor:
    """The streams' sum by their weights, in fp32, cast back."""
    weighed = op.mul(t, pre, x, "weighed streams", x.dims)
    out = t.tensor("collapsed", c.hidden, FP32, weighed.grad)
    t.record("sum", (weighed,), out, (), ((weighed, ALIAS),))
    return op.cast(t, out, x.width)


def merged(t: Tape, c: Context, x: Tensor) -> Tensor:
    """After the layers: the streams' sum by weights that each token learns."""
    part, t.part = t.part, "streams"
    if c.model.hc_averaged:
        y = op.mean(t, x, c.hidden)
        t.part = part
        return y
    n, autocast = c.model.hc_mult, t.autocast
    if c.model.hc_sinkhorn_iters:
        normed, mixed = _mixed(t, c, x, _matrix(t, c, "hc_head.hc_fn", n))
    else:
        t.autocast = 0
        normed, mixed = _mixed_then_normed(t, c, x, "hc_head.hc_fn", n)
    base = t.parameter("hc_head.hc_base", (n,), FP32, c.options.base_trained)
    scale = t.parameter("hc_head.hc_scale", (1,), FP32, c.options.base_trained)
    scaled = op.add_broadcast(t, op.mul(t, mixed, scale, "mixed", mixed.dims), base, "mixed")
    pre = op.shift(t, op.pointwise(t, "sigmoid", scaled, "weights of streams", saves="output"))
    y = _collapsed(t, c, pre, x)
    t.use(x, normed, mixed, pre)
    t.part, t.autocast = part, autocast
    return y
