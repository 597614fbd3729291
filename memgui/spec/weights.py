"""Weights that a model has beside its layers, each as one short text: ``vision.mlp.up:27x4304x1152``.

Before the colon a name, whose first word is the part that the weights are shown under; behind it how many
equal ones there are, and the shape of one (elements, outermost first).
"""

from __future__ import annotations

import re
from functools import cache
from math import prod
from typing import Final

import msgspec

TOWERS: Final = frozenset(("vision", "audio", "speech", "projection", "contacts"))
"""Parts for images, sound and maps of contacts: what is trained on text alone leaves them as they are."""
MOST: Final = 1_000
"""Most entries of one model."""
MOST_EACH: Final = 10_000
"""Most equal weights of one entry."""


_LOOKED_UP: Final = ("position_embedding", "tile_embedding", "class_embedding", "image_tokens", "padding")
"""How names end of tables whose rows are looked up, or added as they are."""

_OF_THEIR_OWN: Final = ".resampler."
"""In the names of modules whose layers are no plain ``nn.Linear``."""


@cache
def _form() -> re.Pattern[str]:  # a start reads no weights
    return re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*:[1-9]\d{0,9}(?:x[1-9]\d{0,9}){1,5}")


class Weights(msgspec.Struct, frozen=True):
    """``number`` equal weights called ``name``, each of ``shape`` (elements)."""

    name: str
    number: int
    shape: tuple[int, ...]

    @property
    def part(self) -> str:
        """What they are shown under: ``vision``, ``audio``."""
        return self.name.partition(".")[0]

    @property
    def elements(self) -> int:
        """Of all of them together."""
        return self.number * prod(self.shape)

    @property
    def is_linear(self) -> bool:
        """Whether each is the matrix of a linear layer, as packers look for them."""
        return len(self.shape) == 2 and not self.name.endswith(_LOOKED_UP) and _OF_THEIR_OWN not in self.name

    def __str__(self) -> str:
        return f"{self.name}:{'x'.join(map(str, (self.number, *self.shape)))}"


def weights(text: str) -> Weights | None:
    """What ``text`` says, or ``None`` where it is not written as above or says more than there can be."""
    if _form().fullmatch(text) is None:
        return None
    found = said(text)
    return None if found.number > MOST_EACH or found.elements > 10**15 else found


def said(text: str) -> Weights:
    """The same of a text that is known to be written so, as those of a model without fault are."""
    name, _, sizes = text.partition(":")
    number, *shape = map(int, sizes.split("x"))
    return Weights(name, number, tuple(shape))
