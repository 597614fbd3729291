"""PyTorch's operators that state spaces, recurrences and image stems use beside those of attention.

As in :mod:`memgui.estimator.operators` each function records what one operator saves and allocates.
"""

from __future__ import annotations

from memgui.estimator.operators import FP32, cast, clone, copy_of_weight, matmul, weight
from memgui.estimator.tape import NEW, Back, Dims, Parameter, Tape, Tensor


def convolution(
    t: Tape,
    x: Tensor,
    w: Parameter,
    bias: Parameter | None,
    name: str,
    dims: Dims,
    *,
    viewed: bool = False,
) -> Tensor:
    """``F.conv1d``, ``F.conv2d``: saves its input and its weight if anything needs a gradient.

    ``viewed``: the weight is given in another shape, and autocast keeps no copy of a view.
    """
    shift = weight(t, bias, t.autocast) if bias is not None else None
    used = copy_of_weight(t, w, t.autocast or w.width) if viewed else weight(t, w, t.autocast)
    x = cast(t, x, t.autocast) if t.autocast else x
    operands = (x, used) if shift is None else (x, used, shift)
    back: Back = tuple([(operand, NEW) for operand in operands if operand.grad])
    out = t.tensor(name, dims, used.width, bool(back))
    return t.record("convolution", operands, out, (x, used), back)


def join(t: Tape, parts: tuple[Tensor, ...], name: str, dims: Dims) -> Tensor:
    """``torch.cat`` along the tokens: the widest format wins; gradients are views of the whole's."""
    width = max(part.width for part in parts)
    parts = tuple([cast(t, part, width) for part in parts])
    out = t.tensor(name, dims, width, any(part.grad for part in parts))
    return t.record("cat", parts, out, (), tuple([(part, NEW) for part in parts if part.grad]))


def piece(t: Tape, x: Tensor, name: str, dims: Dims) -> Tensor:
    """``x[..., a:b]``: no copy; its backward is a full tensor of zeros around the gradient."""
    part = t.view(x, name, dims)
    t.run("slice", (x,), (part,), (), ((x, NEW),) if x.grad else ())
    return part


def gather(t: Tape, x: Tensor, at: Tensor, name: str, dims: Dims) -> Tensor:
    """``torch.gather``: saves the index and, for its shape, what it takes from."""
    out = t.tensor(name, dims, x.width, x.grad)
    return t.record("gather", (x, at), out, (x, at), ((x, NEW),))


def padded(t: Tape, x: Tensor, dims: Dims) -> Tensor:
    """``F.pad`` along the tokens: always a copy, and so is its gradient."""
    out = t.tensor(x.name, dims, x.width, x.grad)
    return t.record("constant_pad_nd", (x,), out, (), ((x, NEW),))


def cumulative(t: Tape, x: Tensor, name: str, dims: Dims) -> Tensor:
    """``torch.cumsum``, in fp32 under autocast; its backward turns the gradient round twice."""
    x = cast(t, x, FP32) if t.autocast else x
    out = t.tensor(name, dims, x.width, x.grad)
    return t.record("cumsum", (x,), out, (), ((x, NEW),), None, (2 * out.coefficient, out.monomial))


def contraction(
    t: Tape,
    a: Tensor,
    b: Tensor,
    name: str,
    dims: Dims,
    *,
    copies: bool | tuple[bool, bool],
    turned: bool,
) -> Tensor:
    """``torch.einsum`` of two tensors: a batched product, which wants its operands in order.

    Autocast casts them before, and has the casts until it is done.  ``copies``: (each of) these are put
    in order first; ``turned``: the gradient of the result is.
    """
    first, second = copies if isinstance(copies, tuple) else (copies, copies)
    if t.autocast:
        a, b = cast(t, a, t.autocast), cast(t, b, t.autocast)
    given = a, b
    a = clone(t, a) if first else a
    b = clone(t, b) if second else b
    y = matmul(t, a, b, name, dims)
    if t.autocast:
        t.use(*given)
    if not turned:
        return y
    out = t.view(y, name, dims)
    t.run("permute", (y,), (out,), (), ((y, NEW),) if y.grad else ())
    return out


def solve(t: Tape, system: Tensor, x: Tensor, name: str) -> Tensor:
    """``linalg.solve_triangular``: saves the system and its result."""
    out = t.tensor(name, x.dims, x.width, system.grad or x.grad)
    back: Back = tuple([(one, NEW) for one in (system, x) if one.grad])
    return t.record("linalg_solve_triangular", (system, x), out, (system, out), back)


def softplus(t: Tape, x: Tensor) -> Tensor:
    """``F.softplus``: saves its input, which autocast casts to fp32."""
    x = cast(t, x, FP32) if t.autocast else x
    out = t.tensor("softplus", x.dims, x.width, x.grad)
    return t.record("softplus", (x,), out, (x,), ((x, NEW),))


def exponential(t: Tape, x: Tensor, name: str) -> Tensor:
    """``torch.exp``: saves its result."""
    x = cast(t, x, FP32) if t.autocast else x
    out = t.tensor(name, x.dims, x.width, x.grad)
    return t.record("exp", (x,), out, (out,), ((x, NEW),))


def copied_weight(t: Tape, weight_: Parameter, width: int) -> Tensor:
    """``weight.to(dtype)`` as a model's code writes it: a copy of its own each time."""
    out = cast(t, weight_, width)
    out.weight_copy = out is not weight_
    return out
