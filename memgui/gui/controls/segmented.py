"""A switch of two or more segments, one of them on."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QSizePolicy, QWidget

from memgui.gui.controls.frames import Ringed, outlined
from memgui.gui.icons import paint_icon
from memgui.gui.theme import Look, Role


class _Segment(QAbstractButton, Ringed):
    """One segment; a text or an icon."""

    def __init__(self, text: str, icon_name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._icon = icon_name
        self.setText(text)
        self.setAccessibleName(text)
        self.setCheckable(True)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if icon_name:
            self.setToolTip(text)

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        if self._icon:
            return QSize(look.px(30), look.px(28))
        return QSize(round(look.width(self.text(), Role.BODY, 600)) + look.px(24), look.px(28))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.show_ring(self, event, Look.of(self).px(4) - 2)
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.drop_ring()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect())
        on = self.isChecked()
        if on:
            fill = colours.track if colours.dark else colours.raised
            outlined(painter, rect.adjusted(0, 1, 0, -1), look.px(4), fill, colours.border)
        colour = colours.text if on or self.underMouse() else colours.secondary
        if not self.isEnabled():
            colour = colours.disabled
        if self._icon:
            paint_icon(painter, self._icon, rect.center(), look.px(18), colour)
            return
        painter.setPen(colour)
        painter.setFont(look.font(Role.BODY, 600 if on else 400))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self.text())


class SegmentedSwitch(QWidget):
    """One of several values, all of them in sight."""

    chosen = Signal(object)
    """The value the person switched to; not sent by :meth:`set_value`."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._values: list[object] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(1, 0, 1, 0)
        self._row.setSpacing(0)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._group.idClicked.connect(self._clicked)

    def add(self, value: object, text: str, icon_name: str = "", tip: str = "") -> None:
        """Append a segment; with an icon the text is its name and tooltip."""
        segment = _Segment(text, icon_name, self)
        if tip:
            segment.setToolTip(tip)
        self._group.addButton(segment, len(self._values))
        self._values.append(value)
        self._row.addWidget(segment, 1)
        if len(self._values) == 1:
            segment.setChecked(True)

    def value(self) -> object:
        """The value that is on; ``None`` while there are no segments."""
        at = self._group.checkedId()
        return self._values[at] if at >= 0 else None

    def set_value(self, value: object) -> None:
        """Switch without saying so.  ``ValueError`` where there is no such segment."""
        self._group.button(self._values.index(value)).setChecked(True)

    def set_text(self, value: object, text: str) -> None:
        """Change what a segment says (a count in it, say)."""
        segment = self._group.button(self._values.index(value))
        segment.setText(text)
        segment.setAccessibleName(text)
        segment.updateGeometry()

    def segment(self, value: object) -> QAbstractButton:
        """The button of a value, to disable it or give it a tooltip."""
        return self._group.button(self._values.index(value))

    def _clicked(self, at: int) -> None:
        self.chosen.emit(self._values[at])

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        fill = look.colours.window if look.colours.dark else look.colours.track
        edge = look.colours.hairline if look.colours.dark else look.colours.track
        outlined(painter, QRectF(self.rect()), look.px(5), fill, edge)
