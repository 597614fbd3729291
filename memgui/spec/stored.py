"""What a model's weight files hold, part by part, each as one short text: ``attention@0-31:83886080``.

Before the colon the part, and the layers of which each has these bytes; a part outside the layers has
none: ``embedding:1050673152``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_TEXT: Final = (  # compiled when first asked for: a start reads none
    r"(?P<part>[a-z][a-z_]{0,40})(?:@(?P<first>\d{1,5})-(?P<last>\d{1,5}))?:(?P<bytes>\d{1,15})"
)
MOST: Final = 20_000
"""Most texts of one model."""


class Stored(NamedTuple):
    """``bytes`` of a part: of each layer from ``first`` to ``last``, or (-1) outside the layers."""

    part: str
    bytes: int
    first: int = -1
    last: int = -1

    @property
    def layers(self) -> range:
        """The layers that have it."""
        return range(self.first, self.last + 1) if self.first >= 0 else range(0)

    def __str__(self) -> str:
        where = f"@{self.first}-{self.last}" if self.first >= 0 else ""
        return f"{self.part}{where}:{self.bytes}"


def stored(text: str) -> Stored | None:
    """What ``text`` says, or ``None`` where it is not written as above."""
    found = re.fullmatch(_TEXT, text)
    if found is None:
        return None
    if found["first"] is None:
        return Stored(found["part"], int(found["bytes"]))
    first, last = int(found["first"]), int(found["last"])
    return Stored(found["part"], int(found["bytes"]), first, last) if first <= last else None


@lru_cache(maxsize=32)
def read(texts: tuple[str, ...]) -> tuple[Stored, ...]:
    """All of ``texts`` that say something."""
    return tuple(found for text in texts if (found := stored(text)) is not None)


def written(sizes: dict[tuple[str, int], int]) -> Iterator[str]:
    """The texts of bytes by part and layer (-1: outside), layers in a row that are alike as one."""
    parts = dict.fromkeys(part for part, _ in sizes)
    for part in parts:
        if (part, -1) in sizes:
            yield str(Stored(part, sizes[part, -1]))
        layers = sorted(layer for one, layer in sizes if one == part and layer >= 0)
        run: list[int] = []
        for layer in layers:
            if run and (layer != run[-1] + 1 or sizes[part, layer] != sizes[part, run[0]]):
                yield str(Stored(part, sizes[part, run[0]], run[0], run[-1]))
                run = []
            run.append(layer)
        if run:
            yield str(Stored(part, sizes[part, run[0]], run[0], run[-1]))
