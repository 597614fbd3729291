"""Linear layers, with the adapter beside them where there is one."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import adapted, low_rank, scaled_input, scaled_output
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.frozen import LINEARS
from memgui.estimator.tape import Dims, Parameter, Tape, Tensor


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
    dims = x.dims[: -len(wide)] + out
    outward = cut if cut == "column" else ""
    w = t.parameter(f"{called}.weight", out + wide, o.width, o.base_trained, cut, role=role, inputs=len(wide))
    width = 2 if o.base == "awq" else o.width  # there a buffer, which nothing prepares
    shift = t.parameter(f"{called}.bias", out, width, o.base_trained, outward) if bias else None
    beside = o.trained in ("lora", "ia3")
    given = scaled_input(t, c, x, role, called, wide) if beside else x
    if o.base:
        y = LINEARS[o.base](t, c, given, w, shift, name, dims)
    elif c.model.bias_added:
        y = _turned_over(t, given, w, shift, name, dims)
    else:
        y = op.linear(t, given, w, shift, name, dims, "addmm" if bias else "mm")
    if not beside:
        return y
    # Names of a feed-forward mean the experts where PEFT wraps these, whatever else is called so.
    wrapped = "experts.down" in c.names
    if adapted(c, called) and not (
        wrapped and (role.startswith("mlp.") or called == c.names["experts.gate_up"])
    ):
        return low_rank(t, c, x, y, called, name, out, wide, cut, bias=shift)
    return scaled_output(t, c, y, role, called, out)


def matrix(t: Tape, c: Context, role: str, out: Dims, wide: Dims, cut: str = "column") -> Parameter:
    """The weight of such a layer alone."""
    o, name = c.options, c.names.get(role, role)
    return t.parameter(
        f"{name}.weight", out + wide, o.width, o.base_trained, cut, role=role, inputs=len(wide)
    )


def _turned_over(t: Tape, x: Tensor, w: Parameter, shift: Parameter | None, name: str, dims: Dims) -> Tensor:
    """Falcon: a product with the weight's transpose, whose copy autocast does not remember.

    The bias is a step of its own, which autocast leaves alone.
    """
    used = op.copy_of_weight(t, w, t.autocast or w.width)
    y = op.linear(t, x, used, None, name, dims)
    return y if shift is None else op.add_broadcast(t, y, shift, name)
