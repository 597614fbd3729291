"""Gated delta nets as transformers runs them without kernels: chunks solved at once, a state between them."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import cumulative, exponential, padded, softplus, solve
from memgui.estimator.modules import rms
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mamba import short_convolution
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.states import convolution_state, recurrent_state, without_padding
from memgui.estimator.tape import ALIAS, NEW, Back, Dims, Tape, Tensor

FP32 = 4
STATE: Dims = ("b", "gv", "ck", "cv")
KEYS: Dims = ("b", "gv", "cc", "Q", "ck")
VALUES: Dims = ("b", "gv", "cc", "Q", "cv")
PAIRS: Dims = ("b", "gv", "cc", "Q", "Q")
STEPS: Dims = ("b", "gv", "cc", "Q")


def gated_delta_net(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Project in, short convolution, delta rule, norm, gate, project out."""
    if c.model.linear_separate:
        return _one_by_one(t, c, x)
    o = c.options
    t.part = "mixer"
    read = without_padding(t, c, x)
    mixed, gate, strength, step, *projected = (_fused if c.model.linear_fused else _separate)(t, c, read)
    if o.cache:
        mixed = convolution_state(t, c, mixed, "gc", "K")
    mixed = short_convolution(t, c, mixed, "gc", bias=False)
    keys: Dims = (*c.rows, "gk", "ck")
    values: Dims = (*c.rows, "gv", "cv")
    q, k, v = op.split(t, mixed, ("q", "k", "v"), (keys, keys, values))
    beta = op.pointwise(t, "sigmoid", strength, "beta", saves="output")
    decay = _decay(t, c, step)
    y = (_token if o.decode else _chunks)(t, c, q, k, v, beta, decay)
    t.use(mixed, strength, step, beta, decay)
    y = _gated_norm(t, c, y if y.width < FP32 or o.decode else op.clone(t, y), gate)
    out = projection(t, c, y, "delta.out", "output", ("h",), ("gv", "cv"), cut="row")
    t.use(gate, x, *projected)
    return out


def _one_by_one(t: Tape, c: Context, x: Tensor) -> Tensor:
    """OLMo Hybrid: queries, keys and values are joined for the convolution; the gate comes last."""
    o = c.options
    t.part = "mixer"
    read = without_padding(t, c, x)
    keys: Dims = (*c.rows, "gk", "ck")
    values: Dims = (*c.rows, "gv", "cv")
    each = [projection(t, c, read, f"delta.{name}", name, ("gk", "ck"), ("h",)) for name in ("q", "k")]
    each.append(projection(t, c, read, "delta.v", "v", ("gv", "cv"), ("h",)))
    mixed = t.tensor("q, k, v", (*c.rows, "gc"), each[0].width, any(one.grad for one in each))
    t.record("cat", tuple(each), mixed, (), tuple([(one, ALIAS) for one in each if one.grad]))
    if o.cache:
        mixed = convolution_state(t, c, mixed, "gc", "K")
    mixed = short_convolution(t, c, mixed, "gc", bias=False)
    q, k, v = op.split(t, mixed, ("q", "k", "v"), (keys, keys, values))
    strength = projection(t, c, read, "delta.b", "strength", ("gv",), ("h",))
    beta = op.pointwise(t, "sigmoid", strength, "beta", saves="output")
    if c.model.linear_doubled:
        beta = op.scale(t, beta)
    decay = _decay(t, c, projection(t, c, read, "delta.a", "step", ("gv",), ("h",)))
    y = (_token if o.decode else _chunks)(t, c, q, k, v, beta, decay)
    gate = projection(t, c, read, "delta.z", "gate", ("gv", "cv"), ("h",))
    y = _gated_norm(t, c, y if y.width < FP32 or o.decode else op.clone(t, y), gate)
    out = projection(t, c, y, "delta.out", "output", ("h",), ("gv", "cv"), cut="row")
    t.use(mixed, beta, decay, gate, x)
    return out


def _separate(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, ...]:
    """Qwen3.5: a projection each for queries, keys and values, gate, strength and step."""
    mixed = projection(t, c, x, "delta.qkv", "q, k, v", ("gc",), ("h",))
    gate = projection(t, c, x, "delta.z", "gate", ("gv", "cv"), ("h",))
    strength = projection(t, c, x, "delta.b", "strength", ("gv",), ("h",))
    return mixed, gate, strength, projection(t, c, x, "delta.a", "step", ("gv",), ("h",))


def _fused(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, ...]:
    """Qwen3-Next: two projections, head by head, which are put in order piece by piece."""
    keys: Dims = (*c.rows, "gk", "ck")
    values: Dims = (*c.rows, "gv", "cv")
    both = projection(t, c, x, "delta.qkvz", "q, k, v, gate", ("gq",), ("h",))
    pair = projection(t, c, x, "delta.ba", "strength, step", (2, "gv"), ("h",))
    q, k, v, gate = op.split(t, both, ("q", "k", "v", "gate"), (keys, keys, values, values))
    strength, step = op.split(t, pair, ("strength", "step"), ((*c.rows, "gv"), (*c.rows, "gv")))
    v, gate, strength, step = (op.clone(t, one) for one in (v, gate, strength, step))
    q, k = op.clone(t, q), op.clone(t, k)
    mixed = t.tensor("q, k, v", (*c.rows, "gc"), q.width, q.grad)
    t.record("cat", (q, k, v), mixed, (), ((q, ALIAS), (k, ALIAS), (v, ALIAS)))
    return mixed, gate, strength, step, both, pair


def _decay(t: Tape, c: Context, step: Tensor) -> Tensor:
    """The logarithm of what is left of the state after each token."""
    o = c.options
    width = FP32 if c.model.linear_separate else o.width  # OLMo Hybrid makes it in fp32
    logs = t.parameter("A_log", ("gv",), width, o.base_trained)
    rate = op.scale(t, exponential(t, op.cast(t, logs, FP32), "rate"), "rate", "neg")
    bias = t.parameter("dt_bias", ("gv",), o.width, o.base_trained)
    raw = op.add_broadcast(t, op.cast(t, step, FP32), bias, "step")
    return op.mul(t, rate, softplus(t, raw), "decay", (*c.rows, "gv"))


def _gated_norm(t: Tape, c: Context, y: Tensor, gate: Tensor) -> Tensor:
    """RMSNorm of each head, then the gate, in fp32; the weight too where it is so in all norms (Lara)."""
    o = c.options
    w = t.parameter("norm.weight", ("cv",), o.width, o.base_trained)
    rows = (*y.dims[:-1], 1)
    if c.model.norm == "rms_norm_fp32_copied":
        normed = rms.normalised(t, op.cast(t, y, FP32), None, rows, rms.PLAIN)
        out = op.mul(t, normed, op.copy_of_weight(t, w, FP32), "norm output", y.dims)
        opened = op.pointwise(t, "silu", op.cast(t, gate, FP32), "gate", saves="input")
        return op.cast(t, op.mul(t, out, opened, "gated", y.dims), y.width)
    normed = rms.normalised(t, y, None, rows, rms.PLAIN)
    out = op.mul(t, normed, w, "norm output", y.dims)
    gate = op.cast(t, gate, FP32)
    if c.model.linear_sigmoid:
        opened = op.pointwise(t, "sigmoid", gate, "gate", saves="output")
    else:
        opened = op.pointwise(t, "silu", gate, "gate", saves="input")
    out = op.cast(t, op.mul(t, out, opened, "gated", y.dims), y.width)
    t.use(y)
    return out


# -- a prompt, or training -------------------------------------------------------------------------


def _ready(t: Tape, c: Context, *tensors: Tensor) -> tuple[Tensor, ...]:
    """By heads, and in fp32."""
    return tuple([op.cast(t, x, FP32) for x in tensors])


def _every_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Queries or keys for each head of values."""
    if c.sizes.values["gk"] == c.sizes.values["gv"]:
        return x
    out = t.tensor(x.name, (*c.rows, "gv", "ck"), x.width, x.grad)
    return t.record("repeat", (x,), out, (), ((x, NEW),))


def _unit(t: Tape, x: Tensor) -> Tensor:
    """``x`` divided by its length."""
    squares = op.mul(t, x, x, "squares", x.dims)
    total = t.tensor("squares", (*x.dims[:-1], 1), x.width, x.grad)
    t.record("sum", (squares,), total, (), ((squares, ALIAS),))
    inverse = op.pointwise(t, "rsqrt", op.shift(t, total), "1/length", saves="output")
    out = op.mul(t, x, inverse, x.name, x.dims)
    t.use(inverse)
    return out


def _chunks(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    """Within a chunk all updates are solved for at once, from chunk to chunk the state is handed on.

    What is in fp32 already is not put in order by heads, nor by padding where there is none to add: products
    then copy what they are given.
    """
    width = q.width
    o = c.options
    apart = width == FP32 and o.whole_chunks and not (o.one_chunk and o.one_sequence)
    q, k = _every_head(t, c, q), _every_head(t, c, k)
    q, k, v, beta, decay = _ready(t, c, q, k, v, beta, decay)
    q, k = _unit(t, q), _unit(t, k)
    q = op.scale(t, q)
    q, k, v = padded(t, q, KEYS), padded(t, k, KEYS), padded(t, v, VALUES)
    beta, decay = padded(t, beta, STEPS), padded(t, decay, STEPS)
    v_beta = op.mul(t, v, beta, "v, weighted", VALUES)
    k_beta = op.mul(t, k, beta, "k, weighted", KEYS)
    mask = t.tensor("triangle", ("Q", "Q"), 1)
    t.run("triu", (), (mask,), (), ())
    total = cumulative(t, decay, "decay", STEPS)
    within = exponential(t, _between(t, total, mask), "decay of pairs")
    system = op.mul(t, _product(t, k_beta, k, "system", apart), within, "system", PAIRS)
    near = op.mul(t, _product(t, q, k, "scores", apart), within, "scores", PAIRS)
    from_start = op.mul(t, k_beta, exponential(t, total, "decay"), "k, decayed", KEYS)
    new_v = solve(t, system, v_beta, "new values")
    new_k = solve(t, system, from_start, "new keys")
    y = t.tensor("attended", VALUES, FP32)
    t.run("zeros_like", (new_v,), (y,), (), ())
    decayed_q = op.mul(t, q, exponential(t, total, "decay"), "q", KEYS)
    decayed_k = op.mul(t, k, exponential(t, _left(t, total), "decay"), "k", KEYS)
    last = t.view(total, "decay", ("b", "gv", "cc"))
    across = exponential(t, last, "decay of chunks")
    out = _scan(t, c, y, new_v, new_k, decayed_q, decayed_k, near, across, apart=apart)
    t.use(v, beta, decay, v_beta, k_beta, mask, total, within, system, near, from_start, new_v, new_k)
    t.use(decayed_q, decayed_k, across)
    values: Dims = (*c.rows, "gv", "cv")
    shaped = op.reshaped if c.options.whole_chunks else op.piece
    return op.cast(t, shaped(t, out, "attended", values), width)


def _product(t: Tape, a: Tensor, b: Tensor, name: str, apart: bool) -> Tensor:
    """Every pair of tokens of a chunk."""
    if apart:
        a, b = op.clone(t, a), op.clone(t, b)
    return op.matmul(t, a, b, name, PAIRS)


def _between(t: Tape, total: Tensor, mask: Tensor) -> Tensor:
    """Decay between every pair of tokens of a chunk, of those in order."""
    pairs = t.tensor("decay of pairs", PAIRS, total.width, total.grad)
    size = (pairs.coefficient, pairs.monomial)
    t.record("sub", (total,), pairs, (), ((total, NEW),), None, size)
    out = t.tensor("decay of pairs", PAIRS, pairs.width, pairs.grad)
    return t.record("masked_fill", (pairs, mask), out, (mask,), ((pairs, NEW),))


def _left(t: Tape, total: Tensor) -> Tensor:
    out = t.tensor("decay", total.dims, total.width, total.grad)
    return t.record("sub", (total,), out, (), ((total, NEW),))


def _scan(
    t: Tape,
    c: Context,
    y: Tensor,
    new_v: Tensor,
    new_k: Tensor,
    q: Tensor,
    k: Tensor,
    near: Tensor,
    across: Tensor,
    *,
    apart: bool,
) -> Tensor:
    """The chunks one after the other; the first state is zero and needs no gradient, the last is not used.

    Under autocast every product keeps copies of its two operands; of several sequences that are ``apart``,
    of queries and keys.
    """
    o = c.options
    first = t.tensor("first state", STATE, FP32)
    t.run("zeros", (), (first,), (), ())
    out = t.view(y, "attended", y.dims)
    out.grad = new_v.grad
    further: Dims = ("b", "cm", *STATE[1:])
    chunk: Dims = ("b", "gv", "Q", "cv")
    last = [t.tensor("values less known ones", chunk, FP32), t.tensor("read", chunk, t.autocast or FP32)]
    if t.autocast:
        copies: tuple[tuple[str, Dims], ...] = (
            ("states", (2, "b", "cc", *STATE[1:])),
            ("new keys", ("b", "cm", "gv", "Q", "ck")),
            ("q", ("b", "cm", "gv", "Q", "ck")),
            ("scores", PAIRS),
            ("values", VALUES),
            ("values", ("b", "cm", "gv", "Q", "cv")),
            ("k", ("b", "cm", "gv", "Q", "ck")),
        )
        made = [t.tensor(name, dims, t.autocast) for name, dims in copies]
        made.append(t.tensor("states", further, FP32))
        kept = [across, *made]
    else:
        made = [t.tensor("values less known ones", ("b", "cm", "gv", "Q", "cv"), FP32)]
        made.append(t.tensor("states", further, FP32))
        ordered = [q, k]
        if apart and not o.one_sequence:
            ordered = [t.tensor(one.name, ("b", "cm", "gv", "Q", "ck"), FP32) for one in ordered]
            made += ordered
        kept = [near, across, first, last[0], *made]
        if not o.one_chunk:
            kept += [new_k, *(one for one in ordered if one not in made)]
    for tensor in made:
        tensor.stepwise = True
    gradients = (new_v, new_k, q, k, near, across)
    back: Back = tuple([(one, NEW) for one in gradients if one.grad])
    step = (last[0].coefficient, last[0].monomial)
    whole = (new_v.coefficient, new_v.monomial)
    if out.grad:
        t.run("scan", (y, first, *gradients), (out, *last, *made), tuple(kept), back, step, whole)
    else:
        t.run("scan", (y, first, *gradients), (out, *last), (), (), step)
    if o.cache:
        recurrent_state(t, c, STATE)
    if not o.one_chunk:  # what has been solved for lies column by column
        out = op.clone(t, out)
    t.use(*last)
    return out


# -- one token -------------------------------------------------------------------------------------


def _token(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    """The state, changed by one token, and what it gives out."""
    width = q.width
    q, k = _every_head(t, c, q), _every_head(t, c, k)
    q, k, v, beta, decay = _ready(t, c, q, k, v, beta, decay)
    q, k = _unit(t, q), _unit(t, k)
    q = op.scale(t, q)
    state = recurrent_state(t, c, STATE)
    left = exponential(t, decay, "decay")
    state = op.mul(t, state, left, "state", STATE)
    product = op.mul(t, state, k, "known", STATE)
    known = t.tensor("known", v.dims, FP32)
    t.run("sum", (product,), (known,), (), ())
    delta = op.mul(t, op.minus(t, v, known), beta, "delta", v.dims)
    new = op.add(t, state, op.mul(t, k, delta, "update", STATE), "state")
    product = op.mul(t, new, q, "attended", STATE)
    y = t.tensor("attended", v.dims, FP32)
    t.run("sum", (product,), (y,), (), ())
    t.use(q, k, v, beta, decay, left, known, delta, new)
    return op.cast(t, y, width)
