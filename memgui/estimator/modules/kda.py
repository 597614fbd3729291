"""Kimi delta attention as transformers runs it without kernels: a delta rule that forgets by channel."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import cumulative, exponential, padded
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.delta import KEYS, PAIRS, STATE, STEPS, VALUES
from memgui.estimator.modules.mamba import short_convolution
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.states import convolution_state, recurrent_state, without_padding
from memgui.estimator.tape import ALIAS, NEW, Back, Dims, Tape, Tensor

FP32 = 4
CHANNELS: Dims = ("b", "gv", "cc", "Q", "Q", "ck")
"""Every pair of tokens of a chunk, for each channel of keys."""


def kimi_delta_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Project in, short convolution, delta rule, norm and gate, project out."""
    o = c.options
    t.part = "attention"
    heads: Dims = (*c.rows, "gv", "ck")
    read = without_padding(t, c, x)
    each = [
        projection(t, c, read, f"attention.{name}", name, ("gv", "ck"), ("h",)) for name in ("q", "k", "v")
    ]
    mixed = t.tensor("q, k, v", (*c.rows, "gc"), each[0].width, each[0].grad or each[2].grad)
    t.record("cat", tuple(each), mixed, (), tuple([(one, ALIAS) for one in each if one.grad]))
    if o.cache:
        mixed = convolution_state(t, c, mixed, "gc", "K")
    t.part = "mixer"
    mixed = short_convolution(t, c, mixed, "gc", bias=False)
    t.part = "attention"
    q, k, v = op.split(t, mixed, ("q", "k", "v"), (heads, heads, heads))
    decay = _forget(t, c, read)
    strength = projection(t, c, read, "kda.b", "strength", ("gv",), ("h",))
    beta = op.pointwise(t, "sigmoid", strength, "beta", saves="output")
    y = (_token if o.decode else _chunks)(t, c, q, k, v, beta, decay)
    narrow = projection(t, c, read, "kda.g_a", "gate latent", ("ck",), ("h",))
    gate = projection(t, c, narrow, "kda.g_b", "gate", ("gv", "ck"), ("ck",))
    t.use(narrow)
    y = _gated_norm(t, c, y, gate)
    out = projection(t, c, y, "attention.o", "output", ("h",), ("gv", "cv"), cut="row")
    t.use(mixed, q, decay, beta, y, gate, x)
    return out


def _forget(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The logarithm of what is left of each channel of the state after each token."""
    o = c.options
    narrow = projection(t, c, x, "kda.f_a", "forget latent", ("ck",), ("h",))
    wide = projection(t, c, narrow, "kda.f_b", "forget", ("gv", "ck"), ("ck",))
    t.use(narrow)
    bias = t.parameter("dt_bias", ("gv", "ck"), FP32, o.base_trained)
    raw = op.add_broadcast(t, op.cast(t, wide, FP32), bias, "forget")
    own = FP32 if c.model.linear_exact else o.width
    logs = t.parameter("A_log", ("gv",), own, o.base_trained)
    rate = exponential(t, op.cast(t, logs, FP32), "rate")
    if c.model.linear_bounded:
        opened = op.pointwise(t, "sigmoid", op.mul(t, raw, rate, "decay", raw.dims), "decay", saves="output")
        t.use(wide, raw, rate)
        return op.scale(t, opened)
    large = t.tensor("beyond 20", raw.dims, 1)
    t.run("gt", (raw,), (large,), (), ())
    grown = op.shift(t, exponential(t, raw, "grown"))
    log = op.pointwise(t, "log", grown, "softplus", saves="input")
    soft = t.tensor("softplus", raw.dims, FP32, raw.grad)
    back: Back = ((raw, NEW), (log, NEW))
    t.record("where", (large, raw, log), soft, (large,), back)
    decay = op.mul(t, soft, op.scale(t, rate, "rate", "neg"), "decay", raw.dims)
    t.use(wide, raw, rate, soft)
    return decay


def _gated_norm(t: Tape, c: Context, y: Tensor, gate: Tensor) -> Tensor:
    """RMSNorm of each head with its weight in fp32, times the gate's sigmoid."""
    o = c.options
    before, t.part = t.part, "norm"
    w = t.parameter("o_norm.weight", ("cv",), o.width, o.base_trained)
    y32 = op.cast(t, y, FP32)
    squares = op.mean(t, op.power(t, y32), (*y.dims[:-1], 1))
    deviation = op.pointwise(t, "rsqrt", op.shift(t, squares), "1/deviation", saves="output")
    normed = op.mul(t, y32, deviation, "normalised", y.dims)
    out = op.mul(t, normed, op.copy_of_weight(t, w, FP32), "norm output", y.dims)
    opened = op.pointwise(t, "sigmoid", op.cast(t, gate, FP32), "gate", saves="output")
    out = op.mul(t, out, opened, "gated", y.dims)
    t.use(squares)
    t.part = before
    return op.cast(t, out, y.width)


def _unit(t: Tape, x: Tensor) -> Tensor:
    """``x`` divided by its length."""
    squares = op.mul(t, x, x, "squares", x.dims)
    total = t.tensor("squares", (*x.dims[:-1], 1), x.width, x.grad)
    t.record("sum", (squares,), total, (), ((squares, ALIAS),))
    length = op.pointwise(t, "sqrt", op.shift(t, total), "length", saves="output")
    out = t.tensor(x.name, x.dims, x.width, x.grad)
    t.record("div", (x, length), out, (x, length), ((x, NEW), (length, NEW)))
    t.use(length)
    return out


# -- a prompt, or training -------------------------------------------------------------------------


def _chunks(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    """Within a chunk all updates are solved for row by row, from chunk to chunk the state is handed on."""
    width = q.width
    q, k, v, beta, decay = (op.cast(t, op.clone(t, x), FP32) for x in (q, k, v, beta, decay))
    q, k = _unit(t, q), _unit(t, k)
    q = op.scale(t, padded(t, q, KEYS))
    k, v, decay = padded(t, k, KEYS), padded(t, v, VALUES), padded(t, decay, KEYS)
    beta = padded(t, beta, STEPS)
    v_beta = op.mul(t, v, beta, "v, weighted", VALUES)
    k_beta = op.mul(t, k, beta, "k, weighted", KEYS)
    total = cumulative(t, decay, "decay", KEYS)
    mask, strict = (t.tensor("triangle", ("Q", "Q"), 1) for _ in range(2))
    for one in (mask, strict):
        t.run("triu", (), (one,), (), ())
    within = exponential(t, _between(t, total, strict), "decay of pairs")
    pairs = op.mul(t, op.mul(t, k_beta, k, "pairs", CHANNELS), within, "pairs", CHANNELS)
    system = op.scale(t, _hidden(t, _summed(t, pairs), mask), "system", "neg")
    solved = _solve(t, c, system)
    new_v = op.matmul(t, solved, v_beta, "new values", VALUES)
    from_start = op.mul(t, k_beta, exponential(t, total, "decay"), "k, decayed", KEYS)
    new_k = op.matmul(t, solved, from_start, "new keys", KEYS)
    out = _scan(t, c, q, k, new_v, new_k, total, within)
    t.use(beta, decay, v_beta, k_beta, mask, strict, within, solved, new_k)
    shaped = op.reshaped if c.options.whole_chunks else op.piece
    cut = shaped(t, out, "attended", (*c.rows, "gv", "cv"))
    return op.cast(t, op.clone(t, cut), width)


def _between(t: Tape, total: Tensor, hidden: Tensor) -> Tensor:
    """Decay of each channel between every pair of tokens of a chunk, of those in order."""
    pairs = t.tensor("decay of pairs", CHANNELS, FP32, total.grad)
    size = (pairs.coefficient, pairs.monomial)
    t.record("sub", (total,), pairs, (), ((total, NEW),), None, size)
    return _hidden(t, pairs, hidden)


def _hidden(t: Tape, x: Tensor, hidden: Tensor) -> Tensor:
    out = t.tensor(x.name, x.dims, x.width, x.grad)
    return t.record("masked_fill", (x, hidden), out, (hidden,), ((x, NEW),))


def _summed(t: Tape, pairs: Tensor) -> Tensor:
    """Over the channels; its gradient is a view."""
    out = t.tensor("system", PAIRS, pairs.width, pairs.grad)
    return t.record("sum", (pairs,), out, (), ((pairs, ALIAS),))


def _solve(t: Tape, c: Context, system: Tensor) -> Tensor:
    """Each row of the system from those above it, in place; of every row copies of these are kept."""
    last = c.sizes.values["Q"] - 1
    copied = last * (last + 1) * (last + 2) // 3  # the sum of row² + row, from row 1 to the last
    copies = t.tensor("rows", ("b", "gv", "cc", copied), FP32)
    copies.stepwise = True
    inside = t.view(system, "solved", system.dims)
    if system.grad:
        t.run("copy_", (system,), (inside, copies), (copies,), ((system, NEW),))
    else:
        t.run("copy_", (system,), (inside,), (), ())
    out = t.tensor("solved", system.dims, FP32, system.grad)
    return t.record("add", (inside,), out, (), ((inside, ALIAS),))


def _scan(
    t: Tape, c: Context, q: Tensor, k: Tensor, new_v: Tensor, new_k: Tensor, total: Tensor, within: Tensor
) -> Tensor:
    """The chunks one after the other; the first state is zero and needs no gradient, the last is not used.

    Under autocast every product keeps copies of its operands.  Going back, the gradient of each chunk's
    decay comes as one of all chunks', while what the chunk kept is gone; of one chunk alone, the products
    of queries and keys weigh more.
    """
    o = c.options
    width = new_v.width
    y = t.tensor("attended", VALUES, width)
    first = t.tensor("first state", STATE, width)
    later = t.tensor("triangle", ("Q", "Q"), 1)
    for one in (first, y, later):
        t.run("zeros", (), (one,), (), ())
    out = t.view(y, "attended", VALUES)
    out.grad = new_v.grad
    state: Dims = ("b", "cm", *STATE[1:])
    keys: Dims = ("b", "cm", "gv", "Q", "ck")
    kept: list[tuple[str, Dims, int]] = [
        ("decay", KEYS, FP32),
        ("q, decayed", keys, width),
        ("pairs", CHANNELS, FP32),
        ("values less known ones", VALUES, width),
        ("scores", PAIRS, width),
        ("decay of chunks", ("b", "cm", "gv", "ck"), FP32),
        ("decay", keys, FP32),
        ("k, decayed", keys, width),
    ]
    if t.autocast:
        kept += [("states", (2, *state), width), ("states", ("b", "cw", *STATE[1:]), FP32)]
    else:
        kept.append(("states", state, FP32))
    made = [t.tensor(name, dims, wide) for name, dims, wide in kept]
    for tensor in made:
        tensor.stepwise = True
    one_chunk: Dims = ("b", *CHANNELS[1:2], *CHANNELS[3:])
    beside = t.tensor("pairs", one_chunk, FP32)
    step = (beside.coefficient, beside.monomial)
    last = t.tensor("last state", STATE, FP32)
    gradients = (q, k, new_v, new_k, total, within)
    back: Back = tuple([(one, NEW) for one in gradients if one.grad])
    whole = (within.coefficient * (2 if o.one_chunk else 1), within.monomial)
    if out.grad:
        saves = (q, k, first, later, within, *made, *(() if o.one_chunk else (new_k,)))
        t.run("scan", (y, first, *gradients), (out, last, *made), saves, back, step, whole)
    else:
        t.run("scan", (y, first, *gradients), (out, last), (), (), step)
    if o.cache:
        recurrent_state(t, c, STATE)
    t.use(last, later)
    return out


# -- one token -------------------------------------------------------------------------------------


def _token(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    """The state, changed by one token, and what it gives out."""
    width = q.width
    q, k, v, beta, decay = (op.cast(t, x, FP32) for x in (q, k, v, beta, decay))
    q, k = _unit(t, q), _unit(t, k)
    q = op.scale(t, q)
    held = recurrent_state(t, c, STATE)
    left = exponential(t, decay, "decay")
    state = op.mul(t, held, left, "state", STATE)
    known = t.tensor("known", v.dims, FP32)
    t.run("sum", (op.mul(t, state, k, "known", STATE),), (known,), (), ())
    delta = op.mul(t, op.minus(t, v, known), beta, "delta", v.dims)
    new = op.add(t, state, op.mul(t, k, delta, "update", STATE), "state")
    y = t.tensor("attended", v.dims, FP32)
    t.run("sum", (op.mul(t, new, q, "attended", STATE),), (y,), (), ())
    t.use(q, k, v, beta, decay, left, known, delta, new)
    return op.cast(t, y, width)
