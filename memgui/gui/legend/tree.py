"""The scrolling part of the legend: one painted row per component and part."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QTreeView, QWidget

from memgui.document.selection import ComponentPath, Selection
from memgui.gui.controls.frames import by_keyboard, filled, outlined
from memgui.gui.controls.scrolling import slim
from memgui.gui.legend.model import NAME, Index, LegendModel, Row
from memgui.gui.legend.rows import INDENT, ROW, Cells, Columns, paint_cells, paint_chevron, paint_swatch
from memgui.gui.theme import Look, Role


class LegendTree(QTreeView):
    """Qt's tree, its keys and its accessibility, with rows drawn in one go each."""

    rows_changed = Signal()
    """A row was opened or closed: the height of what there is to show is another."""

    def __init__(self, model: LegendModel, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # Found by its name: viewport() would first have Python look through every kind of widget, for 9 ms.
        self.ground: QWidget = self.findChild(QWidget, "qt_scrollarea_viewport")  # type: ignore[assignment]
        self._selection = selection
        self._rows = model
        self._columns: Columns | None = None
        self._ring = False
        self._following = False
        self._current: ComponentPath = ()
        self._open: set[str] = set()
        self.dimmed = 1.0
        model.size = lambda: Look.of(self).size(40, ROW)
        self.setModel(model)
        self.setHeaderHidden(True)
        self.setIndentation(0)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setExpandsOnDoubleClick(False)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        slim(self)
        self.header().setStretchLastSection(True)
        self.expanded.connect(self._opened)
        self.collapsed.connect(self._closed)
        model.modelReset.connect(self._open.clear)
        selection.selected.connect(self.follow)
        selection.hovered.connect(lambda path: self.ground.update())

    def set_columns(self, columns: Columns) -> None:
        """Where the columns end; the header and the total stand on the same edges."""
        if columns != self._columns:
            self._columns = columns
            self.ground.update()

    def update_figures(self, part: QWidget) -> None:
        """Have painted what stands in a part of the legend behind the names."""
        left = self._columns.figures if self._columns is not None else 0
        part.update(left, 0, part.width() - left, part.height())

    def height_of_rows(self) -> int:
        """What all open rows need."""
        rows = self._rows.rows
        count = len(rows) + sum(len(row.parts) for row in rows if row.path[0] in self._open)
        return count * Look.of(self).px(ROW)

    def open_components(self) -> set[str]:
        """Keys of the components whose parts are in sight."""
        return set(self._open)

    def _opened(self, index: QModelIndex) -> None:
        row = self._rows.row_at(index)
        if row is not None:
            self._open.add(row.path[0])
        self.rows_changed.emit()

    def _closed(self, index: QModelIndex) -> None:
        row = self._rows.row_at(index)
        if row is not None:
            self._open.discard(row.path[0])
        self.rows_changed.emit()

    def set_open(self, keys: set[str]) -> None:
        """Open these components and close the others."""
        for number, row in enumerate(self._rows.rows):
            self.setExpanded(self._rows.index(number, 0), row.path[0] in keys)

    def follow(self, path: ComponentPath) -> None:
        """Make the row of a path the current one, its component opened if it is a part."""
        index = self._rows.index_of(path)
        self._following = True
        self.setCurrentIndex(index)
        self._following = False
        row = self._rows.row_at(index)
        self._current = row.path if row is not None else ()
        if index.isValid():
            self.scrollTo(index)

    def dataChanged(self, first: Index, last: Index, roles: Sequence[int] = ()) -> None:
        """All rows are of one height and none is edited; who knows what is another has it painted."""
        from PySide6.QtGui import QAccessible

        if QAccessible.isActive():
            super().dataChanged(first, last, list(roles))

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        row = self._rows.row_at(current)
        self._current = row.path if row is not None else ()
        if row is not None and not self._following:
            self._selection.select(row.path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        self._ring = True
        if event.key() in (keys.Key_Return, keys.Key_Enter):
            row = self._rows.row_at(self.currentIndex())
            if row is not None:
                self._selection.open(row.path)
        elif event.key() == keys.Key_Escape and self._selection.component:
            self._selection.select(())
        elif event.key() == keys.Key_Backspace and len(self._selection.component) > 1:
            self._selection.select(self._selection.component[:-1])
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        index = self.indexAt(at)
        row = self._rows.row_at(index)
        if row is not None and row.parts and at.x() < Look.of(self).px(26):
            first = index.sibling(index.row(), NAME)
            self.setExpanded(first, not self.isExpanded(first))
            return
        self._ring = False
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        row = self._rows.row_at(self.indexAt(at))
        if row is not None and at.x() >= Look.of(self).px(26):
            self._selection.open(row.path)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        row = self._rows.row_at(self.indexAt(event.position().toPoint()))
        self._selection.point_at(row.path if row is not None else ())

    def leaveEvent(self, event: QEvent) -> None:
        self._selection.point_at(())
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        super().focusInEvent(event)
        if self._ring and not self.currentIndex().isValid() and self._rows.rows:
            self.setCurrentIndex(self._rows.index(0, 0))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt's own asks the model and the style for each cell; all that is shown is known here."""
        look, place = Look.of(self), event.rect()
        if self._columns is None:
            return
        high, top = look.px(ROW), -self.verticalScrollBar().value()
        painter = QPainter(self.ground)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for row in self._rows.rows:
            opened = row.path[0] in self._open
            for shown in (row, *row.parts) if opened else (row,):
                if top + high > place.top() and top <= place.bottom():
                    rect = QRectF(0, top, self.ground.width(), high)
                    self._draw_row(painter, look, rect, shown, opened, place.left() < self._columns.figures)
                top += high

    def _draw_row(
        self, painter: QPainter, look: Look, rect: QRectF, row: Row, opened: bool, named: bool
    ) -> None:
        colours = look.colours
        current = row.path == self._current
        if current:
            filled(painter, rect, colours.selected)
            filled(painter, QRectF(0, rect.top(), look.px(3), rect.height()), colours.accent)
        elif self._selection.hover[: len(row.path)] == row.path and self._selection.hover:
            filled(painter, rect, colours.hover)
        painter.setOpacity(self.dimmed)
        self._draw_cells(painter, look, rect, row, opened, current, named)
        painter.setOpacity(1.0)
        if current and self._ring and self.hasFocus():
            clear = QColor(0, 0, 0, 0)
            outlined(painter, rect.adjusted(1, 1, -1, -1), look.px(4), clear, colours.accent, 2)

    def _draw_cells(
        self,
        painter: QPainter,
        look: Look,
        rect: QRectF,
        row: Row,
        opened: bool,
        current: bool,
        named: bool,
    ) -> None:
        assert self._columns is not None
        colours = look.colours
        part = len(row.path) > 1
        indent = look.px(INDENT) if part else 0
        middle = rect.center().y()
        if named:
            if row.parts:
                paint_chevron(painter, look, middle, opened)
            tinted = part and not current
            paint = colours.part(row.path[0], row.place) if tinted else colours.component(row.path[0])
            paint_swatch(painter, look, look.px(26) + indent, middle, paint)
        rise = 0 if not row.change else 1 if row.change > 0 else -1
        name_ink = colours.secondary if part and not current else colours.text
        rest = colours.secondary
        paint_cells(
            painter,
            look,
            rect,
            self._columns,
            Cells(*self._rows.texts(row), rise),
            indent,
            (400 if part else 500, 400 if part else 500, 400, 400),
            (name_ink, name_ink, rest, rest),
            Role.BODY,
            named=named,
        )
