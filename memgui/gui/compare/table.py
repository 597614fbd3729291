"""The components of the set-ups in figures, with the differences of the chosen one from the first."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from memgui.document.selection import ComponentPath, Selection
from memgui.estimator.result import COMPONENTS
from memgui.gui import accessible
from memgui.gui.compare.painting import difference
from memgui.gui.controls.frames import by_keyboard, outlined
from memgui.gui.legend.rows import INDENT, paint_chevron, paint_swatch, paint_triangle
from memgui.gui.metrics import RIGHT
from memgui.gui.names import component_name
from memgui.gui.numbers import UNCHANGED, Numbers
from memgui.gui.palette import DISPLAY_ORDER
from memgui.gui.theme import Look, Role
from memgui.gui.ways.texts import tip
from memgui.planning.compare import Comparison, Row

HIGH, HEADER = 24, 28
_NAME, _FIGURE, _DELTA, _PERCENT = 160, 72, 92, 68

Edges = tuple[list[float], float, float]
"""Right edges of the figures, of the difference and of the per cent, in px."""


class Line(msgspec.Struct, frozen=True):
    """A row as it is written.  ``sizes`` by column shown; ``rise`` is the sign of the difference."""

    path: ComponentPath
    name: str
    sizes: tuple[str, ...]
    delta: str
    percent: str
    rise: int
    tip: str
    parts: int = 0


class DeltaTable(QWidget):
    """Rows open and close like the legend's, and share its selection."""

    accessible_role = "Table"
    item_role = "Row"

    def __init__(self, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._selection = selection
        self._comparison: Comparison | None = None
        self._numbers: Numbers | None = None
        self._column = 0
        self._open: set[str] = set()
        self._lines: list[Line] = []
        self._at_foot: tuple[Line, Line] | None = None
        self._shown: tuple[int, ...] = ()
        self._kinds: list[str] = []
        self._ring = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Differences by component"))
        selection.selected.connect(self.update)
        selection.hovered.connect(self.update)

    @property
    def lines(self) -> Sequence[Line]:
        """The rows in sight, without total and spare."""
        return self._lines

    @property
    def foot(self) -> tuple[Line, Line] | None:
        """The total and what is spare."""
        return self._at_foot

    @property
    def shown(self) -> tuple[int, ...]:
        """Which columns have figures here: all of them where there is room, else the first and the chosen."""
        return self._shown

    def show_comparison(self, comparison: Comparison, column: int, numbers: Numbers) -> None:
        """Show what sets ``column`` apart from the first."""
        self._comparison, self._column, self._numbers = comparison, column, numbers
        self._write()

    def _write(self) -> None:
        comparison, numbers = self._comparison, self._numbers
        if comparison is None or numbers is None:
            return
        self._shown = self._columns_shown(len(comparison.columns))
        rows = {row.path: row for row in comparison.rows}
        self._lines = []
        for key in DISPLAY_ORDER:
            parts = [row for row in comparison.rows if row.path[:1] == (key,) and len(row.path) == 2]
            if any(rows[(key,)].sizes):
                self._lines.append(self._line(rows[(key,)], numbers, "estimator", len(parts)))
                if key in self._open:
                    self._lines += [self._line(row, numbers, "estimator") for row in parts if any(row.sizes)]
        total = self._line(comparison.total, numbers, "compare")
        spare = self._line(comparison.spare, numbers, "compare")
        self._at_foot = (total, msgspec.structs.replace(spare, percent=""))
        found = (column.estimate for column in comparison.columns)
        self._kinds = ["unknown" if one is None else one.verdict.kind for one in found]
        self.updateGeometry()
        self.update()

    def _columns_shown(self, count: int) -> tuple[int, ...]:
        look = Look.of(self)
        room = self.width() - look.px(_NAME + _DELTA + _PERCENT + 16)
        if count <= 2 or count * look.px(_FIGURE) <= room:
            return tuple(range(count))
        return (0, self._column) if self._column else (0,)

    def _line(self, row: Row, numbers: Numbers, context: str, parts: int = 0) -> Line:
        name = QCoreApplication.translate(context, row.label)
        sizes = tuple(self._size(row.sizes[at], numbers) for at in self._shown)
        gap, reference = row.delta(self._column), row.sizes[0]
        if self._column == 0 or gap is None or reference is None:
            delta, percent, rise = "", "", 0
        else:
            delta, percent, rise = difference(numbers, gap, reference)
        exact = [
            f"{column.name}: {numbers.exact(size)}"
            for column, size in zip(self._comparison.columns, row.sizes, strict=True)  # type: ignore[union-attr]
            if size is not None
        ]
        if gap:
            exact.append(f"{self.versus()}: {numbers.exact(gap)}")
        return Line(row.path, name, sizes, delta, percent, rise, tip(name, exact), parts)

    @staticmethod
    def _size(size: int | None, numbers: Numbers) -> str:
        return UNCHANGED if size is None else numbers.two(size)

    def versus(self) -> str:
        """``B − A``."""
        if self._comparison is None or self._column == 0:
            return ""
        columns = self._comparison.columns
        return f"{columns[self._column].name} − {columns[0].name}"

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(480), look.px(HEADER) + (len(self._lines) + 2) * look.px(HIGH) + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(Look.of(self).px(240), self.sizeHint().height())

    def row_rect(self, place: int) -> QRect:
        """Where a row is."""
        look = Look.of(self)
        return QRect(0, look.px(HEADER) + 1 + place * look.px(HIGH), self.width(), look.px(HIGH))

    def _at(self, at: QPoint) -> int:
        look = Look.of(self)
        place = (at.y() - look.px(HEADER) - 1) // look.px(HIGH)
        return place if 0 <= place < len(self._lines) else -1

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per row: name, figures, difference."""
        if self._comparison is None:
            return ()
        letters = [str(self._comparison.columns[at].name) for at in self._shown]
        items = []
        for place, line in enumerate((*self._lines, *(self._at_foot or ()))):
            sizes = ", ".join(f"{name} {size}" for name, size in zip(letters, line.sizes, strict=True))
            change = f"; {self.versus()} {line.delta} {line.percent}" if line.delta else ""
            selected = bool(line.path) and line.path == self._selection.component
            items.append(accessible.Item(f"{line.name}: {sizes}{change}", self.row_rect(place), selected))
        return items

    # what the person does

    def _toggle(self, line: Line) -> None:
        if line.parts:
            self._open ^= {line.path[0]}
            self._write()

    def _place(self) -> int:
        path = self._selection.component
        for length in (2, 1):
            for place, line in enumerate(self._lines):
                if path and line.path == path[:length]:
                    return place
        return -1

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        place = self._place()
        self._ring = True
        match event.key():
            case keys.Key_Down if self._lines:
                self._selection.select(self._lines[min(place + 1, len(self._lines) - 1)].path)
            case keys.Key_Up if self._lines:
                self._selection.select(self._lines[max(place - 1, 0)].path)
            case keys.Key_Right | keys.Key_Left | keys.Key_Space if place >= 0:
                line = self._lines[place]
                opens = event.key() == keys.Key_Right
                if event.key() == keys.Key_Space or opens != (line.path[0] in self._open):
                    self._toggle(line)
            case keys.Key_Return | keys.Key_Enter if place >= 0:
                self._selection.open(self._lines[place].path)
            case _:
                super().keyPressEvent(event)
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position().toPoint())
        self._selection.point_at(self._lines[place].path if place >= 0 else ())

    def leaveEvent(self, event: QEvent) -> None:
        self._selection.point_at(())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position().toPoint())
        self._ring = False
        if place < 0 or event.button() is not Qt.MouseButton.LeftButton:
            return
        line = self._lines[place]
        if line.parts and event.position().x() < Look.of(self).px(26):
            self._toggle(line)
        else:
            self._selection.select(line.path)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position().toPoint())
        if place >= 0:
            self._selection.open(self._lines[place].path)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            look = Look.of(self)
            place = (event.pos().y() - look.px(HEADER) - 1) // look.px(HIGH)
            every = (*self._lines, *(self._at_foot or ()))
            if 0 <= place < len(every):
                QToolTip.showText(event.globalPos(), every[place].tip, self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()

    def resizeEvent(self, event: QEvent) -> None:
        if self._comparison is not None and self._shown != self._columns_shown(len(self._comparison.columns)):
            self._write()

    # painting

    def _edges(self, look: Look) -> Edges:
        percent = self.width() - look.px(16)
        widest = max((look.width(line.percent) for line in self._lines), default=0.0)
        delta = percent - max(widest + look.px(24), look.px(_PERCENT))
        right = delta - look.px(_DELTA)
        if self._column == 0:
            right = percent
        figures = [right - look.px(_FIGURE) * (len(self._shown) - 1 - at) for at in range(len(self._shown))]
        return [float(edge) for edge in figures], float(delta), float(percent)

    def paintEvent(self, event: QPaintEvent) -> None:
        comparison, numbers = self._comparison, self._numbers
        if comparison is None or numbers is None:
            return
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edges = self._edges(look)
        self._paint_header(painter, look, edges, numbers, comparison)
        for place, line in enumerate(self._lines):
            rect = QRectF(self.row_rect(place))
            current = bool(line.path) and line.path == self._selection.component[:2]
            if current:
                painter.fillRect(rect, colours.selected)
                painter.fillRect(QRectF(0, rect.top(), look.px(3), rect.height()), colours.accent)
            elif self._selection.hover[: len(line.path)] == line.path and self._selection.hover:
                painter.fillRect(rect, colours.hover)
            self._paint_name(painter, look, edges, rect, line, current)
            weight = 400 if len(line.path) > 1 else 500
            self._paint_figures(painter, look, edges, rect, line, weight, [colours.text] * len(line.sizes))
            if current and self._ring and self.hasFocus():
                clear = QColor(0, 0, 0, 0)
                outlined(painter, rect.adjusted(1, 1, -1, -1), look.px(4), clear, colours.accent, 2)
        if self._ring and self.hasFocus() and self._place() < 0:
            outlined(painter, QRectF(self.rect()), look.px(4), QColor(0, 0, 0, 0), colours.accent, 2)
        self._paint_foot(painter, look, edges)

    def _paint_header(
        self, painter: QPainter, look: Look, edges: Edges, numbers: Numbers, comparison: Comparison
    ) -> None:
        height = look.px(HEADER)
        for y in (0, height):
            painter.fillRect(QRectF(0, y, self.width(), 1), look.colours.hairline)
        small = look.metrics(Role.SMALL)
        painter.setPen(look.colours.secondary)
        title = self.tr("Component, {unit}").format(unit=numbers.unit)
        small.write(painter, QRectF(look.px(46), 0, self.width(), height), title)
        figures, delta, percent = edges
        heads = [
            (str(comparison.columns[at].name), edge) for at, edge in zip(self._shown, figures, strict=True)
        ]
        if self._column:
            heads += [(self.versus(), delta), (self.tr("Change"), percent)]
        for text, edge in heads:
            small.write(painter, QRectF(0, 0, edge, height), text, RIGHT)

    def _paint_name(
        self, painter: QPainter, look: Look, edges: Edges, rect: QRectF, line: Line, current: bool
    ) -> None:
        colours = look.colours
        part = len(line.path) > 1
        middle = rect.center().y()
        left = look.px(46)
        if line.parts:
            paint_chevron(painter, look, middle, line.path[0] in self._open)
        if part:
            left += look.px(INDENT)
            place = [one.path for one in self._lines if one.path[0] == line.path[0]].index(line.path) - 1
            paint_swatch(painter, look, left - look.px(20), middle, colours.part(line.path[0], place))
        elif line.path and line.path[0] in COMPONENTS:
            paint_swatch(painter, look, left - look.px(20), middle, colours.component(line.path[0]))
        figures, _, _ = edges
        room = (figures[0] if figures else self.width()) - look.px(_FIGURE) + look.px(8) - left
        weight = 400 if part else 500
        painter.setPen(colours.secondary if part and not current else colours.text)
        name = line.name
        if not part and look.width(name, Role.BODY, weight) > room:
            name = component_name(line.path[0], short=True)
        metrics = look.metrics(Role.BODY, weight)
        shown = metrics.cut(name, max(room, look.px(40)))
        metrics.write(painter, QRectF(left, rect.top(), room + 2, rect.height()), shown)

    def _paint_figures(
        self,
        painter: QPainter,
        look: Look,
        edges: Edges,
        rect: QRectF,
        line: Line,
        weight: int,
        inks: Sequence[QColor],
    ) -> None:
        figures, delta, percent = edges
        metrics = look.metrics(Role.BODY, weight)
        for text, edge, ink in zip(line.sizes, figures, inks, strict=True):
            painter.setPen(ink)
            metrics.write(painter, QRectF(0, rect.top(), edge, rect.height()), text, RIGHT)
        if not line.delta:
            return
        grey = look.colours.secondary if weight < 600 else look.colours.text
        painter.setPen(grey)
        for text, edge in ((line.delta, delta), (line.percent, percent)):
            metrics.write(painter, QRectF(0, rect.top(), edge, rect.height()), text, RIGHT)
        if line.rise:
            wide = look.width(line.delta, Role.BODY, weight)
            paint_triangle(painter, look, delta - wide - look.px(9), rect.center().y(), line.rise, grey)

    def _paint_foot(self, painter: QPainter, look: Look, edges: Edges) -> None:
        if self._at_foot is None:
            return
        colours = look.colours
        total, spare = self._at_foot
        rect = QRectF(self.row_rect(len(self._lines)))
        painter.fillRect(QRectF(0, rect.top(), self.width(), 1), colours.border)
        rect.translate(0, 1)
        painter.setPen(colours.text)
        look.metrics(Role.BODY, 600).write(painter, rect.adjusted(look.px(46), 0, 0, 0), total.name)
        self._paint_figures(painter, look, edges, rect, total, 600, [colours.text] * len(total.sizes))
        rect.translate(0, look.px(HIGH))
        painter.setPen(colours.secondary)
        look.metrics().write(painter, rect.adjusted(look.px(46), 0, 0, 0), spare.name)
        inks = [colours.verdict(self._kinds[at]) for at in self._shown]
        self._paint_figures(painter, look, edges, rect, spare, 400, inks)
