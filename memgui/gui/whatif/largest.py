"""The largest value that fits on each device, and what the next one lacks: the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.document.view_settings import ViewSettings
from memgui.gui import accessible
from memgui.gui.controls.frames import by_keyboard, outlined
from memgui.gui.numbers import Numbers
from memgui.gui.texts import field_text, issue_text, message_text
from memgui.gui.theme import Look, Role
from memgui.planning.solve import Bound
from memgui.planning.sweep import Crossing
from memgui.spec import Device, Issue
from memgui.spec.fields import BY_PATH

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_ROW, _TITLE, _HEAD = 24, 32, 22


class LargestTable(QWidget):
    """One row a device; Enter or a click takes the row's value."""

    chosen = Signal(object)
    """The value that the person wants."""

    accessible_role = "Table"
    item_role = "Row"

    def __init__(self, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._view = view
        self._path = ""
        self._found: tuple[Crossing, ...] = ()
        self._fault = ""
        self._first: Device | None = None
        self._at = -1
        self._hover = -1
        self._ring = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setAccessibleName(self.tr("Largest that fits"))

    def show_found(self, path: str, found: Sequence[Crossing]) -> None:
        """List what was found for the field at ``path``, the chosen device's first."""
        self._path = path
        self._first = found[0].device if found else None
        self._found = tuple(sorted(found, key=lambda one: one.device.memory_bytes))
        self._at = min(self._at, len(found) - 1)
        self._hover = -1
        self.updateGeometry()
        self.update()

    def show_fault(self, fault: Issue | None) -> None:
        """Say why nothing is listed; an old list would pass for the answer."""
        self._fault = issue_text(fault) if fault is not None else ""
        if fault is not None:
            self._found, self._at = (), -1
        self.setAccessibleDescription(self._fault)
        self.updateGeometry()
        self.update()

    def title(self) -> str:
        """What is listed."""
        if not self._path:
            return self.tr("Largest that fits")
        return self.tr("Largest that fits: {field}").format(field=field_text(BY_PATH[self._path].label))

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Device, largest value, what stays free at it, the next value, what that one lacks: the proof."""
        numbers = Numbers.of(self._view.view)
        return [self._row(one, numbers) for one in self._found]

    def _row(self, one: Crossing, numbers: Numbers) -> tuple[str, str, str, str, str]:
        solution = one.solution
        at, beyond = solution.estimate, solution.next_estimate
        largest = self.tr("none") if solution.largest is None else numbers.grouped(solution.largest)
        spare = numbers.tip(at.verdict.headroom_bytes) if at is not None else "–"
        following = numbers.grouped(solution.next) if solution.next is not None else "–"
        if beyond is not None:
            lacks = numbers.tip(-beyond.verdict.headroom_bytes)
        elif solution.bound is Bound.FIELD:
            lacks = self.tr("no limit")
        else:
            lacks = self.tr("not allowed")
        return one.device.name, largest, spare, following, lacks

    def why(self, index: int) -> str:
        """What else than the memory keeps a value from being larger; empty where nothing does."""
        issue = self._found[index].solution.issue
        return message_text(issue.message) if issue is not None else ""

    def said(self, index: int) -> str:
        """A row in words, whatever of it has room."""
        device, largest, spare, following, lacks = self.rows()[index]
        solution = self._found[index].solution
        if solution.next is None:
            text = self.tr("{device}: {largest}, spare {spare}").format(
                device=device, largest=largest, spare=spare
            )
        elif solution.largest is None:
            text = self.tr("{device}: none, {next} lacks {lacks}").format(
                device=device, next=following, lacks=lacks
            )
        else:
            text = self.tr("{device}: {largest}, spare {spare}; {next} lacks {lacks}").format(
                device=device, largest=largest, spare=spare, next=following, lacks=lacks
            )
        why = self.why(index)
        return f"{text}. {why}" if why else text

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        rows = max(3 if self._fault else 1, len(self._found))
        return QSize(look.px(300), look.px(_TITLE + _HEAD + _ROW * rows + 8))

    def minimumSizeHint(self) -> QSize:
        return QSize(Look.of(self).px(220), self.sizeHint().height())

    def _row_rect(self, index: int) -> QRectF:
        look = Look.of(self)
        return QRectF(0, look.px(_TITLE + _HEAD + _ROW * index), self.width(), look.px(_ROW))

    def _index_at(self, y: float) -> int:
        look = Look.of(self)
        index = int((y - look.px(_TITLE + _HEAD)) // look.px(_ROW))
        return index if 0 <= index < len(self._found) else -1

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per device."""
        return [
            accessible.Item(self.said(index), self._row_rect(index).toAlignedRect(), index == self._at)
            for index in range(len(self._found))
        ]

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(self._index_at(event.position().y()))

    def leaveEvent(self, event: QEvent) -> None:
        self._point(-1)

    def _point(self, index: int) -> None:
        if index != self._hover:
            self._hover = index
            self.setToolTip(self.said(index) if index >= 0 else "")
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self._index_at(event.position().y())
        if event.button() is Qt.MouseButton.LeftButton and index >= 0:
            self._at = index
            self._choose()

    def _choose(self) -> None:
        if 0 <= self._at < len(self._found):
            largest = self._found[self._at].solution.largest
            if largest is not None:
                self.chosen.emit(largest)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        self._ring = True
        if event.key() in (keys.Key_Up, keys.Key_Down) and self._found:
            by = 1 if event.key() == keys.Key_Down else -1
            self._at = min(max(self._at + by, 0), len(self._found) - 1)
            self.update()
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space):
            self._choose()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self._at = max(self._at, 0)
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._path and not self._fault:
            return  # nothing is known yet, not even that there is no largest value
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(QRectF(0, 0, self.width(), look.px(_TITLE)), _LEFT, self.title())
        if not self._found:
            painter.setPen(colours.secondary)
            painter.setFont(look.font(Role.SMALL))
            said = self._fault or self.tr("This field has no largest value.")
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
            room = QRectF(0, look.px(_TITLE + 2), self.width(), self.height() - look.px(_TITLE + 2))
            painter.drawText(room, flags, said)
            return
        rows = self.rows()
        heads = ("", self.tr("Largest"), self.tr("Spare"), self.tr("Next"), self.tr("Lacks"))
        edges = _edges(look, rows, heads, self.width())
        painter.setPen(colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        for column, edge in edges.items():
            painter.drawText(QRectF(0, look.px(_TITLE), edge, look.px(_HEAD)), _RIGHT, heads[column])
        for index, row in enumerate(rows):
            self._paint_row(painter, look, index, row, edges)

    def _paint_row(
        self, painter: QPainter, look: Look, index: int, row: Sequence[str], edges: Mapping[int, float]
    ) -> None:
        rect = self._row_rect(index)
        colours = look.colours
        if index == self._hover:
            outlined(painter, rect.adjusted(-4, 0, 4, 0), look.px(4), colours.hover, colours.hover)
        if self._ring and self.hasFocus() and index == self._at:
            outlined(painter, rect, look.px(4), colours.selected, colours.accent, 2)
        chosen = self._found[index].device == self._first
        first = edges[1] - look.width(row[1], Role.BODY, 600) - look.px(12)
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600 if chosen else 400))
        painter.drawText(rect, _LEFT, look.cut(row[0], first, Role.BODY, 600 if chosen else 400))
        for column, edge in edges.items():
            painter.setPen(colours.text if column == 1 else colours.secondary)
            painter.setFont(look.font(Role.BODY, 600 if column == 1 else 400))
            painter.drawText(QRectF(rect.left(), rect.top(), edge, rect.height()), _RIGHT, row[column])


def _edges(look: Look, rows: Sequence[Sequence[str]], heads: Sequence[str], width: float) -> dict[int, float]:
    """Right edge of each column of figures, by its place in a row.

    What stays free gives way where the names would be cut: the next value and what it lacks are the proof.
    """
    wide = {
        column: max(
            look.width(heads[column], Role.SMALL),
            *(look.width(row[column], Role.BODY, 600 if column == 1 else 400) for row in rows),
        )
        for column in (1, 2, 3, 4)
    }
    gap = look.px(12)
    names = max(look.width(row[0], Role.BODY, 600) for row in rows)
    if names + sum(wide.values()) + gap * len(wide) > width:
        del wide[2]
    edges: dict[int, float] = {}
    right = width - 2.0
    for column in reversed(wide):
        edges[column] = right
        right -= wide[column] + gap
    return dict(reversed(edges.items()))
