"""Linear layers, with the adapter beside them where there is one."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.frozen import LINEARS
from memgui.estimator.options import WIDTHS
from memgui.estimator.tape import Dims, Tape, Tensor


def projection(
    t: Tape,
    c: Context,
    x: Tensor,
    role: str,
    name: str,
    out: Dims,
    wide: Dims,
    *,
    bias: bool = False,
    cut: str = "column",
) -> Tensor:
    """A linear layer from width ``wide`` to width ``out``; ``role`` finds its name for adapters.

    Widths are tuples of factors: ``("a", "d")`` is heads times head size.  ``cut`` is how tensor
    parallelism splits the weight: by ``column`` (its outputs) or ``row``.
    """
    o = c.options
    called = c.names.get(role, role)
    rows = x.dims[: -len(wide)]
    dims = (*rows, *out)
    outward = cut if cut == "column" else ""
    w = t.parameter(
        f"{called}.weight", (*out, *wide), o.width, o.base_trained, cut, role=role, inputs=len(wide)
    )
    shift = t.parameter(f"{called}.bias", out, o.width, o.base_trained, outward) if bias else None
    if o.base:
        base = LINEARS[o.base](t, c, x, w, shift, name, dims)
    elif shift is not None and c.model.bias_added:  # Falcon: a step of its own, which autocast leaves alone
        base = op.add_broadcast(t, op.linear(t, x, w, None, name, dims), shift, name)
    else:
        base = op.linear(t, x, w, shift, name, dims, "addmm" if bias else "mm")
    if o.lora is None or not adapted(c, called) or ("experts.down" in c.names and role.startswith("mlp.")):
        return base  # names of a feed-forward mean the experts where PEFT wraps these
    return _adapter(t, c, x, base, called, name, out, wide, cut)


def _adapter(
    t: Tape,
    c: Context,
    x: Tensor,
    base: Tensor,
    called: str,
    name: str,
    out: Dims,
    wide: Dims,
    cut: str,
) -> Tensor:
    """``base + scaling * B(A(dropout(x)))`` as PEFT writes it.

    Beside a bitsandbytes layer it copies the 4-bit result first, leaves casts to autocast where that is
    on, and casts its own result before the sum; else after it.
    """
    o, lora = c.options, c.options.lora
    assert lora is not None
    rows = x.dims[: -len(wide)]
    dims = (*rows, *out)
    outward = cut if cut == "column" else ""
    packed = o.base in ("4bit", "int8")
    if o.base == "4bit":
        base = op.clone(t, base)
    part, t.part = t.part, "adapter"
    width = WIDTHS[lora.adapter_format]
    down = t.parameter(f"{called}.lora_A", ("r", *wide), width, True, "row" if cut == "row" else "")
    up = t.parameter(f"{called}.lora_B", (*out, "r"), width, True, outward)
    own = x if packed and t.autocast else op.cast(t, x, width)
    own = op.dropout(t, own, lora.dropout)
    inner = op.linear(t, own, down, None, "adapter, inner", (*rows, "r"))
    outer = op.linear(t, inner, up, None, "adapter, outer", dims)
    outer = op.scale(t, outer)
    if packed and not t.autocast:
        outer = op.cast(t, outer, base.width)
    total = op.add(t, base, outer, name)
    t.use(own)
    if packed:
        t.part = part
        return total
    result = op.cast(t, total, base.width)
    t.use(total)
    t.part = part
    return result


def adapted(c: Context, called: str) -> bool:
    """Whether the scenario's adapters go on linear layers of this name."""
    lora = c.options.lora
    return lora is not None and ("all-linear" in lora.target_modules or called in lora.target_modules)
