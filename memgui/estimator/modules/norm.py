"""Norms, each as its family writes it; how a norm is written decides what it keeps."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.modules import fused, rms
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import ALIAS, NEW, Dims, Parameter, Tape, Tensor

FP32 = 4


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
    width, rows = x.dims[-axes - own :], (*x.dims[:-axes], 1)
    kind = kind or m.norm
    write = NORMS[kind]
    if c.options.fused:
        write = FUSED.get(kind, write)
    if t.recomputed and part == "norm":
        with t.within("layernorm"):
            y = write(t, c, x, name, width, rows, biased)
    else:
        y = write(t, c, x, name, width, rows, biased)
    t.part = before
    return y


def _weight(t: Tape, c: Context, name: str, width: Dims) -> Parameter:
    o, m = c.options, c.model
    matrix = m.qk_norm == "per_head" and m.norm != "layer_norm"  # one of Cohere, a row for each head
    return t.parameter(f"{name}.weight", width, o.width, o.base_trained, inputs=1 if matrix else len(width))


def rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """Llama's RMSNorm: ``weight * (x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    return rms.normalised(t, x, _weight(t, c, name, width), rows, rms.LLAMA)


def t5_rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """T5's RMSNorm, which multiplies ``x`` itself: ``weight * (x * rsqrt(mean(x32²) + eps)).to(weight)``."""
    return rms.normalised(t, x, _weight(t, c, name, width), rows, rms.T5)


def rms_norm_fp32(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """RMSNorm cast back after its weight: ``(weight * x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    return rms.normalised(t, x, _weight(t, c, name, width), rows, rms.CAST_LAST)


def rms_norm_exact(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """The same with a weight in fp32, whatever the model is in (DeepSeek V4)."""
    w = t.parameter(f"{name}.weight", width, FP32, c.options.base_trained, inputs=len(width))
    return rms.normalised(t, x, w, rows, rms.CAST_LAST)


def rms_norm_fp32_copied(
    t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool
) -> Tensor:
    """The same with a copy of the weight in fp32 (Nemotron-H)."""
    return rms.normalised(t, x, _weight(t, c, name, width), rows, rms.CAST_LAST_COPIED)


def litgpt_rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """As before, but squares are written ``x * x``."""
    w = _weight(t, c, name, width)
    x32 = op.cast(t, x, FP32)
    squares = op.mean(t, op.mul(t, x32, x32, "squares", x.dims), rows)
    deviation = op.pointwise(t, "rsqrt", op.shift(t, squares), "1/deviation", saves="output")
    y32 = op.mul(t, x32, deviation, "normalised", x.dims)
    out = op.cast(t, op.mul(t, y32, w, "norm output", x.dims), x.width)
    t.use(x32, squares, y32)
    return out


def torchtune_rms_norm(
    t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool
) -> Tensor:
    """torchtune's: as Llama's, but it refers to its fp32 input until it returns."""
    w = _weight(t, c, name, width)
    x32 = op.cast(t, x, FP32)
    y = op.cast(t, op.mul(t, x32, rms.inverse_deviation(t, x32, rows), "normalised", x.dims), x.width)
    out = op.mul(t, y, w, "norm output", x.dims)
    t.use(x32, y)
    return out


def gemma_rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """Gemma's RMSNorm: ``(x32 * rsqrt(mean(x32²) + eps) * (1 + weight32)).to(dtype)``."""
    return rms.normalised(t, x, _weight(t, c, name, width), rows, rms.GEMMA)


def gemma4_rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """Gemma 4's RMSNorm: ``(x32 * (mean(x32²) + eps) ** -0.5 * weight32).to(dtype)``."""
    return rms.normalised(t, x, _weight(t, c, name, width), rows, rms.GEMMA4)


def plain_gemma4_rms_norm(
    t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool
) -> Tensor:
    """The same without a weight."""
    return rms.normalised(t, x, None, rows, rms.PLAIN_GEMMA4)


def plain_rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """RMSNorm without a weight: ``(x32 * rsqrt(mean(x32²) + eps)).to(dtype)``."""
    return rms.normalised(t, x, None, rows, rms.PLAIN)


def plain_l2_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """A length of one, without a weight: ``(x32 * rsqrt(sum(x32²) + eps)).to(dtype)`` (nGPT)."""
    x32 = op.cast(t, x, FP32)
    squares = op.power(t, x32)
    total = t.tensor("sum", rows, squares.width, squares.grad)
    t.record("sum", (squares,), total, (), ((squares, ALIAS),))
    inverse = op.pointwise(t, "rsqrt", op.shift(t, total), "1/length", saves="output")
    return op.cast(t, op.mul(t, x32, inverse, "normalised", x.dims), x.width)


def layer_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """``nn.LayerNorm``, one fused operator."""
    o = c.options
    w = _weight(t, c, name, width)
    shift = t.parameter(f"{name}.bias", width, o.width, o.base_trained) if bias else None
    return op.layer_norm(t, x, w, shift, rows)


def plain_layer_norm(
    t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool
) -> Tensor:
    """``F.layer_norm`` without weights, in fp32."""
    x32 = op.cast(t, x, FP32)
    return op.cast(t, op.layer_norm(t, x32, None, None, rows), x.width)


def cohere_layer_norm(
    t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool
) -> Tensor:
    """LayerNorm written out: ``(weight32 * (x32 - mean) * rsqrt(variance + eps)).to(dtype)``."""
    w = _weight(t, c, name, width)
    x32 = op.cast(t, x, FP32)
    mean = op.mean(t, x32, rows)
    variance = op.mean(t, op.power(t, op.sub(t, x32, mean, "centred")), mean.dims)
    centred = op.sub(t, x32, mean, "centred")
    deviation = op.pointwise(t, "rsqrt", op.shift(t, variance), "1/deviation", saves="output")
    y32 = op.mul(t, centred, deviation, "normalised", x.dims)
    out = op.cast(t, op.mul(t, op.copy_of_weight(t, w, FP32), y32, "norm output", x.dims), x.width)
    t.use(mean, variance)
    return out


def deberta_layer_norm(
    t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool
) -> Tensor:
    """LayerNorm written out: ``weight * ((x32 - mean) / sqrt(variance + eps)).to(dtype) + bias``."""
    o = c.options
    w, shift = (t.parameter(f"{name}.{one}", width, o.width, o.base_trained) for one in ("weight", "bias"))
    x32 = op.cast(t, x, FP32)
    mean = op.mean(t, x32, rows)
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


def liger_rms_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """Liger's, whose backward writes over the gradient it is given, but not between two norms."""
    return fused.rms_norm(t, c, x, name, width, in_place=c.model.norm_placement == "pre")


def no_norm(t: Tape, c: Context, x: Tensor, name: str, width: Dims, rows: Dims, bias: bool) -> Tensor:
    """MobileBERT's: ``x * weight + bias``."""
    o = c.options
    both = [t.parameter(f"{name}.{one}", width, o.width, o.base_trained) for one in ("weight", "bias")]
    return op.add_broadcast(t, op.mul(t, x, both[0], "scaled", x.dims), both[1], "norm output")


Write = Callable[[Tape, Context, Tensor, str, Dims, Dims, bool], Tensor]
"""Given the shapes of its weight and of its statistics (one for each row)."""
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
