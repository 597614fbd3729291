"""Eager attention: scores, probabilities and output as each family writes them in Python."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.heads import batched, every_head
from memgui.estimator.tape import NEW, PROMOTED, Tape, Tensor
from memgui.estimator.tensor import promoted

FP32 = 4
INT64 = 8
UNRETURNED = ("mvp",)
"""Models whose attention returns probabilities to those alone who ask for them."""

LEFT_TO_AUTOCAST = ("llama4_text", "llama4")
"""Decoders whose attention does not cast probabilities by itself, as encoders' does not."""

NAMED_OUTPUTS = ("bloom", "mpt")
"""Models whose layers return probabilities, and which have a name for all that a layer returns."""


def eager(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """``softmax(q @ k.T * scale + mask) @ v``, ready for the output projection."""
    m = c.model
    if m.repeats_key_values:
        k, v = every_head(t, c, k), every_head(t, c, v)
    if m.score_scaling == "fused":  # BLOOM's attention is one function, which names all that it makes
        v = batched(t, c, v)
        c.named.append(v)
    scores = _scores(t, c, q, k)
    if m.explicit_mask and c.alibi is not None:
        scores = _with_slopes(t, c, scores, c.alibi)
    elif c.bias is not None and c.bias.dims == scores.dims:
        scores = op.add_in_place(t, scores, c.bias)
    elif c.bias is not None:
        scores = op.add_broadcast(t, scores, c.bias, "scores")
    weights = MASKINGS[m.score_masking](t, c, scores, mask)
    factor = _sink_factor(t, c, weights) if m.sink_factor else None
    sunk: tuple[Tensor, ...] = ()
    if m.attention_sinks and factor is None:
        probabilities, sunk = _with_sinks(t, c, weights)
        if m.score_masking == "lowered" and not m.hc_mult:  # MiMo calls them what it calls its scores
            weights, sunk = sunk[0], sunk[1:]
    elif m.explicit_mask and c.alibi is not None:  # Falcon names the format of attention's input
        given = FP32 if t.autocast else c.options.width
        probabilities = op.softmax(t, op.cast(t, weights, given), given)
    elif m.score_masking == "lowered":  # names the format, which autocast leaves alone then
        probabilities = op.softmax(t, weights, weights.width)
    else:
        probabilities = op.softmax(t, weights, FP32 if m.softmax_in_fp32 else 0)
    if m.softmax_in_fp32:
        probabilities = op.cast(t, probabilities, q.width)
    elif m.score_scaling == "in_place":  # Falcon's name for its scores is that of its probabilities
        t.use(scores)
    elif m.is_decoder and not m.num_encoder_layers and m.model_type not in LEFT_TO_AUTOCAST:
        probabilities = op.cast(t, probabilities, v.width)
    t.use(weights)
    if m.model_type in NAMED_OUTPUTS:  # their attention names its scores until it returns
        c.named += (scores, weights) if m.score_scaling == "fused" else (weights,)
    kept = probabilities
    probabilities = op.dropout(t, probabilities, c.options.attention_dropout)
    if sunk or m.score_masking == "lowered":
        t.use(weights)
    if m.model_type in NAMED_OUTPUTS:
        t.trail(probabilities)
    elif m.model_type in UNRETURNED:
        c.named += (kept, probabilities)
    else:
        t.hold(probabilities)
    width = c.options.autocast or v.width
    values = op.cast(t, v, width)
    probabilities = op.cast(t, probabilities, width)
    values = batched(t, c, values)
    out = op.matmul(t, probabilities, values, "attention output", (*c.rows, "a", v.dims[-1]))
    t.use(k, v)
    if factor is not None:
        out = op.mul(t, out, op.cast(t, factor, out.width), "attention output", out.dims)
        t.use(factor)
    out = op.clone(t, out, "attention output")
    if sunk:
        t.use(*sunk)
    return out


def _scores(t: Tape, c: Context, q: Tensor, k: Tensor) -> Tensor:
    """``q @ k.T``, scaled (and capped)."""
    m = c.model
    dims = ("b", "a", c.queries, c.keys)
    if m.score_scaling == "upcast":
        return _upcast(t, c, q, k)
    if m.score_scaling == "exact":
        return _exact(t, c, q, k)
    width = c.options.autocast or (FP32 if m.scores_in_fp32 else q.width)
    k = op.cast(t, k, width)
    q = op.cast(t, q, width)
    q, k = batched(t, c, q), batched(t, c, k)
    scores = op.matmul(t, q, k, "scores", dims)
    if m.score_scaling == "fused":
        c.named += (q, k)
    elif m.explicit_mask and c.alibi is not None:
        return scores
    elif m.score_scaling == "in_place":
        scores = op.scale_in_place(t, scores)
    elif m.score_scaling == "after":
        scores = op.scale(t, scores)
    return scores if m.attn_logit_softcapping is None else op.soft_cap(t, scores)


def _exact(t: Tape, c: Context, q: Tensor, k: Tensor) -> Tensor:
    """Flint: the product of fp32 copies, autocast or not, scaled in a step of its own."""
    autocast, t.autocast = t.autocast, 0
    q, k = (batched(t, c, op.cast(t, one, FP32)) for one in (q, k))
    scores = op.scale(t, op.matmul(t, q, k, "scores", ("b", "a", c.queries, c.keys)))
    t.autocast = autocast
    return scores


def _upcast(t: Tape, c: Context, q: Tensor, k: Tensor) -> Tensor:
    """GPT-2's ``reorder_and_upcast_attn``: ``baddbmm`` of fp32 copies, autocast or not, upon an empty tensor.

    The heads in order are named until attention returns.
    """
    dims = ("b", "a", c.queries, c.keys)
    empty = t.tensor("scores", dims, FP32)
    t.run("empty", (), (empty,), (), ())
    ordered = batched(t, c, q), batched(t, c, k)
    q, k = (op.cast(t, one, FP32) for one in ordered)
    out = t.tensor("scores", dims, FP32, q.grad or k.grad)
    t.record("baddbmm", (empty, q, k), out, *op.product(q, k))
    c.named += ordered
    return out


def _with_slopes(t: Tape, c: Context, scores: Tensor, slopes: Tensor) -> Tensor:
    """Falcon adds ALiBi to scores in fp32, scales the sum, and names what it made until it returns."""
    wide = op.cast(t, scores, FP32)
    sums = op.add_broadcast(t, wide, slopes, "scores")
    c.named += (scores, wide, sums)
    return op.scale_in_place(t, sums)


# -- masks -----------------------------------------------------------------------------------------


def _added(t: Tape, c: Context, scores: Tensor, mask: Tensor | None) -> Tensor:
    """``scores + mask``."""
    if mask is None:
        return scores
    added = op.add if mask.dims == scores.dims else op.add_broadcast
    return added(t, scores, mask, "scores")


def _filled(t: Tape, c: Context, scores: Tensor, mask: Tensor | None) -> Tensor:
    """MPT: ALiBi is added, in fp32; a boolean mask, which is saved, says where scores are filled."""
    if c.alibi is not None:
        scores = op.add_broadcast(t, scores, c.alibi, "scores")
    if mask is None:
        return scores
    out = t.tensor("scores", scores.dims, scores.width, scores.grad)
    return t.record("masked_fill", (scores, mask), out, (mask,), ((scores, NEW),))


def _chosen(t: Tape, c: Context, scores: Tensor, mask: Tensor | None) -> Tensor:
    """GPT-Neo: ``where`` with a buffer of every pair of positions that each layer has, then as ever."""
    t.buffer("bias", ("P", "P"), 1)
    out = t.tensor("scores", scores.dims, scores.width, scores.grad)
    t.record("where", (scores,), out, (), ((scores, NEW),))
    return _added(t, c, out, mask)


def _scaled(t: Tape, c: Context, scores: Tensor, mask: Tensor | None) -> Tensor:
    """OpenAI's GPT: times a buffer of ones and zeros that each layer has, plus a large number elsewhere."""
    t.buffer("bias", ("P", "P"), c.options.width)
    out = t.tensor("scores", scores.dims, promoted(scores.width, c.options.width), scores.grad)
    t.record("mul", (scores,), out, (), ((scores, NEW if out.width == scores.width else PROMOTED),))
    rest = t.tensor("what is hidden", (c.queries, c.keys), c.options.width)
    t.run("mul", (), (rest,), (), ())
    return _added(t, c, op.add_broadcast(t, out, rest, "scores"), mask)


def _floored(t: Tape, c: Context, scores: Tensor, mask: Tensor | None) -> Tensor:
    """XGLM: the mask is added, and what is less than the least number raised to it."""
    scores = _added(t, c, scores, mask)
    least = t.tensor("least number", (), FP32)
    t.run("full", (), (least,), (), ())
    out = t.tensor("scores", scores.dims, scores.width, scores.grad)
    elements = scores.coefficient // scores.width
    extra = (scores.coefficient + 2 * elements, scores.monomial)  # half the gradient, where equal, where less
    t.record("maximum", (scores, least), out, (scores, least), ((scores, NEW),), None, extra)
    t.use(least)
    return out


def _lowered(t: Tape, c: Context, scores: Tensor, mask: Tensor | None) -> Tensor:
    """MiMo-V2: the mask is added, and the largest of each row taken off, in layers with sinks after these."""
    scores = _added(t, c, scores, mask)
    return scores if c.model.attention_sinks else _less_the_largest(t, scores)


def _less_the_largest(t: Tape, scores: Tensor) -> Tensor:
    """``scores - scores.max(-1, keepdim=True).values``: saves where each row's largest is."""
    highest = t.tensor("highest score", (*scores.dims[:-1], 1), scores.width, scores.grad)
    at = t.tensor("where", highest.dims, INT64)
    saves = (at,) if scores.grad else ()
    t.run("max", (scores,), (highest, at), saves, ((scores, NEW),) if scores.grad else ())
    return op.sub(t, scores, highest, "scores")


MASKINGS: dict[str, Callable[[Tape, Context, Tensor, Tensor | None], Tensor]] = {
    "added": _added,
    "filled": _filled,
    "buffered": _chosen,
    "floored": _floored,
    "scaled": _scaled,
    "lowered": _lowered,
}
"""How scores are masked, by ``score_masking``."""


def _sink_factor(t: Tape, c: Context, scores: Tensor) -> Tensor:
    """Granite with windows: the share of each row that its sink leaves, in fp32."""
    rows = (*c.rows, "a", 1)
    total = t.tensor("log-sum-exp", rows, scores.width, scores.grad)
    whole = (scores.coefficient, scores.monomial)
    t.record("logsumexp", (scores,), total, (scores, total), ((scores, NEW),), whole, whole)
    sinks = t.parameter("sinks", ("a",), c.options.width, c.options.base_trained)
    less = t.tensor(
        "log-sum-exp less sinks", rows, promoted(total.width, sinks.width), total.grad or sinks.grad
    )
    t.record("sub", (total, sinks), less, (), tuple([(one, NEW) for one in (total, sinks) if one.grad]))
    t.use(total)
    return op.pointwise(t, "sigmoid", op.cast(t, less, FP32), "share", saves="output")


def _with_sinks(t: Tape, c: Context, scores: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """gpt-oss: each head's sink is one more score; the largest of each row is taken off before softmax.

    With probabilities what the function names until it returns.
    """
    o, m = c.options, c.model
    one_more = {"t": "ts", "tw": "tws"}.get(c.keys) or f"{c.keys}1"
    exact = m.hc_mult or m.score_scaling == "exact"
    sinks = t.parameter("sinks", ("a",), FP32 if exact else o.width, o.base_trained)
    dims = (*scores.dims[:-1], one_more)
    joined = t.tensor("scores", dims, promoted(scores.width, sinks.width), scores.grad or sinks.grad)
    back = tuple([(x, NEW) for x in (scores, sinks) if x.grad])
    t.record("cat", (scores, sinks), joined, (), back)
    if m.score_scaling == "exact":  # nothing is taken off
        probabilities = op.softmax(t, joined, joined.width)
        return op.piece(t, probabilities, "probabilities", scores.dims), ()
    lowered = _less_the_largest(t, joined)
    probabilities = op.softmax(t, lowered, lowered.width)
    return op.piece(t, probabilities, "probabilities", scores.dims), (lowered, probabilities)
