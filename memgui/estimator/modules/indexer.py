"""Sparse attention's indexer (DeepSeek-V3.2, GLM 5): small heads that choose the tokens each query looks at.

It runs without gradients, so that it keeps nothing and its weights get no gradient; but it holds its
scores of every pair of tokens, for every one of its heads, in fp32.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import idle_adapter
from memgui.estimator.modules.cache import cached
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.reach import Reach
from memgui.estimator.modules.rotary import rotate
from memgui.estimator.tape import AMBIENT, BY_TOKEN, Dims, Tape, Tensor

PASSED_ON = ("glm_moe_dsa", "mistral_large4_text", "mistral_large4", "hy_v4", "hy_v4_vl_text")
"""Models whose layers give the next one what they have chosen, should it choose nothing itself."""

FP32 = 4
INT32 = 4
INT64 = 8


def chosen_mask(t: Tape, c: Context, x: Tensor, narrow: Tensor, reach: Reach) -> tuple[Tensor, Tensor]:
    """The mask of the chosen tokens and of those before: boolean for SDPA, additive for eager attention.

    With it the tokens not chosen; both are named until attention returns.
    """
    o = c.options
    if reach.indexer:
        chosen = _indices(t, c, x, narrow, reach)
        if c.model.model_type in PASSED_ON:
            t.pass_on(chosen)
        else:
            t.hold(chosen)
    else:  # those of an earlier layer
        chosen = t.tensor("chosen tokens", ("b", c.queries, "it"), INT32, origin=AMBIENT)
    pairs: Dims = ("b", c.queries, c.keys)
    wide = t.tensor("chosen tokens", chosen.dims, INT64)
    t.run("_to_copy", (chosen,), (wide,), (), ())
    others = t.tensor("tokens not chosen", pairs, 1)
    t.run("scatter", (wide,), (others,), (), ())
    given = c.masks.get(reach.name)
    mask = t.tensor("mask", pairs, o.width if o.attention == "eager" and not o.decode else 1)
    t.run("masked_fill", (others, *((given,) if given is not None else ())), (mask,), (), ())
    return mask, others


def _indices(t: Tape, c: Context, x: Tensor, narrow: Tensor, reach: Reach) -> Tensor:
    """``topk`` of ``sum over heads of weight * relu(q @ k)``, as int32."""
    x, narrow = without_gradient(t, x), without_gradient(t, narrow)
    heads: Dims = (*c.rows, "ih", "id")
    q = whole = _index_queries(t, c, narrow, heads)
    key = index_linear(t, c, x, "indexer.wk", ("id",), ("h",), (*c.rows, "id"))
    own = FP32 if c.model.indexer_in_fp32 else c.options.width
    w, bias = (t.parameter(f"indexer.k_norm.{name}", ("id",), own, False) for name in _NORM)
    key = op.layer_norm(t, op.cast(t, key, own) if own > key.width else key, w, bias, (*c.rows, 1))
    if c.model.indexer_in_fp32:
        key = op.cast(t, key, x.width)
    key = normed = t.view(key, "index key", (*c.rows, 1, "id"))
    halves: tuple[Tensor, ...] = ()
    if reach.rotated:
        halves = turned, key_turned = rotate(
            t, c, reach, *(t.view(one, one.name, (*one.dims[:-1], "p")) for one in (q, key)), detached=True
        )
        q = op.cat(t, (turned, q), "index query", heads)
        key = op.cat(t, (key_turned, key), "index key", key.dims)
        key.layout = BY_TOKEN
    if c.options.cache:
        key = cached(t, c, key, reach)
    q32, key32 = op.cast(t, q, FP32), op.cast(t, key, FP32)
    width = t.autocast or FP32
    scores = t.tensor("index scores", (*c.rows, "ih", c.keys), width)
    factors = op.cast(t, q32, width), op.cast(t, key32, width)
    t.run("bmm", (factors[0], _for_every_query(t, c, factors[1])), (scores,), (), ())
    t.use(q32, key32, *factors)
    if not c.model.indexer_in_fp32:
        scores = op.scale(t, scores)
    positive = op.pointwise(t, "relu", scores, "index scores", saves="output")
    t.use(scores)
    read = op.cast(t, x, own) if own > x.width else x
    weights = index_linear(t, c, read, "indexer.weights_proj", ("ih",), ("h",), (*c.rows, "ih"), own)
    total = t.tensor("index scores", ("b", c.queries, c.keys), width)
    weights = op.scale(t, op.cast(t, weights, FP32))
    if c.model.indexer_in_fp32:  # the scores' scale is here
        weights = op.scale(t, weights)
    t.run("bmm", (op.cast(t, weights, width), positive), (total,), (), ())
    t.use(weights)
    given = c.masks.get(reach.name)
    masked = t.tensor("index scores", total.dims, width)
    t.run("masked_fill", (total, *((given,) if given is not None else ())), (masked,), (), ())
    t.use(positive)
    found: Dims = ("b", c.queries, "it")
    values, at = t.tensor("highest scores", found, width), t.tensor("chosen tokens", found, INT64)
    t.run("topk", (masked,), (values, at), (), ())
    chosen = t.tensor("chosen tokens", found, INT32)
    t.run("_to_copy", (at,), (chosen,), (), ())
    t.use(q, key, whole, normed, *halves)
    return chosen


def _index_queries(t: Tape, c: Context, narrow: Tensor, heads: Dims) -> Tensor:
    """Of the query latent; where there is none, of the normed input, scaled as attention's own are."""
    if c.model.q_lora_rank is not None:
        return index_linear(t, c, narrow, "indexer.wq_b", ("ih", "id"), ("lq",), heads)
    w, bias = (t.parameter(f"indexer.q_input_norm.{name}", ("h",), c.options.width, False) for name in _NORM)
    normed = op.layer_norm(t, narrow, w, bias, (*c.rows, 1))
    q = index_linear(t, c, normed, "indexer.wq_b", ("ih", "id"), ("h",), heads)
    return tempered_by_head(t, c, q, "indexer.softmax_scaling", ("ih",), trained=False)


def _for_every_query(t: Tape, c: Context, key: Tensor) -> Tensor:
    """``torch.matmul`` spreads keys over the queries; of several sequences that is a copy."""
    if c.options.one_sequence or c.queries == 1:
        return key
    wide = t.tensor("index key", (*c.rows, "id", c.keys), key.width)
    t.run("clone", (key,), (wide,), (), ())
    return wide


def tempered_by_head(
    t: Tape, c: Context, q: Tensor, name: str, heads: Dims, *, trained: bool = True
) -> Tensor:
    """Mistral Large 4: ``q * (scale * log(position + 1) + bias)``, of each head its own."""
    o = c.options
    logs = t.tensor("logarithms of positions", (1, c.queries), FP32)
    t.run("log", (), (logs,), (), ())
    logs = op.cast(t, logs, q.width)
    scale, bias = (
        op.copy_of_weight(
            t, t.parameter(f"{name}.{one}", heads, o.width, trained and o.base_trained), q.width
        )
        for one in ("scale", "bias")
    )
    dims: Dims = (1, c.queries, *heads)
    y = op.mul(t, scale, logs, "temperatures", dims)
    y = op.add_broadcast(t, y, bias, "temperatures")
    out = op.mul(t, q, y, q.name, q.dims)
    t.use(logs, scale, bias, y)
    return out


_NORM = ("weight", "bias")


def without_gradient(t: Tape, x: Tensor) -> Tensor:
    """``x.detach()``, as what runs under ``no_grad`` or leads nowhere sees it."""
    out = t.view(x, x.name, x.dims)
    out.grad = False
    return out


def index_linear(
    t: Tape, c: Context, x: Tensor, name: str, out: Dims, wide: Dims, dims: Dims, width: int = 0
) -> Tensor:
    """A linear layer that no gradient reaches."""
    w = t.parameter(f"{name}.weight", (*out, *wide), width or c.options.width, False)
    idle_adapter(t, c, name.removeprefix("indexer."), out, wide)
    y = op.linear(t, x, w, None, name, dims)
    if w.copy is not None and c.options.base_trained:  # autocast keeps copies of weights that want a gradient
        t.cast_cache.append(w.copy)
    return y
