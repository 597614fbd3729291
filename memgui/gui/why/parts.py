"""The right side of the Why tab: the parts or tensors that the formula stands for, with their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.gui import accessible
from memgui.gui.controls.frames import by_keyboard
from memgui.gui.metrics import RIGHT
from memgui.gui.numbers import Numbers
from memgui.gui.theme import Look, Role
from memgui.gui.why.qt_words import QtWords
from memgui.planning.why import Explanation, part_name

ROW = 24
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Line:
    """One line: ``key`` leads into a part; ``strong`` is a sum, ``head`` a heading."""

    name: str
    note: str
    figure: str
    key: str = ""
    strong: bool = False
    head: bool = False


def lines_of(explanation: Explanation, numbers: Numbers) -> list[Line]:
    """Headings, parts, sum, and the same in other words."""
    words = QtWords(numbers)
    lines: list[Line] = []
    if explanation.parts:
        tensors = not explanation.parts[0].key
        title = translate("PartsList", "Tensors, all layers") if tensors else translate("PartsList", "Parts")
        lines.append(Line(title, "", numbers.unit, head=True))
        for part in explanation.parts:
            lines.append(Line(part_name(part, words), part.note, numbers.two(part.bytes), part.key))
        lines.append(Line(translate("PartsList", "Sum"), "", numbers.two(explanation.bytes), strong=True))
    if explanation.equivalents:
        lines.append(Line(translate("PartsList", "In other words"), "", "", head=True))
        for label, size in explanation.equivalents:
            lines.append(Line(label.text(words), "", numbers.tip(size)))
    return lines


class PartsList(QWidget):
    """Lines that can be walked with the arrows; Enter or a click goes into a part."""

    chosen = Signal(str)
    """Key of the part to go into."""

    accessible_role = "List"
    item_role = "ListItem"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._lines: list[Line] = []
        self._current = -1
        self._hovered = -1
        self._ring = False
        self._opacity = 1.0
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Parts"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_lines(self, lines: list[Line], opacity: float = 1.0) -> None:
        """Show other lines, or the same more or less strongly."""
        if (lines, opacity) == (self._lines, self._opacity):
            return
        self._repaint(lines, opacity)
        self._opacity = opacity
        keys = [line.key for line in self._lines]
        key = keys[self._current] if 0 <= self._current < len(keys) else ""
        self._lines = lines
        self._current = next((at for at, line in enumerate(lines) if key and line.key == key), -1)
        self._hovered = -1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if self._reachable() else Qt.FocusPolicy.NoFocus)
        self.setFixedHeight(self.sizeHint().height())

    def _repaint(self, lines: list[Line], opacity: float) -> None:
        """Have painted what will be another line than it is."""
        if (
            len(lines) != len(self._lines)
            or opacity != self._opacity
            or max(self._hovered, self._current) >= 0
        ):
            self.update()
            return
        high = Look.of(self).px(ROW)
        for at, (line, before) in enumerate(zip(lines, self._lines, strict=True)):
            if line != before:
                self.update(0, at * high, self.width(), high)

    @property
    def lines(self) -> Sequence[Line]:
        """What is shown."""
        return self._lines

    def _reachable(self) -> list[int]:
        return [at for at, line in enumerate(self._lines) if line.key]

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(228), round(len(self._lines) * look.px(ROW)) + 1)

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per line."""
        high = Look.of(self).px(ROW)
        return [
            accessible.Item(
                " ".join(text for text in (line.name, line.note, line.figure) if text),
                QRect(0, at * high, self.width(), high),
                at == self._current,
            )
            for at, line in enumerate(self._lines)
        ]

    def _at(self, position: QPointF) -> int:
        at = int(position.y() // Look.of(self).px(ROW))
        return at if 0 <= at < len(self._lines) and self._lines[at].key else -1

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position())
        if at != self._hovered:
            self._hovered = at
            self.setCursor(Qt.CursorShape.PointingHandCursor if at >= 0 else Qt.CursorShape.ArrowCursor)
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = -1
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position())
        if event.button() is Qt.MouseButton.LeftButton and at >= 0:
            self.chosen.emit(self._lines[at].key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        reachable = self._reachable()
        if event.key() in (keys.Key_Up, keys.Key_Down) and reachable:
            step = 1 if event.key() == keys.Key_Down else -1
            at = reachable.index(self._current) + step if self._current in reachable else 0
            self._current = reachable[min(max(at, 0), len(reachable) - 1)]
            self._ring = True
            self.update()
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space) and self._current >= 0:
            self.chosen.emit(self._lines[self._current].key)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        reachable = self._reachable()
        if self._ring and self._current < 0 and reachable:
            self._current = reachable[0]
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.fillRect(self.rect(), look.colours.base)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(self._opacity)
        high, region = look.px(ROW), event.region()
        for at, line in enumerate(self._lines):
            if region.intersects(QRect(0, at * high, self.width(), high)):
                self._paint_line(painter, look, QRectF(0, at * high, self.width(), high), at, line)

    def _paint_line(self, painter: QPainter, look: Look, rect: QRectF, at: int, line: Line) -> None:
        colours = look.colours
        if at == self._hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.hover)
            painter.drawRoundedRect(rect.adjusted(-4, 0, 4, 0), look.px(4), look.px(4))
        if line.strong:
            painter.fillRect(QRectF(0, rect.top(), rect.width(), 1), colours.border)
        role, weight = (Role.SMALL, 400) if line.head else (Role.BODY, 600 if line.strong else 400)
        ink = colours.secondary if line.head else colours.text
        metrics = look.metrics(role, weight)
        figure = metrics.horizontalAdvance(line.figure)
        painter.setPen(ink)
        metrics.write(painter, rect, line.figure, RIGHT)
        room = rect.width() - max(figure, look.px(44)) - look.px(8)
        note = look.width(line.note, Role.SMALL, 400, True) if line.note else 0.0
        name = metrics.horizontalAdvance(line.name)
        if note and name + look.px(10) + note > room:
            note = 0.0
        shown = metrics.cut(line.name, room - note)
        metrics.write(painter, QRectF(0, rect.top(), room, rect.height()), shown)
        if note:
            painter.setPen(colours.secondary)
            slanted = look.metrics(Role.SMALL, 400, True)
            slanted.write(painter, QRectF(0, rect.top(), room, rect.height()), line.note, RIGHT)
        if at == self._current and self._ring and self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colours.accent, 2))
            painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), look.px(4), look.px(4))
