"""Rotary positions of DeepSeek V4: tables with an entry for each pair, and heads turned by them."""

from __future__ import annotations

from memgui.estimator.modules.context import Context
from memgui.estimator.tape import BY_HEAD, NEW, Dims, Tape, Tensor

FP32 = 4
INT64 = 8
MAIN, COMPRESSED = "main", "compressed"
"""Rotary tables: of layers with a window alone, and of the others."""

Tables = tuple[Tensor, ...]


def tables(t: Tape, c: Context, width: int) -> None:
    """Both kinds of rotary tables, one entry for each pair; experts by token id where layers look them up."""
    m = c.model
    if m.num_hash_layers:  # which have no balance, as the routers of others do
        size = INT64 * m.vocab_size * m.num_experts_per_tok - FP32 * m.num_experts
        t.buffer("tid2eid", (min(m.num_hash_layers, m.num_hidden_layers), max(size, 0)), 1)
    frequencies(t)
    for name in (MAIN, COMPRESSED):
        c.rotary[name] = found = cosines_and_sines(t, (c.queries, "p2"), width)
        t.hand_out(*found)


def frequencies(t: Tape) -> None:
    """Of both kinds, each with a copy from which scaling starts."""
    t.buffer("inv_freq", (4, "p2"), FP32)


def cosines_and_sines(t: Tape, dims: Dims, width: int) -> Tables:
    """Cosines and sines, made in fp32."""
    found = tuple([t.tensor(f"rotary {name}", dims, width) for name in ("cos", "sin")])
    size = FP32 * found[0].coefficient // width
    t.run("cos", (), found, (), (), (2 * size, found[0].monomial))
    return found


def turned_back(t: Tape, found: Tables) -> Tables:
    """Tables that turn back."""
    cos, sin = found
    negative = t.tensor(sin.name, sin.dims, sin.width)
    t.run("neg", (sin,), (negative,), (), ())
    return cos, negative


def turned(t: Tape, x: Tensor, found: Tables) -> Tensor:
    """The last part of each head, neighbours together, in fp32; by tables written out for it.

    One operator stands for the slices, products and the sum: ``cat(rest, (part32 * cos + crossed32 *
    sin).to(dtype))``.  Backward makes a whole tensor of each slice's gradient.
    """
    cos, sin = found
    dims = (*cos.dims[:-1], "p")
    wide = t.tensor(cos.name, dims, cos.width), t.tensor(sin.name, dims, sin.width)
    t.run("repeat_interleave", found, wide, (), ())
    y = t.tensor(x.name, x.dims, x.width, x.grad)
    y.layout = BY_HEAD
    whole = (y.coefficient, y.monomial)
    t.record("cat", (x, *wide), y, wide, ((x, NEW),), (working(t, y), y.monomial), whole)
    return y


def working(t: Tape, y: Tensor) -> int:
    """Bytes of what is there for a moment while ``y`` is made of heads that are turned."""
    values = t.sizes.values
    part = y.coefficient // y.width // values[str(y.dims[-1])] * values["p"]
    return max(part * y.width, 3 * FP32 * part - y.coefficient)
