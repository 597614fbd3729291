"""How matrices of weights are stored, with their scales, zero points and code books.

A matrix has ``rows`` (what a layer gives) and ``columns`` (what it reads); a row is what a
quantiser's groups run along.  Sources name the packing code that the pieces were read from.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from memgui.spec.formats.ggml import GGML
from memgui.spec.formats.numbers import FORMATS
from memgui.spec.messages import QT_TRANSLATE_NOOP


class Piece(msgspec.Struct, frozen=True):
    """``bits`` for every tile of ``tile_rows`` times ``tile_columns`` elements.

    A part of a tile counts whole; 0 is the whole side.  ``flat`` tiles run over the elements of the
    matrix one after another.
    """

    name: str
    bits: int
    tile_rows: int = 1
    tile_columns: int = 1
    flat: bool = False

    def tiles(self, rows: int, columns: int) -> int:
        """Tiles of a matrix."""
        if self.flat:
            return -(-rows * columns // self.tile_columns)
        across = -(-columns // self.tile_columns) if self.tile_columns else 1
        return (-(-rows // self.tile_rows) if self.tile_rows else 1) * across

    def bytes_for(self, rows: int, columns: int) -> int:
        """Bytes of this piece of a matrix."""
        return -(-self.tiles(rows, columns) * self.bits // 8)


class WeightFormat(msgspec.Struct, frozen=True):
    """One way to store a matrix: the pieces it is made of."""

    name: str
    label: str
    pieces: tuple[Piece, ...]
    source: str
    exact: bool = True

    def bytes_for(self, rows: int, columns: int) -> int:
        """Bytes of a matrix of ``rows`` times ``columns`` weights."""
        return sum(piece.bytes_for(rows, columns) for piece in self.pieces)

    @property
    def bits(self) -> float:
        """Bits per weight of a matrix so large that what it has once, or by row, no longer counts."""
        return sum(
            piece.bits / (piece.tile_rows * piece.tile_columns)
            for piece in self.pieces
            if piece.tile_rows and piece.tile_columns
        )


_BNB = "bitsandbytes@95f9af30 functional.py, quantize_4bit"
_INT8 = "bitsandbytes nn/modules.py, Int8Params"
_GPTQ = "AutoGPTQ qlinear_cuda.py (qweight, qzeros, scales, g_idx)"
_AWQ = "AutoAWQ awq/modules/linear/gemm.py (qweight, qzeros, scales)"
_HQQ = "mobiusml/hqq@e0b1d00e hqq/core/quantize.py"
_EXL2 = "exllamav2@da07facd conversion/qparams.py, total_bits"
_EXL3 = "exllamav3@4f8ad012 modules/quant/exl3.py"
_AQLM = QT_TRANSLATE_NOOP("sources", "AQLM's README and layout: codes, row scales, a code book per layer")
_MX = "OCP Microscaling Formats (MX) v1.0"
_NVFP4 = QT_TRANSLATE_NOOP("sources", "hf_quant_config.json of NVIDIA's NVFP4 checkpoints, groups of 16")
_BLOCK = QT_TRANSLATE_NOOP("sources", "DeepSeek-V3 config.json, weight_block_size [128, 128]")
_FP8 = QT_TRANSLATE_NOOP("sources", "vLLM and compressed-tensors checkpoints: weight_scale, input_scale")
_PACKED = QT_TRANSLATE_NOOP("sources", "compressed-tensors pack-quantized: weight_packed, weight_scale")
_MLX = QT_TRANSLATE_NOOP("sources", "MLX affine quantisation, checked against Qwen3-14B-MLX-4bit")
_TINYGEMM = QT_TRANSLATE_NOOP("sources", "torchao's tinygemm layout: scale and zero in bf16")
_QUANTO = QT_TRANSLATE_NOOP("sources", "optimum-quanto, group-wise qint4: scale and shift of 16 bits")


_HQQ_SIZES = ((8, 64), (8, 128), (4, 64), (4, 128), (3, 32), (3, 64), (2, 16), (2, 64), (1, 16), (1, 32))


def _table() -> Iterator[WeightFormat]:
    for plain in FORMATS.values():
        whole = (Piece("values", 8 * plain.block_bytes, tile_columns=plain.block, flat=True),)
        yield WeightFormat(plain.name, plain.label, whole, plain.source, plain.exact)
    for kind in GGML.values():
        blocks = (Piece("blocks", 8 * kind.block_bytes, tile_columns=kind.block),)
        yield WeightFormat(f"ggml_{kind.name}", kind.label, blocks, kind.source)
    yield from _bitsandbytes()
    yield from _grouped()
    yield from _code_books()
    yield from _float()


_FOUR_BITS = {
    "nf4": "NF4",
    "nf4_dq": QT_TRANSLATE_NOOP("fields", "NF4, double quantised"),
    "nf4_block128": QT_TRANSLATE_NOOP("fields", "NF4, blocks of 128"),
    "nf4_dq_block128": QT_TRANSLATE_NOOP("fields", "NF4, blocks of 128, double quantised"),
    "fp4": "FP4",
    "fp4_dq": QT_TRANSLATE_NOOP("fields", "FP4, double quantised"),
    "fp4_block128": QT_TRANSLATE_NOOP("fields", "FP4, blocks of 128"),
    "fp4_dq_block128": QT_TRANSLATE_NOOP("fields", "FP4, blocks of 128, double quantised"),
}
_BY_ROW = {
    2: QT_TRANSLATE_NOOP("fields", "GPTQ int2, a group per row"),
    3: QT_TRANSLATE_NOOP("fields", "GPTQ int3, a group per row"),
    4: QT_TRANSLATE_NOOP("fields", "GPTQ int4, a group per row"),
    8: QT_TRANSLATE_NOOP("fields", "GPTQ int8, a group per row"),
}


def _bitsandbytes() -> Iterator[WeightFormat]:
    for kind in ("nf4", "fp4"):
        code = Piece("code", 16 * 32, 0, 0)
        for block in (64, 128):
            packed = Piece("packed values", 8, tile_columns=2, flat=True)
            plain = (packed, Piece("absmax", 32, tile_columns=block, flat=True), code)
            double = (
                packed,
                Piece("absmax, quantised", 8, tile_columns=block, flat=True),
                Piece("absmax of absmax", 32, tile_columns=256 * block, flat=True),
                code,
                Piece("code of absmax", 256 * 32, 0, 0),
                Piece("offset", 32, 0, 0),
            )
            size = "" if block == 64 else f"_block{block}"
            for name, pieces in ((f"{kind}{size}", plain), (f"{kind}_dq{size}", double)):
                yield WeightFormat(name, _FOUR_BITS[name], pieces, _BNB, block == 64)
    rows = Piece("row scales (SCB)", 32, 1, 0)
    yield WeightFormat("llm_int8", "LLM.int8()", (Piece("values", 8), rows), _INT8)


def _grouped() -> Iterator[WeightFormat]:
    for bits in (2, 3, 4, 8):
        for group in (32, 64, 128, 0):
            name = f"gptq_int{bits}_g{group or -1}"
            label = f"GPTQ int{bits}, g{group}" if group else _BY_ROW[bits]
            pieces = (
                Piece("qweight", 32 * bits, tile_columns=32),
                Piece("qzeros", 32 * bits, 32, group),
                Piece("scales", 16, 1, group),
                Piece("g_idx", 32, 0, 1),
            )
            yield WeightFormat(name, label, pieces, _GPTQ)
    for group in (32, 64, 128):
        packed = (
            Piece("qweight", 32, 8, 1),
            Piece("qzeros", 32, 8, group),
            Piece("scales", 16, 1, group),
        )
        yield WeightFormat(f"awq_int4_g{group}", f"AWQ int4, g{group}", packed, _AWQ)
    for bits, group in (
        (8, 64),
        (8, 128),
        (4, 64),
        (4, 128),
        (3, 32),
        (3, 64),
        (2, 16),
        (2, 64),
        (1, 16),
        (1, 32),
    ):
        fits = 10 if bits == 3 else 8 // bits
        values = Piece("W_q", 32 if bits == 3 else 8, tile_columns=fits, flat=True)
        meta = (
            Piece("scale", 16, tile_columns=group, flat=True),
            Piece("zero", 16, tile_columns=group, flat=True),
        )
        yield WeightFormat(
            f"hqq_{bits}bit_g{group}", f"HQQ {bits}-bit, g{group}", (values, *meta), _HQQ, bits != 3
        )
    for bits, group in ((4, 64), (4, 32), (4, 128), (8, 64), (6, 64), (5, 64), (3, 64)):
        affine = (Piece("packed values", 32 * bits, tile_columns=32), Piece("scale and bias", 32, 1, group))
        yield WeightFormat(f"mlx_{bits}bit_g{group}", f"MLX {bits}-bit, g{group}", affine, _MLX)
    for group, exact in ((128, False), (32, True)):
        packed = (
            Piece("weight_packed", 32, tile_columns=8),
            Piece("weight_scale", 16, 1, group),
            Piece("weight_shape", 128, 0, 0),
        )
        label = f"compressed-tensors int4, g{group}"
        yield WeightFormat(f"compressed_tensors_int4_g{group}_sym", label, packed, _PACKED, exact)
    for group in (32, 64, 128, 256):
        tiles = (Piece("packed values", 8, tile_columns=2), Piece("scale and zero", 32, 1, group))
        yield WeightFormat(f"torchao_int4_g{group}", f"torchao int4, g{group}", tiles, _TINYGEMM, False)
    shifted = (Piece("packed values", 8, tile_columns=2), Piece("scale and shift", 32, 1, 128))
    yield WeightFormat("quanto_int4_g128", "quanto int4, g128", shifted, _QUANTO, False)


def _code_books() -> Iterator[WeightFormat]:
    for tenths in (25, 30, 35, 40, 43, 45, 50, 60, 65, 80):
        pieces = (
            Piece("q_weight", tenths, tile_columns=10, flat=True),
            Piece("q_scale", 4, 1, 128),
            Piece("q_scale_max and q_groups", 48, 0, 128),
            Piece("q_invperm", 32, 0, 1),
        )
        yield WeightFormat(f"exl2_{tenths / 10}bpw", f"EXL2 {tenths / 10} bpw", pieces, _EXL2, False)
    for bits in (2, 3, 4, 5, 6, 8):
        trellis = (Piece("trellis", 8 * bits, tile_columns=8), Piece("svh", 16, 1, 0), Piece("suh", 16, 0, 1))
        yield WeightFormat(f"exl3_{bits}bit", f"EXL3 {bits}-bit", trellis, _EXL3)
    for books, bits in ((1, 16), (2, 8)):
        coded = (
            Piece("codes", books * bits, tile_columns=8),
            Piece("scales", 16, 1, 0),
            Piece("codebooks", 16 * books * 8 << bits, 0, 0),
        )
        yield WeightFormat(f"aqlm_{books}x{bits}_g8", f"AQLM {books}x{bits}", coded, _AQLM, False)


def _float() -> Iterator[WeightFormat]:
    for name, bits in (
        ("mxfp4", 4),
        ("mxfp6_e2m3", 6),
        ("mxfp6_e3m2", 6),
        ("mxfp8_e4m3", 8),
        ("mxfp8_e5m2", 8),
        ("mxint8", 8),
    ):
        scaled = (Piece("values", bits * 4, tile_columns=4), Piece("scales", 8, 1, 32))
        label = name.upper().replace("_E", " E")
        yield WeightFormat(name, label, scaled, _MX)
    four = (
        Piece("weight", 8, tile_columns=2),
        Piece("weight_scale", 8, 1, 16),
        Piece("weight_scale_2", 32, 0, 0),
        Piece("input_scale", 32, 0, 0),
    )
    yield WeightFormat("nvfp4", "NVFP4", four, _NVFP4)
    values = Piece("weight", 8)
    tiles = (values, Piece("weight_scale_inv", 32, 128, 128))
    yield WeightFormat(
        "fp8_block_128x128", QT_TRANSLATE_NOOP("fields", "fp8, tiles of 128x128"), tiles, _BLOCK
    )
    whole = Piece("weight_scale", 32, 0, 0)
    yield WeightFormat(
        "fp8_per_tensor", QT_TRANSLATE_NOOP("fields", "fp8, a scale per tensor"), (values, whole), _FP8
    )
    static = Piece("input_scale", 32, 0, 0)
    yield WeightFormat(
        "fp8_static", QT_TRANSLATE_NOOP("fields", "fp8, static activations"), (values, whole, static), _FP8
    )
    yield WeightFormat(
        "fp8_per_channel",
        QT_TRANSLATE_NOOP("fields", "fp8, a scale per row"),
        (values, Piece("weight_scale", 32, 1, 0)),
        _FP8,
    )


WEIGHT_FORMATS: dict[str, WeightFormat] = {entry.name: entry for entry in _table()}
"""Every way to store a matrix by name; ggml's types have ``ggml_`` in front."""


def weight_format(name: str) -> WeightFormat:
    """The format called ``name``; ``KeyError`` names the known ones."""
    try:
        return WEIGHT_FORMATS[name]
    except KeyError:
        raise KeyError(f"unknown weight format {name!r}; known: {', '.join(WEIGHT_FORMATS)}") from None
