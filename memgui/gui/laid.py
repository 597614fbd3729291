"""Texts laid out once: the glyphs of a font, and digits that are exchanged in their places.

Most of what a window writes anew after an edit are figures.  ``12.34`` stands as ``00.00`` does, or moved by
as much as its digits are wider: that is laid out once, and then only its digits change.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QTextLayout, QTextOption

from memgui.gui.metrics import ANY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QTextLine

_NO_END = float(1 << 24)
"""A line as long as Qt makes it where nothing is broken."""
_DIGITS: Final = "0123456789"
_BESIDE: Final = " .,%+\u2212\u2009"
"""What stands beside digits in figures."""
_ELSE_BESIDE = re.compile(f"[^{ANY}{re.escape(_BESIDE)}]{ANY}|{ANY}[^{ANY}{re.escape(_BESIDE)}]")
_PAIRS: Final = "".join(a + "".join(a + b for b in _DIGITS[at + 1 :]) for at, a in enumerate(_DIGITS)) + "0"
"""Each digit beside each."""
_PLACES: Final = "".join(sign.join(("", *_DIGITS, "")) for sign in _BESIDE)
"""Each digit between two of whatever else stands beside digits."""

_ZEROS: Final = _PLACES.translate(str.maketrans(_DIGITS, "0" * len(_DIGITS)))


class Digits:
    """The digits of a font: their glyphs, how wide they are, and whether one can stand for another."""

    __slots__ = ("exchanged", "glyphs", "wider")

    def __init__(self, font: QFont) -> None:
        run = _set(_DIGITS, font)[0].glyphRuns()[0]
        width = QFontMetricsF(font).horizontalAdvance
        x = [*(at.x() for at in run.positions()), width(_DIGITS)]
        wide = dict(zip(_DIGITS, (right - left for left, right in pairwise(x)), strict=False))
        self.glyphs = dict(zip(_DIGITS, run.glyphIndexes(), strict=False))
        self.wider = {digit: by for digit in _DIGITS if (by := wide.get(digit, 0.0) - wide["0"])}
        """How much wider than a zero those are that are not like it, in px."""
        self.exchanged = (
            len(x) == len(_DIGITS) + 1
            and width(_PAIRS) == sum(wide[digit] for digit in _PAIRS)
            and width(_PLACES) == width(_ZEROS) + sum(self.wider.values()) * len(_BESIDE)
        )
        """Whether no digit draws nearer to another, or to what else stands in figures."""

    def shared(self, text: str, key: str) -> str:
        """``key``, the text with :data:`ANY` for its digits, where these can be exchanged; else the text."""
        return key if self.exchanged and not _ELSE_BESIDE.search(key) else text

    def over(self, text: str) -> float:
        """How much wider a text is than with zeros in the places of its digits."""
        over = 0.0
        for digit, by in self.wider.items():
            over += by * text.count(digit)
        return over


class Laid:
    """A text that is laid out, or all that differ from it in their digits alone."""

    __slots__ = ("_at", "_digits", "_glyphs", "_is_moved", "_places", "_runs", "_wide", "_written", "high")

    def __init__(self, text: str, font: QFont, digits: Digits | None) -> None:
        """With :data:`ANY` in ``text`` :meth:`draw` is told which digits stand there."""
        layout, line = _set(text.replace(ANY, "0"), font)
        self._wide, self.high = line.horizontalAdvance(), line.ascent() + line.descent()
        self._runs = layout.glyphRuns()
        self._digits = digits
        self._glyphs: list[int] = []
        self._at: list[QPointF] = []
        self._is_moved = False
        self._places: list[int] = []
        self._written = text
        if ANY in text and len(self._runs) == 1:
            self._glyphs, self._at = list(self._runs[0].glyphIndexes()), list(self._runs[0].positions())
        if ANY in text:
            self._places = [at for at, sign in enumerate(text) if sign == ANY]

    @property
    def is_sound(self) -> bool:
        """Whether each digit has its one glyph in its own place."""
        zero = self._digits.glyphs["0"] if self._digits is not None else -1
        return not self._places or (
            len(self._glyphs) == len(self._written) and all(self._glyphs[at] == zero for at in self._places)
        )

    def width(self, text: str) -> float:
        """How wide it is with the digits of ``text``."""
        return self._wide + self._digits.over(text) if self._places and self._digits else self._wide

    def draw(self, painter: QPainter, at: QPointF, text: str) -> None:
        """Write ``text`` with its top left corner there, in the painter's pen."""
        if self._places and self._digits is not None and text != self._written:
            self._written = text
            glyphs, run = self._digits.glyphs, self._runs[0]
            for place in self._places:
                self._glyphs[place] = glyphs[text[place]]
            run.setGlyphIndexes(self._glyphs)
            moved = any(digit in text for digit in self._digits.wider)
            if moved or self._is_moved:
                self._is_moved = moved
                run.setPositions(self._moved(text, self._digits.wider))
        for run in self._runs:
            painter.drawGlyphRun(at, run)

    def _moved(self, text: str, wider: Mapping[str, float]) -> list[QPointF]:
        """Where the glyphs stand behind digits that are wider than zeros, or narrower."""
        by, moved = 0.0, []
        for at, sign in zip(self._at, text, strict=True):
            moved.append(QPointF(at.x() + by, at.y()) if by else at)
            by += wider.get(sign, 0.0)
        return moved


def _set(text: str, font: QFont) -> tuple[QTextLayout, QTextLine]:
    """One line of a text from left to right."""
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setTextDirection(Qt.LayoutDirection.LeftToRight)
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    layout.setTextOption(option)
    layout.beginLayout()
    line = layout.createLine()
    line.setLineWidth(_NO_END)
    layout.endLayout()
    return layout, line
