"""What a font's texts take and how they are written, remembered: most come again at each repaint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QGuiApplication, QPainter

if TYPE_CHECKING:
    from PySide6.QtGui import QTextLayout

_ELIDE = Qt.TextElideMode.ElideRight
_MOST_WIDTHS = 2048
_MOST_LAID = 512

_NO_END = float(1 << 24)
"""A line as long as Qt makes it where nothing is broken."""

LEFT, MIDDLE, RIGHT = 0.0, 0.5, 1.0
"""Where in its room a text stands across; down it stands in the middle."""
_SIDES = {
    LEFT: Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
    MIDDLE: Qt.AlignmentFlag.AlignCenter,
    RIGHT: Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight,
}


class Metrics:
    """A font's metrics that remember: most texts are measured, and written, again and again."""

    __slots__ = ("_broken", "_font", "_height", "_laid", "_met", "_metrics", "_widths")

    def __init__(self, font: QFont) -> None:
        self._font = font
        self._metrics = QFontMetricsF(font)
        self._height = self._metrics.height()
        self._widths: dict[str, float] = {}
        self._met: set[str] = set()
        self._broken: dict[str, tuple[float, list[str]]] = {}
        self._laid: dict[str, tuple[QTextLayout, float, float]] = {}

    def write(self, painter: QPainter, room: QRectF, text: str, across: float = LEFT) -> None:
        """Write one line in the painter's pen, to the pixel as ``QPainter.drawText`` does; sets the font.

        To lay a text out is most of what writing it costs: one that comes again is laid out once.
        """
        laid = self._laid.get(text) or self._lay(text)
        if laid is not None:
            layout, wide, high = laid
            spare, over = room.width() - wide, room.height() - high
            if spare >= 0 and over >= 0:
                layout.draw(painter, QPointF(room.x() + spare * across, room.y() + over / 2))
                return
        painter.setFont(self._font)
        painter.drawText(room, _SIDES[across], text)

    def _lay(self, text: str) -> tuple[QTextLayout, float, float] | None:
        """A text that was written before, with its width and height; ``None`` at the first time."""
        if text not in self._met:
            if len(self._met) >= _MOST_WIDTHS:
                self._met.clear()
            self._met.add(text)
            return None
        if not text or "\n" in text or QGuiApplication.isRightToLeft() or _any_right_to_left(text):
            return None
        if self._font.italic():  # not to the pixel
            return None
        from PySide6.QtGui import QTextLayout, QTextOption  # nothing comes again in the first picture

        layout = QTextLayout(text, self._font)
        layout.setCacheEnabled(True)
        option = QTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        layout.setTextOption(option)
        layout.beginLayout()
        line = layout.createLine()
        line.setLineWidth(_NO_END)
        layout.endLayout()
        if len(self._laid) >= _MOST_LAID:
            self._laid.clear()
        self._laid[text] = laid = layout, line.horizontalAdvance(), line.ascent() + line.descent()
        return laid

    def height(self) -> float:
        """The height of a line."""
        return self._height

    def horizontalAdvance(self, text: str) -> float:
        """How wide a text is."""
        width = self._widths.get(text)
        if width is None:
            if len(self._widths) >= _MOST_WIDTHS:
                self._widths.clear()
            width = self._widths[text] = self._metrics.horizontalAdvance(text)
        return width

    def broken(self, text: str, width: float) -> list[str]:
        """:func:`broken` in this font; what it gave is not to be changed."""
        known = self._broken.get(text)
        if known is None or known[0] != width:
            if len(self._broken) >= _MOST_LAID:
                self._broken.clear()
            known = self._broken[text] = width, broken(text, self._font, width)
        return known[1]

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
        lines.append(text[line.textStart() : line.textStart() + line.textLength()].strip())
    layout.endLayout()
    return lines
