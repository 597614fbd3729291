"""Frozen linear layers from packed weights, as the libraries that pack them run them.

Each function stands in for ``F.linear`` where the base is quantised: it records what the library
unpacks, what its autograd function keeps, and what its backward unpacks again.  Outliers of LLM.int8
depend on the data; there are none here.
"""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import NEW, Dims, Parameter, Tape, Tensor

FP32 = 4
HALF = 2
BLOCK = 64
"""Weights that share a scale in bitsandbytes' 4-bit formats."""

SHARES = 8
"""Into which AWQ's kernel splits each sum."""

Linear = Callable[[Tape, Context, Tensor, Parameter, Parameter | None, str, Dims], Tensor]


def four_bit(
    t: Tape, c: Context, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims
) -> Tensor:
    """``Linear4bit`` of bitsandbytes: unpacks its weight for each product; keeps nothing of its input.

    It computes in ``compute`` and returns the format it was given.  Double quantisation unpacks the
    scales first, to fp32.  A single token is multiplied with the packed weight.
    """
    o = c.options
    own = op.cast(t, x, o.compute)
    if o.decode and o.one_sequence:
        out = t.tensor(name, dims, o.compute)
        t.record("gemv_4bit", (own,) if bias is None else (own, op.cast(t, bias, o.compute)), out, (), ())
        return op.cast(t, out, x.width)
    scales = (FP32 * (w.elements // BLOCK), 0) if o.nested else None
    unpacked = t.tensor("weight, unpacked", w.dims, HALF)
    t.run("dequantize_4bit", (), (unpacked,), (), (), scales)
    unpacked = op.cast(t, unpacked, o.compute)
    operands = (own, unpacked) if bias is None else (own, unpacked, op.cast(t, bias, o.compute))
    out = t.tensor(name, dims, o.compute, own.grad)
    again = (HALF * w.elements + (o.compute * w.elements if o.compute != HALF else 0), 0)
    t.record("matmul_4bit", operands, out, (), ((own, NEW),), None, again)
    return op.cast(t, out, x.width)


def eight_bit(
    t: Tape, c: Context, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims
) -> Tensor:
    """``Linear8bitLt`` of bitsandbytes: packs its input row by row, multiplies int8, unpacks the sums.

    Its autograd function refers to the input as an attribute, which no checkpoint sees: the input
    stays until the loss dies.  Backward unpacks the weight into the input's format.
    """
    own = x
    if x.width != HALF or c.options.half != "fp16":
        own = t.tensor(x.name, x.dims, HALF)
        t.run("_to_copy", (x,), (own,), (), ())
    values = x.coefficient // x.width
    packed = t.tensor("input, packed", x.dims, 1)
    largest = t.tensor("row maxima", x.dims[: len(x.dims) - w.inputs], FP32)
    # |x| in 16 bits and whether each is an outlier
    t.run("int8_vectorwise_quant", (own,), (packed, largest), (), (), inner=(3 * values, x.monomial))
    out = t.tensor(name, dims, x.width, x.grad)
    sums = (FP32 + (HALF if x.width != HALF or c.options.half != "fp16" else 0)) * (
        out.coefficient // out.width
    )
    t.record(
        "int8_mixed_scaled_mm",
        (packed, largest),
        out,
        (),
        ((x, NEW),),
        None,
        (x.width * w.elements, 0),
        inner=(sums, out.monomial),
    )
    t.use(packed, largest, x)
    if x.grad:
        t.pin(x)
    return out


def four_bit_of_2023(
    t: Tape, c: Context, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims
) -> Tensor:
    """``Linear4bit`` of bitsandbytes to 0.43, packed from fp16: its function refers to the input as well.

    What is unpacked is fp16 and is copied where the step computes in bf16.
    """
    o = c.options
    scales = (FP32 * (w.elements // BLOCK), 0) if o.nested else None
    unpacked = t.tensor("weight, unpacked", w.dims, HALF)
    t.run("dequantize_4bit", (), (unpacked,), (), (), scales)
    copies = o.half != "fp16" or o.compute != HALF
    if copies:
        copied = t.tensor("weight, copied", w.dims, o.compute)
        t.run("_to_copy", (unpacked,), (copied,), (), ())
        unpacked = copied
    operands = (x, unpacked) if bias is None else (x, unpacked, bias)
    out = t.tensor(name, dims, x.width, x.grad)
    again = ((HALF + (o.compute if copies else 0)) * w.elements, 0)
    t.record("matmul_4bit", operands, out, (), ((x, NEW),), None, again)
    if x.grad:
        t.pin(x)
    return out


def four_bit_of_torchao(
    t: Tape, c: Context, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims
) -> Tensor:
    """``linear_nf4`` of torchao: refers to nothing but the packed weight.

    Unpacking looks numbers up by indices of 8 bytes each, and scales and stacks two halves; compiled,
    there is the unpacked weight alone.
    """
    inside = 0 if c.options.compiled else 12 * w.elements
    unpacked = t.tensor("weight, unpacked", w.dims, x.width)
    t.run("dequantize", (), (unpacked,), (), (), (inside, 0) if inside else None)
    out = t.tensor(name, dims, x.width, x.grad)
    again = (x.width * w.elements + inside, 0)
    t.record("mm", (x, unpacked), out, (), ((x, NEW),) if x.grad else (), None, again)
    return out if bias is None else op.add_broadcast(t, out, bias, name)


def gptq(
    t: Tape, c: Context, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims
) -> Tensor:
    """``TorchLinear`` of GPT-QModel 7.7, which stands in for every kernel of it while a model trains.

    A compiled function unpacks the weight, in its input's format; a plain product follows, for whose
    backward autograd keeps the unpacked weight.  A bias is added in place.
    """
    unpacked = t.tensor("weight, unpacked", w.dims, x.width)
    t.run("dequantize_weight", (), (unpacked,), (), ())
    out = op.linear(t, x, unpacked, None, name, dims)
    return out if bias is None else op.add_in_place(t, out, bias)


def awq(
    t: Tape, c: Context, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims
) -> Tensor:
    """``AwqGEMMLinear`` of GPT-QModel 7.7: keeps nothing but what is packed; computes in 16 bits.

    Forward and backward unpack the weight, as fp16.  Few tokens go through a kernel that
    reads packed weights and sums eight shares.
    """
    o = c.options
    own = op.cast(t, x, HALF)
    out = t.tensor(name, dims, HALF, own.grad)
    again = (HALF * w.elements, 0)
    if o.few_tokens:
        inner = (SHARES * FP32 * (out.coefficient // HALF), out.monomial)
        t.record("awq_gemm", (own,), out, (), ((own, NEW),), None, again, inner=inner)
    else:
        unpacked = t.tensor("weight, unpacked", w.dims, HALF)
        t.run("awq_dequantize_weights", (), (unpacked,), (), ())
        t.record("awq_matmul", (own, unpacked), out, (), ((own, NEW),), None, again)
        t.use(unpacked)
    if bias is not None:
        out = op.add_broadcast(t, out, bias, name)
    t.use(own, x)
    return op.cast(t, out, x.width)


def hqq(
    t: Tape, c: Context, x: Tensor, w: Parameter, bias: Parameter | None, name: str, dims: Dims
) -> Tensor:
    """``HQQLinear`` of hqq 0.2.8 with PyTorch's backend: keeps its input although no gradient needs it.

    Unpacking holds the values, the values less their zeros, and these scaled, before the first two die.
    """
    compute = c.options.autocast or x.width
    x = op.cast(t, x, compute)
    size = compute * w.elements
    unpacked = t.tensor("weight, unpacked", w.dims, compute)
    t.run("dequantize", (), (unpacked,), (), (), (2 * size, 0))
    out = t.tensor(name, dims, compute, x.grad)
    t.record("matmul", (x, unpacked), out, (x,), ((x, NEW),), None, (3 * size, 0))
    return out if bias is None else op.add_in_place(t, out, bias)


LINEARS: dict[str, Linear] = {
    "4bit": four_bit,
    "4bit_of_2023": four_bit_of_2023,
    "nf4_torchao": four_bit_of_torchao,
    "int8": eight_bit,
    "gptq": gptq,
    "awq": awq,
    "hqq": hqq,
}
"""By ``Options.base``."""
