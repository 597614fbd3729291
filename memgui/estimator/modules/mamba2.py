"""Mamba-2 as transformers runs it without kernels: products within chunks, a state between them."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import contraction, cumulative, exponential, padded, piece, softplus
from memgui.estimator.modules import rms
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mamba import short_convolution
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.states import convolution_state, recurrent_state, without_padding
from memgui.estimator.tape import NEW, PARAMETER, Dims, Parameter, Tape, Tensor

FP32 = 4
PAIRS: Dims = ("b", "cc", "mh", "Q", "Q")
"""Every pair of tokens in a chunk, for each head."""


def mamba2(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Project in, short convolution, state space in chunks, gate and norm, project out."""
    m, o = c.model, c.options
    t.part = "mixer"
    read = without_padding(t, c, x)
    read = op.scale(t, read) if m.mup_scaling else read
    both = projection(t, c, read, "mamba.in", "projected", ("mi",), ("h",), bias=m.mamba_proj_bias)
    both = _scaled(t, c, both) if m.mup_scaling else both
    decay_log = t.parameter("A_log", ("mh",), o.width, o.base_trained)
    rate = op.scale(t, exponential(t, op.cast(t, decay_log, FP32), "rate"), "rate", "neg")
    gate, mixed, step = op.split(
        t, both, ("gate", "x, B, C", "step"), ((*c.rows, "D"), (*c.rows, "mc"), (*c.rows, "mh"))
    )
    if o.cache:
        mixed = convolution_state(t, c, mixed, "mc", "K")
    mixed = without_padding(t, c, short_convolution(t, c, mixed, "mc"))
    maps: Dims = (*c.rows, "mn")
    u, b, out_map = op.split(t, mixed, ("u", "B", "C"), ((*c.rows, "D"), maps, maps))
    skip = t.parameter("D", ("mh",), o.width, o.base_trained)
    bias = t.parameter("dt_bias", ("mh",), o.width, o.base_trained)
    scan = _step if o.decode else _chunks
    y = scan(t, c, u, _biased(t, step, bias), rate, b, out_map, skip)
    match m.mamba_inner_norm:
        case "gated":
            y = _norm(
                t, c, op.mul(t, op.cast(t, y, FP32), _opened(t, op.cast(t, gate, FP32)), "gated", y.dims)
            )
        case "norm_gated":
            y = _norm(t, c, op.cast(t, y, FP32))
            y = op.mul(t, y, _opened(t, op.cast(t, gate, FP32)), "gated", y.dims)
        case _:
            y = op.mul(t, y, _opened(t, gate), "gated", y.dims)
    y = op.cast(t, y, x.width)
    out = projection(t, c, y, "mamba.out", "output", ("h",), ("D",), bias=m.mamba_proj_bias, cut="row")
    t.use(both, gate, mixed, rate, x)
    return out


def _scaled(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Times a number for each column, kept on the device."""
    t.buffer("mup_vector", ("mi",), c.options.width)
    factors = t.tensor("factors", ("mi",), c.options.width, origin=PARAMETER)
    return op.mul(t, x, factors, x.name, x.dims)


def _biased(t: Tape, step: Tensor, bias: Parameter) -> Tensor:
    """``softplus(step + bias)``, clamped, which keeps what it clamps."""
    raw = op.add_broadcast(t, step, op.copy_of_weight(t, bias, step.width), "step")
    y = softplus(t, raw)
    return op.pointwise(t, "clamp", y, "step", saves="input")


def _opened(t: Tape, gate: Tensor) -> Tensor:
    return op.pointwise(t, "silu", gate, "gate", saves="input")


def _norm(t: Tape, c: Context, y: Tensor) -> Tensor:
    """RMSNorm in groups, in fp32."""
    o = c.options
    w = t.parameter("norm.weight", ("D",), o.width, o.base_trained)
    normed = rms.normalised(t, y, None, (*c.rows, c.model.mamba_n_groups), rms.PLAIN)
    return op.mul(t, normed, w, "norm output", y.dims)


# -- a prompt, or training -------------------------------------------------------------------------


def _chunks(
    t: Tape,
    c: Context,
    u: Tensor,
    step: Tensor,
    rate: Tensor,
    b: Tensor,
    out_map: Tensor,
    skip: Parameter,
) -> Tensor:
    """Within each chunk every pair of tokens is scored, from chunk to chunk a state is handed on."""
    o = c.options
    one = o.one_chunk and o.one_sequence  # then heads lie as a batched product takes them
    copied = not o.one_chunk  # else tokens lie last, as the convolution left them
    heads: Dims = (*c.rows, "mh")
    in_chunks: Dims = ("b", "cc", "Q", "mh")
    u32 = op.cast(t, t.view(u, "u", (*heads, "md")), FP32)
    b, out_map = (_every_head(t, c, op.cast(t, x, FP32)) for x in (b, out_map))
    kept = op.mul(t, padded(t, u32, (*in_chunks, "md")), skip, "skip", (*in_chunks, "md"))
    fed = op.mul(t, u32, op.cast(t, step, FP32), "input", u32.dims)
    decay = op.mul(t, op.cast(t, step, FP32), rate, "decay", heads)
    fed, decay, b, out_map = (padded(t, x, (*in_chunks, *x.dims[3:])) for x in (fed, decay, b, out_map))
    total = cumulative(t, decay, "decay", in_chunks)
    within = exponential(t, _sums(t, decay, PAIRS, "Q"), "decay of pairs")
    scores = contraction(t, out_map, b, "scores", PAIRS, copies=not one, turned=False)
    weights = op.mul(t, scores, within, "weights", PAIRS)
    near = contraction(t, weights, fed, "near", (*in_chunks, "md"), copies=(False, copied), turned=not one)
    to_end = exponential(t, _difference(t, total), "decay to the end")
    b_end = op.mul(t, b, to_end, "B, decayed", b.dims)
    own: Dims = ("b", "cc", "mh", "md", "N")
    made = contraction(t, b_end, fed, "states", own, copies=(not one, copied), turned=True)
    first = t.tensor("first state", ("b", 1, "mh", "md", "N"), made.width)
    t.run("zeros", (made,), (first,), (), ())
    longer: Dims = ("b", "cn", "mh", "md", "N")
    states = t.tensor("states", longer, made.width, made.grad)
    t.record("cat", (first, made), states, (), ((made, NEW),) if made.grad else ())
    ends = padded(t, t.view(total, "decay", ("b", "cc", "mh")), ("b", "cn", "mh"))
    between = exponential(t, _sums(t, ends, ("b", "mh", "cn", "cn"), "cn"), "decay of chunks")
    handed = contraction(
        t, between, states, "states", longer, copies=(False, not o.one_sequence), turned=not o.one_sequence
    )
    before = piece(t, handed, "states", own)
    if o.cache:
        recurrent_state(t, c, ("b", "mh", "md", "N"))
    from_start = exponential(t, total, "decay from the start")
    far = contraction(
        t, out_map, before, "far", (*in_chunks, "md"), copies=(not one, not o.one_chunk), turned=not one
    )
    far_decayed = op.mul(t, far, from_start, "far", far.dims)
    y = op.clone(t, op.add(t, near, far_decayed, "scanned"))
    t.use(fed, decay, b, out_map, total, within, scores, weights, near, to_end, b_end, first, between)
    t.use(step, handed, from_start, far, far_decayed)
    y = op.add(t, y, kept, "scanned")
    t.use(kept)
    shaped = op.reshaped if o.whole_chunks else piece
    return shaped(t, y, y.name, (*c.rows, "D"))


def _every_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``repeat_interleave``: the maps of a group for each of its heads."""
    out = t.tensor(x.name, (*c.rows, "mh", "N"), x.width, x.grad)
    return t.record("repeat", (x,), out, (), ((x, NEW),))


def _sums(t: Tape, x: Tensor, pairs: Dims, side: str) -> Tensor:
    """Sums of ``x`` between every pair of places, minus infinity where the second is not the later one."""
    first = _triangle(t, side)
    spread = t.tensor("sums", pairs, x.width, x.grad)
    t.record(
        "masked_fill", (x, first), spread, (first,), ((x, NEW),), None, (spread.coefficient, spread.monomial)
    )
    sums = cumulative(t, spread, "sums", pairs)
    t.use(spread)
    second = _triangle(t, side)
    out = t.tensor("sums", pairs, sums.width, sums.grad)
    t.record("masked_fill", (sums, second), out, (second,), ((sums, NEW),))
    return out


def _triangle(t: Tape, side: str) -> Tensor:
    ones, lower, hidden = (t.tensor("triangle", (side, side), 1) for _ in range(3))
    t.run("ones", (), (ones,), (), ())
    t.run("tril", (ones,), (lower,), (), ())
    t.run("bitwise_not", (lower,), (hidden,), (), ())
    return hidden


def _difference(t: Tape, total: Tensor) -> Tensor:
    """What is left of the decay until the end of the chunk."""
    out = t.tensor("decay", total.dims, total.width, total.grad)
    return t.record("sub", (total,), out, (), ((total, NEW),))


# -- one token -------------------------------------------------------------------------------------


def _step(
    t: Tape,
    c: Context,
    u: Tensor,
    step: Tensor,
    rate: Tensor,
    b: Tensor,
    out_map: Tensor,
    skip: Parameter,
) -> Tensor:
    """The state, changed in place by one token, and what it gives out."""
    state: Dims = ("b", "mh", "md", "N")
    wide: Dims = ("b", "mh", "md")
    spread = t.tensor("step", wide, step.width)
    t.run("add", (step,), (spread,), (), ())
    rates = op.mul(t, op.cast(t, spread, FP32), rate, "decay", state)
    decay = exponential(t, rates, "decay")
    b, out_map = (_every_head(t, c, x) for x in (b, out_map))
    weighted = op.mul(t, spread, b, "input map", state)
    fed = op.mul(t, weighted, u, "input", state)
    kept = recurrent_state(t, c, state)
    new = op.add(t, op.mul(t, kept, decay, "state", state), fed, "state")
    own = op.cast(t, new, out_map.width)
    y = op.matmul(t, own, out_map, "scanned", wide)
    y = op.add(t, y, op.mul(t, u, skip, "skip", wide), "scanned")
    t.use(decay, weighted, fed, new, spread)
    return t.view(y, y.name, (*c.rows, "D"))
