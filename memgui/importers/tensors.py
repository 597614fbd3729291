"""What the headers of weight files say: one table of tensors for safetensors and GGUF alike."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from memgui.spec.messages import Message

MAX_ELEMENTS: Final = 2**63 - 1
"""Largest product of a shape that is believed; beyond it no runtime could index the tensor."""


class Packing(msgspec.Struct, frozen=True):
    """How a stored number format packs: ``block`` elements take ``block_bytes`` bytes.

    A format of less than a byte an element has the smallest block that is whole bytes.
    """

    name: str
    block: int
    block_bytes: int


def _packing(name: str, block: str, block_bytes: str) -> Packing:
    return Packing(name, int(block), int(block_bytes))


# Source: the dtypes that the safetensors package 0.8.0 reads, and the bits each takes there.
_SAFETENSORS = """
    BOOL        1 1
    F4          2 1
    F6_E2M3     4 3
    F6_E3M2     4 3
    U8          1 1
    I8          1 1
    F8_E5M2     1 1
    F8_E4M3     1 1
    F8_E8M0     1 1
    F8_E4M3FNUZ 1 1
    F8_E5M2FNUZ 1 1
    I16         1 2
    U16         1 2
    F16         1 2
    BF16        1 2
    I32         1 4
    U32         1 4
    F32         1 4
    C64         1 8
    F64         1 8
    I64         1 8
    U64         1 8
"""
SAFETENSORS_DTYPES: Final = {
    (fields := row.split())[0]: _packing(*fields) for row in _SAFETENSORS.strip().splitlines()
}
"""Number formats of safetensors by the name its headers use."""

# Source: gguf Python package 0.19.0, GGML_QUANT_SIZES; Q2_0 from ggml-org/llama.cpp (newer than that
# package); the Q4_0_n_m repackings (removed from llama.cpp in late 2024, still found in files) take
# what Q4_0 takes.  Q8_1 and Q8_K are of computation and stand in no file.
_GGML = """
    0  F32      1   4
    1  F16      1   2
    2  Q4_0     32  18
    3  Q4_1     32  20
    6  Q5_0     32  22
    7  Q5_1     32  24
    8  Q8_0     32  34
    9  Q8_1     32  40
    10 Q2_K     256 84
    11 Q3_K     256 110
    12 Q4_K     256 144
    13 Q5_K     256 176
    14 Q6_K     256 210
    15 Q8_K     256 292
    16 IQ2_XXS  256 66
    17 IQ2_XS   256 74
    18 IQ3_XXS  256 98
    19 IQ1_S    256 50
    20 IQ4_NL   32  18
    21 IQ3_S    256 110
    22 IQ2_S    256 82
    23 IQ4_XS   256 136
    24 I8       1   1
    25 I16      1   2
    26 I32      1   4
    27 I64      1   8
    28 F64      1   8
    29 IQ1_M    256 56
    30 BF16     1   2
    31 Q4_0_4_4 32  18
    32 Q4_0_4_8 32  18
    33 Q4_0_8_8 32  18
    34 TQ1_0    256 54
    35 TQ2_0    256 66
    39 MXFP4    32  17
    40 NVFP4    64  36
    41 Q1_0     128 18
    42 Q2_0     64  18
"""
GGML_TYPES: Final = {
    int((fields := row.split())[0]): _packing(*fields[1:]) for row in _GGML.strip().splitlines()
}
"""Number formats of GGUF by ggml's type number."""


class TensorInfo(msgspec.Struct, frozen=True, gc=False):
    """One stored tensor: ``shape`` outermost dimension first (as PyTorch writes it), ``bytes`` as stored.

    ``format`` is the file's own word: a key of :data:`SAFETENSORS_DTYPES` or a name in
    :data:`GGML_TYPES`.
    """

    name: str
    shape: tuple[int, ...]
    format: str
    bytes: int

    @property
    def elements(self) -> int:
        """The product of ``shape``; 1 for a scalar."""
        product = 1
        for size in self.shape:
            product *= size
        return product


class TensorTable(msgspec.Struct, frozen=True, kw_only=True):
    """The tensors of a model's weight files, with what the headers say beside them.

    ``sources`` are the paths that were read, in order; ``missing`` the names of parts that should
    be there and are not (the table then holds the rest); ``notes`` say what did not agree.
    ``metadata`` is the header's own: texts for safetensors; numbers, texts, bools, short lists and
    :class:`~memgui.importers.gguf_header.Skipped` for GGUF (of the first part).
    """

    container: str
    sources: tuple[str, ...]
    tensors: tuple[TensorInfo, ...]
    metadata: dict[str, object] = {}
    missing: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors, headers and padding not counted."""
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def elements(self) -> int:
        """Stored elements of all tensors (a packed dtype counts its packed elements)."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def bytes_by_format(self) -> dict[str, int]:
        """Bytes in each number format, the largest share first."""
        totals: dict[str, int] = {}
        for tensor in self.tensors:
            totals[tensor.format] = totals.get(tensor.format, 0) + tensor.bytes
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


def product(shape: tuple[int, ...]) -> int | None:
    """Elements of ``shape`` (sizes from 0), or ``None`` where there are more than can be indexed."""
    elements = math.prod(shape)
    return elements if elements <= MAX_ELEMENTS else None
