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
    ``skipped`` are the modules left in the model's own format, ``only`` those alone that are packed.
    ``blocked``: scales stand for tiles; ``fixed``: inputs have scales of their own; ``strategy`` is
    what shares a scale.  ``None`` where the block does not say.
    """

    method: str
    bits: int | None = None
    group_size: int | None = None
    number_type: str | None = None
    double_quant: bool = False
    skipped: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    blocked: bool = False
    fixed: bool = False
    strategy: str | None = None


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


_SKIPPED: Final = (
    *("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules"),
    *("llm_int8_skip_modules", "module_keys_to_ignore"),
)
"""What libraries call the modules that they leave alone."""


def _read(block: JsonObject, usual: str = "mlx") -> Quantization:
    method = block.string_or_none("quant_method", null=True) or _producer(block) or usual
    bits = block.integer_or_none("bits", 1, 64, null=True) or block.integer_or_none("w_bit", 1, 64, null=True)
    if bits is None:
        if block.boolean_or_none("load_in_4bit", null=True):
            bits = 4
        elif block.boolean_or_none("load_in_8bit", null=True) or method in ("fp8", "fbgemm_fp8"):
            bits = 8
    weights = _first_group(block)
    group = block.integer_or_none("group_size", -1, null=True)
    group = group or block.integer_or_none("q_group_size", -1, null=True)
    number = (
        block.string_or_none("moe_quant_algo", null=True)
        or block.string_or_none("quant_algo", null=True)
        or block.string_or_none("bnb_4bit_quant_type", null=True)
        or block.string_or_none("fmt", null=True)
    )
    strategy = None
    if weights is not None:
        bits = bits or weights.integer_or_none("num_bits", 1, 64, null=True)
        group = group or weights.integer_or_none("group_size", -1, null=True)
        number = number or weights.string_or_none("type", null=True)
        strategy = weights.string_or_none("strategy", null=True)
    packed = block.child_or_none("quantized_layers", null=True)
    return Quantization(
        method=method,
        bits=bits,
        group_size=group,
        number_type=number,
        double_quant=bool(block.boolean_or_none("bnb_4bit_use_double_quant", null=True)),
        skipped=tuple(text for key in _SKIPPED for text in _texts(block, key)),
        only=tuple(packed) if packed is not None else (),
        blocked=bool(block.array_or_none("weight_block_size", 4, null=True)),
        fixed=block.string_or_none("activation_scheme", null=True) == "static",
        strategy=strategy,
    )


def _producer(block: JsonObject) -> str | None:
    """ModelOpt, which signs what it made."""
    by = block.child_or_none("producer", null=True)
    return by.string_or_none("name", null=True) if by is not None else None


def _first_group(block: JsonObject) -> JsonObject | None:
    """How the weights of compressed-tensors' first group are packed: where there are more, they are alike."""
    groups = block.child_or_none("config_groups", null=True)
    name = next(iter(groups), None) if groups is not None else None
    if groups is None or name is None:
        return None
    return groups.child(name).child_or_none("weights", null=True)


def _texts(block: JsonObject, key: str) -> tuple[str, ...]:
    return block.strings(key) if block.array_or_none(key, null=True) is not None else ()
