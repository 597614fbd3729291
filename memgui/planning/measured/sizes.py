"""Sizes as programs print them, read exactly: how many bytes, and what the last digit is worth."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

from memgui.planning.measured.records import MOST_BYTES

NUMBER: Final = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
UNIT: Final = r"(?:[KMGTP]i?)?B|bytes"
SIZE: Final = rf"(?<![0-9.])({NUMBER}) ?({UNIT})\b"
"""A printed size: two groups, the number and its unit.

It can begin at the begin of a number only, so that a text of a million digits is passed over once.
"""

_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


class Size(NamedTuple):
    """``bytes``, and ``step``: what one unit of the last printed digit is worth."""

    bytes: int
    step: int


def size_of(number: str, unit: str, *, binary: bool = True) -> Size | None:
    """The size ``number`` ``unit``; ``None`` where it is beyond any device.

    ``KB``, ``MB``, ``GB`` are powers of 1,024 where ``binary`` is set, as in the programs that are
    read here (PyTorch, vLLM and llama.cpp divide by 1,024 whatever they call it), else of 1,000.
    """
    letter = unit[:1] if unit != "bytes" and len(unit) > 1 else ""
    base = 1024 if binary or "i" in unit else 1000
    factor = base ** _POWERS[letter]
    digits = len(number.partition(".")[2])
    exact = Fraction(number) * factor
    size = int(exact + Fraction(1, 2))
    if size > MOST_BYTES:
        return None
    return Size(size, max(factor // 10**digits, 1))
