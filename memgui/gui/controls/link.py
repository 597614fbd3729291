"""A text that leads somewhere: accent-coloured, dotted underline."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from memgui.gui.controls.frames import Ringed
from memgui.gui.theme import Look, Role


class LinkButton(QAbstractButton, Ringed):
    """A button that reads as a link in a line of small text."""

    def __init__(self, text: str = "", parent: QWidget | None = None, role: float = Role.SMALL) -> None:
        super().__init__(parent)
        self._role = role
        self.setText(text)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(round(look.width(self.text(), self._role, 500)) + 2, look.px(20))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.show_ring(self, event, Look.of(self).px(2))
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.drop_ring()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colours.tint)
            painter.drawRoundedRect(QRectF(self.rect()), look.px(3), look.px(3))
        painter.setPen(look.colours.accent if self.isEnabled() else look.colours.disabled)
        look.metrics(self._role, 500).write(painter, QRectF(self.rect()), self.text())
        line = self.height() / 2 + look.metrics(self._role).height() / 2
        painter.setPen(QPen(look.colours.accent, 1, Qt.PenStyle.DotLine))
        width = look.width(self.text(), self._role, 500)
        painter.drawLine(QPointF(0, round(line) - 0.5), QPointF(width, round(line) - 0.5))
