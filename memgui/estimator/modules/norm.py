"""Norms, each as its family writes it; how a norm is written decides what it keeps."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from memgui.estimator import operators as op
from memgui.estimator.modules import fused
from memgui.estimator.modules.context import Context
from memgui.estimator.op import copy
from memgui.estimator.tape import ALIAS, NEW, Back, Dims, Op, Parameter, Tape, Tensor

FP32 = 4


class Shape(msgspec.Struct, frozen=True):
    """Of a norm: the shape of its weight, and of its statistics (one for each row)."""

    weight: Dims
    rows: Dims


def norm(
    t: Tape,
    c: Context,
    x: Tensor,
    name: str,
    *,
    part: str = "norm",
    kind: str = "",
    axes: int = 1,
    own: int = 0,
    bias: bool | None = None,
) -> Tensor:
    """The model's norm over the last ``axes`` dimensions of ``x``.

    ``kind`` is another norm than the model's own; ``own`` more dimensions have weights of their own,
    though they are not summed over; ``bias`` says whether it has one where that is not as in the
    model's norms.
    """
    m = c.model
    before, t.part = t.part, part
    biased = m.norm_bias if bias is None else bias
    shape = Shape(x.dims[-axes - own :], (*x.dims[:-axes], 1))
    kind = kind or m.norm
    write = NORMS[kind]
    if c.options.fused:
        write = FUSED.get(kind, write)
    with t.within("layernorm" if part == "norm" else ""):
        y = write(t, c, x, name, shape, biased)
    t.part = before
    return y


def _weight(t: Tape, c: Context, name: str, width: Dims) -> Parameter:
    o, m = c.options, c.model
    matrix = m.qk_norm == "per_head" and m.norm != "layer_norm"  # one of Cohere, a row for each head
    return t.parameter(f"{name}.weight", width, o.width, o.base_trained, inputs=1 if matrix else len(width))


def inverse_deviation(t: Tape, x32: Tensor, rows: Dims) -> Tensor:
    """``rsqrt(mean(x32²) + eps)``, one for each row: said in short, most layers do it several times.

    Forward makes squares, their mean and what is added to it; backward two tensors beside the gradient of the
    squares, and of the mean.  Rows are counted as part of the whole.
    """
    out = t.tensor("1/deviation", rows, FP32, x32.grad)
    whole, row, monomial = x32.coefficient, out.coefficient, x32.monomial
    saves: tuple[Tensor, ...] = ()
    back: Back = ()
    if out.grad:
        saves, back = (x32, out), ((x32, NEW),)
    ahead, behind = (whole + 2 * row, monomial), (3 * whole + row, monomial)
    t.shorten(_deviation, "pow", (x32,), (out,), saves, back, ahead, behind)
    return out


def _deviation(short: Op) -> list[Op]:
    """``pow``, ``mean``, ``add`` and ``rsqrt``."""
    (x32,), (out,) = short.ins, short.outs
    squares, mean, shifted = copy(out), copy(out), copy(out)
    squares.name, mean.name, shifted.name = "power", "mean", "mean"
    squares.dims, squares.coefficient, squares.monomial = x32.dims, x32.coefficient, x32.monomial
    both = (2 * squares.coefficient, squares.monomial)
    return [
        _step(short, "pow", x32, squares, (x32,), NEW, both),
        _step(short, "mean", squares, mean, (), NEW),
        _step(short, "add", mean, shifted, (), ALIAS),
        _step(short, "rsqrt", shifted, out, (out,), NEW),
    ]


def _step(
    short: Op,
    name: str,
    x: Tensor,
    out: Tensor,
    saves: tuple[Tensor, ...],
    how: int,
    beside: tuple[int, int] | None = None,
) -> Op:
    back: Back = ((x, how),)
    if not out.grad:
        saves, back, beside = (), (), None
    return Op(
        name, short.part, short.module, (x,), (out,), saves, back, None, beside, None, None, short.region
    )


def rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """Llama's RMSNorm: ``weight * (x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    w = _weight(t, c, name, shape.weight)
    x32 = op.cast(t, x, FP32)
    deviation = inverse_deviation(t, x32, shape.rows)
    y32 = op.mul(t, x32, deviation, "normalised", x.dims)
    y = op.cast(t, y32, x.width)
    out = op.mul(t, y, w, "norm output", x.dims)
    t.use(y32, deviation)
    return out


def t5_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """T5's RMSNorm, which multiplies ``x`` itself: ``weight * (x * rsqrt(mean(x32²) + eps)).to(weight)``."""
    w = _weight(t, c, name, shape.weight)
    x32 = op.cast(t, x, FP32)
    deviation = inverse_deviation(t, x32, shape.rows)
    y32 = op.mul(t, x, deviation, "normalised", x.dims)
    y = op.cast(t, y32, w.width) if w.width < FP32 else y32
    return op.mul(t, y, w, "norm output", x.dims)


def rms_norm_fp32(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """RMSNorm cast back after its weight: ``(weight * x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    return _cast_last(t, x, _weight(t, c, name, shape.weight), shape)


def rms_norm_exact(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """The same with a weight in fp32, whatever the model is in (DeepSeek V4)."""
    w = t.parameter(f"{name}.weight", shape.weight, FP32, c.options.base_trained, inputs=len(shape.weight))
    return _cast_last(t, x, w, shape)


def rms_norm_fp32_copied(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """The same with a copy of the weight in fp32 (Nemotron-H)."""
    return _cast_last(t, x, op.copy_of_weight(t, _weight(t, c, name, shape.weight), FP32), shape)


def _cast_last(t: Tape, x: Tensor, w: Tensor, shape: Shape) -> Tensor:
    x32 = op.cast(t, x, FP32)
    deviation = inverse_deviation(t, x32, shape.rows)
    y32 = op.mul(t, x32, deviation, "normalised", x.dims)
    out = op.cast(t, op.mul(t, y32, w, "norm output", x.dims), x.width)
    t.use(y32, deviation)
    return out


def litgpt_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """As before, but squares are written ``x * x``."""
    w = _weight(t, c, name, shape.weight)
    x32 = op.cast(t, x, FP32)
    squares = op.mean(t, op.mul(t, x32, x32, "squares", x.dims), shape.rows)
    deviation = op.pointwise(t, "rsqrt", op.shift(t, squares), "1/deviation", saves="output")
    y32 = op.mul(t, x32, deviation, "normalised", x.dims)
    out = op.cast(t, op.mul(t, y32, w, "norm output", x.dims), x.width)
    t.use(x32, squares, y32)
    return out


def torchtune_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """torchtune's: as Llama's, but it refers to its fp32 input until it returns."""
    w = _weight(t, c, name, shape.weight)
    x32 = op.cast(t, x, FP32)
    y = op.cast(t, op.mul(t, x32, inverse_deviation(t, x32, shape.rows), "normalised", x.dims), x.width)
    out = op.mul(t, y, w, "norm output", x.dims)
    t.use(x32, y)
    return out


def gemma_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """Gemma's RMSNorm: ``(x32 * rsqrt(mean(x32²) + eps) * (1 + weight32)).to(dtype)``."""
    w = _weight(t, c, name, shape.weight)
    x32 = op.cast(t, x, FP32)
    y32 = op.mul(t, x32, inverse_deviation(t, x32, shape.rows), "normalised", x.dims)
    factor = op.shift(t, op.cast(t, w, FP32))
    factor.name = "1 + weight"
    out32 = op.mul(t, y32, factor, "norm output", x.dims)
    t.use(y32)
    out = op.cast(t, out32, x.width)
    t.use(out32)
    return out


def gemma4_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """Gemma 4's RMSNorm: ``(x32 * (mean(x32²) + eps) ** -0.5 * weight32).to(dtype)``."""
    y32 = _by_power(t, x, shape)
    w = op.copy_of_weight(t, _weight(t, c, name, shape.weight), FP32)
    out = op.cast(t, op.mul(t, y32, w, "norm output", x.dims), x.width)
    t.use(y32)
    return out


def plain_gemma4_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """The same without a weight."""
    return op.cast(t, _by_power(t, x, shape), x.width)


def _by_power(t: Tape, x: Tensor, shape: Shape) -> Tensor:
    x32 = op.cast(t, x, FP32)
    squares = op.shift(t, op.mean(t, op.power(t, x32), shape.rows))
    y32 = op.mul(t, x32, op.power(t, squares), "normalised", x.dims)
    t.use(squares)
    return y32


def plain_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """RMSNorm without a weight: ``(x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    x32 = op.cast(t, x, FP32)
    return op.cast(t, op.mul(t, x32, inverse_deviation(t, x32, shape.rows), "normalised", x.dims), x.width)


def plain_l2_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """A length of one, without a weight: ``(x32 * rsqrt(sum(x32²) + eps)).to(dtype)`` (nGPT)."""
    x32 = op.cast(t, x, FP32)
    squares = op.power(t, x32)
    total = t.tensor("sum", shape.rows, squares.width, squares.grad)
    t.record("sum", (squares,), total, (), ((squares, ALIAS),))
    inverse = op.pointwise(t, "rsqrt", op.shift(t, total), "1/length", saves="output")
    return op.cast(t, op.mul(t, x32, inverse, "normalised", x.dims), x.width)


def layer_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """``nn.LayerNorm``, one fused operator."""
    o = c.options
    w = _weight(t, c, name, shape.weight)
    shift = t.parameter(f"{name}.bias", shape.weight, o.width, o.base_trained) if bias else None
    return op.layer_norm(t, x, w, shift, shape.rows)


def plain_layer_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """``F.layer_norm`` without weights, in fp32."""
    x32 = op.cast(t, x, FP32)
    return op.cast(t, op.layer_norm(t, x32, None, None, shape.rows), x.width)


def cohere_layer_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """LayerNorm written out: ``(weight32 * (x32 - mean) * rsqrt(variance + eps)).to(dtype)``."""
    w = _weight(t, c, name, shape.weight)
    x32 = op.cast(t, x, FP32)
    mean = op.mean(t, x32, shape.rows)
    variance = op.mean(t, op.power(t, op.sub(t, x32, mean, "centred")), mean.dims)
    centred = op.sub(t, x32, mean, "centred")
    deviation = op.pointwise(t, "rsqrt", op.shift(t, variance), "1/deviation", saves="output")
    y32 = op.mul(t, centred, deviation, "normalised", x.dims)
    out = op.cast(t, op.mul(t, op.copy_of_weight(t, w, FP32), y32, "norm output", x.dims), x.width)
    t.use(mean, variance)
    return out


def deberta_layer_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """LayerNorm written out: ``weight * ((x32 - mean) / sqrt(variance + eps)).to(dtype) + bias``."""
    o = c.options
    w, shift = (
        t.parameter(f"{name}.{one}", shape.weight, o.width, o.base_trained) for one in ("weight", "bias")
    )
    x32 = op.cast(t, x, FP32)
    mean = op.mean(t, x32, shape.rows)
    variance = op.mean(t, op.power(t, op.sub(t, x32, mean, "centred")), mean.dims)
    centred = op.sub(t, x32, mean, "centred")
    deviation = op.pointwise(t, "sqrt", op.shift(t, variance), "deviation", saves="output")
    y32 = t.tensor("normalised", x.dims, FP32, centred.grad)
    size = (2 * y32.coefficient, y32.monomial)  # the divisor's gradient takes one quotient after the other
    t.record(
        "div", (centred, deviation), y32, (centred, deviation), ((centred, NEW), (deviation, NEW)), None, size
    )
    y = op.cast(t, y32, x.width)
    t.use(mean, variance, y32)
    return op.add_broadcast(t, op.mul(t, y, w, "norm output", x.dims), shift, "norm output")


def liger_rms_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """Liger's, whose backward writes over the gradient it is given, but not between two norms."""
    return fused.rms_norm(t, c, x, name, shape.weight, in_place=c.model.norm_placement == "pre")


def no_norm(t: Tape, c: Context, x: Tensor, name: str, shape: Shape, bias: bool) -> Tensor:
    """MobileBERT's: ``x * weight + bias``."""
    o = c.options
    both = [t.parameter(f"{name}.{one}", shape.weight, o.width, o.base_trained) for one in ("weight", "bias")]
    return op.add_broadcast(t, op.mul(t, x, both[0], "scaled", x.dims), both[1], "norm output")


Write = Callable[[Tape, Context, Tensor, str, Shape, bool], Tensor]
NORMS: dict[str, Write] = {
    "rms_norm": rms_norm,
    "rms_norm_fp32": rms_norm_fp32,
    "rms_norm_fp32_copied": rms_norm_fp32_copied,
    "rms_norm_exact": rms_norm_exact,
    "litgpt_rms_norm": litgpt_rms_norm,
    "torchtune_rms_norm": torchtune_rms_norm,
    "t5_rms_norm": t5_rms_norm,
    "gemma_rms_norm": gemma_rms_norm,
    "gemma4_rms_norm": gemma4_rms_norm,
    "plain_gemma4_rms_norm": plain_gemma4_rms_norm,
    "plain_rms_norm": plain_rms_norm,
    "plain_l2_norm": plain_l2_norm,
    "layer_norm": layer_norm,
    "plain_layer_norm": plain_layer_norm,
    "cohere_layer_norm": cohere_layer_norm,
    "deberta_layer_norm": deberta_layer_norm,
    "no_norm": no_norm,
}
WITHOUT_WEIGHT = {"gemma4_rms_norm": "plain_gemma4_rms_norm"}
"""The norm without a weight that goes with each."""
FUSED: dict[str, Write] = {"rms_norm": liger_rms_norm, "gemma_rms_norm": liger_rms_norm}
"""What Liger's kernels stand in for."""
