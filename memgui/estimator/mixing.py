"""PyTorch's operators that state spaces, recurrences and image stems use beside those of attention.

As in :mod:`memgui.estimator.operators` each function records what one operator saves and allocates.
"""

from __future__ import annotations

from memgui.estimator.operators import cast, weight
from memgui.estimator.tape import NEW, Back, Dims, Parameter, Tape, Tensor


def convolution(t: Tape, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims) -> Tensor:
    """``F.conv1d``, ``F.conv2d``: saves its input and its weight if anything needs a gradient."""
    x = cast(t, x, t.autocast) if t.autocast else x
    used = weight(t, w, t.autocast)
    shift = weight(t, bias, t.autocast) if bias is not None else None
    operands = (x, used) if shift is None else (x, used, shift)
    back: Back = tuple((operand, NEW) for operand in operands if operand.grad)
    out = t.tensor(name, dims, used.width, bool(back))
    return t.record("convolution", operands, out, (x, used), back)


def join(t: Tape, parts: tuple[Tensor, ...], name: str, dims: Dims) -> Tensor:
    """``torch.cat`` along the tokens: the widest format wins; gradients are views of the whole's."""
    width = max(part.width for part in parts)
    parts = tuple(cast(t, part, width) for part in parts)
    out = t.tensor(name, dims, width, any(part.grad for part in parts))
    return t.record("cat", parts, out, (), tuple((part, NEW) for part in parts if part.grad))
