"""GLM 5.3's indexer: tokens in groups have one key each, and whole groups are chosen.

It runs without gradients.  What it holds of all pairs of tokens are flags; its scores, of every head, are
of pairs of tokens and groups.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.cache import cached
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.indexer import index_linear, without_gradient
from memgui.estimator.modules.reach import Reach
from memgui.estimator.tape import Dims, Tape, Tensor

FP32 = 4
INT32 = 4
INT64 = 8


def chosen_mask(t: Tape, c: Context, x: Tensor, narrow: Tensor, reach: Reach) -> tuple[Tensor, ...]:
    """The mask of the tokens of chosen groups: boolean for SDPA, additive for eager attention."""
    o = c.options
    chosen = _indices(t, c, x, narrow, reach)
    t.hold(chosen)
    valid = t.tensor("valid tokens", chosen.dims, 1)
    t.run("ge", (chosen,), (valid,), (), (), (2 * valid.coefficient, valid.monomial))
    safe = t.tensor("chosen tokens", chosen.dims, INT32)
    t.run("clamp", (chosen,), (safe,), (), ())
    pairs: Dims = ("b", c.queries, c.keys)
    counts = t.tensor("how often chosen", pairs, INT32)
    added = (INT32 * valid.coefficient, valid.monomial)
    t.run("scatter_add_", (safe, valid), (counts,), (), (), (added[0] + INT64 * valid.coefficient, added[1]))
    mask = t.tensor("mask", pairs, o.width if o.attention == "eager" and not o.decode else 1)
    t.run("ne", (counts,), (mask,), (), ())
    return mask, valid, safe, counts


def _indices(t: Tape, c: Context, x: Tensor, narrow: Tensor, reach: Reach) -> Tensor:
    """The tokens of the groups with the highest ``sum over heads of weight * relu(q @ k)``, as int32."""
    o = c.options
    x, narrow = without_gradient(t, x), without_gradient(t, narrow)
    heads: Dims = (*c.rows, "ih", "id")
    q = index_linear(t, c, narrow, "indexer.wq_b", ("ih", "id"), ("lq",), heads)
    key = index_linear(t, c, x, "indexer.wk", ("id",), ("h",), (*c.rows, "id"))
    w, bias = (t.parameter(f"indexer.k_norm.{name}", ("id",), o.width, False) for name in ("weight", "bias"))
    key = op.layer_norm(t, key, w, bias, (*c.rows, 1))
    t.parameter("indexer.index_kpool_compress_ape", ("rc", "id"), o.width, False)
    opening = t.parameter("indexer.index_kpool_compress_gate", ("id", "h"), o.width, False)
    gate = op.linear(t, x, opening, None, "group gates", (*c.rows, "id"))
    both = t.tensor("keys and gates", (*c.rows, 1, 2 * c.model.index_head_dim + 1), x.width)
    t.run("cat", (key, gate), (both,), (), ())
    if o.cache:
        both = cached(t, c, both, reach)
    visible = t.tensor("visible tokens", ("b", c.queries, c.keys), 1)
    t.run("and", (), (visible,), (), (), (visible.coefficient // max(visible.width, 1), visible.monomial))
    groups = "tc" if o.decode else "wc"
    pooled = t.tensor("group keys", ("b", groups, "id"), x.width)
    wide = (4 * FP32 * pooled.coefficient // x.width, pooled.monomial)  # of each token of a group
    t.run("sum", (both,), (pooled,), (), (), wide)
    width = t.autocast or FP32
    q32, key32 = op.cast(t, q, FP32), op.cast(t, pooled, FP32)
    factor = op.cast(t, q32, width)
    if not (o.one_sequence or c.queries == 1):
        spread = t.tensor("group keys", (*c.rows, "id", groups), width)
        t.run("clone", (key32,), (spread,), (), ())
        key32 = spread
    scores = t.tensor("index scores", (*c.rows, "ih", groups), width)
    t.run("bmm", (factor, key32), (scores,), (), ())
    scores = op.scale(t, scores)
    positive = op.pointwise(t, "relu", scores, "index scores", saves="output")
    weights = index_linear(t, c, x, "indexer.weights_proj", ("ih",), ("h",), (*c.rows, "ih"))
    weights = op.scale(t, op.cast(t, weights, FP32))
    total = t.tensor("index scores", ("b", c.queries, groups), width)
    t.run("bmm", (op.cast(t, weights, width), positive), (total,), (), ())
    masked = t.tensor("index scores", total.dims, width)
    candidates = t.tensor("candidates", total.dims, 1)
    t.run("gather", (visible,), (candidates,), (), (), (2 * candidates.coefficient, candidates.monomial))
    t.run("masked_fill", (total, candidates), (masked,), (), ())
    found: Dims = ("b", c.queries, "it")
    at = t.tensor("chosen tokens", found, INT64)
    t.run("topk", (masked,), (at,), (), (), (2 * at.coefficient, at.monomial))
    chosen = t.tensor("chosen tokens", found, INT32)
    t.run("_to_copy", (at,), (chosen,), (), ())
    t.use(q, key, gate, both, visible, pooled, positive, weights, masked, candidates, at)
    return chosen
