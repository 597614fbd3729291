"""A slider whose groove tells how far the value can go."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QSlider, QStyle, QWidget

from memgui.gui.controls.frames import by_keyboard
from memgui.gui.palette import mixed
from memgui.gui.theme import Look

_HANDLE = 14
_GROOVE = 4
_MARGIN = 7  # so that at both ends the handle stays inside


class Slider(QSlider):
    """Horizontal; positions are ints that the form maps to values.

    Past :meth:`set_limit` the groove is tinted red from a notch on: values there do not fit.  A press
    puts the handle under the mouse at once.  The wheel turns it only while it has the focus.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._limit: int | None = None
        self._ring = False
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def set_limit(self, position: int | None) -> None:
        """The last position that fits, below 0 where none does; ``None`` while it is not known."""
        if position != self._limit:
            self._limit = position
            self.update()

    @property
    def limit(self) -> int | None:
        """The last position that fits, if it is known."""
        return self._limit

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(92), look.px(28))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(48), look.px(28))

    def _x(self, position: int) -> float:
        """The middle of the handle at a position, in px."""
        margin = Look.of(self).px(_MARGIN)
        span = self.width() - 2 * margin
        return margin + QStyle.sliderPositionFromValue(self.minimum(), self.maximum(), position, span, False)

    def _position(self, x: float) -> int:
        margin = Look.of(self).px(_MARGIN)
        span = self.width() - 2 * margin
        return QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), round(x - margin), span, False)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self.setSliderDown(True)
        self.setSliderPosition(self._position(event.position().x()))
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self.setSliderPosition(self._position(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self.setSliderDown(False)
            self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        middle = self.height() / 2
        thick = look.px(_GROOVE)
        groove = QRectF(0, middle - thick / 2, self.width(), thick)
        enabled = self.isEnabled()
        painter.setBrush(colours.track)
        painter.drawRoundedRect(groove, thick / 2, thick / 2)
        handle = self._x(self.sliderPosition())
        notch = self._x(self._limit) if enabled and self._limit is not None else None
        if notch is not None and self._limit is not None and self._limit < self.maximum():
            past = QRectF(groove)
            if self._limit < 0:
                notch = None  # all of it is past what fits
            else:
                past.setLeft(notch)
            painter.setBrush(mixed(colours.bad, colours.window, 0.42))
            painter.drawRoundedRect(past, thick / 2, thick / 2)
        else:
            notch = None
        done = QRectF(groove)
        done.setRight(handle)
        painter.setBrush(colours.accent if enabled else colours.disabled)
        painter.drawRoundedRect(done, thick / 2, thick / 2)
        if notch is not None:
            painter.setBrush(colours.bad)
            painter.drawRect(QRectF(round(notch) - 1, middle - look.px(6), 2, look.px(12)))
        self._paint_handle(painter, QPointF(handle, middle), look)

    def _paint_handle(self, painter: QPainter, centre: QPointF, look: Look) -> None:
        colours = look.colours
        radius = look.px(_HANDLE) / 2
        enabled = self.isEnabled()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if enabled and (self.underMouse() or self.isSliderDown()) and not self._ring:
            painter.setPen(QPen(mixed(colours.accent, colours.window, 0.4), 2))
            painter.drawEllipse(centre, radius + 3.5, radius + 3.5)
        if enabled and self._ring:
            painter.setPen(QPen(colours.accent, 2))
            painter.drawEllipse(centre, radius + 2.5, radius + 2.5)
        edge = colours.accent if enabled else colours.disabled
        fill = colours.text if colours.dark and enabled else colours.raised if enabled else colours.window
        painter.setPen(QPen(edge, 2))
        painter.setBrush(fill)
        painter.drawEllipse(centre, radius - 1, radius - 1)
