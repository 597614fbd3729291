"""Qwen 4's sparse attention: blocks of tokens are chosen by the mean of their keys, for all heads together.

Its code chooses query by query; what one query needs is let go before the next, and is not counted.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import idle_adapter
from memgui.estimator.modules.cache import cached
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.indexer import without_gradient
from memgui.estimator.modules.layers import LayerPlan, Writer
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.reach import Reach
from memgui.estimator.modules.rotary import rotate
from memgui.estimator.tape import BY_TOKEN, Dims, Tape, Tensor

MIXER = "pooled_indexed_attention"
INT32 = 4
INT64 = 8


def pooled_mask(t: Tape, c: Context, x: Tensor, reach: Reach) -> Tensor:
    """The mask of the chosen tokens and of those before: boolean for SDPA, additive for eager attention."""
    o, m = c.options, c.model
    used = _indexed(t, c, x, reach)
    given = c.masks.get(reach.name)
    read = () if given is None else (given,)
    most = m.index_topk + m.index_block_size - 1
    chosen, places = (t.tensor("chosen tokens", ("b", c.queries, most), INT32) for _ in range(2))
    t.run("full", (), (chosen,), (), ())
    more = {"t": "ts"}.get(c.keys) or f"{c.keys}1"
    pairs: Dims = ("b", c.queries, more)
    zeros, marked = (t.tensor("chosen tokens", pairs, 1) for _ in range(2))
    t.run("zeros", (), (zeros,), (), ())
    t.run("where", (chosen,), (places,), (), (), (places.coefficient // INT32, places.monomial))
    t.run("scatter", (zeros, places), (marked,), (), ())
    t.use(chosen, *used)
    additive = o.attention == "eager" and not o.decode
    mask = t.tensor("mask of the layer", ("b", c.queries, c.keys), o.width if additive else 1)
    t.run("bitwise_and", (marked, *read), (mask,), (), (), _inverted(mask, additive=additive))
    t.hold(marked)
    return mask


def _inverted(mask: Tensor, *, additive: bool) -> tuple[int, int] | None:
    """What is not chosen, where that is what is filled."""
    return (mask.coefficient // mask.width, mask.monomial) if additive else None


def _indexed(t: Tape, c: Context, x: Tensor, reach: Reach) -> tuple[Tensor, ...]:
    """Queries and one key of the indexer; what a graph that leads nowhere has saved dies with it."""
    o = c.options
    seen = without_gradient(t, x)
    w = t.parameter("indexer.index_qk_proj.weight", ("ihk", "id", "h"), o.width, False, inputs=1)
    idle_adapter(t, c, "index_qk_proj", ("ihk", "id"), ("h",))
    both = op.linear(t, seen, w, None, "index query and key", (*c.rows, "ihk", "id"))
    if w.copy is not None and o.base_trained:  # autocast keeps copies of weights that want a gradient
        t.cast_cache.append(w.copy)
    heads: Dims = (*c.rows, "ih", "id")
    q, key = op.split(t, both, ("index query", "index key"), (heads, (*c.rows, 1, "id")))
    q = op.clone(t, q)
    with c.trained(False):
        q = norm(t, c, q, "indexer.q_layernorm", part="qk_norm")
        t.parameter("indexer.k_layernorm.weight", ("id",), o.width, False, part="qk_norm")
    (q,) = rotate(t, c, reach, q)
    if o.cache:
        key.layout = BY_TOKEN
        key = cached(t, c, key, reach)
    return q, key, both


def keeping_positions(found: list[tuple[LayerPlan, int]]) -> list[tuple[LayerPlan, int]]:
    """The layers, of which the first with an indexer keeps the positions of all tokens for the others."""
    at = next((i for i, (layer, _) in enumerate(found) if layer.blocks[0][0] == MIXER), None)
    if at is None:
        return found
    layer, many = found[at]
    (name, write), *rest = layer.blocks
    blocks = ((f"{name}.first", _kept(write)), *rest)
    alone = layer._replace(key=f"{layer.key}.first", blocks=blocks)
    return [*found[:at], (alone, 1), *([(layer, many - 1)] if many > 1 else []), *found[at + 1 :]]


def _kept(write: Writer) -> Writer:
    def kept(t: Tape, c: Context, x: Tensor) -> Tensor:
        y = write(t, c, x)
        if c.options.cache:  # a prompt's are those of one sequence, seen as many
            dims: Dims = ("b", 3, c.keys) if c.options.decode else (c.queries,)
            before = (t.cached_before("positions", ("b", 3, c.before), INT64),) if c.options.decode else ()
            places = t.tensor("positions", dims, INT64)
            t.run("cat", before, (places,), (), ())
            t.cache(places)
        return y

    return kept
