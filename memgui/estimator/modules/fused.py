"""Stretches of a layer that run as one kernel, as compilers and kernel libraries write them.

What lies between matrix products is fused: only what such a stretch reads is kept, and nothing
inside it is ever in memory.  ``in_place``: backward writes gradients over what it has read, as Liger's
kernels do.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import ALIAS, BY_HEAD, NEW, REPLACES, Dims, Parameter, Tape, Tensor

FP32 = 4


def rms_norm(
    t: Tape, c: Context, x: Tensor, name: str, weight: Dims = ("h",), *, in_place: bool = False
) -> Tensor:
    """Keeps its input and one number for each row."""
    o = c.options
    w = t.parameter(f"{name}.weight", weight, o.width, o.base_trained)
    out = t.tensor("norm output", x.dims, x.width, x.grad or w.grad)
    rows = t.tensor("1/deviation", (*x.dims[: len(x.dims) - len(weight)], 1), FP32)
    how = ALIAS if in_place else NEW
    back = (((x, how),) if x.grad else ()) + (((w, NEW),) if w.grad else ())
    t.run("rms_norm", (x, w), (out, rows), (x, w, rows) if back else (), back)
    return out


def rope(t: Tape, x: Tensor) -> Tensor:
    """Keeps nothing: the tables say all that its backward needs."""
    out = t.tensor(x.name, x.dims, x.width, x.grad)
    return t.record("rope", (x,), out, (), ((x, NEW),))


def contiguous(t: Tape, x: Tensor) -> Tensor:
    """A copy of its own: kernels take rows that lie one after the other."""
    copy = t.tensor(x.name, x.dims, x.width, x.grad)
    return t.record("clone", (x,), copy, (), ((x, ALIAS),))


def rope_in_place(
    t: Tape, x: Tensor, tables: tuple[Tensor, ...], *, copied: bool, sliced: bool = False
) -> Tensor:
    """Turns what it is given, in order by tokens; ``copied``: its gradient does not come in that order.

    ``sliced``: it is a part of a larger tensor.
    """
    if x.layout == BY_HEAD or sliced:
        x = contiguous(t, x)
    out = t.view(x, x.name, x.dims)
    t.run("rope", (x, *tables), (out,), tables if x.grad else (), ((x, NEW if copied else ALIAS),))
    return out


def gated(t: Tape, gate: Tensor, up: Tensor, *, in_place: bool = False) -> Tensor:
    """``act(gate) * up``: keeps both."""
    out = t.tensor("product", gate.dims, gate.width, gate.grad or up.grad)
    back = tuple([(one, REPLACES if in_place else NEW) for one in (gate, up) if one.grad])
    return t.record("gated", (gate, up), out, (gate, up) if back else (), back)


def linear_cross_entropy(t: Tape, c: Context, x: Tensor, w: Tensor, labels: Tensor) -> Tensor:
    """Liger's head and loss in one: logits of one chunk at a time, gradients made in the forward pass.

    Each chunk's share in the weight's gradient is added by the product itself where that is in 16 bits, on
    chips from 8.0 on; else it is copied to fp32 and added.  Under autocast the weight is copied as it is
    and, with its input for each chunk, transposed.
    """
    held = t.tensor("gradient of the head's input", x.dims, x.width)
    t.run("zeros_like", (), (held,), (), ())
    saves = [held]
    if w.grad:
        total = t.tensor("gradient of the head", w.dims, w.width)
        t.run("zeros_like", (), (total,), (), ())
        saves.append(total)
    losses = t.tensor("loss of each token", c.rows, FP32)
    counted = t.tensor("tokens that count", c.rows, 1)
    t.run("ne", (labels,), (losses, counted), (), ())
    used = op.weight(t, w, t.autocast) if isinstance(w, Parameter) else w
    chunk = t.tensor("logits of a chunk", ("bt", "V"), used.width)
    working = [chunk, losses, counted]
    if used is not w:
        part = t.tensor("input of a chunk", ("bt", x.dims[-1]), used.width)
        transposed = t.tensor("head, transposed", w.dims, used.width)
        t.run("_to_copy", (w,), (part, transposed), (), ())
        t.run("mm", (x, part, transposed, used), (chunk,), (), ())
    else:
        t.run("mm", (x, w), (chunk,), (), ())
    summed_by_product = chunk.width < FP32 and c.options.capability >= (8, 0)
    if w.grad and not summed_by_product:
        share = t.tensor("the head's gradient of a chunk", w.dims, chunk.width)
        t.run("mm", (chunk, x), (share,), (), ())
        working += (share, op.cast(t, share, FP32))
    t.use(x, used, labels, *working)
    loss = t.tensor("loss", (), FP32, x.grad or w.grad)
    back = tuple([(one, REPLACES) for one in (x, w) if one.grad])
    t.run("linear_cross_entropy", (losses,), (loss,), tuple(saves) if back else (), back)
    return loss
