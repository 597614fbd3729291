"""The scale under the capacity bar: painted once, for most edits leave it as it is."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPen, QPixmap

from memgui.gui.controls.frames import filled, painting
from memgui.gui.numbers import Numbers
from memgui.gui.theme import Look, Role
from memgui.gui.verdict.bar_geometry import Label, Scale, all_ticks, clear_labels

LINE, ROW = 6, 16
"""Where the figures begin under the bar, and how high they are, at a 13 px body."""


class Ticks:
    """The labels of one scale with their lines, as a picture of the strip under the bar."""

    def __init__(self) -> None:
        self._made_for: tuple[object, ...] = ()
        self._all: Sequence[Label] = ()
        self._shown: Sequence[Label] = ()
        self._picture: QPixmap | None = None

    def paint(
        self,
        painter: QPainter,
        look: Look,
        strip: QRectF,
        scale: Scale,
        numbers: Numbers,
        taken: Sequence[Label],
    ) -> None:
        """Paint the strip, without the labels that would touch those already ``taken``."""
        ratio, gap = painter.device().devicePixelRatioF(), look.px(8)
        made_for = scale, numbers, look, ratio, strip.width()
        if made_for != self._made_for:
            measure = look.metrics(Role.CAPTION).horizontalAdvance
            self._made_for, self._picture = made_for, None
            self._all = all_ticks(scale, numbers.unit_bytes, numbers.unit, numbers.axis, measure)
            self._shown = clear_labels(self._all, (), gap)
        whole = (strip.top() * ratio).is_integer() and (strip.height() * ratio).is_integer()
        if len(self._shown) < len(self._all) or not whole:  # one that is left out may make room for another
            shown = clear_labels(self._all, taken, gap)
            filled(painter, strip, look.colours.base)
            _paint(painter, look, strip.top(), shown, strip.width())
            return
        if self._picture is None:
            self._picture = self._painted(look, strip, ratio)
        painter.drawPixmap(strip.topLeft(), self._picture)
        last = self._all[-1]
        for label in self._shown:
            if not label.clear_of(taken, gap / 2 if label is last else gap):
                hidden = QRectF(label.x - 1, strip.top(), label.width + 2, strip.height())
                filled(painter, hidden, look.colours.base)

    def _painted(self, look: Look, strip: QRectF, ratio: float) -> QPixmap:
        with painting(strip.size(), ratio, look.colours.base) as (picture, painter):
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            _paint(painter, look, 0.0, self._shown, strip.width())
        return picture


def _paint(painter: QPainter, look: Look, top: float, labels: Sequence[Label], width: float) -> None:
    metrics, row = look.metrics(Role.CAPTION), top + look.px(LINE) - 1
    painter.setPen(look.colours.tertiary)
    for label in labels:
        metrics.write(painter, QRectF(label.x, row, label.width + 2, look.px(ROW)), label.text)
    painter.setPen(QPen(look.colours.border, 1))
    for label in labels:
        x = round(label.x + label.width / 2) + 0.5
        if look.px(12) < x < width - look.px(40):
            painter.drawLine(QPointF(x, top + 1), QPointF(x, row - 1))
