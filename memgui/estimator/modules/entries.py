"""Entries of DeepSeek V4's attention, each of several tokens, and which of them a query looks at.

A compressor makes one of each few tokens (``csa``, whose indexer chooses among them for each query) or of
many (``hca``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from memgui.estimator import operators as op
from memgui.estimator.mixing import join
from memgui.estimator.modules.adapters import idle_adapter
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.indexer import without_gradient
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import matrix, projection
from memgui.estimator.modules.shorts import apart, plainly
from memgui.estimator.modules.turned import cosines_and_sines, frequencies, turned, working
from memgui.estimator.op import copy, spelled
from memgui.estimator.tape import ALIAS, BY_HEAD, NEW, Dims, Op, Parameter, Sizes, Tape, Tensor

FP32 = 4
INT64 = 8


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


def plainly_normed(t: Tape, c: Context, x: Tensor) -> bool:
    """Whether what is given ``x`` may be said in short, with norms whose weights alone are exact."""
    return plainly(t, c, x) and x.width < FP32 and c.model.norm == "rms_norm_exact" and not t.old


def compressed(t: Tape, c: Context, x: Tensor, narrow: Tensor, by: Compressor) -> tuple[Tensor, Tensor]:
    """Entries that each stand for several tokens, and which of them a query may not look at.

    Said as one operator where order does not matter, with what it saves.  ``each`` and ``behind`` are bytes
    of the rest, which comes and goes.  Forward they are told of each token, and no less than they are: the
    windows of a sequence have no more tokens than it has.
    """
    if not plainly_normed(t, c, x) or c.options.cache:
        return _written(t, c, x, narrow, by)
    first, width = len(t.listed), x.width
    kv_weight, gate_weight, bias, norm_weight = _weights_of_entries(t, c, by)
    linear: Dims = (*c.rows, *kv_weight.dims[:-1])
    elements, tokens = t.sizes.of(linear)
    each = made = 2 * width * elements  # kv and gate
    kept: tuple[Tensor, ...] = ()
    if by.doubled:
        kv = t.tensor("kv", ("b", by.windows, 2, by.tokens, "d"), width, True)
        whole, hidden, beside, more = _hidden(t, c, by, width)
        each += more
    else:
        kept = (t.tensor("kv", linear, width, True),)
        each -= kept[0].coefficient
        kv = t.view(kept[0], "kv", ("b", by.windows, *bias.dims))
        whole = hidden = t.tensor("hidden entries", ("b", c.queries, by.windows), width)
        beside = (hidden.coefficient, hidden.monomial)
    probabilities, gates = (t.tensor("probabilities", kv.dims, one, True) for one in (FP32, width))
    t.part = "qk_norm"
    x32, y = (t.tensor(name, ("b", by.windows, "d"), FP32, True) for name in ("entries", "normalised"))
    deviation = t.tensor("1/deviation", ("b", by.windows, 1), FP32, True)
    t.part = "attention"
    cos, sin = (t.tensor(f"rotary {name}", ("b", by.windows, "p"), width) for name in ("cos", "sin"))
    entries = t.tensor("entries", ("b", by.windows, 1, "d"), width, True)
    entries.layout = BY_HEAD
    gate, norm_behind = probabilities.coefficient, 10 * x32.coefficient + 2 * deviation.coefficient
    # Gates, doubled too, and the product; its sum, normed; squares and the result in fp32, means and what is
    # added to them; tables of half the width, first in fp32; what is turned.
    windows = (2 if by.doubled else 1) * gate + kv.coefficient + 2 * entries.coefficient
    windows += 2 * x32.coefficient + 2 * deviation.coefficient + working(t, entries)
    windows += cos.coefficient + 2 * FP32 * cos.coefficient // width
    each += -(-windows // t.sizes.values[by.tokens])
    # Of the product, of gates before they are cast and before softmax, which multiplies; where they are
    # doubled, of both halves; of each before it is in windows.
    behind = 3 * entries.coefficient + norm_behind + (2 if by.doubled else 1) * 3 * (gate + kv.coefficient)
    t.short = True
    t.written.append(
        Op(
            "entries",
            t.part,
            t.module,
            (x, narrow),
            (entries, whole, *kept, kv, probabilities, gates, x32, deviation, y, cos, sin),
            (
                *(kv_weight, x, gate_weight, x, probabilities, gates, kv),
                *(x32, deviation, deviation, x32, norm_weight, y, cos, sin),
            ),
            tuple([(one, NEW) for one in (norm_weight, bias, x, gate_weight, x, kv_weight)]),
            beside,
            (made, tokens),
            (behind, entries.monomial),
            (each, tokens),
            spell=partial(_spelled, c, by, t.listed[first:], t.sizes, t.half),
        )
    )
    return entries, hidden


def _weights_of_entries(t: Tape, c: Context, by: Compressor) -> tuple[Parameter, ...]:
    """What a compressor has of its own, in the order in which it is used."""
    times: Dims = (2 if by.doubled else 1, "d")
    kv, gate = (matrix(t, c, role, times, ("h",)) for role in ("compressor.kv", "compressor.gate"))
    bias = t.parameter("compressor.position_bias.weight", (by.tokens, *times), FP32, inputs=2)
    weight = t.parameter("compressor.kv_norm.weight", ("d",), FP32, part="qk_norm")
    frequencies(t)
    return kv, gate, bias, weight


def _spelled(
    c: Context, by: Compressor, weights: Sequence[Parameter], sizes: Sizes, half: str, short: Op
) -> list[Op]:
    """The operators of entries, and of the indexer."""
    x, narrow = short.ins
    t = apart(short, sizes, weights, half)
    entries, hidden = _written(t, copy(c), x, narrow, by)
    return spelled(short, t.written, [entries, hidden.root])


def _written(t: Tape, c: Context, x: Tensor, narrow: Tensor, by: Compressor) -> tuple[Tensor, Tensor]:
    """The same, operator by operator."""
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
    frequencies(t)
    found = cosines_and_sines(t, ("b", windows, "p2"), entries.width)
    entries = turned(t, op.reshaped(t, entries, "entries", ("b", windows, 1, width)), found)
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
    first = len(t.listed)
    longer, hidden, beside, each = _hidden(t, c, by, width)
    weights = t.listed[first:]
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
            beside,
            None,
            None,
            (each, t.sizes.of(c.rows)[1]),
            spell=partial(_spelled_indexer, c, by, weights, t.sizes, t.half),
        )
    )
    return hidden


def _hidden(t: Tape, c: Context, by: Compressor, width: int) -> tuple[Tensor, Tensor, tuple[int, int], int]:
    """What an indexer makes, and of it the mask.

    With bytes of what comes and goes: of each token and entry, and of each token.
    """
    _weights_of_indexer(t, c, by)
    longer = t.tensor("hidden entries", ("b", c.queries, f"{by.windows}1"), width)
    hidden = t.view(longer, "hidden entries", ("b", c.queries, by.windows))
    sizes, own = t.sizes, c.options.width
    for dims in (("b", c.queries, "itc"), ("b", by.windows), (c.queries, by.windows)):
        sizes.of(dims)  # which are met inside
    heads, size, turned = (sizes.values[name] for name in ("ih", "id", "p"))
    each = heads * size * (2 * own + 5 * FP32) + 16 * size * (own + FP32)
    each += heads * (own + 2 * FP32) + turned * (6 * own + 2 * FP32) + 32
    return longer, hidden, (4 * FP32 * heads + FP32 * size + 64, hidden.monomial), each


def _weights_of_indexer(t: Tape, c: Context, by: Compressor) -> None:
    """What the indexer has of its own, in the order in which it is used."""
    for name in ("indexer.kv", "indexer.gate"):
        _idle(t, c, name, (2, "id"), ("h",))
    t.parameter("indexer.position_bias.weight", (by.tokens, 2, "id"), FP32, False, inputs=2)
    t.parameter("indexer.kv_norm.weight", ("id",), FP32, False, part="qk_norm")
    frequencies(t)
    _idle(t, c, "indexer.q_b", ("ih", "id"), ("lq",))
    _idle(t, c, "indexer.weights", ("ih",), ("h",), "indexer.weights_proj")


def _spelled_indexer(
    c: Context, by: Compressor, weights: Sequence[Parameter], sizes: Sizes, half: str, short: Op
) -> list[Op]:
    """The indexer's operators."""
    (x, narrow), (longer,) = short.ins, short.outs
    t = apart(short, sizes, weights, half)
    made = _choice(t, copy(c), x, narrow, by, longer.width)
    return spelled(short, t.written, [made.root])


def _choice(t: Tape, c: Context, x: Tensor, narrow: Tensor, by: Compressor, width: int) -> Tensor:
    """The same, operator by operator.

    A graph is made on the way, which leads nowhere: what it saves dies as the indexer returns.
    """
    graph = x.grad or c.options.base_trained
    x, narrow = without_gradient(t, x), without_gradient(t, narrow)
    chosen: Dims = ("b", c.queries, "itc")
    entries, named = _entries(t, c, x, "indexer", "id", by, idle=True)
    found = cosines_and_sines(t, (c.queries, "p2"), x.width)
    w = _idle(t, c, "indexer.q_b", ("ih", "id"), ("lq",))
    q = turned(t, op.linear(t, narrow, w, None, "index query", (*c.rows, "ih", "id")), found)
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
