"""The sweep as a table: a row for each value, the need, its range, the verdict, each component."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from memgui.document.view_settings import ViewSettings
from memgui.document.what_if import Swept
from memgui.estimator.result import COMPONENTS
from memgui.gui.controls.scrolling import slim
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DISPLAY_ORDER
from memgui.gui.texts import field_text, issue_text
from memgui.gui.theme import Look, Role
from memgui.gui.whatif.values import value_text
from memgui.planning.sweep import Point
from memgui.spec.fields import BY_PATH

Index = QModelIndex | QPersistentModelIndex
_PLACE = {key: index for index, key in enumerate(COMPONENTS)}
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class SweepModel(QAbstractTableModel):
    """Rows are made when they are looked at."""

    def __init__(self, view: ViewSettings, parent: QWidget) -> None:
        super().__init__(parent)
        self._view = view
        self._swept: Swept | None = None
        self._keys: tuple[str, ...] = ()

    def show_sweep(self, swept: Swept | None) -> None:
        """List another sweep; components with nothing at any value have no column."""
        self.beginResetModel()
        self._swept = swept
        found = swept.known if swept is not None else ()
        self._keys = tuple(
            key for key in DISPLAY_ORDER if any(point.components[_PLACE[key]] for point in found)
        )
        self.endResetModel()

    def point(self, row: int) -> Point:
        """The point in a row."""
        assert self._swept is not None
        return self._swept.points[row]

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  # Qt's own default
        return len(self._swept.points) if self._swept is not None and not parent.isValid() else 0

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else 4 + len(self._keys)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal or self._swept is None:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        unit = Numbers.of(self._view.view).unit
        field = field_text(BY_PATH[self._swept.plan.path].label)
        heads = (field, self.tr("Total, {unit}").format(unit=unit), self.tr("Likely"), self.tr("Spare"))
        return heads[section] if section < 4 else component_name(self._keys[section - 4], short=True)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or self._swept is None:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT
        point = self.point(index.row())
        if role == Qt.ItemDataRole.ToolTipRole and point.issue is not None:
            return issue_text(point.issue)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        numbers = Numbers.of(self._view.view)
        column = index.column()
        if column == 0:
            return value_text(self._swept.plan.path, point.value, numbers)
        if point.issue is not None:
            return "–"
        if column == 1:
            return numbers.two(point.peak_bytes)
        if column == 2:
            return f"{numbers.two(point.low_bytes)}–{numbers.two(point.high_bytes)}"
        if column == 3:
            return numbers.two(point.capacity_bytes - point.peak_bytes)
        return numbers.two(point.components[_PLACE[self._keys[column - 4]]])


class _Head(QHeaderView):
    """Small secondary texts over a hairline."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), Look.of(self).px(24))

    def paintSection(self, painter: QPainter, rect: QRect, index: int) -> None:
        look, model = Look.of(self), self.model()
        painter.fillRect(rect, look.colours.base)
        painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, look.colours.hairline)
        painter.setPen(look.colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        text = str(model.headerData(index, Qt.Orientation.Horizontal) or "")
        painter.drawText(rect.adjusted(0, 0, -look.px(4), 0), _RIGHT, text)


class SweepTable(QTableView):
    """Enter or a double click gives the field the row's value."""

    chosen = Signal(object)

    def __init__(self, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = SweepModel(view, self)
        self.setModel(self.rows)
        slim(self)
        look = Look.of(self)
        self.setAccessibleName(self.tr("The sweep as a table"))
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(look.px(24))
        self.setCornerWidget(QWidget(self))  # nothing is framed between the bars
        head = _Head(self)
        self.setHorizontalHeader(head)
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setHighlightSections(False)
        self.doubleClicked.connect(lambda index: self.chosen.emit(self.rows.point(index.row()).value))

    def show_sweep(self, swept: Swept | None) -> None:
        """List another sweep, at the same place."""
        place = self.verticalScrollBar().value()
        self.rows.show_sweep(swept)
        self._fit()
        self.verticalScrollBar().setValue(place)

    def _fit(self) -> None:
        look = Look.of(self)
        last = self.rows.rowCount() - 1
        for column in range(self.rows.columnCount()):
            head = str(self.rows.headerData(column, Qt.Orientation.Horizontal))
            texts = [str(self.rows.data(self.rows.index(row, column))) for row in (0, last) if row >= 0]
            wide = max(look.width(head, Role.BODY, 500), *(look.width(text) for text in ("", *texts)))
            self.setColumnWidth(column, round(wide) + look.px(22))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        index = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and index.isValid():
            self.chosen.emit(self.rows.point(index.row()).value)
        elif event.matches(QKeySequence.StandardKey.Copy):
            event.ignore()  # the page copies all of it, not one cell
        else:
            super().keyPressEvent(event)
