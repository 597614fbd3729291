"""Linear layers, with the adapter beside them where there is one."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
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
    if shift is not None and c.model.bias_added:  # Falcon: a step of its own, which autocast leaves alone
        base = op.add_broadcast(t, op.linear(t, x, w, None, name, dims), shift, name)
    else:
        base = op.linear(t, x, w, shift, name, dims, "addmm" if bias else "mm")
    if o.lora is None or not adapted(c, called):
        return base
    lora = o.lora
    part, t.part = t.part, "adapter"
    width = WIDTHS[lora.adapter_format]
    down = t.parameter(f"{called}.lora_A", ("r", *wide), width, True, "row" if cut == "row" else "")
    up = t.parameter(f"{called}.lora_B", (*out, "r"), width, True, outward)
    own = op.cast(t, x, width)
    own = op.dropout(t, own, lora.dropout)
    inner = op.linear(t, own, down, None, "adapter, inner", (*rows, "r"))
    outer = op.linear(t, inner, up, None, "adapter, outer", dims)
    outer = op.scale(t, outer)
    total = op.add(t, base, outer, name)
    t.use(own)
    result = op.cast(t, total, base.width)
    t.use(total)
    t.part = part
    return result


def adapted(c: Context, called: str) -> bool:
    """Whether the scenario's adapters go on linear layers of this name."""
    lora = c.options.lora
    return lora is not None and ("all-linear" in lora.target_modules or called in lora.target_modules)
