"""DeepSeek V4's attention: one head of keys that are values too, over a window and over entries beside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memgui.estimator import operators as op
from memgui.estimator.mixing import join
from memgui.estimator.modules import rms
from memgui.estimator.modules.adapters import adapted, low_rank
from memgui.estimator.modules.cache import cached, counter
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.eager import eager
from memgui.estimator.modules.entries import COMPRESSORS, DECODING, compressed, plainly_normed
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import matrix, projection
from memgui.estimator.modules.reach import SLIDING
from memgui.estimator.modules.shorts import apart
from memgui.estimator.modules.turned import COMPRESSED, MAIN, Tables, turned, turned_back, working
from memgui.estimator.op import copy, spelled
from memgui.estimator.tape import BY_HEAD, BY_TOKEN, NEW, Dims, Op, Parameter, Sizes, Tape, Tensor

FP32 = 4


def compressed_attention(t: Tape, c: Context, x: Tensor, mixer: str) -> Tensor:
    """The whole of it, up to the second output projection."""
    o = c.options
    t.part = "attention"
    compressor = (DECODING if o.decode else COMPRESSORS).get(mixer)
    found = c.rotary[MAIN if compressor is None else COMPRESSED]
    narrow, q, kv = _heads(t, c, x, found)
    if o.cache:
        counter(t, c)
        kv = cached(t, c, kv, SLIDING)
    mask, inner = c.masks.get("sliding"), c.looking_at("tw") if o.decode else c
    named = [x, narrow]
    if compressor is not None:
        inner = c.looking_at(compressor.keys)
        entries, hidden = compressed(t, c, x, narrow, compressor)
        kv = _joined(t, kv, entries, ("b", compressor.keys, "k", "d"))
        mask = _longer(t, c, mask, hidden, compressor.keys)
        named += entries, hidden
    y = eager(t, inner, q, kv, kv, mask)
    out = _output(t, c, y, found)
    t.use(*named, q, kv, *(() if mask is None else (mask,)))
    return op.dropout(t, out, o.hidden_dropout)


def _heads(t: Tape, c: Context, x: Tensor, found: Tables) -> tuple[Tensor, Tensor, Tensor]:
    """What queries are made from, queries, and keys that are values too.

    Said as one operator where order does not matter, with what it saves.  ``ahead`` and ``behind`` are bytes
    of the rest for each token, which comes and goes forward and backward.
    """
    if not plainly_normed(t, c, x):
        return _written(t, c, x, found)
    weights = q_a, q_a_norm, q_b, kv_a, kv_norm = _weights_of_heads(t, c)
    rows, width = c.rows, x.width
    t.part = "qk_norm"
    latent32, y = (t.tensor(name, (*rows, "lq"), FP32, True) for name in ("query latent", "normalised"))
    latent = t.tensor("norm output", latent32.dims, width, True)
    kv32, kv_y = (t.tensor(name, (*rows, "d"), FP32, True) for name in ("kv", "normalised"))
    deviation, kv_deviation = (t.tensor("1/deviation", (*rows, 1), FP32, True) for _ in range(2))
    t.part = "attention"
    whole, q = (t.tensor("q", (*rows, "a", "d"), width, True) for _ in range(2))
    whole32 = t.tensor("q", q.dims, FP32, True)
    of_heads, cast = (t.tensor("1/deviation", (*rows, "a", 1), one, True) for one in (FP32, width))
    wide: Dims = (*found[0].dims[:-1], "p")
    cos, sin, kv_cos, kv_sin = (t.tensor(one.name, wide, one.width) for one in (*found, *found))
    kv = t.tensor("kv", (*rows, "k", "d"), width, True)
    q.layout = kv.layout = BY_HEAD
    exact, statistics = latent32.coefficient + kv32.coefficient, deviation.coefficient
    # Squares and results of both norms with a weight, and what these are made of and give; queries' squares,
    # and what is turned of them; means and what is added to them; what turns.
    ahead = 2 * exact + latent.coefficient + 2 * kv.coefficient + whole32.coefficient + q.coefficient
    ahead += 4 * statistics + 2 * of_heads.coefficient + working(t, q) + working(t, kv)
    # Ten in each norm with a weight, four in that of queries, whose gradient comes twice.
    behind = 10 * exact + 2 * latent.coefficient + 3 * kv.coefficient + 4 * whole32.coefficient
    behind += 6 * q.coefficient + 4 * statistics + 2 * of_heads.coefficient + cast.coefficient
    t.short = True
    t.written.append(
        Op(
            "heads",
            t.part,
            t.module,
            (x, *found, *weights),
            (
                *(q, kv, latent, latent32, deviation, y, whole, whole32, of_heads, cast, cos, sin),
                *(kv32, kv_deviation, kv_y, kv_cos, kv_sin),
            ),
            (
                *(q_a, x, latent32, deviation, deviation, latent32, q_a_norm, y),
                *(q_b, latent, whole32, of_heads, cast, whole, cos, sin),
                *(kv_a, x, kv32, kv_deviation, kv_deviation, kv32, kv_norm, kv_y, kv_cos, kv_sin),
            ),
            tuple([(one, NEW) for one in (kv_norm, x, kv_a, q_b, q_a_norm, x, q_a)]),
            (ahead, x.monomial),
            (behind, x.monomial),
            None,
            None,
            spell=partial(_spelled, c, weights, t.sizes),
        )
    )
    return latent, q, kv


def _weights_of_heads(t: Tape, c: Context) -> tuple[Parameter, ...]:
    """What heads are made and normed by, in the order in which it is used."""
    return (
        matrix(t, c, "attention.q_a", ("lq",), ("h",)),
        t.parameter("q_a_layernorm.weight", ("lq",), FP32, part="qk_norm"),
        matrix(t, c, "attention.q_b", ("a", "d"), ("lq",)),
        matrix(t, c, "attention.kv", ("d",), ("h",)),
        t.parameter("kv_norm.weight", ("d",), FP32, part="qk_norm"),
    )


def _spelled(c: Context, weights: Sequence[Parameter], sizes: Sizes, short: Op) -> list[Op]:
    """The operators of heads."""
    x, *found = short.ins[:3]
    t = apart(short, sizes, weights)
    narrow, q, kv = _written(t, copy(c), x, tuple(found))
    return spelled(short, t.written, [q, kv, narrow])


def _written(t: Tape, c: Context, x: Tensor, found: Tables) -> tuple[Tensor, Tensor, Tensor]:
    """The same, operator by operator."""
    narrow = projection(t, c, x, "attention.q_a", "query latent", ("lq",), ("h",))
    narrow = norm(t, c, narrow, "q_a_layernorm", part="qk_norm")
    q = projection(t, c, narrow, "attention.q_b", "q", ("a", "d"), ("lq",))
    q = turned(t, _normed(t, q, (*c.rows, "a", 1)), found)
    kv = norm(t, c, projection(t, c, x, "attention.kv", "kv", ("d",), ("h",)), "kv_norm", part="qk_norm")
    return narrow, q, turned(t, op.reshaped(t, kv, "kv", (*c.rows, "k", "d")), found)


def _output(t: Tape, c: Context, y: Tensor, found: Tables) -> Tensor:
    """What was seen, turned back, through both output projections."""
    m = c.model
    y = turned(t, y, turned_back(t, found))
    y = _grouped(t, c, op.clone(t, y, layout=BY_TOKEN))
    out = projection(t, c, y, "attention.o", "output", ("h",), (m.o_groups, m.o_lora_rank), cut="row")
    t.use(y)
    return out


def _normed(t: Tape, q: Tensor, rows: Dims) -> Tensor:
    """Queries normed without a weight."""
    normed = rms.normalised(t, q, None, rows, rms.SCALED)
    normed.name = "q"
    return normed


def _grouped(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Heads in groups, each through a matrix of its own, side by side again."""
    m = c.model
    groups, out = m.o_groups, m.o_lora_rank
    inner = m.num_attention_heads * m.head_dim // groups
    given = op.reshaped(t, x, x.name, (*c.rows, groups, inner))
    w = t.parameter(
        "attention.o_a.weight",
        (groups, out, inner),
        c.options.width,
        c.options.base_trained,
        role="attention.o_a",
    )
    used = op.copy_of_weight(t, w, t.autocast or w.width)
    given = op.cast(t, given, t.autocast or given.width)
    y = t.tensor("grouped", (*c.rows, groups, out), used.width, given.grad or used.grad)
    t.record("bmm", (given, used), y, *op.product(given, used))
    called = c.names["attention.o_a"]
    if adapted(c, called):
        y = low_rank(t, c, given, y, called, "grouped", (out,), (inner,), "")
    return op.clone(t, y)


def _joined(t: Tape, kv: Tensor, entries: Tensor, dims: Dims) -> Tensor:
    y = join(t, (kv, entries), "kv", dims)
    y.layout = BY_HEAD
    return y


def _longer(t: Tape, c: Context, mask: Tensor | None, hidden: Tensor, keys: str) -> Tensor | None:
    """The mask of the window, and of the entries beside; none for a single query."""
    if mask is None:
        return None
    out = t.tensor("mask", ("b", c.queries, keys), mask.width)
    t.run("cat", (mask, op.cast(t, hidden, mask.width)), (out,), (), ())
    return out
