"""Number formats: how many bytes a tensor takes when it is stored in one.

A format stores ``block`` elements in ``block_bytes`` bytes (a plain format has ``block == 1``).
Quantised formats carry their scales inside that ratio; what a scheme leaves in another format is
the scheme's affair (``memgui.estimator``), not the format's.
"""

from __future__ import annotations

import msgspec

from memgui.spec.messages import QT_TRANSLATE_NOOP


class NumberFormat(msgspec.Struct, frozen=True):
    """One way to store numbers: ``block`` elements in ``block_bytes`` bytes."""

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

_TABLE = (
    NumberFormat("fp64", QT_TRANSLATE_NOOP("formats", "fp64"), 1, 8, _IEEE),
    NumberFormat("fp32", QT_TRANSLATE_NOOP("formats", "fp32"), 1, 4, _IEEE),
    NumberFormat("bf16", QT_TRANSLATE_NOOP("formats", "bf16"), 1, 2, _ML),
    NumberFormat("fp16", QT_TRANSLATE_NOOP("formats", "fp16"), 1, 2, _IEEE),
    NumberFormat("fp8", QT_TRANSLATE_NOOP("formats", "fp8"), 1, 1, _ML),
    NumberFormat("int8", QT_TRANSLATE_NOOP("formats", "int8"), 1, 1, _ML),
    NumberFormat("int64", QT_TRANSLATE_NOOP("formats", "int64"), 1, 8, _ML),
    NumberFormat("int32", QT_TRANSLATE_NOOP("formats", "int32"), 1, 4, _ML),
    NumberFormat("bool", QT_TRANSLATE_NOOP("formats", "bool"), 1, 1, _ML),
)

FORMATS: dict[str, NumberFormat] = {entry.name: entry for entry in _TABLE}
"""Every known format by name."""


def number_format(name: str) -> NumberFormat:
    """The format called ``name``; ``KeyError`` names the known ones."""
    try:
        return FORMATS[name]
    except KeyError:
        raise KeyError(f"unknown number format {name!r}; known: {', '.join(FORMATS)}") from None
