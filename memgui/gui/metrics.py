"""What a font's texts take and how they are written, remembered: most come again at each repaint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QGuiApplication, QPainter

if TYPE_CHECKING:
    from memgui.gui.laid import Digits, Laid

_ELIDE = Qt.TextElideMode.ElideRight
_MOST_WIDTHS = 2048
_MOST_LAID = 512
_OFTEN = 20
"""Times that a text comes before its font has any laid out: a start does not wait for that."""

_SCREENS = (1, 2, 3)
"""What Qt calls widgets, pixmaps and images: paper and drawings keep their texts as texts, the screen gets
their glyphs."""

ANY: Final = "\x00"
"""Stands for a digit, whichever it is, in a text that stands for many."""
AS_ANY: Final = str.maketrans("0123456789", ANY * 10)

LEFT, MIDDLE, RIGHT = 0.0, 0.5, 1.0
"""Where in its room a text stands across; down it stands in the middle."""
_SIDES = {
    LEFT: Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
    MIDDLE: Qt.AlignmentFlag.AlignCenter,
    RIGHT: Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight,
}


class Metrics:
    """A font's metrics that remember: most texts are measured, and written, again and again."""

    __slots__ = ("_broken", "_digits", "_font", "_height", "_laid", "_metrics", "_seen", "_widths")

    def __init__(self, font: QFont) -> None:
        self._font = font
        self._metrics = QFontMetricsF(font)
        self._height = self._metrics.height()
        self._widths: dict[str, float] = {}
        self._seen: dict[str, int] = {}
        self._broken: dict[str, tuple[float, list[tuple[int, int]]]] = {}
        self._laid: dict[str, Laid] = {}
        self._digits: Digits | None = None

    def write(self, painter: QPainter, room: QRectF, text: str, across: float = LEFT) -> None:
        """Write one line in the painter's pen, to the pixel as ``QPainter.drawText`` does; may set the font.

        To lay a text out is most of what writing it costs: one that comes again, or comes again with other
        digits, is laid out once.
        """
        if not text:
            return
        laid = self._laid.get(text) or self._laid.get(text.translate(AS_ANY)) or self._lay(text)
        if laid is not None and painter.device().devType() in _SCREENS:
            rect: tuple[float, float, float, float] = room.getRect()  # type: ignore[assignment]
            x, y, wide, high = rect
            spare, over = wide - laid.width(text), high - laid.high
            if spare >= 0 and over >= 0:
                laid.draw(painter, QPointF(x + spare * across, y + over / 2), text)
                return
        painter.setFont(self._font)
        painter.drawText(room, _SIDES[across], text)

    def _comes_often(self, key: str) -> bool:
        """Whether a text, or one with digits in the same places, came before; often, if it is the first."""
        if len(self._seen) >= _MOST_WIDTHS:
            self._seen.clear()
        times = self._seen[key] = self._seen.get(key, 0) + 1
        return times > (1 if self._laid else _OFTEN)

    def _lay(self, text: str) -> Laid | None:
        """Lay out a text that is written often; ``None`` before it is."""
        key = text.translate(AS_ANY)
        if not self._comes_often(key):
            return None
        if key != (key := self._shared(text)) and not self._comes_often(key):
            return None  # other digits make it another text
        if "\n" in text or QGuiApplication.isRightToLeft() or _any_right_to_left(text):
            return None
        if self._font.italic():  # not to the pixel
            return None
        from memgui.gui.laid import Laid

        laid = Laid(key, self._font, self._digits)
        if not laid.is_sound:
            key, laid = text, Laid(text, self._font, None)
        if len(self._laid) >= _MOST_LAID:
            self._laid.clear()
        self._laid[key] = laid
        return laid

    def _shared(self, text: str) -> str:
        """What stands for all texts with digits in the same places, where the font's digits are alike."""
        key = text.translate(AS_ANY)
        return text if key == text else self._figures().shared(text, key)

    def _figures(self) -> Digits:
        if self._digits is None:
            from memgui.gui.laid import Digits

            self._digits = Digits(self._font)
        return self._digits

    def height(self) -> float:
        """The height of a line."""
        return self._height

    def horizontalAdvance(self, text: str) -> float:
        """How wide a text is."""
        width = self._widths.get(text)
        if width is not None:
            return width
        width = self._widths.get(text.translate(AS_ANY))
        if width is not None and self._digits is not None:
            return width + self._digits.over(text)
        if len(self._widths) >= _MOST_WIDTHS:
            self._widths.clear()
        width = self._metrics.horizontalAdvance(text)
        key = text.translate(AS_ANY)
        key = self._shared(text) if key != text and self._comes_often(key) else text
        self._widths[key] = width if key == text else width - self._figures().over(text)
        return width

    def broken(self, text: str, width: float) -> list[str]:
        """:func:`broken` in this font; that it has other digits breaks no line elsewhere."""
        key = text.translate(AS_ANY) if self._figures().exchanged else text
        known = self._broken.get(key)
        if known is None or known[0] != width:
            if len(self._broken) >= _MOST_LAID:
                self._broken.clear()
            known = self._broken[key] = width, breaks(text, self._font, width)
        return [text[start:end] for start, end in known[1]]

    def cut(self, text: str, room: float) -> str:
        """A text, its end given way to an ellipsis where it is wider than ``room``."""
        return text if self.horizontalAdvance(text) <= room else self.elidedText(text, _ELIDE, room)

    def elidedText(self, text: str, mode: Qt.TextElideMode, width: float) -> str:
        """A text, cut where it is wider than ``width``."""
        if self.horizontalAdvance(text) <= width:
            return text
        return self._metrics.elidedText(text, mode, max(width, 0.0))

    def boundingRect(self, rect: QRectF | QRect, flags: int, text: str) -> QRectF:
        """The room that a text takes when it is broken to fit a rectangle."""
        return self._metrics.boundingRect(rect, flags, text)


def _any_right_to_left(text: str) -> bool:
    """Whether the order of the signs on the screen depends on the direction of what is around them."""
    if text.isascii():
        return False
    from unicodedata import bidirectional  # its table is large

    return any(bidirectional(sign) in ("R", "AL", "AN") for sign in text)


def broken(text: str, font: QFont, width: float) -> list[str]:
    """A text in lines of at most ``width`` px, broken as its language breaks."""
    return [text[start:end] for start, end in breaks(text, font, width)]


def breaks(text: str, font: QFont, width: float) -> list[tuple[int, int]]:
    """Where each line of a broken text begins and ends, the space around it left out."""
    from PySide6.QtGui import QTextLayout, QTextOption

    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    lines = []
    layout.beginLayout()
    while True:
        line = layout.createLine()
        if not line.isValid():
            break
        line.setLineWidth(max(width, 20.0))
        start, end = line.textStart(), line.textStart() + line.textLength()
        whole = text[start:end]
        lines.append((end - len(whole.lstrip()), start + len(whole.rstrip())))
    layout.endLayout()
    return [(start, max(start, end)) for start, end in lines]
