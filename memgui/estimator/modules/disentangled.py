"""DeBERTa's attention: content scored with content, with distance, and distance with content."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import gather
from memgui.estimator.modules.attention import HEADS
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.tape import BY_HEAD, NEW, Dims, Tape, Tensor

INT64 = 8
FP32 = 4


def distances(t: Tape, c: Context, x: Tensor) -> Tensor:
    """What all layers are given: which pairs of tokens count, the distance of each, what distances mean.

    The embedded tokens are multiplied by the padding mask, which is made where none is given.
    """
    o = c.options
    if o.masked:
        given = c.given(t, "attention mask", c.rows, INT64)
    else:
        given = t.tensor("attention mask", c.rows, FP32)
        t.run("ones", (), (given,), (), ())
    kept = op.cast(t, t.view(given, "padding mask", (*c.rows, 1)), x.width)
    x = op.dropout(t, op.mul(t, x, kept, "embedded", x.dims), o.embedding_dropout)
    t.hold(x, given)
    pairs = t.tensor("mask", ("b", c.queries, c.keys), given.width)
    t.run("mul", (given,), (pairs,), (), ())
    offsets = t.tensor("distances", (c.queries, c.keys), INT64)
    t.run("_to_copy", (), (offsets,), (), ())
    t.buffer("position ids", ("P",), INT64)
    table = t.parameter(
        "rel_embeddings.weight", (_rows(c), "h"), o.width, o.base_trained, part="position_embedding"
    )
    meanings = table if c.model.fused_qkv else norm(t, c, table, "encoder.LayerNorm")
    t.hand_out(pairs, offsets, *(() if meanings is table else (meanings,)))
    c.masks["full"] = pairs
    c.handed.append(pairs)
    c.distances = offsets, meanings
    return x


def _rows(c: Context) -> int:
    return 2 * c.model.position_buckets


def disentangled_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Up to and with the output projection; queries and keys of distances come from the same weights."""
    m, o = c.model, c.options
    assert c.distances is not None
    t.part = "attention"
    offsets, meanings = c.distances
    start = len(t.parameters)
    q = _heads(t, projection(t, c, x, "attention.q", "q", HEADS, ("h",), bias=m.attention_bias))
    k = _heads(t, projection(t, c, x, "attention.k", "k", HEADS, ("h",), bias=m.attention_bias))
    again = t.parameters[start:]
    v = _heads(t, projection(t, c, x, "attention.v", "v", HEADS, ("h",), bias=m.attention_bias))
    scores = op.matmul(t, q, op.scale(t, k, operator="div"), "scores", ("b", "a", c.queries, c.keys))
    meanings = op.dropout(t, meanings, o.hidden_dropout)
    t.use_again(again)
    far_q, far_k = (_of_distances(t, c, meanings, role) for role in ("attention.q", "attention.k"))
    to_place = _by_distance(t, c, q, far_k, offsets)
    bias = op.shift(t, to_place)
    from_place = _by_distance(t, c, k, far_q, offsets, turned=True)
    bias = op.add_in_place(t, bias, from_place)
    t.use(far_q, far_k, from_place, *c.named)
    c.named.clear()
    total = op.add(t, scores, bias, "scores")
    t.use(scores)
    mask = c.masks["full"]
    seen = t.tensor("mask in every layer", mask.dims, 1)
    hidden = t.tensor(seen.name, mask.dims, 1)
    t.run("_to_copy", (mask,), (seen,), (), ())
    t.run("bitwise_not", (seen,), (hidden,), (), ())
    masked = t.tensor("scores", total.dims, total.width, total.grad)
    t.record("masked_fill", (total, hidden), masked, (hidden,), ((total, NEW),))
    probabilities = op.dropout(t, op.softmax(t, masked), o.attention_dropout)
    y = op.clone(t, op.matmul(t, probabilities, v, "attention output", (*c.rows, *HEADS)))
    t.use(q, k, v, bias, meanings, seen, masked, probabilities)
    c.give(y)
    y = projection(t, c, y, "attention.o", "output", ("h",), HEADS, bias=m.attention_output_bias, cut="row")
    t.use(x)
    return op.dropout(t, y, o.hidden_dropout)


def _heads(t: Tape, x: Tensor) -> Tensor:
    return op.clone(t, x, layout=BY_HEAD)


def _of_distances(t: Tape, c: Context, meanings: Tensor, role: str) -> Tensor:
    """Queries or keys of every distance, once for each sequence."""
    one = _heads(t, projection(t, c, meanings, role, "distance", HEADS, ("h",), bias=c.model.attention_bias))
    out = t.tensor(one.name, ("b", *one.dims), one.width, one.grad)
    out.layout = BY_HEAD
    return t.record("repeat", (one,), out, (), ((one, NEW),))


def _by_distance(
    t: Tape, c: Context, x: Tensor, far: Tensor, offsets: Tensor, *, turned: bool = False
) -> Tensor:
    """Products with every distance, of which each pair of tokens takes its own."""
    wide: Dims = ("b", "a", c.queries, _rows(c))
    every = op.matmul(t, x, far, "scores by distance", wide)
    where = offsets
    for operator in ("neg", "add") if turned else ("add",):
        where = _index(t, operator, where)
    where = _index(t, "clamp", where)
    chosen = gather(t, every, where, "scores by distance", ("b", "a", c.queries, c.keys))
    out = op.scale(t, chosen, operator="div")
    c.named += (where, chosen)
    return out


def _index(t: Tape, operator: str, x: Tensor) -> Tensor:
    out = t.tensor("distances", x.dims, INT64)
    return t.record(operator, (x,), out, (), ())
