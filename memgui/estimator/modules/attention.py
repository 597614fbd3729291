"""Attention over heads: projections, rotary positions, and the implementation that computes it."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.tape import ALIAS, AMBIENT, Dims, Tape, Tensor


def attention(t: Tape, c: Context, x: Tensor, *, sliding: bool = False) -> Tensor:
    """Self-attention as transformers writes it, up to and with the output projection."""
    m, o = c.model, c.options
    t.part = "attention"
    heads: Dims = ("a", "d")
    shared: Dims = ("k", "d")
    bias = m.attention_bias
    if m.fused_qkv:
        q, k, v = _fused(t, c, x, heads, shared)
    else:
        q = projection(t, c, x, "attention.q", "q", heads, ("h",), bias=bias)
        if m.query_scaling:
            q = op.scale(t, q)
        if m.qk_norm == "head":
            q = norm(t, c, q, "q_norm", part="qk_norm")
        k = projection(t, c, x, "attention.k", "k", shared, ("h",), bias=bias)
        if m.qk_norm == "head":
            k = norm(t, c, k, "k_norm", part="qk_norm")
        v = projection(t, c, x, "attention.v", "v", shared, ("h",), bias=bias)
    if c.cos is not None and c.sin is not None:
        q, k = rotate(t, c, q), rotate(t, c, k)
    if o.cache:
        if sliding:
            counter(t, c)
        k, v = cached(t, c, k, sliding=sliding), cached(t, c, v, sliding=sliding)
    y = attend(t, c, q, k, v, sliding=sliding)
    y = projection(
        t, c, y, "attention.o", "output", ("h",), ("a", "d"), bias=m.attention_output_bias, cut="row"
    )
    t.use(q, k, v, x)
    return op.dropout(t, y, o.hidden_dropout)


def _fused(t: Tape, c: Context, x: Tensor, heads: Dims, shared: Dims) -> tuple[Tensor, Tensor, Tensor]:
    bias = c.model.attention_bias
    qkv = projection(t, c, x, "attention.qkv", "qkv", ("g", "d"), ("h",), bias=bias)
    q, k, v = op.split(t, qkv, ("q", "k", "v"), ((*c.rows, *heads), (*c.rows, *shared), (*c.rows, *shared)))
    return q, k, v


def rotate(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x * cos + rotate_half(x) * sin``."""
    assert c.cos is not None
    assert c.sin is not None
    straight = op.mul(t, x, c.cos, x.name, x.dims)
    crossed = op.mul(t, op.rotate_half(t, x), c.sin, x.name, x.dims)
    return op.add(t, straight, crossed, x.name)


def cached(t: Tape, c: Context, x: Tensor, *, sliding: bool) -> Tensor:
    """``cache.update``: the new keys or values are appended to those held, which makes a new tensor.

    After a prompt a window's layer still holds the whole prompt: the window is a view of it.
    """
    width = c.options.cache_width or x.width
    if not c.options.decode:
        out = t.tensor(x.name, x.dims, width, x.grad)
        t.record("cat", (x,), out, (), ((x, ALIAS),))
    else:
        old = t.cached_before(x.name, ("b", "tw1" if sliding else "t1", *x.dims[2:]), width)
        out = t.tensor(x.name, ("b", "tw" if sliding else "t", *x.dims[2:]), width)
        t.record("cat", (x, old), out, (), ())
    t.cache(out)
    return out


def counter(t: Tape, c: Context) -> None:
    """The window of a sliding layer, which its cache keeps as a tensor of 8 bytes."""
    if not c.options.decode:
        number = t.tensor("window", (), 8)
        t.run("tensor", (), (number,), (), ())
    else:
        number = t.tensor("window", (), 8, origin=AMBIENT)
    t.cache(number)
    if c.options.decode:
        t.replaced.append(number)
