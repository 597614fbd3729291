"""The panel at the left: what can be opened with one press, and what is done with one's own presets."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QPainter, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from memgui.catalog import ModelEntry
from memgui.document.document import Document
from memgui.document.library import Library
from memgui.gui.actions import Actions
from memgui.gui.controls.buttons import ToolButton
from memgui.gui.controls.fields import LineEdit
from memgui.gui.controls.scrolling import slim
from memgui.gui.icons import paint_icon, paint_verdict
from memgui.gui.presets_model import COUNT, KEY, KIND, VALUE, VERDICT, PresetsModel, Row
from memgui.gui.theme import Look, Role
from memgui.presets.entries import Entry
from memgui.spec import one_line

Index = QModelIndex | QPersistentModelIndex


class _Paint(QStyledItemDelegate):
    """Headings with chevron and count, rows with the accent's mark at the open preset."""

    def __init__(self, view: QTreeView, document: Document) -> None:
        super().__init__(view)
        self._view = view
        self._document = document

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        look = Look.of(self._view)
        kind = index.data(KIND)
        if kind is Row.HINT:
            room = self._view.viewport().width() - look.px(36)
            text = str(index.data())
            wrapped = look.metrics(Role.SMALL).boundingRect(
                QRectF(0, 0, max(80, room), 1000), Qt.TextFlag.TextWordWrap, text
            )
            return QSize(look.px(80), round(wrapped.height()) + look.px(8))
        return QSize(look.px(80), look.px(32 if kind is Row.HEADING else 28))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        look = Look.of(self._view)
        colours = look.colours
        kind = index.data(KIND)
        rect = QRectF(0, option.rect.top(), self._view.viewport().width(), option.rect.height())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if kind is Row.HINT:
            painter.setPen(colours.secondary)
            painter.setFont(look.font(Role.SMALL))
            painter.drawText(
                rect.adjusted(look.px(28), 0, -look.px(8), 0), Qt.TextFlag.TextWordWrap, str(index.data())
            )
            return
        value = index.data(VALUE)
        is_open = isinstance(value, Entry) and value.key == self._document.state.preset
        self._paint_ground(painter, rect, option, look, is_open)
        left = look.px(28)
        if kind is Row.HEADING:
            name = "chevron-down" if self._view.isExpanded(index) else "chevron-right"
            paint_icon(painter, name, QPointF(look.px(15), rect.center().y()), look.px(14), colours.secondary)
        elif kind is Row.MODEL and index.parent().data(KIND) is Row.FAMILY:
            left = look.px(40)
        right = look.px(12)
        verdict, count = index.data(VERDICT), index.data(COUNT)
        middle = Qt.AlignmentFlag.AlignVCenter
        if verdict:
            paint_verdict(
                painter, verdict, QPointF(rect.right() - look.px(20), rect.center().y()), look.px(16), colours
            )
            right = look.px(32)
        elif count is not None:
            painter.setPen(colours.tertiary)
            painter.setFont(look.font(Role.BODY))
            painter.drawText(rect.adjusted(0, 0, -right, 0), middle | Qt.AlignmentFlag.AlignRight, str(count))
            right += look.px(4) + round(look.metrics(Role.BODY).horizontalAdvance(str(count)))
        room = rect.adjusted(left, 0, -right, 0)
        weight = 600 if kind is Row.HEADING else 500 if is_open else 400
        enabled = bool(index.flags() & Qt.ItemFlag.ItemIsEnabled)
        ink = colours.secondary if kind is Row.HEADING else colours.text if enabled else colours.disabled
        painter.setPen(ink)
        painter.setFont(look.font(Role.BODY, weight))
        text = look.metrics(Role.BODY, weight).elidedText(
            str(index.data()), Qt.TextElideMode.ElideMiddle, room.width()
        )
        painter.drawText(room, middle | Qt.AlignmentFlag.AlignLeft, text)

    def _paint_ground(
        self, painter: QPainter, rect: QRectF, option: QStyleOptionViewItem, look: Look, is_open: bool
    ) -> None:
        colours = look.colours
        box = rect.adjusted(look.px(8), 0, -look.px(8), 0)
        painter.setPen(Qt.PenStyle.NoPen)
        current = option.state & QStyle.StateFlag.State_HasFocus
        if is_open:
            painter.setBrush(colours.selected)
            painter.drawRoundedRect(box, look.px(5), look.px(5))
            painter.setBrush(colours.accent)
            painter.drawRoundedRect(
                QRectF(box.left(), box.top() + look.px(6), 2, box.height() - look.px(12)), 1, 1
            )
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.setBrush(colours.hover)
            painter.drawRoundedRect(box, look.px(5), look.px(5))
        if current:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(colours.accent)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), look.px(5), look.px(5))

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        # Once: news of the row (a verdict) must not take back what is being typed.
        if not editor.property("filled"):
            editor.setProperty("filled", True)
            super().setEditorData(editor, index)

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        name = str(editor.property("text")).strip()
        entry = index.data(VALUE)
        dock = self._view.parentWidget()
        if (
            isinstance(entry, Entry)
            and isinstance(dock, PresetsDock)
            and name
            and name != one_line(entry.name)
        ):
            dock.renamed.emit(entry, name)


class _Tree(QTreeView):
    """A tree whose Enter opens and whose Delete deletes."""

    key_open = Signal()
    key_delete = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.state() is QAbstractItemView.State.EditingState:
            super().keyPressEvent(event)
        elif event.key() == Qt.Key.Key_Delete:
            self.key_delete.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.key_open.emit()
        else:
            super().keyPressEvent(event)


class PresetsDock(QWidget):
    """Search, my presets, recent files, built-in models."""

    renamed = Signal(object, str)

    def __init__(
        self, library: Library, document: Document, actions: Actions, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._document = document
        self._open_preset = ""
        self.setAccessibleName(self.tr("Presets"))
        look = Look.of(self)
        title = QLabel(self.tr("Presets"), self)
        title.setFont(look.font(Role.TITLE, 600))
        self._add = ToolButton("plus", self.tr("Save as a new preset"), self)
        self._add.clicked.connect(lambda: actions.save_as.trigger())
        self._hide = ToolButton("panel", self.tr("Hide this panel"), self)
        self._hide.clicked.connect(lambda: actions.show_presets.setChecked(False))
        self.search = LineEdit("search", self)
        self.search.setPlaceholderText(self.tr("Search presets"))
        self.search.setAccessibleName(self.tr("Search presets"))
        self.search.textChanged.connect(self.fill)
        self.model = PresetsModel(self)
        self.tree = _Tree(self)
        self.tree.setModel(self.model)
        slim(self.tree)
        self.tree.setHeaderHidden(True)
        self.tree.setRootIsDecorated(False)
        self.tree.setIndentation(0)
        self.tree.setMouseTracking(True)
        self.tree.setItemDelegate(_Paint(self.tree, document))
        self.tree.setAccessibleName(self.tr("Presets and models"))
        self.tree.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.tree.viewport().setAutoFillBackground(False)
        self.tree.clicked.connect(self._pressed)
        self.tree.key_open.connect(lambda: self._pressed(self.tree.currentIndex()))
        self.tree.key_delete.connect(self._delete_current)
        self.tree.customContextMenuRequested.connect(self._menu)
        self.renamed.connect(library.rename)
        top = QHBoxLayout()
        top.setContentsMargins(look.px(12), 0, look.px(8), 0)
        top.setSpacing(0)
        top.addWidget(title, 1)
        top.addWidget(self._add)
        top.addWidget(self._hide)
        find = QHBoxLayout()
        find.setContentsMargins(look.px(12), look.px(4), look.px(12), look.px(4))
        find.addWidget(self.search)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, look.px(7), 0, 0)
        column.setSpacing(look.px(4))
        column.addLayout(top)
        column.addLayout(find)
        column.addWidget(self.tree, 1)
        library.changed.connect(self.fill)
        library.nearby.models_found.connect(self.fill)
        document.changed.connect(self._document_changed)

    def fill(self) -> None:
        """Read the lists anew; what was open or shut stays so."""
        before = {
            item.data(KEY): self.tree.isExpanded(item.index())
            for item in self.model.items()
            if item.data(KIND) in (Row.HEADING, Row.FAMILY)
        }
        current = self.tree.currentIndex().data(KEY)
        text = self.search.text().strip()
        focus = self.window().focusWidget()
        self.model.fill(self._library, text)
        if self.tree.isAncestorOf(focus):
            self.tree.setFocus(Qt.FocusReason.OtherFocusReason)  # an editor is gone: its row has the keys
        for item in self.model.items():
            if item.data(KIND) in (Row.HEADING, Row.FAMILY):
                at_first = item.data(KIND) is Row.HEADING and item.data(KEY) != "heading/deleted"
                self.tree.setExpanded(item.index(), bool(text) or before.get(item.data(KEY), at_first))
            if current and item.data(KEY) == current:
                self.tree.setCurrentIndex(item.index())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._library.nearby.look_for_models()

    def set_verdicts(self, verdicts: dict[str, str]) -> None:
        """Show whether each preset fits: verdict kinds by :attr:`Entry.key`."""
        for item in self.model.items():
            entry = item.data(VALUE)
            if isinstance(entry, Entry) and entry.key in verdicts:
                item.setData(verdicts[entry.key], VERDICT)

    def _document_changed(self) -> None:
        if self._document.state.preset != self._open_preset:
            self._open_preset = self._document.state.preset
            self.tree.viewport().update()

    def _pressed(self, index: QModelIndex) -> None:
        if index.data(KIND) in (Row.HEADING, Row.FAMILY):
            self.tree.setExpanded(index, not self.tree.isExpanded(index))
        else:
            self._open(index)

    def _open(self, index: QModelIndex) -> None:
        value = index.data(VALUE)
        if isinstance(value, Entry):
            self._library.open_preset(value)
        elif isinstance(value, Path):
            self._library.open_path(value)
        elif isinstance(value, ModelEntry):
            self._library.use_entry(value)
        elif index.data(KIND) is Row.DELETED:
            self._library.bring_back(value)

    def _delete_current(self) -> None:
        value = self.tree.currentIndex().data(VALUE)
        if isinstance(value, Entry) and self._library.is_own(value):
            self._library.delete(value)
        elif self.tree.currentIndex().data(KIND) is Row.FILE:
            self._library.forget(str(value))

    def _menu(self, at: QPoint) -> None:
        index = self.tree.indexAt(at)
        value = index.data(VALUE)
        if value is None:
            return
        self.tree.setCurrentIndex(index)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        opens = self.tr("Bring it back") if index.data(KIND) is Row.DELETED else self.tr("Open")
        menu.addAction(opens, lambda: self._open(index))
        if isinstance(value, Entry):
            rename = menu.addAction(self.tr("Rename"), lambda: self.tree.edit(index))
            rename.setEnabled(value.writable)
            menu.addAction(self.tr("Duplicate"), lambda: self._library.duplicate(value))
            delete = menu.addAction(self.tr("Delete"), lambda: self._library.delete(value))
            delete.setEnabled(self._library.is_own(value))
        elif index.data(KIND) is Row.FILE:
            menu.addAction(self.tr("Take off the list"), lambda: self._library.forget(str(value)))
        menu.popup(self.tree.viewport().mapToGlobal(at))
