"""MobileBERT: layers that work in a narrow middle, several feed-forwards each, norms that only scale."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import padded
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import FULL
from memgui.estimator.tape import ALIAS, NEW, PARAMETER, Dims, Tape, Tensor

INT64 = 8
HEADS: Dims = ("a", "d")


def embedded(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Each token beside its neighbours, projected; positions and segments are as wide as the layers."""
    m, o = c.model, c.options
    narrow: Dims = (*c.rows, "e")
    beside = []
    for _ in range(2):
        beside.append(padded(t, op.piece(t, x, "neighbours", narrow), narrow))
    three = t.tensor("three tokens", (*c.rows, 3, "e"), x.width, x.grad)
    parts = (beside[0], x, beside[1])
    t.record("cat", parts, three, (), tuple([(one, ALIAS) for one in parts if one.grad]))
    y = projection(t, c, three, "embedding.projection", "embedded", ("h",), (3, "e"), bias=True, cut="")
    t.buffer("position ids", ("P",), INT64)
    positions = t.tensor("position ids", (1, c.queries), INT64, origin=PARAMETER)  # a slice of the buffer
    types = t.tensor("token type ids", c.rows, INT64)
    t.run("zeros", (), (types,), (), ())
    table = t.parameter(
        "position_embeddings.weight", ("P", "h"), o.width, o.base_trained, part="position_embedding"
    )
    where = op.embedding(t, positions, table, "embedded positions", (1, c.queries, "h"))
    dims: Dims = (m.type_vocab_size, "h")
    table = t.parameter(
        "token_type_embeddings.weight", dims, o.width, o.base_trained, part="token_type_embedding"
    )
    segments = op.embedding(t, types, table, "embedded segments", c.hidden)
    summed = op.add(t, op.add_broadcast(t, y, where, "embedded"), segments, "embedded")
    t.use(types, where, segments, y)
    return op.dropout(t, norm(t, c, summed, "embeddings.LayerNorm", part="embedding"), o.embedding_dropout)


def layer(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Into the middle, attention, feed-forwards, and out of it again."""
    m, o = c.model, c.options
    middle: Dims = (m.bottleneck_size,)
    t.part = "attention"
    given, shared = (
        norm(t, c, projection(t, c, x, f"bottleneck.{name}", "narrowed", middle, ("h",), bias=True), name)
        for name in ("input", "attention")
    )
    q = projection(t, c, shared, "attention.q", "q", HEADS, middle, bias=True)
    k = projection(t, c, shared, "attention.k", "k", HEADS, middle, bias=True)
    v = projection(t, c, x, "attention.v", "v", HEADS, ("h",), bias=True)
    y = attend(t, c, q, k, v, FULL)
    y = projection(t, c, y, "attention.o", "output", middle, HEADS, bias=True, cut="row")
    y = norm(t, c, op.add(t, y, given, "residual stream"), "attention.output")
    t.use(q, k, v, given, shared)
    for number in range(m.num_feedforward_networks):
        t.part = "mlp"
        up = projection(t, c, y, "mlp.up", "up", ("f",), middle, bias=True)
        inner = ACTIVATIONS[m.hidden_act](t, up)
        down = projection(t, c, inner, "mlp.down", "down", middle, ("f",), bias=True, cut="row")
        y = norm(t, c, op.add(t, down, y, "residual stream"), f"ffn.{number}")
        t.use(inner)
    t.part = "mlp"
    wide = op.dropout(
        t, projection(t, c, y, "bottleneck.output", "widened", ("h",), middle, bias=True), o.hidden_dropout
    )
    return norm(t, c, op.add(t, wide, x, "residual stream"), "output.bottleneck")


def logits(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The table, put together of the embedding and of what that lacks in width; a bias in place."""
    m, o = c.model, c.options
    assert c.table is not None
    wide = m.hidden_size - (m.embedding_size or 0)
    rest = t.parameter("dense.weight", (wide, "V"), o.width, o.base_trained, "vocabulary")
    shift = t.parameter("decoder.bias", ("V",), o.width, o.base_trained, "vocabulary")
    both = t.tensor("head", ("h", "V"), o.width, rest.grad)
    back = tuple([(one, NEW) for one in (c.table, rest) if one.grad])
    t.record("cat", (c.table, rest), both, (), back)
    y = op.matmul(t, x, both, "logits", (*c.rows, "V"))
    out = t.view(y, "logits", y.dims)
    t.run("add_", (y, shift), (out,), (), ((y, ALIAS), (shift, NEW)) if y.grad else ())
    t.use(both)
    return out
