"""Slim scroll bars and hairline splitters."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QFrame,
    QScrollBar,
    QSplitter,
    QSplitterHandle,
    QWidget,
)

from memgui.gui.controls.frames import filled
from memgui.gui.theme import Look


class ScrollBar(QScrollBar):
    """A handle on nothing; Qt's own behaviour beneath."""

    def __init__(self, orientation: Qt.Orientation, area: QAbstractScrollArea) -> None:
        super().__init__(orientation, area)
        self._area = area  # Qt puts the bar into a container of its own
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent, False)

    def sizeHint(self) -> QSize:
        thick = Look.of(self).px(10)
        upright = self.orientation() is Qt.Orientation.Vertical
        return QSize(thick, 4 * thick) if upright else QSize(4 * thick, thick)

    def _ground(self) -> QColor:
        """The colour of what is scrolled; none where that lets its own parent shine through."""
        shown = self._area.viewport()
        if not shown.autoFillBackground():
            return QColor(0, 0, 0, 0)
        return shown.palette().color(shown.backgroundRole())

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        # Their many enums take 5 ms that a start without bars need not.
        from PySide6.QtWidgets import QStyle, QStyleOptionSlider

        option = QStyleOptionSlider()
        self.initStyleOption(option)
        control = QStyle.ComplexControl.CC_ScrollBar
        handle = QRectF(
            self.style().subControlRect(control, option, QStyle.SubControl.SC_ScrollBarSlider, self)
        )
        painter = QPainter(self)
        filled(painter, self.rect(), self._ground())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.maximum() <= self.minimum():
            return
        painter.setPen(Qt.PenStyle.NoPen)
        touched = self.underMouse() or self.isSliderDown()
        painter.setBrush(look.colours.border if touched else look.colours.disabled)
        upright = self.orientation() is Qt.Orientation.Vertical
        handle = handle.adjusted(2, 0, -2, 0) if upright else handle.adjusted(0, 2, 0, -2)
        radius = min(handle.width(), handle.height()) / 2
        painter.drawRoundedRect(handle, radius, radius)


def slim(area: QAbstractScrollArea) -> None:
    """Give a scroll area our scroll bars and no frame."""
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setVerticalScrollBar(ScrollBar(Qt.Orientation.Vertical, area))
    area.setHorizontalScrollBar(ScrollBar(Qt.Orientation.Horizontal, area))


class _Handle(QSplitterHandle):
    """A hairline; Qt takes the mouse a few px beside a handle this thin."""

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = Look.of(self).colours
        painter = QPainter(self)
        colour = colours.border if self.underMouse() else colours.hairline
        filled(painter, self.rect(), colour)


class Splitter(QSplitter):
    """Panels that meet at a hairline."""

    def __init__(self, orientation: Qt.Orientation, parent: QWidget | None = None) -> None:
        super().__init__(orientation, parent)
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)

    def createHandle(self) -> QSplitterHandle:
        return _Handle(self.orientation(), self)
