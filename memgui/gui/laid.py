"""Texts laid out once: the glyphs of a font, and digits that are exchanged in their places.

Most of what a window writes anew after an edit are figures.  Where all digits of a font are of one width,
``12.34`` stands exactly as ``00.00`` does: that is laid out once, and then only its digits change.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QTextLayout, QTextOption

from memgui.gui.metrics import ANY

if TYPE_CHECKING:
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
    """The digits of a font: whether one can stand in the place of another, and their glyphs."""

    __slots__ = ("alike", "glyphs")

    def __init__(self, font: QFont) -> None:
        run = _set(_DIGITS, font)[0].glyphRuns()[0]
        metrics = QFontMetricsF(font)
        x = [at.x() for at in run.positions()]
        wide = {right - left for left, right in pairwise(x)}
        self.glyphs = dict(zip(_DIGITS, run.glyphIndexes(), strict=False))
        self.alike = (
            len(x) == len(_DIGITS)
            and len(wide) == 1
            and metrics.horizontalAdvance(_PAIRS) == len(_PAIRS) * wide.pop()
            and metrics.horizontalAdvance(_PLACES) == metrics.horizontalAdvance(_ZEROS)
        )

    def shared(self, text: str, key: str) -> str:
        """``key``, the text with :data:`ANY` for its digits, where these can be exchanged; else the text."""
        return key if self.alike and not _ELSE_BESIDE.search(key) else text


class Laid:
    """A text that is laid out, or all that differ from it in their digits alone."""

    __slots__ = ("_digits", "_glyphs", "_places", "_runs", "_written", "high", "wide")

    def __init__(self, text: str, font: QFont, digits: Digits | None) -> None:
        """With :data:`ANY` in ``text`` :meth:`draw` is told which digits stand there."""
        layout, line = _set(text.replace(ANY, "0"), font)
        self.wide, self.high = line.horizontalAdvance(), line.ascent() + line.descent()
        self._runs = layout.glyphRuns()
        self._digits = digits.glyphs if digits is not None else {}
        self._glyphs: list[int] = []
        self._places: list[int] = []
        self._written = text
        if ANY in text:
            self._glyphs = list(self._runs[0].glyphIndexes()) if len(self._runs) == 1 else []
            self._places = [at for at, sign in enumerate(text) if sign == ANY]

    @property
    def is_sound(self) -> bool:
        """Whether each digit has its one glyph in its own place."""
        zero = self._digits.get("0")
        return not self._places or (
            len(self._glyphs) == len(self._written) and all(self._glyphs[at] == zero for at in self._places)
        )

    def draw(self, painter: QPainter, at: QPointF, text: str) -> None:
        """Write ``text`` with its top left corner there, in the painter's pen."""
        if self._places and text != self._written:
            self._written = text
            for place in self._places:
                self._glyphs[place] = self._digits[text[place]]
            self._runs[0].setGlyphIndexes(self._glyphs)
        for run in self._runs:
            painter.drawGlyphRun(at, run)


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
