"""The quantisation block of a config.json: which scheme, how many bits, in what groups."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from memgui.files.bounded import FileFault
from memgui.files.strict_json import JsonObject, load_object

BESIDE: Final = {
    "quantize_config.json": "gptq",
    "quant_config.json": "awq",
    "hf_quant_config.json": "modelopt",
}
"""Files in which older checkpoints keep the block that a config.json has today, and whose they are."""


class Quantization(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a checkpoint's quantisation block states.

    ``bits`` is bits of a stored weight, ``group_size`` the weights that share a scale (in a row);
    ``skipped`` are the modules left in the model's own format.  ``None`` where the block does not say.
    """

    method: str
    bits: int | None = None
    group_size: int | None = None
    number_type: str | None = None
    double_quant: bool = False
    skipped: tuple[str, ...] = ()


def quantization(file: JsonObject) -> Quantization | None:
    """The block under ``quantization_config`` (or MLX's ``quantization``), or ``None``."""
    for key in ("quantization_config", "quantization"):
        block = file.child_or_none(key, null=True)
        if block is not None:
            return _read(block)
    return None


def quantization_beside(folder: Path) -> Quantization | None:
    """The block that a model's folder keeps in a file of its own; ``None`` where it has none to read."""
    for name, method in BESIDE.items():
        try:
            block = JsonObject(load_object(folder / name), name)
            if method == "modelopt":
                return _read(block.child("quantization"), method)
            return _read(block, method)
        except FileFault:
            continue
    return None


def _read(block: JsonObject, usual: str = "mlx") -> Quantization:
    method = block.string_or_none("quant_method", null=True) or usual
    bits = block.integer_or_none("bits", 1, 64, null=True) or block.integer_or_none("w_bit", 1, 64, null=True)
    if bits is None:
        if block.boolean_or_none("load_in_4bit", null=True):
            bits = 4
        elif block.boolean_or_none("load_in_8bit", null=True) or method == "fp8":
            bits = 8
    return Quantization(
        method=method,
        bits=bits,
        group_size=block.integer_or_none("group_size", -1, null=True)
        or block.integer_or_none("q_group_size", -1, null=True),
        number_type=block.string_or_none("quant_algo", null=True)
        or block.string_or_none("bnb_4bit_quant_type", null=True)
        or block.string_or_none("fmt", null=True),
        double_quant=bool(block.boolean_or_none("bnb_4bit_use_double_quant", null=True)),
    )
