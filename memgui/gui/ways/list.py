"""The list of ways: one row each, chosen by key or mouse, applied by its button or Enter."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from memgui.gui.controls.frames import by_keyboard, outlined
from memgui.gui.controls.scrolling import slim
from memgui.gui.theme import Look
from memgui.gui.ways.model import Index, WaysModel
from memgui.gui.ways.painting import (
    ROW,
    Columns,
    button_rect,
    columns_for,
    paint_button,
    paint_line,
    row_height,
)


class _Rows(QStyledItemDelegate):
    """Paints the rows; the view knows what is touched."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        view = option.widget
        return QSize(100, view.height_of(index) if isinstance(view, WaysList) else 0)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        view = option.widget
        if isinstance(view, WaysList):
            view.paint_row(painter, QRectF(option.rect), index)


class WaysList(QListView):
    """Arrows choose a way, Enter or its button applies it."""

    applied = Signal(object)
    """The :class:`memgui.planning.ways.Way` that the person applied."""

    def __init__(self, model: WaysModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ways = model
        self._columns: Columns | None = None
        self._longest = 1
        self._ring = False
        self._under = -1
        self._on_button = False
        self._pressed = -1
        self.touched = False
        """Whether the person chose the current row, and not the order of the rows."""
        self.setModel(model)
        self.setItemDelegate(_Rows(self))
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Its room is always taken, so that the columns do not move when it is needed.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAccessibleName(self.tr("Ways to fit"))
        self.setAccessibleDescription(self.tr("Enter applies the chosen way."))
        slim(self)
        self.viewport().setAutoFillBackground(False)
        model.modelReset.connect(self._measure)

    def columns(self) -> Columns:
        """Where the columns are at the present width; the header stands on the same edges."""
        if self._columns is None:
            self._columns = columns_for(Look.of(self), float(self.viewport().width()))
        return self._columns

    def height_of(self, index: Index) -> int:
        """Height of a row in px: what it costs is told whole where the column is narrow."""
        look, line = Look.of(self), self._ways.line_at(index)
        return look.px(ROW) if line is None else row_height(look, self.columns(), line)

    def choose(self, row: int) -> None:
        """Make a row the current one, if there is such a row."""
        if 0 <= row < self._ways.rowCount():
            self.setCurrentIndex(self._ways.index(row))

    def button_at(self, row: int) -> QRectF:
        """Where the button of a row is, in px of the viewport."""
        rect = QRectF(self.visualRect(self._ways.index(row)))
        return button_rect(Look.of(self), self.columns(), rect)

    def _measure(self) -> None:
        self._longest = self._ways.longest()
        self._under = self._pressed = -1

    def _apply(self, index: QModelIndex) -> None:
        line = self._ways.line_at(index)
        if line is not None:
            self.applied.emit(line.way)

    def paint_row(self, painter: QPainter, rect: QRectF, index: Index) -> None:
        """Ground, texts, bar and button of a row."""
        line = self._ways.line_at(index)
        if line is None:
            return
        look = Look.of(self)
        colours = look.colours
        row = index.row()
        current = row == self.currentIndex().row()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if current:
            painter.fillRect(rect, colours.selected)
            painter.fillRect(QRectF(0, rect.top(), look.px(3), rect.height()), colours.accent)
        elif row == self._under:
            painter.fillRect(rect, colours.hover)
        painter.fillRect(QRectF(0, rect.bottom() - 1, rect.width(), 1), colours.hairline)
        paint_line(painter, look, rect, self.columns(), line, self._ways.base, self._longest)
        touched = row == self._under and self._on_button
        down = row == self._pressed and touched
        button = button_rect(look, self.columns(), rect)
        paint_button(painter, look, button, self.tr("Apply"), current, touched, down)
        if current and self._ring and self.hasFocus():
            clear = QColor(0, 0, 0, 0)
            outlined(painter, rect.adjusted(1, 1, -1, -2), look.px(4), clear, colours.accent, 2)
        painter.restore()

    def _point(self, at: QPoint) -> None:
        index = self.indexAt(at)
        row = index.row() if index.isValid() else -1
        on_button = row >= 0 and self.button_at(row).contains(at)
        if (row, on_button) != (self._under, self._on_button):
            self._under, self._on_button = row, on_button
            self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(event.position().toPoint())
        if self._pressed < 0:
            super().mouseMoveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._ring = False
        self.touched = True
        self._point(event.position().toPoint())
        if event.button() is Qt.MouseButton.LeftButton and self._on_button:
            self._pressed = self._under
            self.choose(self._under)
            self.viewport().update()
        else:
            super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._point(event.position().toPoint())
        pressed, self._pressed = self._pressed, -1
        self.viewport().update()
        if pressed < 0:
            super().mouseReleaseEvent(event)
        elif pressed == self._under and self._on_button:
            self._apply(self._ways.index(pressed))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """A second press of the button is a press; elsewhere it is nothing."""
        self.mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._ring = self.touched = True
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._apply(self.currentIndex())
        else:
            super().keyPressEvent(event)
        self.viewport().update()

    def leaveEvent(self, event: QEvent) -> None:
        self._under, self._on_button = -1, False
        self.viewport().update()
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        super().focusInEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._columns = None

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._columns = None
        super().changeEvent(event)
