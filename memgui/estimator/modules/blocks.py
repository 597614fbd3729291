"""MiniMax-M3's sparse attention: an indexer chooses, for each group of heads, blocks of keys to look at.

What it chooses becomes a mask of its own for each head, which the kernel keeps.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import idle_adapter
from memgui.estimator.modules.cache import cached
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.indexer import without_gradient
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.reach import Reach
from memgui.estimator.modules.rotary import rotate
from memgui.estimator.tape import BY_TOKEN, Dims, Tape, Tensor

FP32 = 4
INT64 = 8


def block_mask(t: Tape, c: Context, x: Tensor, reach: Reach, width: int) -> Tensor:
    """The additive mask of the chosen blocks, one for each head."""
    chosen = _chosen(t, c, x, reach)
    m = c.model
    blocks: Dims = ("b", "ih", c.queries, "nb")
    safe = t.tensor("chosen blocks", chosen.dims, INT64)
    t.run("masked_fill", (chosen,), (safe,), (), (), (safe.coefficient // INT64, safe.monomial))
    bias = t.tensor("blocks", ("b", "ih", c.queries, "nb1"), width)
    t.run("scatter_", (safe,), (bias,), (), ())
    here = t.tensor("blocks", blocks, 1)
    t.run("eq", (bias,), (here,), (), ())
    keys = t.tensor("blocks, key by key", ("b", "ih", c.queries, "nbt"), 1)
    t.run("repeat_interleave", (here,), (keys,), (), ())
    every: Dims = ("b", "a", c.queries, c.keys)
    wide = keys if m.num_attention_heads == m.index_n_heads else t.tensor("blocks of heads", every, 1)
    if wide is not keys:
        t.run("repeat_interleave", (keys,), (wide,), (), ())
    given = c.masks.get(reach.name)
    kept, hidden = (t.tensor("keys that are looked at", every, 1) for _ in range(2))
    if given is None:  # tokens that come later
        given = t.tensor("later tokens", (c.queries, c.keys), 1)
        t.run("gt", (), (given,), (), ())
    allowed = t.tensor("allowed", given.dims, 1)
    t.run("eq", (given,), (allowed,), (), ())
    t.run("bitwise_and", (wide, allowed), (kept,), (), ())
    zeros, mask = (t.tensor("mask of blocks", every, width) for _ in range(2))
    t.run("zeros", (), (zeros,), (), ())
    t.run("bitwise_not", (kept,), (hidden,), (), ())
    t.run("masked_fill", (zeros, hidden), (mask,), (), ())
    t.use(safe, bias, wide, kept, given, chosen)
    t.hold(chosen)
    return mask


def _chosen(t: Tape, c: Context, x: Tensor, reach: Reach) -> Tensor:
    """The best blocks by the best score in each; what a graph that leads nowhere has saved dies with it."""
    graph = x.grad or c.options.base_trained
    x = without_gradient(t, x)
    heads: Dims = (*c.rows, "ih", "id")
    q = _linear(t, c, x, "q", ("ih", "id"), heads)
    key = _linear(t, c, x, "k", ("id",), (*c.rows, 1, "id"))
    with c.trained(False):
        q = norm(t, c, q, "indexer.q_norm", part="qk_norm")
        key = norm(t, c, key, "indexer.k_norm", part="qk_norm")
    q, key = rotate(t, c, reach, q, key)
    if c.options.cache:
        key.layout = BY_TOKEN
        key = cached(t, c, key, reach)
    q32, key32 = op.cast(t, q, FP32), op.cast(t, key, FP32)
    half = t.autocast or FP32
    factors = [op.cast(t, one, half) for one in (key32, q32)]
    if not c.options.one_sequence:  # one key is spread over all heads
        spread = t.tensor("index key", ("b", "ih", c.keys, "id"), half)
        t.run("clone", (factors[0],), (spread,), (), ())
        factors[0] = spread
    pairs: Dims = ("b", "ih", c.queries, c.keys)
    scores = t.tensor("index scores", pairs, half)
    t.run("bmm", tuple(factors), (scores,), (), ())
    future = t.tensor("later tokens", ("b", c.queries, c.keys), 1)
    t.run("gt", (), (future,), (), ())
    masked = t.tensor("index scores", pairs, half)
    t.run("masked_fill", (scores, future), (masked,), (), ())
    t.use(q32, key32)
    whole = masked
    if not c.options.whole_chunks:
        whole = t.tensor("index scores", ("b", "ih", c.queries, "nbt"), half)
        t.run("constant_pad_nd", (masked,), (whole,), (), ())
    best = t.tensor("scores of blocks", ("b", "ih", c.queries, "nb"), half)
    t.run("amax", (whole,), (best,), (), ())
    found: Dims = ("b", "ih", c.queries, "itb")
    values, at = t.tensor("highest scores", found, half), t.tensor("chosen blocks", found, INT64)
    t.run("topk", (best,), (values, at), (), ())
    out = t.tensor("chosen blocks", found, INT64)
    t.run("masked_fill", (values, at), (out,), (), (), (out.coefficient // INT64, out.monomial))
    t.use(whole, best, q, key, future, values, at, *(factors if graph else ()))
    return out


def _linear(t: Tape, c: Context, x: Tensor, name: str, out: Dims, dims: Dims) -> Tensor:
    role = f"attention.{name}"
    w = t.parameter(f"indexer.{name}_proj.weight", (*out, "h"), c.options.width, False, role=role)
    idle_adapter(t, c, c.names[role], out, ("h",))
    y = op.linear(t, x, w, None, name, dims)
    if w.copy is not None and c.options.base_trained:  # autocast keeps copies of weights that want a gradient
        t.cast_cache.append(w.copy)
    return y
