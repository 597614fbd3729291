"""Linear layers whose weights tensor parallel ranks share, as Megatron-LM and Transformer Engine run them."""

from __future__ import annotations

from memgui.estimator.modules.context import Context
from memgui.estimator.modules.fp8 import quantised, weight_copies
from memgui.estimator.modules.ranks import leave
from memgui.estimator.tape import NEW, Back, Dims, Parameter, Tape, Tensor

HALF = 2


def column(
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
    weight: Parameter | None = None,
) -> Tensor:
    """A layer split by its outputs, of all tokens; with sequence parallelism it gathers them both ways.

    The head (``cut`` = ``vocabulary``) is not computed in fp8.
    """
    o = c.options
    called = c.names.get(role, role)
    w = weight or t.parameter(
        f"{called}.weight", (*out, *wide), o.width, o.base_trained, cut, role=role, inputs=len(wide)
    )
    if bias:
        t.parameter(f"{called}.bias", out, o.width, o.base_trained, cut)
    grad = x.grad or w.grad
    kept: tuple[Tensor, ...] = (x,)
    used = x
    if o.fp8 and cut != "vocabulary":
        used, kept = quantised(t, c, x)
        weight_copies(t, c, w)
    rows = c.rows
    again: tuple[int, int] | None = None
    if o.split.sequence:
        gathered = t.tensor("gathered tokens", (*rows, *wide), used.width)
        t.run("all_gather_into_tensor", (used,), (gathered,), (), ())
        used = gathered
        whole, monomial = t.sizes.of((*rows, *wide))
        again = ((gathered.width + HALF) * whole, monomial)  # gathered again; the gradient of all tokens
    y = t.tensor(name, (*rows, *out), o.width, grad)
    t.record("mm", (used, w), y, (*kept, w) if grad else (), _back(x), None, again)
    return y


def alone(t: Tape, c: Context, x: Tensor, role: str, name: str, out: Dims, wide: Dims) -> Tensor:
    """A layer that every rank has whole, for the tokens that it has."""
    o = c.options
    called = c.names.get(role, role)
    w = t.parameter(f"{called}.weight", (*out, *wide), o.width, o.base_trained, role=role, inputs=len(wide))
    kept: tuple[Tensor, ...] = (x,)
    used = x
    if o.fp8:
        used, kept = quantised(t, c, x)
        weight_copies(t, c, w)
    y = t.tensor(name, (*x.dims[: len(x.dims) - len(wide)], *out), o.width, x.grad or w.grad)
    return t.record("mm", (used, w), y, (*kept, w), _back(x))


def row(
    t: Tape,
    c: Context,
    x: Tensor,
    role: str,
    name: str,
    out: Dims,
    wide: Dims,
    *,
    bias: bool = False,
) -> Tensor:
    """A layer split by its inputs, whose outputs are summed over the ranks."""
    o = c.options
    called = c.names.get(role, role)
    w = t.parameter(
        f"{called}.weight", (*out, *wide), o.width, o.base_trained, "row", role=role, inputs=len(wide)
    )
    if bias:
        t.parameter(f"{called}.bias", out, o.width, o.base_trained)
    kept: tuple[Tensor, ...] = (x,)
    used = x
    if o.fp8:
        used, kept = quantised(t, c, x)
        weight_copies(t, c, w)
    y = t.tensor(name, (*x.dims[: len(x.dims) - len(wide)], *out), o.width, x.grad or w.grad)
    t.record("mm", (used, w), y, (*kept, w), _back(x))
    return leave(t, c, y)


def _back(x: Tensor) -> Back:
    """Gradients that are new: those of weights go into main gradients at once."""
    return ((x, NEW),) if x.grad else ()
