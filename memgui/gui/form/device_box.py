"""The accelerator, out of the catalog by search, or under a name of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from memgui.gui.controls.fields import ComboBox
from memgui.gui.search_item import Item
from memgui.gui.theme import Look
from memgui.spec import Device
from memgui.spec.fields import Field

if TYPE_CHECKING:
    from memgui.gui.search_popup import SearchPopup


class DeviceBox(ComboBox):
    """Shows the device's name; opened, it searches ``search`` as one types.

    ``search`` is given by the form; its items carry a :class:`Device`, whose count is not looked at.
    """

    edited = Signal(object, bool)
    """A name of one's own was given; everything else stays."""
    picked = Signal(object)
    """A :class:`Device` of the catalog was taken."""
    finished = Signal()

    def __init__(self, field: Field, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._value = ""
        self.search: Callable[[str], list[Item]] = lambda text: []
        self.addItem("")
        self._popup: SearchPopup | None = None

    def value(self) -> str:
        """The name shown."""
        return self._value

    def set_value(self, value: str) -> None:
        """Show a name that came from outside."""
        if value != self._value:
            self._value = value
            self.setItemText(0, value)

    def showPopup(self) -> None:
        from memgui.gui.search_popup import SearchPopup

        if self._popup is None:
            self._popup = SearchPopup(self._found, self.tr("Search devices"), self)
            self._popup.chosen.connect(self._chosen)
        look = Look.of(self)
        self._popup.open_at(self, look.px(560), look.px(420), self._value)

    def refresh(self) -> None:
        """Search again, because there is more to find."""
        if self._popup is not None:
            self._popup.refresh()

    def _found(self, text: str) -> list[Item]:
        found = self.search(text)
        if text and all(item.title.casefold() != text.casefold() for item in found):
            own = self.tr("Call it “{name}”").format(name=text)
            found = [
                *found,
                Item(own, details=self.tr("A device of your own; give its memory below."), value=text),
            ]
        return found

    def _chosen(self, value: object) -> None:
        if isinstance(value, Device):
            self.picked.emit(value)
        elif isinstance(value, str) and value != self._value:
            self._value = value
            self.setItemText(0, value)
            self.edited.emit(value, False)
        self.finished.emit()
        self.setFocus()
