"""What a layer's cache makes of new keys or values: one appended to the other, written in place, packed."""

from __future__ import annotations

from memgui.estimator.modules.context import Context
from memgui.estimator.modules.reach import FULL, Reach
from memgui.estimator.tape import ALIAS, AMBIENT, BY_HEAD, MADE, NEW, Dims, Tape, Tensor
from memgui.estimator.tensor import promoted
from memgui.spec.formats import CACHE_FORMATS

INT64 = 8
SCALE = 2
"""Bytes of a scale of gpt-fast's int8 cache, one for each token and head."""


def cached(t: Tape, c: Context, x: Tensor, reach: Reach = FULL) -> Tensor:
    """``cache.update``: the new keys or values are appended to those held, which makes a new tensor.

    After a prompt a window's layer still holds the whole prompt: the window is a view of it.
    """
    o = c.options
    width = o.cache_width or x.width
    limited = reach.limited
    if o.static:
        return _written_in_place(t, c, x, width, limited=limited)
    if o.cache_format:
        return _packed(t, c, x)
    if not o.decode:
        out = t.tensor(x.name, x.dims, width, x.grad)
        t.record("cat", (x,), out, (), ((x, ALIAS),))
    else:
        before: Dims = ("b", "tw1" if limited else c.before, *x.dims[2:])
        old = t.cached_before(x.name, before, width, stays=o.tuples)
        out = t.tensor(x.name, ("b", "tw" if limited else c.keys, *x.dims[2:]), width)
        t.record("cat", (x, old), out, (), ())
    out.layout = BY_HEAD
    t.cache(out)
    return out


def joined(t: Tape, c: Context, x: Tensor, reach: Reach) -> Tensor:
    """The new keys or values behind those that a later run of the layer keeps: a tensor that is not kept."""
    out = t.tensor(x.name, ("b", "tw" if reach.limited else c.keys, *x.dims[2:]), x.width)
    t.record("cat", (x,), out, (), ())
    out.layout = BY_HEAD
    return out


def prefixed(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Prefix tuning: this layer's trained keys or values in front of those of the tokens, in a cache.

    They are joined in the wider of both formats.  Autograd keeps nothing for it.  The gradient of what is
    in front is a view of that of all of them.
    """
    assert c.prefix is not None
    before = t.view(c.prefix, x.name, ("b", "v", *x.dims[2:]))
    before.grad = True
    t.run("select", (c.prefix,), (before,), (), ((c.prefix, NEW),))
    width = promoted(before.width, x.width)
    out = t.tensor(x.name, ("b", c.keys, *x.dims[2:]), width, True)
    out.layout = BY_HEAD
    back = tuple([(one, ALIAS if one.width == width else NEW) for one in (before, x) if one.grad])
    t.record("cat", (before, x), out, (), back)
    t.cache(out)
    return out


def _written_in_place(t: Tape, c: Context, x: Tensor, width: int, *, limited: bool) -> Tensor:
    """A static cache: room for all tokens, which attention then looks over.

    A window's layer is given the whole prompt, as there is no room for it.
    """
    o = c.options
    there = o.decode or o.ahead
    origin = AMBIENT if there else MADE
    dims: Dims = ("b", "tw" if limited else c.keys, *x.dims[2:])
    held = t.tensor(x.name, dims, 1 if o.cache_format else width, origin=origin)
    all_held = [held]
    if o.cache_format:
        all_held.append(t.tensor(f"{x.name} scales", dims[:-1], SCALE, origin=origin))
    if not there:
        t.run("zeros", (), tuple(all_held), (), ())
    for one in all_held:
        t.cache(one)
        if there:
            t.replaced.append(one)
    t.run("index_copy_", (x, *all_held), (), (), ())
    if limited and not o.decode:
        return x
    if o.cache_format:
        held = t.tensor(x.name, dims, x.width)
        t.run("mul", tuple(all_held), (held,), (), ())
    held.layout = BY_HEAD
    return held


def _packed(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Transformers' QuantizedCache: the prompt packed, each further token plain until there are 128.

    To look over them all, those packed are unpacked, and all put into one tensor.
    """
    heads, size = c.sizes.count(x.dims[2:-1]), c.sizes.count(x.dims[-1:])
    width = CACHE_FORMATS[c.options.cache_format].bytes_for(heads, size)
    if not c.options.decode:
        packed = t.tensor(f"{x.name}, packed", ("b", c.keys), width)
        t.run("quantize", (x,), (packed,), (), ())
        t.cache(packed)
        return x
    packed = t.tensor(f"{x.name}, packed", ("b", "tq"), width, origin=AMBIENT)
    t.cache(packed)
    t.replaced.append(packed)
    unpacked = t.tensor(f"{x.name}, unpacked", ("b", "tq", *x.dims[2:]), x.width)
    t.run("dequantize", (packed,), (unpacked,), (), ())
    recent = t.cached_before(x.name, ("b", "tr1", *x.dims[2:]), x.width)
    out = t.tensor(x.name, ("b", c.keys, *x.dims[2:]), x.width)
    t.record("cat", (unpacked, recent, x), out, (), ())
    kept = t.tensor(x.name, ("b", "tr", *x.dims[2:]), x.width)
    t.record("cat", (recent, x), kept, (), ())
    t.use(unpacked)  # until update() returns
    t.cache(kept)
    out.layout = BY_HEAD
    return out


def counter(t: Tape, c: Context) -> None:
    """The window of a sliding layer, which its cache keeps as a tensor of 8 bytes."""
    if not c.options.decode:
        number = t.tensor("window", (), INT64)
        t.run("tensor", (), (number,), (), ())
    else:
        number = t.tensor("window", (), INT64, origin=AMBIENT)
    t.cache(number)
    if c.options.decode:
        t.replaced.append(number)
