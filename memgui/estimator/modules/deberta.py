"""DeBERTa's first attention: one projection, projections of their own for distances, a norm written out."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import gather
from memgui.estimator.modules.attention import HEADS
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.heads import batched
from memgui.estimator.modules.projection import projection
from memgui.estimator.tape import BY_HEAD, NEW, Dims, Tape, Tensor

INT64 = 8


def first_disentangled_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Up to and with the output projection; only distances within the sequence are looked at."""
    m, o = c.model, c.options
    assert c.distances is not None
    t.part = "attention"
    offsets, table = c.distances
    every = projection(t, c, x, "attention.qkv", "qkv", ("a", 3, "d"), ("h",))
    shape: Dims = (*c.rows, *HEADS)
    q, k, v = op.split(t, every, ("q", "k", "v"), (shape, shape, shape))
    biases = [t.parameter(f"{name}_bias", HEADS, o.width, o.base_trained) for name in ("q", "v")]
    q, v = op.add_broadcast(t, q, biases[0], "q"), op.add_broadcast(t, v, biases[1], "v")
    q = op.scale(t, q, operator="div")
    scores = _scores(t, c, q, k, "scores", c.keys)
    near = op.piece(t, table, "distances within the sequence", (2, c.keys, "h"))
    near = op.dropout(t, near, o.hidden_dropout)
    bias = op.shift(t, _by_distance(t, c, q, near, offsets, "attention.pos_k"))
    from_place = _by_distance(t, c, k, near, offsets, "attention.pos_q", turned=True)
    bias = op.add_in_place(t, bias, from_place)
    t.use(from_place)
    total = op.add(t, scores, bias, "scores")
    t.use(scores)
    mask = c.masks["full"]
    seen, hidden = (t.tensor("mask in every layer", mask.dims, 1) for _ in range(2))
    t.run("_to_copy", (mask,), (seen,), (), ())
    t.run("bitwise_not", (seen,), (hidden,), (), ())
    masked = t.tensor("scores", total.dims, total.width, total.grad)
    t.record("masked_fill", (total, hidden), masked, (hidden,), ((total, NEW),))
    probabilities = op.dropout(t, op.softmax(t, masked), o.attention_dropout)
    width = t.autocast or probabilities.width
    probabilities, values = op.cast(t, probabilities, width), batched(t, c, op.cast(t, v, width))
    y = op.clone(t, op.matmul(t, probabilities, values, "attention output", (*c.rows, *HEADS)))
    t.use(q, k, v, bias, seen, masked, probabilities)
    y = projection(t, c, y, "attention.o", "output", ("h",), HEADS, bias=m.attention_output_bias, cut="row")
    t.use(x)
    return op.dropout(t, y, o.hidden_dropout)


def _scores(t: Tape, c: Context, a: Tensor, b: Tensor, name: str, keys: int | str) -> Tensor:
    width = t.autocast or a.width
    a, b = batched(t, c, op.cast(t, a, width)), batched(t, c, op.cast(t, b, width))
    return op.matmul(t, a, b, name, ("b", "a", c.queries, keys))


def _by_distance(
    t: Tape, c: Context, x: Tensor, near: Tensor, offsets: Tensor, role: str, *, turned: bool = False
) -> Tensor:
    """Products with every distance, of which each pair of tokens takes its own."""
    if t.autocast:  # which keeps no copy of what is cut out of a weight
        near = op.copy_of_weight(t, near, t.autocast)
    far = projection(t, c, near, role, "distance", HEADS, ("h",), bias=turned)
    if turned:
        far = op.scale_in_place(t, far)
    width = t.autocast or x.width
    far = op.cast(t, far, width)
    spread = t.tensor(far.name, ("b", *far.dims), far.width, far.grad)
    spread.layout = BY_HEAD
    t.record("clone", (far,), spread, (), ((far, NEW),))
    x = batched(t, c, op.cast(t, x, width))
    every = t.tensor("scores by distance", ("b", "a", c.queries, 2, c.keys), width, x.grad or spread.grad)
    t.record("bmm", (x, spread), every, *op.product(x, spread))
    where = offsets
    for operator in ("neg", "add", "clamp") if turned else ("add", "clamp"):
        out = t.tensor("distances", where.dims, INT64)
        where = t.record(operator, (where,), out, (), ())
    chosen = gather(t, every, where, "scores by distance", ("b", "a", c.queries, c.keys))
    t.use(where, far, every)
    return chosen
