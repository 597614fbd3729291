"""Plain number formats, one number after another."""

from __future__ import annotations

import msgspec

from memgui.spec.messages import QT_TRANSLATE_NOOP


class NumberFormat(msgspec.Struct, frozen=True):
    """One way to store numbers: ``block`` elements in ``block_bytes`` bytes.

    A plain format has one element to a block, or as few as make whole bytes.  ``exact`` is false
    where a format is stored in more than one way.
    """

    name: str
    label: str
    block: int
    block_bytes: int
    source: str
    exact: bool = True

    def bytes_for(self, elements: int) -> int:
        """Bytes of ``elements`` numbers; a last block that is not full is stored whole."""
        if self.block == 1:
            return elements * self.block_bytes
        return -(-elements // self.block) * self.block_bytes

    @property
    def bits(self) -> float:
        """Bits per element, scales included (for display)."""
        return 8 * self.block_bytes / self.block


_IEEE = "IEEE 754"
_ML = QT_TRANSLATE_NOOP("sources", "PyTorch's dtype sizes")
_MX = "OCP Microscaling Formats (MX) v1.0"
_TERNARY = QT_TRANSLATE_NOOP("sources", "Five ternary digits to a byte (1.585 bits of information each)")

_TABLE = (
    NumberFormat("fp64", QT_TRANSLATE_NOOP("fields", "fp64"), 1, 8, _IEEE),
    NumberFormat("fp32", QT_TRANSLATE_NOOP("fields", "fp32"), 1, 4, _IEEE),
    NumberFormat("tf32", QT_TRANSLATE_NOOP("fields", "tf32 (stored as fp32)"), 1, 4, _ML),
    NumberFormat("bf16", QT_TRANSLATE_NOOP("fields", "bf16"), 1, 2, _ML),
    NumberFormat("fp16", QT_TRANSLATE_NOOP("fields", "fp16"), 1, 2, _IEEE),
    NumberFormat("fp8", QT_TRANSLATE_NOOP("fields", "fp8"), 1, 1, _ML),
    NumberFormat("fp8_e4m3", QT_TRANSLATE_NOOP("fields", "fp8 (e4m3)"), 1, 1, _ML),
    NumberFormat("fp8_e5m2", QT_TRANSLATE_NOOP("fields", "fp8 (e5m2)"), 1, 1, _ML),
    NumberFormat("fp4_e2m1", QT_TRANSLATE_NOOP("fields", "fp4 (e2m1)"), 2, 1, _MX),
    NumberFormat("int64", QT_TRANSLATE_NOOP("fields", "int64"), 1, 8, _ML),
    NumberFormat("int32", QT_TRANSLATE_NOOP("fields", "int32"), 1, 4, _ML),
    NumberFormat("int8", QT_TRANSLATE_NOOP("fields", "int8"), 1, 1, _ML),
    NumberFormat("int4", QT_TRANSLATE_NOOP("fields", "int4"), 2, 1, _ML),
    NumberFormat("int2", QT_TRANSLATE_NOOP("fields", "int2"), 4, 1, _ML),
    NumberFormat("ternary_b1.58", QT_TRANSLATE_NOOP("fields", "ternary"), 5, 1, _TERNARY, exact=False),
    NumberFormat("bool", QT_TRANSLATE_NOOP("fields", "bool"), 1, 1, _ML),
)

FORMATS: dict[str, NumberFormat] = {entry.name: entry for entry in _TABLE}
"""Every plain format by name."""


def number_format(name: str) -> NumberFormat:
    """The format called ``name``; ``KeyError`` names the known ones."""
    try:
        return FORMATS[name]
    except KeyError:
        raise KeyError(f"unknown number format {name!r}; known: {', '.join(FORMATS)}") from None
