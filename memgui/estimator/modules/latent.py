"""Multi-head latent attention: keys and values from one compressed, cached latent (DeepSeek)."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules import index_groups
from memgui.estimator.modules.cache import cached
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.indexer import chosen_mask, tempered_by_head
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import FULL, Reach
from memgui.estimator.modules.rotary import rotate
from memgui.estimator.tape import BY_HEAD, NEW, Dims, Tape, Tensor

FP32 = 4


def latent_attention(t: Tape, c: Context, x: Tensor, reach: Reach = FULL) -> Tensor:
    """Attention whose cache holds the latent and one rotated key for all heads.

    Where the reach is indexed, an indexer (this layer's or an earlier one's) chooses the tokens that
    are looked at: every layer has a mask of its own.
    """
    m, o = c.model, c.options
    t.part = "attention"
    gate = before = opening = None
    if m.attention_gate == "elementwise":
        opening = projection(t, c, x, "attention.gate", "gate", ("a", "dv"), ("h",))
    if m.query_gate:
        narrow, before, q, gate = _queries_and_gate(t, c, x)
    else:
        narrow, q = _queries(t, c, x)
    if not reach.rotated:
        return _unrotated(t, c, x, narrow, q, reach)
    unrotated, turned = op.split(t, q, ("q", "q"), ((*c.rows, "a", "dp"), (*c.rows, "a", "p")))
    packed = projection(t, c, x, "attention.kv_a", "latent and key", ("lp",), ("h",), bias=m.attention_bias)
    latent, key = op.split(t, packed, ("latent", "rotated key"), ((*c.rows, "lk"), (*c.rows, 1, "p")))
    latent = norm(t, c, latent, "kv_a_layernorm", part="qk_norm")
    if m.latent_scaling:
        unrotated, turned, latent = op.scale(t, unrotated), op.scale(t, turned), op.scale(t, latent)
    turned, key = rotate(t, c, reach, turned, key)
    if o.cache:
        latent, key = cached(t, c, latent, reach), cached(t, c, key, reach)
    queries = op.cat(t, (unrotated, turned), "q", (*c.rows, "a", "d"))
    if m.head_temperature:
        queries = tempered_by_head(t, c, queries, "softmax_scaling", ("a",))
    keys, values = _expanded(t, c, latent, key)
    masks = chosen_mask(t, c, x, narrow, reach) if reach.indexed else ()
    y = attend(t, c, queries, keys, values, reach, masks[0] if masks else None)
    if gate is not None:
        opened = op.pointwise(t, "sigmoid", op.cast(t, gate, FP32), "gate", saves="output")
        y = op.cast(t, op.mul(t, y, opened, "gated", y.dims), y.width)
    if opening is not None:
        y = op.mul(t, y, op.pointwise(t, "sigmoid", opening, "gate", saves="output"), "gated", y.dims)
        t.use(opening)
    y = projection(
        t, c, y, "attention.o", "output", ("h",), ("a", "dv"), bias=m.attention_output_bias, cut="row"
    )
    if before is not None and gate is not None:
        t.use(narrow, before, gate)
    t.use(q, packed, latent, key, turned, queries, keys, values, x, *((narrow, *masks) if masks else ()))
    return op.dropout(t, y, o.hidden_dropout)


def _unrotated(t: Tape, c: Context, x: Tensor, narrow: Tensor, q: Tensor, reach: Reach) -> Tensor:
    """Mistral Large 4's layers without positions: all of a head's key comes from the latent."""
    m = c.model
    packed = projection(t, c, x, "attention.kv_a", "latent", ("lk",), ("h",), bias=m.attention_bias)
    latent = norm(t, c, packed, "kv_a_layernorm", part="qk_norm")
    if c.options.cache:
        latent = cached(t, c, latent, reach)
    queries = q
    if m.head_temperature:
        queries = op.cat(t, (q,), "q", (*c.rows, "a", "d"))
        queries = tempered_by_head(t, c, queries, "softmax_scaling", ("a",))
    rows: Dims = ("b", c.keys)
    expanded = projection(t, c, latent, "attention.kv_b", "keys and values", ("a", "dg"), ("lk",))
    made, values = op.split(t, expanded, ("k", "v"), ((*rows, "a", "d"), (*rows, "a", "dv")))
    keys = op.clone(t, made, layout=BY_HEAD)
    masks = (index_groups.chosen_mask if reach.grouped else chosen_mask)(t, c, x, narrow, reach)
    y = attend(t, c, queries, keys, values, reach, masks[0] if masks else None)
    y = projection(
        t, c, y, "attention.o", "output", ("h",), ("a", "dv"), bias=m.attention_output_bias, cut="row"
    )
    t.use(q, packed, latent, queries, keys, values, x, *masks)
    return op.dropout(t, y, c.options.hidden_dropout)


def _queries(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """What queries are made from (a latent where they have one), and the queries."""
    m = c.model
    if m.q_lora_rank is None:
        return x, projection(t, c, x, "attention.q", "q", ("a", "d"), ("h",))
    narrow = projection(t, c, x, "attention.q_a", "query latent", ("lq",), ("h",), bias=m.attention_bias)
    narrow = norm(t, c, narrow, "q_a_layernorm", part="qk_norm")
    return narrow, projection(t, c, narrow, "attention.q_b", "q", ("a", "d"), ("lq",))


def _queries_and_gate(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A.X K2: the query latent normed and not, and what both make together: queries and gate."""
    before = projection(
        t, c, x, "attention.q_a", "query latent", ("lq",), ("h",), bias=c.model.attention_bias
    )
    narrow = norm(t, c, before, "q_a_layernorm", part="qk_norm")
    joined = op.cat(t, (narrow, before), "query latents", (*c.rows, 2, "lq"))
    both = projection(t, c, joined, "attention.q_gate", "queries and gate", ("a", "dg"), (2, "lq"))
    q, gate = op.split(t, both, ("q", "gate"), ((*c.rows, "a", "d"), (*c.rows, "a", "dv")))
    return narrow, before, q, op.clone(t, gate)


def through_gate(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    """``x * sigmoid(gate(x))`` in fp32, cast back: A.X K2's gate in low rank behind a norm."""
    before, t.part = t.part, "norm"
    inner = op.pointwise(
        t,
        "silu",
        projection(t, c, x, "norm.gate_in", f"{name}.gate", ("gr",), ("h",), cut=""),
        "",
        saves="input",
    )
    outer = projection(t, c, inner, "norm.gate_out", f"{name}.gate", ("h",), ("gr",), cut="")
    opened = op.pointwise(t, "sigmoid", op.cast(t, outer, FP32), "gate", saves="output")
    y = op.cast(t, op.mul(t, x, opened, "gated", x.dims), x.width)
    t.use(x)
    t.part = before
    return y


def _expanded(t: Tape, c: Context, latent: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values of every head; the rotated part of all keys is the same."""
    rows: Dims = ("b", c.keys)
    expanded = projection(t, c, latent, "attention.kv_b", "keys and values", ("a", "nv"), ("lk",))
    unrotated, values = op.split(t, expanded, ("k", "v"), ((*rows, "a", "dp"), (*rows, "a", "dv")))
    keys = t.tensor("k", (*rows, "a", "d"), expanded.width, unrotated.grad or key.grad)
    keys.layout = BY_HEAD
    back = tuple([(one, NEW) for one in (unrotated, key) if one.grad])
    t.record("copy_", (unrotated, key), keys, (), back, None, (keys.coefficient, keys.monomial))
    return keys, values
