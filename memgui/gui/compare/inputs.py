"""What sets two set-ups apart beside their bytes: the inputs that differ, and what was paid."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.document.selection import Selection
from memgui.gui import accessible
from memgui.gui.controls.frames import by_keyboard, outlined
from memgui.gui.metrics import broken
from memgui.gui.numbers import Numbers
from memgui.gui.texts import label, value_text
from memgui.gui.theme import Look, Role
from memgui.gui.tips import plain
from memgui.gui.why.qt_words import QtWords
from memgui.planning.compare import Comparison
from memgui.spec.fields import BY_PATH, Kind

HIGH, HEADER = 24, 28
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


class Difference(msgspec.Struct, frozen=True):
    """A field and its values in the first set-up and in the chosen one."""

    path: str
    name: str
    first: str
    second: str


class Inputs(QWidget):
    """Arrows go from field to field, Enter or a click goes to the field in the form."""

    accessible_role = "List"
    item_role = "ListItem"

    def __init__(self, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._selection = selection
        self._differences: list[Difference] = []
        self._costs: list[str] = []
        self._heads = ("", "")
        self._same = ""
        self._current = 0
        self._under = -1
        self._ring = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Inputs that differ"))

    @property
    def differences(self) -> Sequence[Difference]:
        """The fields that differ."""
        return self._differences

    @property
    def costs(self) -> Sequence[str]:
        """What the chosen set-up costs against the first."""
        return self._costs

    def show_comparison(self, comparison: Comparison, column: int, words: QtWords) -> None:
        """Show what sets ``column`` apart from the first."""
        numbers = words.numbers
        before = (self._heads, self._differences, self._costs, self._same)
        self._heads = (str(comparison.columns[0].name), str(comparison.columns[column].name))
        self._differences = [
            Difference(
                one.path,
                label(one.path),
                _value(one.path, one.values[0], numbers),
                _value(one.path, one.values[column], numbers),
            )
            for one in comparison.inputs
            if column and one.values[0] != one.values[column]
        ]
        self._costs = [said.text(words) for said in comparison.paid(column)] if column else []
        equal = comparison.same + len(comparison.inputs) - len(self._differences)
        self._same = self.tr("{count} {count:input is|inputs are} the same").format(
            count=numbers.count(equal)
        )
        self._current = min(self._current, max(0, len(self._differences) - 1))
        if before != (self._heads, self._differences, self._costs, self._same):
            self.updateGeometry()
            self.update()

    def _title(self) -> str:
        if not self._differences:
            return self.tr("No input differs")
        return self.tr("Inputs that differ ({count})").format(count=len(self._differences))

    def _short_title(self) -> str:
        return self.tr("Differ ({count})").format(count=len(self._differences))

    def _cost_lines(self, look: Look, width: float) -> list[list[str]]:
        room = width - look.px(16 + 14 + 16)
        return [broken(cost, look.font(Role.SMALL), room) for cost in self._costs]

    def height_for(self, width: int) -> int:
        """What all of it needs at this width."""
        look = Look.of(self)
        costs = sum(len(lines) for lines in self._cost_lines(look, width))
        high = look.px(HEADER) + len(self._differences) * look.px(HIGH) + look.px(8)
        if costs:
            high += look.px(36) + costs * look.px(18) + look.px(8)
        return high + look.px(36)

    def sizeHint(self) -> QSize:
        return QSize(Look.of(self).px(320), self.height_for(self.width()))

    def row_rect(self, place: int) -> QRect:
        """Where a field is."""
        look = Look.of(self)
        return QRect(0, look.px(HEADER) + 1 + place * look.px(HIGH), self.width(), look.px(HIGH))

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per field."""
        first, second = self._heads
        return [
            accessible.Item(
                f"{one.name}: {first} {one.first}, {second} {one.second}",
                self.row_rect(place),
                place == self._current,
            )
            for place, one in enumerate(self._differences)
        ]

    def tip(self, place: int) -> str:
        """A field with both values whole, however little room they have."""
        one = self._differences[place]
        first, second = self._heads
        return plain(f"{one.name}\n{first}: {one.first}\n{second}: {one.second}")

    # what the person does

    def _at(self, y: float) -> int:
        look = Look.of(self)
        place = int((y - look.px(HEADER) - 1) // look.px(HIGH))
        return place if 0 <= place < len(self._differences) else -1

    def _point(self, place: int) -> None:
        if place != self._under:
            self._under = place
            self._selection.point_at_field(self._differences[place].path if place >= 0 else "")
            self.setCursor(Qt.CursorShape.PointingHandCursor if place >= 0 else Qt.CursorShape.ArrowCursor)
            self.setToolTip(self.tip(place) if place >= 0 else "")
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(self._at(event.position().y()))

    def leaveEvent(self, event: QEvent) -> None:
        self._point(-1)

    def hideEvent(self, event: QEvent) -> None:
        self._point(-1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position().y())
        if place >= 0 and event.button() is Qt.MouseButton.LeftButton:
            self._current = place
            self._selection.go_to_field(self._differences[place].path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys, last = Qt.Key, len(self._differences) - 1
        self._ring = True
        match event.key():
            case keys.Key_Down:
                self._current = min(self._current + 1, max(last, 0))
            case keys.Key_Up:
                self._current = max(self._current - 1, 0)
            case keys.Key_Return | keys.Key_Enter if last >= 0:
                self._selection.go_to_field(self._differences[self._current].path)
            case _:
                super().keyPressEvent(event)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edge, high = look.px(16), look.px(HEADER)
        first, second = edge + (self.width() - 2 * edge) * 0.40, edge + (self.width() - 2 * edge) * 0.70
        places = ((edge, first), (first, second), (second, float(self.width() - edge)))
        for line in (QRectF(0, 0, self.width(), 1), QRectF(0, high, self.width(), 1)):
            painter.fillRect(line, colours.hairline)
        if self.x() > 0:
            painter.fillRect(QRectF(0, 0, 1, self.height()), colours.hairline)
        title = self._title()
        if self._differences and look.width(title, Role.SMALL, 600) > first - edge - look.px(8):
            title = self._short_title()
        heads = (title, *(self._heads if self._differences else ("", "")))
        for text, place, weight in zip(heads, places, (600, 400, 400), strict=True):
            ink = colours.text if weight == 600 else colours.secondary
            if not self._differences:
                place = (edge, float(self.width() - edge))
            self._write(painter, look, place, QRectF(0, 0, 0, high), text, Role.SMALL, weight, ink)
        for at, one in enumerate(self._differences):
            row = QRectF(self.row_rect(at))
            if at == self._under:
                painter.fillRect(row, colours.hover)
            for text, place, weight, ink in zip(
                (one.name, one.first, one.second),
                places,
                (400, 400, 600),
                (colours.text, colours.secondary, colours.text),
                strict=True,
            ):
                self._write(painter, look, place, row, text, Role.BODY, weight, ink)
            if at == self._current and self._ring and self.hasFocus():
                clear = QColor(0, 0, 0, 0)
                outlined(painter, row.adjusted(1, 1, -1, -1), look.px(4), clear, colours.accent, 2)
        self._paint_rest(painter, look, self.row_rect(len(self._differences)).top() + look.px(8))

    def _paint_rest(self, painter: QPainter, look: Look, top: float) -> None:
        colours = look.colours
        edge, step = look.px(16), look.px(18)
        if self._costs:
            painter.fillRect(QRectF(0, top, self.width(), 1), colours.hairline)
            title = self.tr("What {name} costs").format(name=self._heads[1])
            row = QRectF(0, top + look.px(8), 0, look.px(24))
            whole = (float(edge), float(self.width() - edge))
            self._write(painter, look, whole, row, title, Role.SMALL, 600, colours.text)
            top += look.px(36)
            for lines in self._cost_lines(look, self.width()):
                painter.setBrush(colours.secondary)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.drawEllipse(
                    QPointF(edge + look.px(4), top + step / 2), 2 * look.scale, 2 * look.scale
                )
                painter.setPen(colours.secondary)
                painter.setFont(look.font(Role.SMALL))
                for line in lines:
                    painter.drawText(QRectF(edge + look.px(14), top, self.width(), step), _LEFT, line)
                    top += step
            top += look.px(8)
        painter.fillRect(QRectF(0, top, self.width(), 1), colours.hairline)
        row = QRectF(0, top + look.px(6), 0, look.px(24))
        whole = (float(edge), float(self.width() - edge))
        self._write(painter, look, whole, row, self._same, Role.SMALL, 400, colours.secondary)

    @staticmethod
    def _write(
        painter: QPainter,
        look: Look,
        place: tuple[float, float],
        row: QRectF,
        text: str,
        role: float,
        weight: int,
        ink: QColor,
    ) -> None:
        left, right = place
        room = right - left - look.px(8)
        painter.setPen(ink)
        painter.setFont(look.font(role, weight))
        shown = look.cut(text, room, role, weight)
        painter.drawText(QRectF(left, row.top(), room + 2, row.height()), _LEFT, shown)


def _value(path: str, value: object, numbers: Numbers) -> str:
    field = BY_PATH[path]
    if field.kind is Kind.BYTES and isinstance(value, int):
        return numbers.tip(value)
    return value_text(field, value)
