"""One of a field's choices, and on or off."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QStandardItemModel, QWheelEvent
from PySide6.QtWidgets import QWidget

from memgui.gui.controls.buttons import CheckBox
from memgui.gui.controls.fields import ComboBox
from memgui.gui.texts import field_text, message_text
from memgui.spec.fields import Field
from memgui.spec.messages import Message


class ChoiceBox(ComboBox):
    """Shows and takes one of a field's choices; an optional field begins with its empty label."""

    edited = Signal(object, bool)
    finished = Signal()

    def __init__(self, field: Field, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.asks: Callable[[], Mapping[object, Message]] = dict
        """Says which choices cannot be taken now, and why; asked when one may be taken."""
        self._value: str | None = None
        self._tips: dict[object, str] = {}
        if field.optional:
            self.add_choice(None, field_text(field.empty_label))
        for choice in field.choices:
            texts = (field_text(choice.label), field_text(choice.note), field_text(choice.help))
            self.add_choice(choice.value, *texts)
            self._tips[choice.value] = texts[-1]
        self._known = self.count()
        self.setCurrentIndex(-1)
        self.activated.connect(self._chosen)

    def value(self) -> str | None:
        """The value shown."""
        return self._value

    def set_value(self, value: str | None) -> None:
        """Show a value that came from outside; one that is no choice is listed as it stands."""
        if value == self._value and self.currentIndex() >= 0:
            return
        self._value = value
        while self.count() > self._known:
            self.removeItem(self.count() - 1)
        index = self.findData(value)
        if index < 0:
            index = self.count()
            self.add_choice(value, str(value))
        self.setCurrentIndex(index)

    def showPopup(self) -> None:
        self._mark()
        super().showPopup()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._mark()
        super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            self._mark()
        super().wheelEvent(event)

    def _mark(self) -> None:
        """Grey what cannot be taken, with the reason as its tip."""
        reasons = self.asks()
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        for row in range(self._known):
            value = self.itemData(row)
            reason = reasons.get(value)
            model.item(row).setEnabled(reason is None)
            tip = self._tips.get(value, "") if reason is None else message_text(reason)
            self.setItemData(row, tip, Qt.ItemDataRole.ToolTipRole)
            self.setItemData(row, tip, Qt.ItemDataRole.AccessibleDescriptionRole)

    def _chosen(self, index: int) -> None:
        value = self.itemData(index)
        if value != self._value:
            self._value = value
            self.edited.emit(value, False)
        self.finished.emit()


class FlagBox(CheckBox):
    """Shows and takes a flag; the row's label says what it is, the box says on or off."""

    edited = Signal(object, bool)
    finished = Signal()

    def __init__(self, field: Field, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.clicked.connect(self._clicked)
        self.toggled.connect(self._say)
        self._say(False)

    def value(self) -> bool:
        """Whether it is on."""
        return self.isChecked()

    def set_value(self, value: bool) -> None:
        """Show a value that came from outside."""
        self.setChecked(value)

    def set_invalid(self, invalid: bool) -> None:
        """A flag cannot be wrong by itself; what it clashes with is said under it."""

    def _say(self, on: bool) -> None:
        self.setText(self.tr("on") if on else self.tr("off"))

    def _clicked(self, on: bool) -> None:
        self.edited.emit(on, False)
        self.finished.emit()
