"""RMSNorms: their operators, and what these come to, said as one where their order does not matter.

Most layers have several, and of most it is asked only what they save and what comes and goes: so one
operator stands for a norm.  Where the order matters it is written by its own, onto the same tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from memgui.estimator import operators as op
from memgui.estimator.op import copy, spelled
from memgui.estimator.tape import MADE, NEW, SPREAD, Back, Dims, Op, Sizes, Tape, Tensor
from memgui.estimator.tensor import promoted

FP32 = 4
AS_IT_IS: Final = 0
COPIED: Final = 1
SHIFTED: Final = 2


def inverse_deviation(t: Tape, x32: Tensor, rows: Dims) -> Tensor:
    """``rsqrt(mean(x32²) + eps)``, one for each row."""
    squares = op.shift(t, op.mean(t, op.power(t, x32), rows))
    return op.pointwise(t, "rsqrt", squares, "1/deviation", saves="output")


def llama(t: Tape, x: Tensor, w: Tensor, rows: Dims) -> Tensor:
    """Llama's: ``weight * (x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    x32 = op.cast(t, x, FP32)
    deviation = inverse_deviation(t, x32, rows)
    y32 = op.mul(t, x32, deviation, "normalised", x.dims)
    y = op.cast(t, y32, x.width)
    out = op.mul(t, y, w, "norm output", x.dims)
    t.use(y32, deviation)
    return out


def t5(t: Tape, x: Tensor, w: Tensor, rows: Dims) -> Tensor:
    """T5's, which multiplies ``x`` itself: ``weight * (x * rsqrt(mean(x32²) + eps)).to(weight)``."""
    x32 = op.cast(t, x, FP32)
    deviation = inverse_deviation(t, x32, rows)
    y32 = op.mul(t, x, deviation, "normalised", x.dims)
    y = op.cast(t, y32, w.width) if w.width < FP32 else y32
    return op.mul(t, y, w, "norm output", x.dims)


def cast_last(t: Tape, x: Tensor, w: Tensor, rows: Dims) -> Tensor:
    """Cast back after its weight: ``(weight * x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    x32 = op.cast(t, x, FP32)
    deviation = inverse_deviation(t, x32, rows)
    y32 = op.mul(t, x32, deviation, "normalised", x.dims)
    out = op.cast(t, op.mul(t, y32, w, "norm output", x.dims), x.width)
    t.use(y32, deviation)
    return out


def copied(t: Tape, x: Tensor, w: Tensor, rows: Dims) -> Tensor:
    """The same with a copy of the weight in fp32."""
    return cast_last(t, x, op.copy_of_weight(t, w, FP32), rows)


def gemma(t: Tape, x: Tensor, w: Tensor, rows: Dims) -> Tensor:
    """Gemma's: ``(x32 * rsqrt(mean(x32²) + eps) * (1 + weight32)).to(dtype)``."""
    x32 = op.cast(t, x, FP32)
    y32 = op.mul(t, x32, inverse_deviation(t, x32, rows), "normalised", x.dims)
    factor = op.shift(t, op.cast(t, w, FP32))
    factor.name = "1 + weight"
    out32 = op.mul(t, y32, factor, "norm output", x.dims)
    t.use(y32)
    out = op.cast(t, out32, x.width)
    t.use(out32)
    return out


def gemma4(t: Tape, x: Tensor, w: Tensor, rows: Dims) -> Tensor:
    """Gemma 4's: ``(x32 * (mean(x32²) + eps) ** -0.5 * weight32).to(dtype)``."""
    y32 = _by_power(t, x, rows)
    w32 = op.copy_of_weight(t, w, FP32)
    out = op.cast(t, op.mul(t, y32, w32, "norm output", x.dims), x.width)
    t.use(y32)
    return out


def plain_gemma4(t: Tape, x: Tensor, w: None, rows: Dims) -> Tensor:
    """The same without a weight."""
    return op.cast(t, _by_power(t, x, rows), x.width)


def _by_power(t: Tape, x: Tensor, rows: Dims) -> Tensor:
    x32 = op.cast(t, x, FP32)
    squares = op.shift(t, op.mean(t, op.power(t, x32), rows))
    y32 = op.mul(t, x32, op.power(t, squares), "normalised", x.dims)
    t.use(squares)
    return y32


def plain(t: Tape, x: Tensor, w: None, rows: Dims) -> Tensor:
    """Without a weight: ``(x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    x32 = op.cast(t, x, FP32)
    return op.cast(t, op.mul(t, x32, inverse_deviation(t, x32, rows), "normalised", x.dims), x.width)


def scaled(t: Tape, x: Tensor, w: None, rows: Dims) -> Tensor:
    """The same, which multiplies ``x`` itself: ``x * rsqrt(mean(x32²) + eps).to(dtype)``."""
    deviation = inverse_deviation(t, op.cast(t, x, FP32), rows)
    return op.mul(t, x, op.cast(t, deviation, x.width), "normalised", x.dims)


class Form(msgspec.Struct, frozen=True, gc=False):
    """How a norm is written, and what its one operator tells follows from.

    Its weight multiplies what was ``cast`` back to the input's format (to its own where ``x`` ``itself`` is
    normalised), or fp32: as it is, a copy of it (``COPIED``), or one and it (``SHIFTED``).  Deviations are
    inverted by ``powers``, too, instead of a root of their own; where one ``scales`` it is cast before.
    """

    write: Callable[[Tape, Tensor, Any, Dims], Tensor]
    weighs: int = AS_IT_IS
    cast: bool = False
    itself: bool = False
    powers: bool = False
    scales: bool = False


PLAIN: Final = Form(plain)
SCALED: Final = Form(scaled, itself=True, scales=True)
PLAIN_GEMMA4: Final = Form(plain_gemma4, powers=True)
LLAMA: Final = Form(llama, cast=True)
T5: Final = Form(t5, cast=True, itself=True)
CAST_LAST: Final = Form(cast_last)
CAST_LAST_COPIED: Final = Form(copied, COPIED)
GEMMA: Final = Form(gemma, SHIFTED)
GEMMA4: Final = Form(gemma4, COPIED, powers=True)


def normalised(t: Tape, x: Tensor, w: Tensor | None, rows: Dims, form: Form) -> Tensor:
    """A norm of ``x`` with statistics of shape ``rows``, as one operator.

    Its result is there, and what it saves.  ``ahead`` and ``behind`` are bytes of the rest, which comes and
    goes forward and backward, ``weight_ahead`` and ``weight_behind`` those of the weight's size.
    """
    width, layout = x.width, x.layout
    if t.ordered or layout == SPREAD:
        return form.write(t, x, w, rows)
    dims, monomial, grad = x.dims, x.monomial, x.grad
    key, part, module, loss = t.key, t.part, t.module, t.loss
    narrow = width < FP32
    elements = x.coefficient // width
    full = elements * FP32
    row = (t.sizes.known.get(rows) or t.sizes.meet(rows))[0] * FP32
    kept: tuple[Tensor, ...] = ()
    saves: tuple[Tensor, ...] = ()
    back: Back = ()
    behind = weight_ahead = weight_behind = 0
    if grad:
        power = "power" if form.powers else "1/deviation"
        deviation = Tensor(power, rows, FP32, row, monomial, True, MADE, key, part, module, loss)
        if narrow:
            x32 = Tensor(x.name, dims, FP32, full, monomial, True, MADE, key, part, module, loss, layout)
            kept = (x32, deviation)
        else:
            x32, kept = x, (deviation,)
        # Backward: two beside the squares' gradient, that itself, and the product from which rows are summed;
        # two gradients of x32 and their sum, where that is no input, or what is cast to that of x itself.
        if form.itself or not narrow:
            back, behind = ((x, NEW), (x, NEW)), (6 if narrow else 4) * full + 2 * row
        else:
            back, behind = ((x, NEW),), 7 * full + 2 * row
        ahead = 2 * full + 2 * row  # squares, what is normalised; means and what is added to them
        if form.powers:
            mean = Tensor("mean", rows, FP32, row, monomial, True, MADE, key, part, module, loss)
            kept, saves = (mean, *kept), (x32, mean, deviation, x32)
            ahead -= row
            behind += 2 * row
        else:
            saves = (x32, deviation, deviation, x if form.itself else x32)
    else:
        ahead = (3 if narrow else 2) * full + 3 * row
    if w is None:
        out = Tensor(
            "normalised", dims, width, x.coefficient, monomial, grad, MADE, key, part, module, loss, layout
        )
        if not narrow:
            ahead -= full  # what is normalised is the result
        elif form.scales:
            scale = Tensor(
                "1/deviation", rows, width, row // FP32 * width, monomial, grad, MADE, key, part, module, loss
            )
            ahead -= full
            if grad:
                kept, saves = (*kept, scale), (x32, deviation, scale, x)
                behind += x.coefficient + scale.coefficient - 2 * full
            else:
                ahead += scale.coefficient
        elif grad:
            behind += full
    else:
        between, trained = FP32, w.grad
        if form.cast:
            between = min(w.width, FP32) if form.itself else width
        wide = promoted(between, w.width) if form.cast else FP32
        size, own, wanted = elements * between, wide if form.cast else width, grad or trained
        whole = elements * own
        out = Tensor("norm output", dims, own, whole, monomial, wanted, MADE, key, part, module, loss, layout)
        if narrow and not form.cast:
            ahead += full  # the result in fp32
            if wanted:
                behind += full
        used: Tensor = w
        if form.weighs:
            copies = (w.width < FP32) + (form.weighs == SHIFTED)
            weight_ahead = copies * w.coefficient // w.width * FP32
            if copies and grad:
                used = t.tensor(w.name if form.weighs == COPIED else "1 + weight", w.dims, FP32, trained)
                used.weight_copy = form.weighs == COPIED
                kept += (used,)
                weight_ahead -= used.coefficient
        if grad:
            saves += (used,)
            behind += size
            if between < FP32:
                behind += full
            if between != wide:
                behind += full  # the same before it is cast
        if trained:
            y = Tensor(
                "normalised", dims, between, size, monomial, grad, MADE, key, part, module, loss, layout
            )
            kept += (y,)
            saves += (y,)
            back = ((w, NEW), *back)
            behind += elements * wide
            if between == FP32:
                ahead -= full
            if w.width != wide:
                weight_behind = w.coefficient // w.width * FP32
        elif between < FP32:
            ahead += size
    t.short = True
    t.written.append(
        Op(
            "rms_norm",
            part,
            module,
            (x,) if w is None else (x, w),
            (out, *kept),
            saves,
            back,
            (ahead, monomial),
            (behind, monomial) if back else None,
            (weight_behind, 0) if weight_behind else None,
            (weight_ahead, 0) if weight_ahead else None,
            spell=partial(_written, form, rows, t.sizes),
        )
    )
    return out


def _written(form: Form, rows: Dims, sizes: Sizes, short: Op) -> list[Op]:
    """The operators of a norm, onto the tensors that it was said with: what it saves tells which is which."""
    out = short.outs[0]
    t = Tape(out.block, sizes, part=short.part, module=short.module, loss=out.loss)
    wanted = {tensor for tensor, _ in short.back}
    same: dict[Tensor, Tensor] = {}
    given: list[Tensor] = []
    for tensor in short.ins:  # it may have been decided since that they want a gradient
        stands = copy(tensor)
        stands.grad = tensor in wanted
        same[stands] = tensor
        given.append(stands)
    made = form.write(t, given[0], given[1] if len(given) > 1 else None, rows)
    return spelled(short, t.written, [made], same)
