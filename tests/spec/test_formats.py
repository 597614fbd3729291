"""Every number format of the reference data is there, with the bits that are stated for it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.importers.tensors import GGML_TYPES
from memgui.spec.formats import (
    CACHE_FORMATS,
    FORMATS,
    GGML,
    WEIGHT_FORMATS,
    WeightFormat,
    cache_format,
    number_format,
    weight_format,
)

SHARED = Path(os.environ.get("MEMGUI_SHARED", Path(__file__).parents[3] / "shared"))
QUANT_FORMATS = SHARED / "data" / "quant_formats.json"

# the reference's name where it differs from ours
NAMES = {
    "bnb_nf4": "nf4",
    "bnb_nf4_double_quant": "nf4_dq",
    "bnb_fp4": "fp4",
    "bnb_fp4_double_quant": "fp4_dq",
    "bnb_nf4_block128": "nf4_block128",
    "bnb_llm_int8": "llm_int8",
    "torchao_int4_weight_only_g128": "torchao_int4_g128",
}
LARGE = 1 << 20
"""A matrix so large that its code books do not count."""


def reference() -> dict[str, Any]:
    if not QUANT_FORMATS.is_file():
        pytest.skip("the reference folder is not here")
    content: dict[str, Any] = json.loads(QUANT_FORMATS.read_text("utf-8"))
    return content


def test_every_weight_format_of_the_reference_has_its_bits() -> None:
    checked = 0
    for entry in reference()["formats"]:
        if entry["bits_per_weight"] is None:
            continue
        found = weight_format(NAMES.get(entry["name"], entry["name"]))
        if entry["name"] == "ternary_b1.58":
            assert found.bits == 1.6  # five digits to a byte; 1.585 is what they say
            continue
        assert found.bits == pytest.approx(entry["bits_per_weight"], abs=6e-7), entry["name"]
        checked += 1
    assert checked > 60


def test_formats_that_the_reference_gives_as_a_formula() -> None:
    mlx = next(entry for entry in reference()["formats"] if entry["name"] == "mlx_affine")
    for name, bits in mlx["values"].items():
        size, group = re.findall(r"\d+", name)
        assert weight_format(f"mlx_{size}bit_g{group}").bits == bits
    rows, columns = 4096, 14336
    trellis = 4 * rows * columns // 8 + 2 * columns + 2 * rows
    assert weight_format("exl3_4bit").bytes_for(rows, columns) == trellis
    books = 2 * rows * columns // 8 + 2 * rows + 2 * 2**16 * 8
    assert weight_format("aqlm_1x16_g8").bytes_for(rows, columns) == books
    mixed = 4 * rows * columns // 8 + rows * (columns // 128) // 2 + 6 * (columns // 128) + 4 * columns
    assert weight_format("exl2_4.0bpw").bytes_for(rows, columns) == pytest.approx(mixed, abs=8)


def test_ggml_types_are_those_of_the_reference_and_of_the_reader() -> None:
    for entry in reference()["ggml_types"]:
        found = GGML[entry["name"].lower()]
        assert (found.block, found.block_bytes) == (entry["block_size"], entry["bytes_per_block"])
        assert found.bits == pytest.approx(entry["bits_per_weight"])
    for packing in GGML_TYPES.values():
        if not re.fullmatch(r"Q4_0_\d_\d", packing.name):
            kept = GGML[packing.name.lower()]
            assert (kept.block, kept.block_bytes) == (packing.block, packing.block_bytes)


def test_cache_formats_have_the_bits_of_the_reference() -> None:
    stated = {entry["name"]: entry for entry in reference()["kv_cache"]}
    ours = {
        "fp32": ["fp32"],
        "fp16/bf16": ["fp16", "bf16"],
        "fp8_e4m3 / fp8_e5m2": ["fp8"],
        "int8 (per-token or per-head scales)": ["int8"],
        "KIVI 2-bit g32": ["kivi_2bit"],
        "KIVI 4-bit g32": ["kivi_4bit"],
        "HF QuantizedCache int4 (quanto/HQQ)": ["quantized_int4"],
    }
    checked = 0
    for name, entry in stated.items():
        bits = entry.get("bits_per_value")
        for mine in ours.get(name, [name] if name in CACHE_FORMATS else []):
            assert cache_format(mine).bits == bits, name
            checked += 1
    assert checked == 15
    exl = stated["exl2 Q4/Q6/Q8 cache"]["bits_per_value"]
    assert [cache_format(f"exl2_q{bits}").bits for bits in (4, 6, 8)] == exl
    assert [cache_format(f"exl3_{bits}bit").bits for bits in (2, 8)] == [2.5, 8.5]
    assert cache_format("int8").bytes_for(8, 128) == 8 * 128 + 8 * 4
    latent = cache_format("fp8_ds_mla").bytes_for(1, 512) + 2 * 64
    assert (
        latent == stated["fp8_ds_mla (DeepSeek V3.2 sparse attention in vLLM)"]["bytes_per_token_per_layer"]
    )


def test_unknown_names_say_what_is_known() -> None:
    for find in (number_format, weight_format, cache_format):
        with pytest.raises(KeyError, match=r"known: .*bf16"):
            find("int5")


@given(
    st.sampled_from(sorted(WEIGHT_FORMATS)),
    st.integers(1, 4096),
    st.integers(1, 4096),
)
def test_a_matrix_takes_whole_bytes_and_more_never_takes_less(name: str, rows: int, columns: int) -> None:
    chosen: WeightFormat = weight_format(name)
    size = chosen.bytes_for(rows, columns)
    assert isinstance(size, int)
    assert size >= rows * columns * chosen.bits / 8 * 0.999
    assert chosen.bytes_for(rows + 1, columns) >= size
    assert chosen.bytes_for(rows, columns + 1) >= size
    assert size == sum(piece.bytes_for(rows, columns) for piece in chosen.pieces)


def test_large_matrices_come_near_the_stated_bits() -> None:
    for chosen in WEIGHT_FORMATS.values():
        bits = 8 * chosen.bytes_for(LARGE, LARGE) / LARGE**2
        assert bits == pytest.approx(chosen.bits, rel=2e-3), chosen.name


def test_every_format_says_where_it_comes_from() -> None:
    for table in (FORMATS, GGML, WEIGHT_FORMATS, CACHE_FORMATS):
        for entry in table.values():
            assert entry.source
            assert entry.label
