"""The tensor types of ggml: blocks along a row, each with its scales."""

from __future__ import annotations

from memgui.spec.formats.numbers import NumberFormat

_SOURCE = "gguf Python package 0.19.0, GGML_QUANT_SIZES"
_NEWER = "ggml-org/llama.cpp@03161a4e tools/quantize/quantize.cpp"

# type, elements of a block, bytes of a block.  Q8_1 and Q8_K serve computation and stand in no file.
_TYPES = """
    f32     1   4
    f16     1   2
    bf16    1   2
    f64     1   8
    i8      1   1
    i16     1   2
    i32     1   4
    i64     1   8
    q4_0    32  18
    q4_1    32  20
    q5_0    32  22
    q5_1    32  24
    q8_0    32  34
    q8_1    32  40
    q2_k    256 84
    q3_k    256 110
    q4_k    256 144
    q5_k    256 176
    q6_k    256 210
    q8_k    256 292
    iq1_s   256 50
    iq1_m   256 56
    iq2_xxs 256 66
    iq2_xs  256 74
    iq2_s   256 82
    iq3_xxs 256 98
    iq3_s   256 110
    iq4_nl  32  18
    iq4_xs  256 136
    tq1_0   256 54
    tq2_0   256 66
    mxfp4   32  17
    nvfp4   64  36
    q1_0    128 18
    q2_0    64  18
"""


def _types() -> dict[str, NumberFormat]:
    found: dict[str, NumberFormat] = {}
    for row in _TYPES.strip().splitlines():
        name, block, block_bytes = row.split()
        source = _NEWER if name == "q2_0" else _SOURCE
        found[name] = NumberFormat(name, name.upper(), int(block), int(block_bytes), source)
    return found


GGML: dict[str, NumberFormat] = _types()
"""Every ggml type by its name in lower case."""
