"""Adapters beside frozen layers, as PEFT 0.21 writes them: low-rank, weight-decomposed, (IA)³.

Low-rank adapters attach to layers by name, (IA)³ to keys, values and the feed-forward's last layer.
Widths are tuples of factors, as in :mod:`memgui.estimator.modules.projection`.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.names import SCALED, USUALLY_SCALED
from memgui.estimator.options import WIDTHS, Options
from memgui.estimator.tape import ALIAS, NEW, Dims, Parameter, Tape, Tensor
from memgui.estimator.tensor import OTHER_HALF, promoted

FP32 = 4

LEAVE_CASTS = ("4bit", "int8", "awq", "hqq")
"""Bases beside which PEFT's own layers leave casts to autocast where that is on."""


def width_of(options: Options) -> int:
    """Bytes per element of low-rank adapters."""
    if options.lora is None:
        return 0
    called = options.lora.adapter_format
    width = WIDTHS[called]
    return OTHER_HALF if options.autocast and width == 2 and called != options.half else width


def adapted(c: Context, called: str) -> bool:
    """Whether the scenario's low-rank adapters go on layers of this name."""
    lora = c.options.lora
    if lora is None:
        return False
    everywhere = "all-linear" in lora.target_modules and called not in (
        c.names["embedding"],
        c.names["head"],
    )
    return everywhere or called in lora.target_modules


def kept(c: Context, called: str) -> bool:
    """Whether the layer of this name is trained as a copy of its own (``modules_to_save``)."""
    lora = c.options.lora
    if lora is None or not lora.modules_to_save:
        return False
    stands = {c.names["embedding"]: "embed_tokens", c.names["head"]: "lm_head"}  # Llama's names
    return called in lora.modules_to_save or stands.get(called) in lora.modules_to_save


def low_rank(
    t: Tape,
    c: Context,
    x: Tensor,
    base: Tensor,
    called: str,
    name: str,
    out: Dims,
    wide: Dims,
    cut: str,
    *,
    bias: Parameter | None = None,
) -> Tensor:
    """``base + scaling * B(A(dropout(x)))``.

    Beside a bitsandbytes layer PEFT copies the 4-bit result first, leaves casts to autocast where that
    is on, and casts its own result before the sum (AWQ: before it is scaled); else after it.  Its input
    is an argument of the call.  ``bias``: what ``base`` has in it besides the product.
    """
    result = _low_rank(t, c, x, base, called, name, out, wide, cut, bias)
    t.use(x)
    return result


def idle_adapter(t: Tape, c: Context, called: str, out: Dims, wide: Dims) -> None:
    """Matrices that PEFT makes beside a layer whose weight the model's code takes without calling it."""
    if not adapted(c, called):
        return
    part, t.part = t.part, "adapter"
    width = width_of(c.options)
    t.parameter(f"{called}.lora_A", ("r", *wide), width, False, inputs=len(wide))
    t.parameter(f"{called}.lora_B", (*out, "r"), width, False)
    t.part = part


def _low_rank(
    t: Tape,
    c: Context,
    x: Tensor,
    base: Tensor,
    called: str,
    name: str,
    out: Dims,
    wide: Dims,
    cut: str,
    bias: Parameter | None,
) -> Tensor:
    o, lora = c.options, c.options.lora
    assert lora is not None
    rows = x.dims[: len(x.dims) - len(wide)]
    packed = o.base in ("4bit", "int8", "awq")
    casts = not (t.autocast and o.base in LEAVE_CASTS)
    if o.base == "4bit":
        base = op.clone(t, base)
    part, t.part = t.part, "adapter"
    width = width_of(o)
    outward = cut if cut == "column" else ""
    inward = "row" if cut == "row" else ""
    trained = lora.variant != "lora_fa"
    down = t.parameter(f"{called}.lora_A", ("r", *wide), width, trained, inward, inputs=len(wide))
    up = t.parameter(f"{called}.lora_B", (*out, "r"), width, lora.variant != "mica", outward)
    own = op.cast(t, x, width) if casts else x
    dropped = op.dropout(t, own, lora.dropout)
    dims = (*rows, *out)
    if lora.variant == "dora":
        total = _decomposed(t, c, dropped, base, down, up, called, name, (out, wide), dropped is own, bias)
        if packed and t.autocast:
            t.part = part
            return total
    else:
        inner = op.linear(t, dropped, down, None, "adapter, inner", (*rows, "r"))
        if dropped is not own:
            t.use(dropped)
        outer = op.linear(t, inner, up, None, "adapter, outer", dims)
        if o.base == "awq" and casts:
            outer = op.cast(t, outer, base.width)
        outer = op.scale(t, outer)
        if packed and casts:
            outer = op.cast(t, outer, base.width)
        total = op.add(t, base, outer, name)
        if packed or not casts:
            t.use(own)
            t.part = part
            return total
    result = op.cast(t, total, base.width)
    t.use(total, own)
    t.part = part
    return result


def _decomposed(
    t: Tape,
    c: Context,
    x: Tensor,
    base: Tensor,
    down: Parameter,
    up: Parameter,
    called: str,
    name: str,
    shape: tuple[Dims, Dims],
    reuses_base: bool,
    bias: Parameter | None,
) -> Tensor:
    """DoRA: the norms of ``W + scaling * B @ A`` are computed anew, by sending an identity through A and B.

    All of that is alive until the adapter returns, but for the graph behind the product where nothing is
    kept.  With dropout the base's product is computed again
    from the dropped input and a copy of the weight, which autograd then keeps.
    """
    out, wide = shape
    width = x.width
    dims = (*x.dims[: len(x.dims) - len(wide)], *out)
    magnitude = t.parameter(f"{called}.lora_magnitude_vector", out, down.width, inputs=len(out))
    identity = t.tensor("identity", (*wide, *wide), down.width)
    t.run("eye", (), (identity,), (), ())
    half = t.autocast or down.width
    seen = op.cast(t, identity, half)
    through = t.tensor("A of identity", (*wide, "r"), half)
    t.run("mm", (seen, op.weight(t, down, half)), (through,), (), ())
    product = t.tensor("B @ A", (*wide, *out), half)
    t.run("mm", (through, op.weight(t, up, half)), (product,), (), ())
    t.use(identity)
    t.cut_off(seen, through)
    update = op.cast(t, product, width)
    weight = _unpacked(t, c, (*out, *wide), width)
    scaled = op.scale(t, update)
    total = t.tensor("weight and update", (*out, *wide), width)
    t.run("add", (weight, scaled) if weight is not None else (scaled,), (total,), (), ())
    norms = t.tensor("column norms", out, width)
    t.run("linalg_vector_norm", (total,), (norms,), (), ())
    ratio = t.tensor("magnitude / norm", out, promoted(width, magnitude.width), True)
    t.record("div", (magnitude, norms), ratio, (norms,), ((magnitude, NEW),))
    inner = op.linear(t, x, down, None, "adapter, inner", (*dims[: len(dims) - len(out)], "r"))
    outer = op.linear(t, inner, up, None, "adapter, outer", dims)
    again = base
    if not reuses_base:
        again = t.tensor("base, dropped", dims, t.autocast or width, x.grad)
        copies = (weight,) if weight is not None else ()
        t.record("mm", (x, *copies), again, copies, ((x, NEW),))
    elif bias is not None:  # autocast leaves differences alone: an fp32 bias makes them fp32
        again = t.tensor("base without bias", dims, promoted(base.width, bias.width), base.grad)
        t.record("sub", (base,), again, (), ((base, ALIAS if again.width == base.width else NEW),))
    less = op.shift(t, ratio)
    straight = op.mul(t, again, less, "base, rescaled", dims)
    crossed = op.scale(t, op.mul(t, outer, ratio, "adapter, rescaled", dims))
    extra = op.add(t, straight, crossed, name)
    t.use(x, again, seen, through, update, outer, *((weight,) if weight is not None else ()))
    result = op.add(t, base, extra, name)
    t.use(extra)
    return result


def _unpacked(t: Tape, c: Context, dims: Dims, width: int) -> Tensor | None:
    """The base's weight in ``width``: nothing new where it has that width already."""
    o = c.options
    if not o.base and o.width == width:
        return None
    weight = t.tensor("weight, copied", dims, 2 if o.base else width)
    t.run("dequantize" if o.base else "_to_copy", (), (weight,), (), ())
    return op.cast(t, weight, width)


SCALED_BEFORE = ("mlp.down", "attention.o")
"""Layers whose inputs (IA)³ scales; of others it scales the results."""


def _scaled(c: Context, role: str) -> bool:
    """Whether (IA)³ is trained and scales layers of this role."""
    return c.options.trained == "ia3" and role in SCALED.get(c.model.model_type, USUALLY_SCALED)


def scaled_input(t: Tape, c: Context, x: Tensor, role: str, called: str, wide: Dims) -> Tensor:
    """(IA)³ before a linear layer: ``(x.to(fp32) * l).to(dtype)``."""
    if not _scaled(c, role) or role not in SCALED_BEFORE:
        return x
    part, t.part = t.part, "adapter"
    factor = op.scale(t, t.parameter(f"{called}.ia3_l", (1, *wide), FP32, inputs=len(wide)))
    own = op.cast(t, x, FP32)
    scaled = op.mul(t, own, factor, x.name, x.dims)
    y = op.cast(t, scaled, x.width)
    t.part = part
    t.use(own)
    return y


def scaled_output(t: Tape, c: Context, y: Tensor, role: str, called: str, out: Dims) -> Tensor:
    """(IA)³ after a linear layer: ``(y * l).to(dtype)``."""
    if not _scaled(c, role) or role in SCALED_BEFORE:
        return y
    part, t.part = t.part, "adapter"
    factor = op.scale(t, t.parameter(f"{called}.ia3_l", (*out, 1), FP32))
    scaled = op.mul(t, y, factor, y.name, y.dims)
    result = op.cast(t, scaled, y.width)
    t.use(scaled)
    t.part = part
    return result


def embedded(t: Tape, c: Context, ids: Tensor, base: Tensor, called: str, narrow: str) -> Tensor:
    """``base + scaling * (A.T[ids] @ B.T)``: a low-rank adapter on an embedding."""
    lora = c.options.lora
    assert lora is not None
    part, t.part = t.part, "adapter"
    width = width_of(c.options)
    table = t.parameter(
        f"{called}.lora_embedding_A", ("r", "V"), width, lora.variant != "lora_fa", "vocabulary"
    )
    up = t.parameter(f"{called}.lora_embedding_B", (narrow, "r"), width, lora.variant != "mica")
    inner = op.embedding(t, ids, table, "adapter, inner", (*ids.dims, "r"))
    outer = op.scale(t, op.linear(t, inner, up, None, "adapter, outer", base.dims))
    total = op.add(t, base, outer, base.name)
    result = op.cast(t, total, base.width)
    t.use(total)
    t.part = part
    return result
