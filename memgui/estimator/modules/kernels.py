"""How attention is computed: the kernel that PyTorch's SDPA takes on this device, or eager."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.eager import eager
from memgui.estimator.modules.heads import batched, every_head
from memgui.estimator.modules.ranks import in_ring
from memgui.estimator.modules.reach import (
    FLASH_2,
    FLEX,
    Reach,
    aligned_mask,
    biased_mask,
    converted_mask,
    is_masked,
    spread_mask,
)
from memgui.estimator.tape import ALIAS, BY_HEAD, NEW, Dims, Tape, Tensor

FP32 = 4
HALF = 2
INT64 = 8


def attend(
    t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, reach: Reach, own_mask: Tensor | None = None
) -> Tensor:
    """Attention of ``q`` over ``k`` and ``v`` as one row per token, ready for the output projection.

    ``own_mask`` is the layer's mask where it is not that of all layers with this reach.
    """
    with t.within("core_attn"):
        return _attend(t, c, q, k, v, reach, own_mask)


def _attend(
    t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, reach: Reach, own_mask: Tensor | None
) -> Tensor:
    o, m = c.options, c.model
    given = c.masks.get(reach.name) if own_mask is None else own_mask
    if o.attention == "eager":
        return eager(t, c, q, k, v, given)
    if o.attention == FLASH_2 and o.split.context == 1:
        return _flash_2(t, c, q, k, v)
    if o.attention == FLEX:
        return _flex(t, c, q, k, v)
    masked = is_masked(c, reach)
    sizes = c.sizes.values
    width, value_width = sizes[str(q.dims[-1])], sizes[str(v.dims[-1])]
    grouped = sizes[str(k.dims[-2])] != sizes[str(q.dims[-2])]
    together = grouped and m.repeats_key_values and not masked and width == value_width <= 256  # enable_gqa
    together = together and (o.groups or o.backend != "efficient")
    if grouped and m.repeats_key_values and not together:
        if o.ahead or not o.decode:  # where the one query token is given with its heads in place of tokens
            k, v = every_head(t, c, k), every_head(t, c, v)
        grouped = False
    backend = o.backend
    if backend == "auto":
        backend = choose(
            o.capability,
            o.autocast or q.width,
            o.half,
            (width, value_width),
            masked=masked,
            grouped=grouped,
            together=together or (o.groups and sizes[str(k.dims[-2])] == 1),
            groups=o.groups,
        )
    dims: Dims = (*c.rows, "a", v.dims[-1])
    if o.split.context > 1:  # PyTorch's context_parallel gathers keys and values of all ranks
        return in_ring(t, c, q, k, v, ("b", "sa", 2), inside_flash(t, c, q, k))
    if backend in ("flash", "cudnn"):
        inner = inside_flash(t, c, q, k, copied=q.layout == BY_HEAD) if backend == "flash" else None
        seed = 24 if backend == "flash" else 16
        y = op.flash_attention(t, q, k, v, ("b", "a", c.queries), dims, seed, inner)
        return op.clone(t, y) if q.layout == BY_HEAD else y  # its output lies as the queries do
    if backend == "efficient":
        return _efficient(t, c, q, k, v, given, masked=masked)
    y = _math(t, c, q, k, v, given, together=together, masked=masked)
    if o.ahead:  # whose code names what it repeats
        t.use(k, v)
    return y


def _efficient(
    t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, given: Tensor | None, *, masked: bool
) -> Tensor:
    """The memory-efficient kernel; who calls it refers to a mask until it returns.

    The one made of a boolean mask gives way to its aligned copy before.
    """
    dims: Dims = (*c.rows, "a", v.dims[-1])
    rows: Dims = ("b", "a", c.rounded(c.queries, 32))
    if not masked:
        return op.efficient_attention(t, q, k, v, None, rows, dims, _inside_efficient(t, c, q, k))
    given = biased_mask(t, c, given)
    mask = converted_mask(t, c, given, c.options.autocast or q.width)
    y = op.efficient_attention(
        t, q, k, v, aligned_mask(t, c, mask), rows, dims, _inside_efficient(t, c, q, k)
    )
    if given is not None and given.width > 1:
        t.use(given, mask)
    return y


def _flash_2(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The flash-attn package: takes grouped heads as they are; its random state is two numbers of 8 bytes.

    Where a mask says that there is padding, Transformers takes the tokens out that are none, and puts
    them back among zeros; here every token is one.
    """
    o = c.options
    wide: Dims = (*c.rows, "a", v.dims[-1])
    wanted = o.autocast or (q.width if q.width == HALF else o.compute)
    q, k, v = (op.cast(t, x, wanted) for x in (q, k, v))
    inner = inside_flash(t, c, q, k)
    rows: Dims = ("b", "a", c.queries)
    if not o.masked:
        y = op.flash_attention(t, q, k, v, rows, wide, 16, inner)
        return op.clone(t, y) if q.layout == BY_HEAD else y
    at = t.tensor("tokens that are no padding", c.rows, INT64)
    t.run("nonzero", (), (at,), (), ())
    q, k, v = (op.index(t, _by_token(t, x), at, x.name, x.dims) for x in (q, k, v))
    y = op.flash_attention(t, q, k, v, rows, wide, 16, inner)
    out = t.tensor("attention output", wide, y.width, y.grad)
    return t.record("index_put", (y, at), out, (at,) if y.grad else (), ((y, NEW),))


def _flex(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """FlexAttention, compiled: as flash without a seed; backward takes one sum for each row first."""
    coefficient, monomial = t.sizes.of(("b", c.queries, "a"))
    sums = (FP32 * coefficient, monomial) if q.grad or k.grad else None
    return op.flash_attention(t, q, k, v, ("b", "a", c.queries), (*c.rows, "a", v.dims[-1]), 0, sums)


def _by_token(t: Tape, x: Tensor) -> Tensor:
    return op.clone(t, x) if x.layout == BY_HEAD else x


def inside_flash(
    t: Tape, c: Context, q: Tensor, k: Tensor, *, copied: bool = False
) -> tuple[int, int] | None:
    """What the flash kernel's backward allocates: the queries' gradient in fp32, sums for each row.

    Gradients of grouped keys and values are made for every head first.  ``copied``: PyTorch puts the
    output in order by tokens.
    """
    if not (q.grad or k.grad) or not c.options.training:
        return None
    sizes = c.sizes.values
    heads, shared, width = sizes["a"], sizes[str(k.dims[-2])], sizes[str(q.dims[-1])]
    step = 32 if width <= 128 else 64
    each = FP32 * (-(-width // step) * step + 1)
    each += 2 * q.width * width if heads != shared else 0
    each += q.width * width if copied else 0
    coefficient, monomial = t.sizes.of(("b", c.rounded(c.queries, 128), "a"))
    return each * coefficient, monomial


def _inside_efficient(t: Tape, c: Context, q: Tensor, k: Tensor) -> tuple[int, int] | None:
    """What the memory-efficient kernel's backward allocates: the queries' gradient in fp32, block by block.

    Beside it a sum for each row, and where heads share keys and values (PyTorch 2.14) their gradients
    for every head, which are summed after.  Accumulators of keys and values (heads wider than 64) are
    left out: they are held to 200 blocks in all.
    """
    if not q.grad or not c.options.training:
        return None
    chip, width = c.options.capability, c.sizes.values[str(q.dims[-1])]
    small = width <= 64 or (chip in ((8, 6), (8, 9)) and width > 96) or chip < (8, 0) or width > 128
    step = 64 if small else 128
    each = FP32 * (-(-width // step) * step + 1)
    if c.sizes.values[str(k.dims[-2])] != c.sizes.values["a"]:
        each += 2 * (c.options.autocast or q.width) * width
    coefficient, monomial = t.sizes.of(("b", c.rounded(c.queries, step), "a"))
    return each * coefficient, monomial


def choose(
    capability: tuple[int, int],
    width: int,
    half: str,
    head_dims: tuple[int, int],
    *,
    masked: bool,
    grouped: bool,
    together: bool,
    groups: bool = False,
) -> str:
    """The backend of ``scaled_dot_product_attention`` in PyTorch 2.13 on CUDA, or in 2.14 (``groups``).

    Flash takes two-byte formats without a mask, heads (``head_dims`` of keys and of values) to 256
    and as wide for values as for keys, from compute capability 8.0 on; the memory-efficient kernel
    takes bf16 from 8.0 on only, and ``grouped`` heads since 2.14; else math.  No kernel spreads one
    head over several unless it is told to (``together``); since 2.14 a single one is.
    """
    modern = capability >= (8, 0)
    keys, values = head_dims
    if grouped and not together:
        return "math"
    if width == 2 and not masked and modern and keys == values <= 256:
        return "flash"
    step = 8 if width == 2 else 4
    aligned = keys % step == 0 and values % step == 0
    if (groups or not grouped) and aligned and (modern or width == FP32 or half == "fp16"):
        return "efficient"
    return "math"


def _masked(t: Tape, scores: Tensor, mask: Tensor) -> Tensor:
    """The mask added in place; one that is learned gets a gradient in its own format."""
    out = t.view(scores, "scores", scores.dims)
    out.grad = scores.grad or mask.grad
    back = ((scores, ALIAS),) if scores.grad else ()
    if mask.grad:
        back = (*back, (mask, ALIAS if mask.width == scores.width else NEW))
    t.run("add_", (scores, mask), (out,), (), back)
    return out


def _math(
    t: Tape,
    c: Context,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    given: Tensor | None,
    *,
    together: bool,
    masked: bool,
) -> Tensor:
    """SDPA's composite path: everything in fp32, the scores of every pair of tokens kept."""
    o = c.options
    wanted = o.autocast or q.width
    v, k, q = (op.cast(t, x, wanted) for x in (v, k, q))
    mask = None
    if masked:
        mask = spread_mask(t, c, converted_mask(t, c, biased_mask(t, c, given), wanted))
    q, k, v = named = [op.cast(t, x, FP32) for x in (q, k, v)]
    if mask is None and c.causal and not o.decode:
        mask = t.tensor("causal mask", (c.queries, c.keys), FP32)
        t.run("where", (), (mask,), (), ())
    if together:
        k, v = (op.clone(t, x, x.name, ("b", c.keys, "a", x.dims[-1]), BY_HEAD) for x in (k, v))
        named += k, v
    q = op.scale(t, q)
    named.append(q)
    q = batched(t, c, q)
    k = batched(t, c, op.scale(t, k))
    out = t.tensor("scores", ("b", "a", c.queries, c.keys), FP32, q.grad or k.grad)
    scores = t.record("bmm", (q, k), out, *op.product(q, k))
    if mask is not None:
        scores = _masked(t, scores, mask)
    probabilities = op.pointwise(t, "_safe_softmax", scores, "probabilities", saves="output")
    probabilities = op.dropout(t, probabilities, o.attention_dropout)
    v = batched(t, c, v)
    y = t.tensor("attention output", (*c.rows, "a", v.dims[-1]), FP32, probabilities.grad or v.grad)
    t.record("bmm", (probabilities, v), y, *op.product(probabilities, v))
    t.use(*named, *(() if mask is None else (mask,)))
    return op.clone(t, op.cast(t, y, wanted), "attention output")
