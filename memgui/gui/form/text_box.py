"""A line of text, and a list of names written as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from memgui.gui.controls.fields import LineEdit
from memgui.gui.form.leave_undo import LeaveUndo
from memgui.gui.icons import paint_icon
from memgui.gui.texts import field_text
from memgui.gui.theme import Look
from memgui.spec import one_line
from memgui.spec.fields import Field, Kind
from memgui.spec.values import read

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
LONGEST = 2000
"""Characters a text field takes."""


class TextBox(LineEdit):
    """Shows and takes the text, or the list of names, of one field; Esc takes back what was typed."""

    edited = Signal(object, bool)
    finished = Signal()

    def __init__(self, field: Field, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._field = field
        self._value: str | tuple[str, ...] | None = None
        self._before: str | tuple[str, ...] | None = None
        self.setMaxLength(LONGEST)
        self.setPlaceholderText(field_text(field.empty_label))
        self.textEdited.connect(self._typed)
        self.installEventFilter(LeaveUndo(self))
        self.editingFinished.connect(self._finish)
        self._names: _Names | None = _Names(self) if field.choices else None
        self.offers: Callable[[], Iterable[str]] | None = None
        """Says which names there are to choose from, where it is not the field's choices alone."""

    def value(self) -> str | tuple[str, ...] | None:
        """The value shown."""
        return self._value

    def set_value(self, value: str | tuple[str, ...] | None) -> None:
        """Show a value that came from outside; what is being typed for that very value stays."""
        if value != self._value or not self.isModified():
            self._value = value
            self._show()

    def _show(self) -> None:
        value = self._value
        self._before = value
        text = ", ".join(value) if isinstance(value, tuple) else value or ""
        if text != self.text():
            self.setText(text)
            self.setCursorPosition(0)

    def _typed(self, text: str) -> None:
        text = one_line(text)  # seen written out when it is shown again
        self._set(text if self._field.kind is Kind.TEXT else read(self._field.path, text))

    def _set(self, value: str | tuple[str, ...] | None) -> None:
        if value != self._value:
            self._value = value
            self.edited.emit(value, False)

    def _finish(self) -> None:
        self.setModified(False)
        self._show()
        self.finished.emit()

    def open_menu(self) -> None:
        """Show the field's own names to tick below the box; ticked ones are in the list."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        present = self._value if isinstance(self._value, tuple) else ()
        labels = {choice.value: field_text(choice.label) for choice in self._field.choices}
        offered = labels if self.offers is None else self.offers()
        for name in dict.fromkeys((*offered, *present)):
            action = QAction(labels.get(name, name), menu)
            action.setCheckable(True)
            action.setChecked(name in present)
            action.setData(name)
            menu.addAction(action)
        menu.triggered.connect(self._ticked)
        menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def _ticked(self, action: QAction) -> None:
        name, present = action.data(), self._value if isinstance(self._value, tuple) else ()
        self._set((*present, name) if action.isChecked() else tuple(item for item in present if item != name))
        self._finish()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down and self._names is not None:
            self.open_menu()
        elif event.key() == Qt.Key.Key_Escape and self.isModified():
            self._set(self._before)
            self._finish()
        else:
            super().keyPressEvent(event)

    def cut_at(self) -> float | None:
        """Where the text gives way to an ellipsis (px); ``None`` while it is edited or has room."""
        margins = self.textMargins()
        left, room = margins.left() + 2, self.width() - margins.left() - margins.right() - 4
        metrics = self.fontMetrics()
        if self.hasFocus() or metrics.horizontalAdvance(self.text()) <= room:
            return None
        cut = metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        return left + metrics.horizontalAdvance(cut.removesuffix("…"))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        place = self.cut_at()
        if place is None:
            return
        look = Look.of(self)
        right = self.width() - self.textMargins().right()
        painter = QPainter(self)
        ground = look.colours.raised if self.isEnabled() else look.colours.window
        painter.fillRect(QRectF(place, look.px(4), right - place, self.height() - look.px(8)), ground)
        painter.setPen(look.colours.text if self.isEnabled() else look.colours.disabled)
        painter.setFont(self.font())
        painter.drawText(QRectF(place, 0, right - place + 2, self.height()), _LEFT, "…")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._names is not None:
            side = self.height()
            self._names.setGeometry(self.width() - side, 0, side, side)
            margins = self.textMargins()
            self.setTextMargins(margins.left(), 0, side, 0)


class _Names(QToolButton):
    """The chevron at the end of a list of names."""

    def __init__(self, box: TextBox) -> None:
        super().__init__(box)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the arrow key does the same in the box
        self.setAccessibleName(self.tr("Choose names"))
        self.clicked.connect(box.open_menu)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colour = look.colours.secondary if self.isEnabled() else look.colours.disabled
        centre = QPointF(self.width() - look.px(16), self.height() / 2)
        paint_icon(QPainter(self), "chevron-down", centre, look.px(16), colour)
