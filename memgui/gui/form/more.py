"""The line that brings a section's advanced fields into sight."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QSize, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from memgui.gui.icons import paint_icon
from memgui.gui.theme import Look, Role


class More(QAbstractButton):
    """The count of hidden fields, or “fewer” when they are shown, and how many of them are changed."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._count, self._changed = 0, 0
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.toggled.connect(self._say)

    def count(self, fields: int, changed: int) -> None:
        """How many fields are behind it, and how many of them differ from their default."""
        if (fields, changed) != (self._count, self._changed):
            self._count, self._changed = fields, changed
            self._say()

    def _say(self) -> None:
        if self.isChecked():
            text = self.tr("Fewer")
        elif self._changed:
            text = self.tr("{count} more, {changed} changed").format(count=self._count, changed=self._changed)
        else:
            text = self.tr("{count} more").format(count=self._count)
        self.setText(text)
        self.setAccessibleName(text)
        self.update()

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(120), look.px(24))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.underMouse():
            painter.fillRect(self.rect(), colours.hover)
        name = "chevron-down" if self.isChecked() else "chevron-right"
        middle = self.height() / 2
        paint_icon(painter, name, QPointF(look.px(22), middle), look.px(14), colours.secondary)
        painter.setPen(colours.accent if self._changed and not self.isChecked() else colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        room = QRect(look.px(34), 0, self.width(), self.height())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())
        if self.hasFocus():
            painter.setPen(colours.accent)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(self.rect().adjusted(2, 2, -3, -3), look.px(4), look.px(4))
