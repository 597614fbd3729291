"""The heat map: two fields against each other, a figure in each cell, the line where it stops fitting."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from memgui.document.view_settings import ViewSettings
from memgui.gui import accessible
from memgui.gui.controls.frames import by_keyboard, painting
from memgui.gui.numbers import Numbers
from memgui.gui.palette import hatch_brush, mixed
from memgui.gui.texts import field_text, issue_text
from memgui.gui.theme import THEME_EVENTS, Look, Role
from memgui.gui.verdict.bar import DIMMED
from memgui.gui.whatif.values import axis_title, axis_value, value_text
from memgui.planning.grid import Cell, Grid
from memgui.spec.fields import BY_PATH

_CENTRE = Qt.AlignmentFlag.AlignCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CELL = (38, 26)
"""Least width and height of a cell, at a 13 px body."""
FRAME = 4
"""What the frame of the present cell takes of its width, in px."""


class HeatMap(QWidget):
    """Arrows go from cell to cell, Enter or a click gives both fields the cell's values."""

    chosen = Signal(object)
    """The values by path that the person wants."""
    room = Signal(int, int)
    """How many columns and rows there is room for."""

    accessible_role = "Table"
    item_role = "Cell"

    def __init__(self, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._view = view
        self._grid: Grid | None = None
        self._limit = 0
        self._present: tuple[object, object] = (None, None)
        self._at: tuple[int, int] | None = None
        self._hover: tuple[int, int] | None = None
        self._ring = False
        self._picture: QPixmap | None = None
        self.stale = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Memory over two fields"))

    def show_grid(self, grid: Grid | None, limit: int) -> None:
        """Draw another grid; ``limit`` is the device's (bytes)."""
        self._grid, self._limit = grid, limit
        if self._at is not None and (
            grid is None or self._at[0] >= len(grid.xs) or self._at[1] >= len(grid.ys)
        ):
            self._at = None
        self._hover = None
        self.repaint_all()

    def repaint_all(self) -> None:
        """Throw the kept picture away."""
        self._picture = None
        self.update()

    def show_present(self, x: object, y: object) -> None:
        """Outline the cell with these values."""
        if (x, y) != self._present:
            self._present = (x, y)
            self.update()

    @property
    def grid(self) -> Grid | None:
        """What is drawn."""
        return self._grid

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(360), look.px(290))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(220), look.px(130))

    def _area(self, look: Look) -> QRectF:
        left = float(look.px(46))
        return QRectF(left, 2.0, self.width() - left - 2, self.height() - look.px(38))

    def least_width(self) -> float:
        """Of a cell in px: four digits have room inside the frame, whatever the font."""
        look, figure = Look.of(self), Numbers.of(self._view.view).grouped(9999)
        return max(look.px(CELL[0]), look.width(figure, Role.CAPTION, 600) + 2 + FRAME)

    def _shape(self) -> tuple[int, int]:
        grid = self._grid
        return (len(grid.xs), len(grid.ys)) if grid is not None else (0, 0)

    def cell_rect(self, column: int, row: int) -> QRectF:
        """Where a cell is; the first row is the lowest."""
        area = self._area(Look.of(self))
        columns, rows = self._shape()
        wide, high = area.width() / columns, min(area.height() / rows, Look.of(self).px(52))
        return QRectF(area.left() + column * wide, area.top() + (rows - row - 1) * high, wide, high)

    def _cell_at(self, position: QPointF) -> tuple[int, int] | None:
        columns, rows = self._shape()
        if not columns or not rows:
            return None
        first = self.cell_rect(0, 0)
        column = int((position.x() - first.left()) // first.width())
        row = int((first.bottom() - position.y()) // first.height())
        return (column, row) if 0 <= column < columns and 0 <= row < rows else None

    def cell(self, at: tuple[int, int]) -> Cell:
        """The cell in a column and a row."""
        assert self._grid is not None
        return self._grid.rows[at[1]][at[0]]

    def said(self, at: tuple[int, int]) -> str:
        """A cell in words: both values, the need, the spare or what lacks."""
        grid, numbers = self._grid, Numbers.of(self._view.view)
        assert grid is not None
        cell = self.cell(at)
        parts = [
            f"{field_text(BY_PATH[path].label)} {value_text(path, values[index], numbers)}"
            for path, values, index in ((grid.x_path, grid.xs, at[0]), (grid.y_path, grid.ys, at[1]))
        ]
        if cell.issue is not None:
            return f"{', '.join(parts)}: {issue_text(cell.issue)}"
        gap = numbers.tip(abs(cell.headroom_bytes))
        if cell.kind == "tight":
            outcome = self.tr("tight")
        elif cell.headroom_bytes >= 0:
            outcome = self.tr("{size} spare").format(size=gap)
        else:
            outcome = self.tr("{size} too much").format(size=gap)
        return f"{', '.join(parts)}: {numbers.tip(cell.peak_bytes)}, {outcome}"

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per cell, row by row from below."""
        columns, rows = self._shape()
        return [
            accessible.Item(
                self.said((column, row)),
                self.cell_rect(column, row).toAlignedRect(),
                (column, row) == self._at,
            )
            for row in range(rows)
            for column in range(columns)
        ]

    # what the person does

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = self._cell_at(event.position())
        if at != self._hover:
            self._hover = at
            self.setCursor(
                Qt.CursorShape.PointingHandCursor if at is not None else Qt.CursorShape.ArrowCursor
            )
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hover = None
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._cell_at(event.position())
        if event.button() is Qt.MouseButton.LeftButton and at is not None:
            self._at = at
            self._choose(at)

    def _choose(self, at: tuple[int, int]) -> None:
        grid = self._grid
        if grid is not None and self.cell(at).issue is None:
            self.chosen.emit({grid.x_path: grid.xs[at[0]], grid.y_path: grid.ys[at[1]]})

    def keyPressEvent(self, event: QKeyEvent) -> None:
        columns, rows = self._shape()
        keys = Qt.Key
        moves = {keys.Key_Left: (-1, 0), keys.Key_Right: (1, 0), keys.Key_Up: (0, 1), keys.Key_Down: (0, -1)}
        self._ring = True
        if columns and event.key() in moves:
            x, y = self._at or self._present_cell() or (0, 0)
            by = moves[keys(event.key())]
            self._at = (min(max(x + by[0], 0), columns - 1), min(max(y + by[1], 0), rows - 1))
            self.setAccessibleDescription(self.said(self._at))
            self.update()
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space) and self._at is not None:
            self._choose(self._at)
        else:
            super().keyPressEvent(event)

    def _present_cell(self) -> tuple[int, int] | None:
        grid, (x, y) = self._grid, self._present
        if grid is None or x not in grid.xs or y not in grid.ys:
            return None
        return grid.xs.index(x), grid.ys.index(y)

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            at = self._cell_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), self.said(at) if at is not None else "", self)
            return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()
        super().focusOutEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        look = Look.of(self)
        area = self._area(look)
        columns = min(max(int(area.width() // self.least_width()), 3), 40)
        rows = min(max(int(area.height() // look.px(CELL[1])), 3), 40)
        self._picture = None
        self.room.emit(columns, rows)
        super().resizeEvent(event)

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        grid = self._grid
        columns, rows = self._shape()
        if grid is None or not columns or not rows:
            return
        look, ratio = Look.of(self), self.devicePixelRatioF()
        if self._picture is None or self._picture.devicePixelRatio() != ratio:
            self._picture = self._painted(look, ratio)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.stale:
            painter.setOpacity(DIMMED)
        painter.drawPixmap(0, 0, self._picture)
        marks = ((self._present_cell(), look.colours.accent), (self._hover, look.colours.secondary))
        ring = self._at if self._ring and self.hasFocus() else None
        for at, colour in (*marks, (ring, look.colours.text)):
            if at is not None:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(colour, 2))
                painter.drawRoundedRect(self.cell_rect(*at).adjusted(2, 2, -2, -2), look.px(3), look.px(3))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in THEME_EVENTS:
            self.repaint_all()
        super().changeEvent(event)

    def _painted(self, look: Look, ratio: float) -> QPixmap:
        """Cells, boundary and axes, whatever is marked among them."""
        with painting(self.size().toSizeF(), ratio, look.colours.base) as (picture, painter):
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_grid(painter, look)
        return picture

    def _paint_grid(self, painter: QPainter, look: Look) -> None:
        grid, numbers = self._grid, Numbers.of(self._view.view)
        columns, rows = self._shape()
        assert grid is not None
        known = [cell for row in grid.rows for cell in row if cell.fits]
        least = min((cell.peak_bytes for cell in known), default=0)
        for row in range(rows):
            for column in range(columns):
                self._paint_cell(painter, look, numbers, (column, row), least)
        self._paint_boundary(painter, look)
        self._paint_axes(painter, look, numbers)

    def _paint_cell(
        self, painter: QPainter, look: Look, numbers: Numbers, at: tuple[int, int], least: int
    ) -> None:
        cell, rect = self.cell(at), self.cell_rect(*at).adjusted(1, 1, -1, -1)
        colours = look.colours
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._fill(look, cell, least))
        painter.drawRoundedRect(rect, 2, 2)
        if cell.kind == "tight":
            painter.setBrush(hatch_brush(mixed(colours.warn, colours.base, 0.55), self.devicePixelRatioF()))
            painter.drawRoundedRect(rect, 2, 2)
        text = "–" if cell.issue is not None else _figure(cell.peak_bytes, numbers)
        weight = 600 if cell.fits or cell.kind == "tight" else 400
        room = rect.width() - FRAME
        role = Role.SMALL if look.width(text, Role.SMALL, weight) <= room - 2 else Role.CAPTION
        if look.width(text, role, weight) > room:
            text = _thousands(cell.peak_bytes, numbers)
        if look.width(text, role, weight) > rect.width():
            return
        painter.setFont(look.font(role, weight))
        painter.setPen(colours.text if weight == 600 else colours.tertiary)
        painter.drawText(rect, _CENTRE, text)

    def _fill(self, look: Look, cell: Cell, least: int) -> QColor:
        colours = look.colours
        if cell.kind == "tight":
            return mixed(colours.warn, colours.base, 0.10)
        if not cell.fits:
            return colours.window
        share = (cell.peak_bytes - least) / max(self._limit - least, 1)
        low, high = (0.18, 0.62) if not colours.dark else (0.25, 0.70)
        return mixed(
            colours.component("weights").fill, colours.base, low + (high - low) * min(max(share, 0), 1)
        )

    def _paint_boundary(self, painter: QPainter, look: Look) -> None:
        assert self._grid is not None
        first = self.cell_rect(0, 0)
        pen = QPen(look.colours.text, 2.4)
        pen.setCapStyle(Qt.PenCapStyle.SquareCap)
        painter.setPen(pen)
        for edge in self._grid.boundary():
            painter.drawLine(
                QPointF(first.left() + edge.x0 * first.width(), first.bottom() - edge.y0 * first.height()),
                QPointF(first.left() + edge.x1 * first.width(), first.bottom() - edge.y1 * first.height()),
            )

    def _paint_axes(self, painter: QPainter, look: Look, numbers: Numbers) -> None:
        grid = self._grid
        assert grid is not None
        colours = look.colours
        painter.setFont(look.font(Role.CAPTION))
        for axis, (path, values) in enumerate(((grid.x_path, grid.xs), (grid.y_path, grid.ys))):
            for index, value in enumerate(values):
                painter.setPen(colours.secondary)
                text = axis_value(path, value, numbers)
                if axis == 0:
                    cell = self.cell_rect(index, 0)
                    rect = QRectF(cell.left(), cell.bottom() + 2, cell.width(), look.px(16))
                    if look.width(text, Role.CAPTION) <= cell.width() + 2:
                        painter.drawText(rect, _CENTRE, text)
                else:
                    cell = self.cell_rect(0, index)
                    rect = QRectF(look.px(14), cell.top(), cell.left() - look.px(20), cell.height())
                    painter.drawText(rect, _RIGHT, text)
        painter.setPen(colours.tertiary)
        bottom = self.cell_rect(0, 0).bottom() + look.px(18)
        area = self._area(look)
        painter.drawText(
            QRectF(area.left(), bottom, area.width(), look.px(16)), _CENTRE, axis_title(grid.x_path, numbers)
        )
        painter.save()
        top = self.cell_rect(0, len(grid.ys) - 1).top()
        painter.translate(look.px(8), (top + self.cell_rect(0, 0).bottom()) / 2)
        painter.rotate(-90)
        room = bottom - top
        painter.drawText(QRectF(-room / 2, -look.px(8), room, look.px(16)), _CENTRE, self.side_title(room))
        painter.restore()

    def side_title(self, room: float) -> str:
        """What stands along the rows: the field and its unit, without the unit where it has no room (px)."""
        if self._grid is None:
            return ""
        look, path = Look.of(self), self._grid.y_path
        whole = axis_title(path, Numbers.of(self._view.view))
        if look.width(whole, Role.CAPTION) <= room:
            return whole
        return look.cut(field_text(BY_PATH[path].label), room, Role.CAPTION)


def _thousands(size: int, numbers: Numbers) -> str:
    """``12k``, where all figures have no room."""
    return f"{numbers.grouped((size + 500 * numbers.unit_bytes) // (1000 * numbers.unit_bytes))}k"


def _figure(size: int, numbers: Numbers) -> str:
    """Three figures: ``40.7``, ``115``, ``1,240``."""
    if size * 10 >= numbers.unit_bytes * 999.5:
        return numbers.grouped((2 * size + numbers.unit_bytes) // (2 * numbers.unit_bytes))
    return numbers.two(size) if size * 10 < numbers.unit_bytes else numbers.one(size)
