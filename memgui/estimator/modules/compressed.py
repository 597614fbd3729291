"""DeepSeek V4's attention: one head of keys that are values too, and entries that stand for several tokens.

A compressor makes one entry of each few tokens (``csa``, whose indexer chooses which of them each query looks
at) or of many (``hca``); a window of tokens is looked at beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from memgui.estimator import operators as op
from memgui.estimator.mixing import join
from memgui.estimator.modules import rms
from memgui.estimator.modules.adapters import adapted, idle_adapter, low_rank
from memgui.estimator.modules.cache import cached, counter
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.eager import eager
from memgui.estimator.modules.indexer import without_gradient
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import SLIDING
from memgui.estimator.op import spelled
from memgui.estimator.tape import ALIAS, BY_HEAD, BY_TOKEN, NEW, Dims, Op, Parameter, Sizes, Tape, Tensor

FP32 = 4
INT64 = 8
MAIN, COMPRESSED = "main", "compressed"
"""Rotary tables: of layers with a window alone, and of the others."""

Tables = tuple[Tensor, ...]


class Compressor(msgspec.Struct, frozen=True):
    """``tokens`` become one of ``windows`` entries; ``doubled``: with those of the entry before.

    ``keys`` are all that a query looks at.
    """

    tokens: str
    windows: str
    keys: str
    doubled: bool


COMPRESSORS = {
    "compressed_sparse_attention": Compressor("rc", "wc", "swc", True),
    "heavily_compressed_attention": Compressor("rh", "wh", "swh", False),
}
DECODING = {
    "compressed_sparse_attention": Compressor("rc", "tc", "twc", True),
    "heavily_compressed_attention": Compressor("rh", "th", "twh", False),
}
"""The same for a token that is looked at alone, beside a cache."""


# -- in the stem -----------------------------------------------------------------------------------


def tables(t: Tape, c: Context, width: int) -> None:
    """Both kinds of rotary tables, one entry for each pair; experts by token id where layers look them up."""
    m = c.model
    if m.num_hash_layers:  # which have no balance, as the routers of others do
        size = INT64 * m.vocab_size * m.num_experts_per_tok - FP32 * m.num_experts
        t.buffer("tid2eid", (min(m.num_hash_layers, m.num_hidden_layers), max(size, 0)), 1)
    _frequencies(t)
    for name in (MAIN, COMPRESSED):
        made = _made(t, (c.queries, "p2"), width)
        t.hand_out(*made)
        c.rotary[name] = made


def _frequencies(t: Tape) -> None:
    """Of both kinds, each with a copy from which scaling starts."""
    t.buffer("inv_freq", (4, "p2"), FP32)


def _made(t: Tape, dims: Dims, width: int) -> Tables:
    """Cosines and sines, made in fp32."""
    made = tuple([t.tensor(f"rotary {name}", dims, width) for name in ("cos", "sin")])
    size = FP32 * made[0].coefficient // width
    t.run("cos", (), made, (), (), (2 * size, made[0].monomial))
    return made


# -- attention -------------------------------------------------------------------------------------


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
        entries, hidden = _compressed(t, c, x, narrow, compressor)
        kv = _joined(t, kv, entries, ("b", compressor.keys, "k", "d"))
        mask = _longer(t, c, mask, hidden, compressor.keys)
        named += entries, hidden
    y = eager(t, inner, q, kv, kv, mask)
    out = _output(t, c, y, found)
    t.use(*named, q, kv, *(() if mask is None else (mask,)))
    return op.dropout(t, out, o.hidden_dropout)


def _heads(t: Tape, c: Context, x: Tensor, found: Tables) -> tuple[Tensor, Tensor, Tensor]:
    """What queries are made from, queries, and keys that are values too."""
    narrow = projection(t, c, x, "attention.q_a", "query latent", ("lq",), ("h",))
    narrow = norm(t, c, narrow, "q_a_layernorm", part="qk_norm")
    q = projection(t, c, narrow, "attention.q_b", "q", ("a", "d"), ("lq",))
    q = _turned(t, _normed(t, q, (*c.rows, "a", 1)), found)
    kv = norm(t, c, projection(t, c, x, "attention.kv", "kv", ("d",), ("h",)), "kv_norm", part="qk_norm")
    return narrow, q, _turned(t, op.reshaped(t, kv, "kv", (*c.rows, "k", "d")), found)


def _output(t: Tape, c: Context, y: Tensor, found: Tables) -> Tensor:
    """What was seen, turned back, through both output projections."""
    m = c.model
    y = _turned(t, y, _turned_back(t, found))
    y = _grouped(t, c, op.clone(t, y, layout=BY_TOKEN))
    out = projection(t, c, y, "attention.o", "output", ("h",), (m.o_groups, m.o_lora_rank), cut="row")
    t.use(y)
    return out


def _normed(t: Tape, q: Tensor, rows: Dims) -> Tensor:
    """Queries normed without a weight."""
    normed = rms.normalised(t, q, None, rows, rms.SCALED)
    normed.name = "q"
    return normed


def _turned_back(t: Tape, found: Tables) -> Tables:
    cos, sin = found
    negative = t.tensor(sin.name, sin.dims, sin.width)
    t.run("neg", (sin,), (negative,), (), ())
    return cos, negative


def _turned(t: Tape, x: Tensor, found: Tables) -> Tensor:
    """The last part of each head, neighbours together, in fp32; by tables written out for it.

    One operator stands for the slices, products and the sum: ``cat(rest, (part32 * cos + crossed32 *
    sin).to(dtype))``.  Backward makes a whole tensor of each slice's gradient.
    """
    cos, sin = found
    dims, values = (*cos.dims[:-1], "p"), t.sizes.values
    wide = t.tensor(cos.name, dims, cos.width), t.tensor(sin.name, dims, sin.width)
    t.run("repeat_interleave", found, wide, (), ())
    y = t.tensor(x.name, x.dims, x.width, x.grad)
    y.layout = BY_HEAD
    part = y.coefficient // x.width // values[str(x.dims[-1])] * values["p"]
    working = max(part * x.width, 3 * FP32 * part - y.coefficient)
    whole = (y.coefficient, y.monomial)
    t.record("cat", (x, *wide), y, wide, ((x, NEW),), (working, y.monomial), whole)
    return y


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


# -- entries ---------------------------------------------------------------------------------------


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


def _compressed(t: Tape, c: Context, x: Tensor, narrow: Tensor, by: Compressor) -> tuple[Tensor, Tensor]:
    """Entries that each stand for several tokens, and which of them a query may not look at."""
    entries, named = _entries(t, c, x, "compressor", "d", by)
    if by.doubled:
        hidden = _chosen(t, c, x, narrow, by, entries.width)
    else:
        hidden = t.tensor("hidden entries", ("b", c.queries, by.windows), entries.width)
        t.run("new_zeros", (), (hidden,), (), (), (hidden.coefficient, hidden.monomial))
    t.use(*named, narrow)
    return entries, hidden


def _entries(
    t: Tape, c: Context, x: Tensor, role: str, width: str, by: Compressor, *, idle: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """Windows of tokens summed by softmaxed gates, normed, turned; what the code names until it returns."""
    o = c.options
    times = 2 if by.doubled else 1
    out: Dims = (times, width)
    made = [_linear(t, c, x, f"{role}.{name}", name, out, idle=idle) for name in ("kv", "gate")]
    kv, gate = made
    trained = o.base_trained and not idle
    bias = t.parameter(f"{role}.position_bias.weight", (by.tokens, *out), FP32, trained, inputs=len(out))
    windows = 1 if o.decode else by.windows  # of a single token no more than one closes
    chunk: Dims = ("b", windows, by.tokens, *out)
    kv, gate = op.piece(t, kv, "kv", chunk), op.piece(t, gate, "gate", chunk)
    gate = op.add_broadcast(t, gate, bias, "gate")
    named = [*made, gate]
    if by.doubled:  # each window with the other half of the one before: zeros, written to in two steps each
        window: Dims = ("b", windows, 2, by.tokens, width)
        kv, gate = (_overlapped(t, one, window) for one in (kv, gate))
        named += kv, gate
    gates = op.cast(t, op.softmax(t, gate, FP32), kv.width)
    product = op.mul(t, kv, gates, "entries", kv.dims)
    entries = t.tensor(
        "entries", ("b", by.windows, width), FP32 if t.autocast else product.width, product.grad
    )
    t.record("sum", (product,), entries, (), ((product, ALIAS),))
    entries = _own_norm(t, c, entries, f"{role}.kv_norm", trained=not idle)
    _frequencies(t)
    found = _made(t, ("b", windows, "p2"), entries.width)
    entries = _turned(t, op.reshaped(t, entries, "entries", ("b", windows, 1, width)), found)
    named += found
    if o.decode:
        old = t.cached_before("entries", ("b", by.windows, 1, width), entries.width)
        entries = join(t, (old, entries), "entries", old.dims)
        t.cache(entries)
    elif o.cache:  # and what is left over for the next window, which is a piece of all
        for one in (entries, *made):
            t.cache(one)
    return entries, named


def _linear(t: Tape, c: Context, x: Tensor, role: str, name: str, out: Dims, *, idle: bool) -> Tensor:
    """A linear layer; an ``idle`` one's weight, and its adapter's, get no gradient."""
    if not idle:
        return projection(t, c, x, role, name, out, ("h",))
    return op.linear(t, x, _idle(t, c, role, out, ("h",)), None, name, (*c.rows, *out))


def _idle(t: Tape, c: Context, role: str, out: Dims, wide: Dims, name: str = "") -> Parameter:
    """A linear layer's weight, which gets no gradient, and its adapter's."""
    w = t.parameter(f"{name or role}.weight", (*out, *wide), c.options.width, False, role=role)
    idle_adapter(t, c, c.names[role], out, wide)
    return w


def _own_norm(t: Tape, c: Context, x: Tensor, name: str, *, trained: bool) -> Tensor:
    with c.trained(trained):
        return norm(t, c, x, name, part="qk_norm")


def _overlapped(t: Tape, x: Tensor, dims: Dims) -> Tensor:
    out = t.tensor(x.name, dims, x.width, x.grad)
    whole = (2 * out.coefficient, out.monomial)
    return t.record("copy_", (x,), out, (), ((x, NEW),), None, whole)


# -- which entries ---------------------------------------------------------------------------------


def _chosen(t: Tape, c: Context, x: Tensor, narrow: Tensor, by: Compressor, width: int) -> Tensor:
    """The indexer's choice as a mask: said as one operator where order does not matter, for nothing stays.

    What comes and goes is told as no less than it is: of each token and entry, and of each token.
    """
    if t.ordered or t.autocast or c.options.cache:
        return _choice(t, c, x, narrow, by, width)
    before = len(t.parameters)
    _weights_of_indexer(t, c, by)
    weights = t.parameters[before:]
    longer = t.tensor("hidden entries", ("b", c.queries, f"{by.windows}1"), width)
    sizes, own = t.sizes, c.options.width
    for dims in (("b", c.queries, "itc"), ("b", by.windows), (c.queries, by.windows)):
        sizes.of(dims)  # which are met inside
    heads, size, turned = (sizes.values[name] for name in ("ih", "id", "p"))
    pairs = sizes.of(("b", c.queries, by.windows))[1]
    each = heads * size * (2 * own + 5 * FP32) + 16 * size * (own + FP32)
    each += heads * (own + 2 * FP32) + turned * (6 * own + 2 * FP32) + 32
    t.short = True
    t.written.append(
        Op(
            "indexer",
            t.part,
            t.module,
            (x, narrow),
            (longer,),
            (),
            (),
            (4 * FP32 * heads + FP32 * size + 64, pairs),
            None,
            None,
            (each, sizes.of(c.rows)[1]),
            spell=partial(_spelled, c, by, weights, sizes, t.half),
        )
    )
    return t.view(longer, "hidden entries", ("b", c.queries, by.windows))


def _weights_of_indexer(t: Tape, c: Context, by: Compressor) -> None:
    """What the indexer has of its own, in the order in which it is used."""
    for name in ("indexer.kv", "indexer.gate"):
        _idle(t, c, name, (2, "id"), ("h",))
    t.parameter("indexer.position_bias.weight", (by.tokens, 2, "id"), FP32, False, inputs=2)
    t.parameter("indexer.kv_norm.weight", ("id",), FP32, False, part="qk_norm")
    _frequencies(t)
    _idle(t, c, "indexer.q_b", ("ih", "id"), ("lq",))
    _idle(t, c, "indexer.weights", ("ih",), ("h",), "indexer.weights_proj")


def _spelled(
    c: Context, by: Compressor, weights: Sequence[Parameter], sizes: Sizes, half: str, short: Op
) -> list[Op]:
    """The indexer's operators."""
    (x, narrow), (longer,) = short.ins, short.outs
    t = Tape(longer.block, sizes, half=half, part=short.part, module=short.module, ordered=True)
    t.again = [*weights]
    made = _choice(t, c, x, narrow, by, longer.width)
    return spelled(short, t.written, [made.root])


def _choice(t: Tape, c: Context, x: Tensor, narrow: Tensor, by: Compressor, width: int) -> Tensor:
    """The same, operator by operator.

    A graph is made on the way, which leads nowhere: what it saves dies as the indexer returns.
    """
    graph = x.grad or c.options.base_trained
    x, narrow = without_gradient(t, x), without_gradient(t, narrow)
    chosen: Dims = ("b", c.queries, "itc")
    entries, named = _entries(t, c, x, "indexer", "id", by, idle=True)
    found = _made(t, (c.queries, "p2"), x.width)
    w = _idle(t, c, "indexer.q_b", ("ih", "id"), ("lq",))
    q = _turned(t, op.linear(t, narrow, w, None, "index query", (*c.rows, "ih", "id")), found)
    half = t.autocast or FP32
    q32, keys32 = op.cast(t, q, FP32), op.cast(t, entries, FP32)
    keys = op.cast(t, keys32, half)
    queries = op.cast(t, q32, half)
    if not c.options.one_sequence:
        queries = op.clone(t, queries)
        wide = t.tensor("index key", (*c.rows, "id", by.windows), half)
        t.run("clone", (keys,), (wide,), (), ())
        keys = wide
    scores = t.tensor("index scores", (*c.rows, "ih", by.windows), half)
    t.run("bmm", (queries, keys), (scores,), (), ())
    t.use(q32, keys32)
    positive = op.pointwise(t, "relu", scores, "index scores", saves="output")
    scaled = op.scale(t, positive)
    w = _idle(t, c, "indexer.weights", ("ih",), ("h",), "indexer.weights_proj")
    weights = op.scale(t, op.cast(t, op.linear(t, x, w, None, "weights", (*c.rows, "ih")), FP32))
    product = op.mul(t, scaled, weights, "index scores", scaled.dims)
    total = t.tensor("index scores", ("b", c.queries, by.windows), FP32)
    t.run("sum", (product,), (total,), (), ())
    future = t.tensor("later entries", (c.queries, by.windows), 1)
    t.run("ge", (), (future,), (), ())
    masked = t.tensor("index scores", total.dims, FP32)
    t.run("masked_fill", (total, future), (masked,), (), ())
    if graph:  # which refers to what its operators have saved
        t.use(queries, keys, positive, scaled, weights)
    values, at = t.tensor("highest scores", chosen, FP32), t.tensor("chosen entries", chosen, INT64)
    t.run("topk", (masked,), (values, at), (), ())
    invalid = t.tensor("not yet there", chosen, 1)
    t.run("ge", (at,), (invalid,), (), ())
    safe = t.tensor("chosen entries", chosen, INT64)
    t.run("where", (at, invalid), (safe,), (), (), (safe.coefficient, safe.monomial))
    t.use(*named, *found, q, entries, masked, future, at, invalid)
    valid = t.tensor("there", chosen, 1)
    t.run("ge", (safe,), (valid,), (), ())
    places = t.tensor("chosen entries", chosen, INT64)
    t.run("where", (valid, safe), (places,), (), (), (places.coefficient, places.monomial))
    longer = t.tensor("hidden entries", ("b", c.queries, f"{by.windows}1"), width)
    t.run("new_full", (), (longer,), (), ())
    t.run("scatter_", (places, longer), (), (), ())
    t.use(safe, valid, places)
    return t.view(longer, "hidden entries", ("b", c.queries, by.windows))
