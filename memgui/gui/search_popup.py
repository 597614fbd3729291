"""A list to search as one types, over the field it was opened from: models, devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLabel,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from memgui.gui.controls.fields import LineEdit
from memgui.gui.controls.scrolling import slim
from memgui.gui.search_item import Item
from memgui.gui.texts import breakable
from memgui.gui.theme import Look, Role

Index = QModelIndex | QPersistentModelIndex


class _Rows(QAbstractListModel):
    """The items of the moment."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._items: list[Item] = []

    def show_items(self, items: list[Item]) -> None:
        self.beginResetModel()
        self._items = items
        self.endResetModel()

    def item(self, row: int) -> Item | None:
        return self._items[row] if 0 <= row < len(self._items) else None

    def row_of(self, title: str) -> int:
        """The row with that title, or -1."""
        return next((row for row, item in enumerate(self._items) if item.title == title), -1)

    def heading(self, row: int) -> str:
        """The group that begins with this row, if one does."""
        group = self._items[row].group
        return group if row == 0 or self._items[row - 1].group != group else ""

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._items)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        item = self.item(index.row())
        if item is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return item.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{item.title}, {item.note}" if item.note else item.title
        return None


class _Paint(QStyledItemDelegate):
    """Rows 28 high, with a heading above the first of a group."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        look = Look.of(option.widget)
        model = index.model()
        heading = isinstance(model, _Rows) and model.heading(index.row())
        return QSize(look.px(120), look.px(28 + 24 if heading else 28))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.model()
        item = model.item(index.row()) if isinstance(model, _Rows) else None
        if item is None:
            return
        look = Look.of(option.widget)
        rect = QRectF(option.rect)
        middle = Qt.AlignmentFlag.AlignVCenter
        if isinstance(model, _Rows) and model.heading(index.row()):
            top = QRectF(rect.left() + look.px(10), rect.top(), rect.width(), look.px(24))
            painter.setPen(look.colours.tertiary)
            painter.setFont(look.font(Role.SMALL, 600))
            painter.drawText(top, middle, item.group)
            rect.setTop(top.bottom())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = option.state & QStyle.StateFlag.State_Selected
        if chosen or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colours.selected if chosen else look.colours.hover)
            painter.drawRoundedRect(rect.adjusted(2, 0, -2, 0), look.px(5), look.px(5))
        inner = rect.adjusted(look.px(10), 0, -look.px(10), 0)
        note_width = look.metrics(Role.SMALL).horizontalAdvance(item.note)
        room = inner.width() - note_width - look.px(12) if item.note else inner.width()
        title = look.metrics().elidedText(item.title, Qt.TextElideMode.ElideMiddle, room)
        painter.setPen(look.colours.text)
        painter.setFont(look.font())
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignLeft, title)
        painter.setPen(look.colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignRight, item.note)


class SearchPopup(QFrame):
    """Opened below a field: type, arrow keys, Enter; Esc and a click elsewhere close it."""

    chosen = Signal(object)
    """The :attr:`Item.value` taken."""

    def __init__(
        self,
        search: Callable[[str], list[Item]],
        prompt: str,
        parent: QWidget,
        *,
        details: bool = True,
    ) -> None:
        """``search`` gives the rows for a text, best first; with ``details`` they are told at the right."""
        super().__init__(parent, Qt.WindowType.Popup)
        self._search = search
        self._rows = _Rows(self)
        self.line = LineEdit("search", self)
        self.line.setPlaceholderText(prompt)
        self.line.setAccessibleName(prompt)
        self.line.setClearButtonEnabled(False)
        self.list = QListView(self)
        slim(self.list)
        self.list.setModel(self._rows)
        self.list.setItemDelegate(_Paint(self.list))
        self.list.setMouseTracking(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.list.setAccessibleName(self.tr("Results"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.empty = QLabel(self.tr("Nothing is called so."), self)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.details = QLabel(self)
        self.details.setWordWrap(True)
        self.details.setTextFormat(Qt.TextFormat.PlainText)
        self.details.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._lay_out(details)
        self.line.installEventFilter(self)
        self.line.textChanged.connect(self._typed)
        self.list.clicked.connect(self._take)
        self.list.selectionModel().currentChanged.connect(self._tell)

    def _lay_out(self, details: bool) -> None:
        look = Look.of(self)
        gap = look.px(8)
        column = QVBoxLayout(self)
        column.setContentsMargins(gap, gap, gap, gap)
        column.setSpacing(gap)
        column.addWidget(self.line)
        line = QHBoxLayout()
        line.setSpacing(gap)
        line.addWidget(self.list, 1)
        line.addWidget(self.empty, 1)
        line.addWidget(self.details)
        column.addLayout(line, 1)
        self.details.setMargin(gap)
        self.details.setFixedWidth(look.px(232))
        self.details.setFont(look.font(Role.SMALL))
        self.details.setVisible(details)
        self.empty.hide()

    def open_at(self, field: QWidget, width: int, height: int, current: str = "") -> None:
        """Open it over ``field``, at least as wide, in px; the row titled ``current`` is chosen."""
        top_left = field.mapToGlobal(QPoint(0, 0))
        screen = field.screen().availableGeometry()
        width = min(max(width, field.width()), screen.width())
        height = min(height, screen.height())
        x = max(screen.left(), min(top_left.x(), screen.right() - width))
        y = max(screen.top(), min(top_left.y(), screen.bottom() - height))
        self.setGeometry(x, y, width, height)
        self.line.clear()
        self._typed("")
        self.show()
        row = self._rows.row_of(current)
        if row > 0:
            self.list.setCurrentIndex(self._rows.index(row))
            self.list.scrollTo(self.list.currentIndex(), QAbstractItemView.ScrollHint.PositionAtCenter)
        self.line.setFocus(Qt.FocusReason.PopupFocusReason)

    def refresh(self) -> None:
        """Search again, because there is more to find; the chosen row stays chosen."""
        if not self.isVisible():
            return
        item = self._rows.item(self.list.currentIndex().row())
        self._typed(self.line.text())
        row = self._rows.row_of(item.title) if item is not None else -1
        if row >= 0:
            self.list.setCurrentIndex(self._rows.index(row))

    def _typed(self, text: str) -> None:
        items = self._search(text.strip())
        self._rows.show_items(items)
        self.list.setVisible(bool(items))
        self.empty.setVisible(not items)
        if items:
            self.list.setCurrentIndex(self._rows.index(0))
            self.list.scrollToTop()
        self._tell()

    def _tell(self) -> None:
        item = self._rows.item(self.list.currentIndex().row())
        self.details.setText(breakable(item.details) if item is not None else "")

    def _take(self, index: QModelIndex) -> None:
        item = self._rows.item(index.row())
        if item is not None:
            self.close()
            self.chosen.emit(item.value)

    def _move(self, steps: int) -> None:
        count = self._rows.rowCount()
        if count:
            row = min(count - 1, max(0, self.list.currentIndex().row() + steps))
            self.list.setCurrentIndex(self._rows.index(row))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._key(event.key())
        return False

    def _key(self, key: int) -> bool:
        keys = Qt.Key
        page = max(1, self.list.height() // max(1, Look.of(self).px(28)) - 1)
        moves = {keys.Key_Down: 1, keys.Key_Up: -1, keys.Key_PageDown: page, keys.Key_PageUp: -page}
        if key in moves:
            self._move(moves[Qt.Key(key)])
        elif key in (keys.Key_Return, keys.Key_Enter):
            self._take(self.list.currentIndex())
        elif key == keys.Key_Escape:
            self.close()
        else:
            return False
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.setPen(QPen(look.colours.border, 1))
        painter.setBrush(look.colours.base)
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
