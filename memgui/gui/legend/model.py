"""The rows of the legend as a Qt model: components, and under each its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt

from memgui.document.selection import ComponentPath
from memgui.estimator.result import Estimate, Node
from memgui.gui.names import node_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DISPLAY_ORDER

NAME, SIZE, SHARE, LAST = range(4)
Index = QModelIndex | QPersistentModelIndex


class Row(msgspec.Struct, frozen=True):
    """One row: what is shown of a node.  ``change`` is against the pin, ``None`` while nothing is pinned."""

    path: ComponentPath
    name: str
    bytes: int
    change: int | None
    place: int
    parts: tuple[Row, ...] = ()


def rows_of(estimate: Estimate, pinned: Estimate | None) -> tuple[Row, ...]:
    """Components in display order with their parts; what has no bytes, now and pinned, is left out."""
    found = []
    nodes = {node.key: node for node in estimate.components}
    before = _sizes(pinned) if pinned is not None else None
    for key in DISPLAY_ORDER:
        node = nodes.get(key)
        if node is None or (node.bytes == 0 and not (before and before.get((key,)))):
            continue
        parts = tuple(
            _row((key, part.key), part, before, index)
            for index, part in enumerate(node.children)
            if part.bytes > 0
        )
        found.append(_row((key,), node, before, 0, parts))
    return tuple(found)


def _sizes(estimate: Estimate) -> dict[ComponentPath, int]:
    """Bytes of components and parts by their path."""
    found: dict[ComponentPath, int] = {}
    for node in estimate.components:
        found[(node.key,)] = node.bytes
        found.update({(node.key, part.key): part.bytes for part in node.children})
    return found


def _row(
    path: ComponentPath,
    node: Node,
    before: Mapping[ComponentPath, int] | None,
    place: int,
    parts: tuple[Row, ...] = (),
) -> Row:
    change = None if before is None else node.bytes - before.get(path, 0)
    return Row(path, node_name(node), node.bytes, change, place, parts)


class LegendModel(QAbstractItemModel):
    """Two levels of :class:`Row`; an index's id is its component's row plus one, 0 for a component."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Row, ...] = ()
        self._total = 0
        self._numbers: Numbers | None = None
        self.size: Callable[[], QSize] | None = None
        """How large the view paints a cell of each row."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The components' rows."""
        return self._rows

    def show(self, rows: tuple[Row, ...], total: int, numbers: Numbers) -> bool:
        """Show other figures; whether the rows themselves are others now (expansion is lost then)."""
        before = [(row.path, [part.path for part in row.parts]) for row in self._rows]
        after = [(row.path, [part.path for part in row.parts]) for row in rows]
        self._total, self._numbers = total, numbers
        if before == after:
            self._rows = rows
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, LAST))
            return False
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()
        return True

    def row_at(self, index: Index) -> Row | None:
        """The row of an index."""
        if not index.isValid():
            return None
        above = index.internalId()
        rows = self._rows[above - 1].parts if above else self._rows
        return rows[index.row()] if index.row() < len(rows) else None

    def index_of(self, path: ComponentPath) -> QModelIndex:
        """The index of a path, or of its nearest ancestor with a row; invalid where there is none."""
        for number, row in enumerate(self._rows):
            if path[:1] == row.path:
                for place, part in enumerate(row.parts):
                    if path[:2] == part.path:
                        return self.createIndex(place, 0, number + 1)
                return self.createIndex(number, 0, 0)
        return QModelIndex()

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        if not parent.isValid():
            return self.createIndex(row, column, 0) if 0 <= row < len(self._rows) else QModelIndex()
        if parent.internalId() or not 0 <= row < len(self._rows[parent.row()].parts):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1)

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        above = index.internalId() if index.isValid() else 0
        return self.createIndex(above - 1, 0, 0) if above else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        if not parent.isValid():
            return len(self._rows)
        if parent.internalId() or parent.column() > 0:
            return 0
        return len(self._rows[parent.row()].parts)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return LAST + 1

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.row_at(index)
        numbers = self._numbers
        if row is None or numbers is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.texts(row)[index.column()]
        if role == Qt.ItemDataRole.SizeHintRole:
            return self.size() if self.size is not None else None
        if role == Qt.ItemDataRole.AccessibleTextRole:
            if index.column() == NAME:
                share = numbers.share(row.bytes, self._total)
                return f"{row.name}, {numbers.tip(row.bytes)}, {share}"
            return self.data(index)
        if role == Qt.ItemDataRole.ToolTipRole:
            return numbers.exact(row.bytes)
        return None

    def texts(self, row: Row) -> tuple[str, str, str, str]:
        """What the columns of a row say."""
        numbers = self._numbers
        if numbers is None:
            return row.name, "", "", ""
        last = numbers.grouped(row.bytes) if row.change is None else numbers.delta(row.change)
        return row.name, numbers.two(row.bytes), numbers.share(row.bytes, self._total), last

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if role != Qt.ItemDataRole.DisplayRole or orientation is not Qt.Orientation.Horizontal:
            return None
        return self.titles()[section]

    def titles(self) -> tuple[str, str, str, str]:
        """The columns' names."""
        pinned = any(row.change is not None for row in self._rows)
        unit = self._numbers.unit if self._numbers is not None else ""
        return (
            self.tr("Component"),
            unit,
            self.tr("Share"),
            self.tr("vs pinned") if pinned else self.tr("Bytes"),
        )
