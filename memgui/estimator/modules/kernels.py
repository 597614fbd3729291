"""How attention is computed: eager, or the kernel that PyTorch's SDPA takes on this device."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import NEW, Dims, Tape, Tensor

FP32 = 4


def attend(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, *, sliding: bool = False) -> Tensor:
    """Attention of ``q`` over ``k`` and ``v`` as one row per token, ready for the output projection."""
    o, m = c.options, c.model
    masked = o.masked or (sliding and o.windowed)
    grouped = m.num_key_value_heads != m.num_attention_heads
    if o.attention == "eager":
        return _eager(t, c, q, k, v, grouped=grouped)
    together = grouped and not masked and m.head_dim <= 256  # enable_gqa
    if grouped and not together and not o.decode:
        k, v = _repeat(t, c, k), _repeat(t, c, v)
    width = o.autocast or q.width
    backend = o.backend
    if backend == "auto":
        backend = choose(o.capability, width, o.half, m.head_dim, masked=masked, grouped=together)
    dims: Dims = (*c.rows, "a", "d")
    if backend in ("flash", "cudnn"):
        seed = 24 if backend == "flash" else 16
        return op.flash_attention(t, q, k, v, ("b", "a", c.queries), dims, seed)
    if backend == "efficient":
        mask = None
        if masked:
            mask = t.tensor("mask in every layer", ("b", c.queries, c.rounded(c.keys, 16)), width)
            t.record("mask", (c.mask,) if c.mask is not None else (), mask, (), ())
        return op.efficient_attention(t, q, k, v, mask, ("b", "a", c.rounded(c.queries, 32)), dims)
    return _math(t, c, q, k, v, grouped=together)


def choose(
    capability: tuple[int, int], width: int, half: str, head_dim: int, *, masked: bool, grouped: bool
) -> str:
    """The backend of ``scaled_dot_product_attention`` in PyTorch 2.13 on CUDA.

    Flash takes two-byte formats without a mask, head sizes to 256, from compute capability 8.0 on;
    the memory-efficient kernel takes no grouped heads, and bf16 from 8.0 on only; else math.
    """
    modern = capability >= (8, 0)
    if width == 2 and not masked and modern and head_dim <= 256:
        return "flash"
    aligned = head_dim % (8 if width == 2 else 4) == 0
    if not grouped and aligned and (modern or width == FP32 or half == "fp16"):
        return "efficient"
    return "math"


def _repeat(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``repeat_kv``: keys or values copied to every query head."""
    return op.clone(t, x, x.name, ("b", c.keys, "a", "d"))


def _eager(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, *, grouped: bool) -> Tensor:
    o, m = c.options, c.model
    heads: Dims = ("b", "a", c.queries, c.keys)
    full: Dims = ("b", c.keys, "a", "d")
    first = (lambda x: op.clone(t, x, x.name, full)) if grouped else (lambda x: x)
    key, value = first(k), first(v)
    scores = _scores(t, c, q, key, heads, copied=grouped)
    weights = op.scale(t, scores, "scores")
    if c.mask is not None:
        weights = op.add_broadcast(t, weights, c.mask, "scores")
    plain = not m.softmax_in_fp32
    probabilities = op.softmax(t, weights, 0 if plain else FP32)
    probabilities = op.cast(t, probabilities, v.width if plain else q.width)
    t.use(weights)
    probabilities = op.dropout(t, probabilities, o.attention_dropout)
    out = _weighted(t, c, probabilities, value, copied=grouped)
    t.use(key, value)
    t.hold(probabilities)
    return op.clone(t, out, "attention output")


def _scores(t: Tape, c: Context, q: Tensor, key: Tensor, dims: Dims, *, copied: bool) -> Tensor:
    """``q @ key.T``: operands that are transposed views are copied first."""
    width = c.options.autocast or q.width
    q, key = op.cast(t, q, width), op.cast(t, key, width)
    q = op.clone(t, q)
    if not copied:
        key = op.clone(t, key)
    return op.matmul(t, q, key, "scores", dims)


def _weighted(t: Tape, c: Context, probabilities: Tensor, value: Tensor, *, copied: bool) -> Tensor:
    width = c.options.autocast or value.width
    probabilities, value = op.cast(t, probabilities, width), op.cast(t, value, width)
    if not copied:
        value = op.clone(t, value)
    return op.matmul(t, probabilities, value, "attention output", (*c.rows, "a", "d"))


def _math(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, *, grouped: bool) -> Tensor:
    """SDPA's composite path: everything in fp32, the scores of every pair of tokens kept."""
    o = c.options
    heads: Dims = ("b", "a", c.queries, c.keys)
    full: Dims = ("b", c.keys, "a", "d")
    wanted = o.autocast or q.width
    q, k, v = (op.cast(t, x, wanted) for x in (q, k, v))
    q, k, v = (op.cast(t, x, FP32) for x in (q, k, v))
    if grouped:
        k, v = op.clone(t, k, "k", full), op.clone(t, v, "v", full)
    q = op.clone(t, op.scale(t, q))
    k = op.scale(t, k)
    if not grouped:
        k, v = op.clone(t, k), op.clone(t, v)
    out = t.tensor("scores", heads, FP32, q.grad or k.grad)
    saves = ((k,) if q.grad else ()) + ((q,) if k.grad else ())
    back = (((q, NEW),) if q.grad else ()) + (((k, NEW),) if k.grad else ())
    scores = t.record("bmm", (q, k), out, saves, back)
    probabilities = op.pointwise(t, "_safe_softmax", scores, "probabilities", saves="output")
    probabilities = op.dropout(t, probabilities, o.attention_dropout)
    saves = ((v,) if probabilities.grad else ()) + ((probabilities,) if v.grad else ())
    back = (((probabilities, NEW),) if probabilities.grad else ()) + (((v, NEW),) if v.grad else ())
    y = t.tensor("attention output", (*c.rows, "a", "d"), FP32, probabilities.grad or v.grad)
    t.record("bmm", (probabilities, v), y, saves, back)
    y = op.cast(t, y, wanted)
    return op.clone(t, y, "attention output")
