"""Painted pictures for screen readers: each thing in them is a child with a name and a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec
from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleInterface, QColor
from PySide6.QtWidgets import QAccessibleWidget, QWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QWindow


class Item(msgspec.Struct, frozen=True):
    """One thing in a picture: what it is called, where it is in the widget, whether it is selected."""

    name: str
    rect: QRect
    selected: bool = False


@runtime_checkable
class Painted(Protocol):
    """A widget that tells what it has painted."""

    accessible_role: str
    """What the picture is: a name of ``QAccessible.Role``, whose enums a start does not wait for."""
    item_role: str
    """What each thing in it is."""

    def accessible_items(self) -> Sequence[Item]:
        """The things in the picture now, in the order of the keyboard."""
        ...


class _Child(QAccessibleInterface):
    """The ``index``-th thing of a picture; what it says is asked of the widget each time."""

    def __init__(self, owner: PaintedInterface, index: int) -> None:
        super().__init__()
        self._owner = owner
        self._index = index

    def _item(self) -> Item | None:
        items = self._owner.items()
        return items[self._index] if self._index < len(items) else None

    def isValid(self) -> bool:
        return self._item() is not None

    def object(self) -> QObject | None:  # type: ignore[override]
        return None

    def window(self) -> QWindow:
        return self._owner.widget().window().windowHandle()

    def parent(self) -> QAccessibleInterface:
        return self._owner

    def child(self, index: int) -> QAccessibleInterface | None:  # type: ignore[override]
        return None

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:  # type: ignore[override]
        return None

    def childCount(self) -> int:
        return 0

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1

    def text(self, kind: QAccessible.Text) -> str:
        item = self._item()
        return item.name if item is not None and kind is QAccessible.Text.Name else ""

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Names are not for writing."""

    def rect(self) -> QRect:
        item = self._item()
        if item is None:
            return QRect()
        return QRect(self._owner.widget().mapToGlobal(item.rect.topLeft()), item.rect.size())

    def role(self) -> QAccessible.Role:
        return self._owner.item_role()

    def state(self) -> QAccessible.State:
        state = QAccessible.State()
        item = self._item()
        state.selectable = True
        state.selected = item is not None and item.selected
        return state

    def foregroundColor(self) -> QColor:
        return self._owner.foregroundColor()

    def backgroundColor(self) -> QColor:
        return self._owner.backgroundColor()


class PaintedInterface(QAccessibleWidget):
    """The interface of a :class:`Painted` widget."""

    def __init__(self, widget: QWidget) -> None:
        assert isinstance(widget, Painted)
        super().__init__(widget, QAccessible.Role[widget.accessible_role], widget.accessibleName())
        self._children: list[_Child] = []

    def items(self) -> Sequence[Item]:
        """What the widget shows now."""
        widget: Any = self.widget()
        return widget.accessible_items() if widget is not None else ()

    def item_role(self) -> QAccessible.Role:
        """What each thing is."""
        widget: Any = self.widget()
        return QAccessible.Role[widget.item_role]

    def childCount(self) -> int:
        return len(self.items())

    def child(self, index: int) -> QAccessibleInterface | None:  # type: ignore[override]
        if not 0 <= index < self.childCount():
            return None
        while len(self._children) <= index:
            self._children.append(_Child(self, len(self._children)))
        return self._children[index]

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:  # type: ignore[override]
        at = self.widget().mapFromGlobal(QPoint(x, y))
        for index, item in enumerate(self.items()):
            if item.rect.contains(at):
                return self.child(index)
        return None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return next((index for index, known in enumerate(self._children) if known is child), -1)

    def text(self, kind: QAccessible.Text) -> str:
        widget = self.widget()
        if kind is QAccessible.Text.Name:
            return widget.accessibleName()
        return widget.accessibleDescription() if kind is QAccessible.Text.Description else ""


_known: dict[QObject, PaintedInterface] = {}


def _make(name: str, thing: QObject) -> QAccessibleInterface | None:
    if isinstance(thing, QWidget) and isinstance(thing, Painted):
        made = PaintedInterface(thing)
        # Qt holds no reference to the Python half: it lives as long as its widget.
        _known[thing] = made
        thing.destroyed.connect(lambda: _known.pop(thing, None))
        return made
    return None


_installed = False


def install(*shown: QWidget) -> None:
    """Tell Qt once how to describe painted widgets; each calls it when it is made.

    ``shown`` are those that were made, and may have been asked for, before.
    """
    global _installed
    if not _installed:
        _installed = True
        QAccessible.installFactory(_make)
    for widget in shown if QAccessible.isActive() else ():
        described = QAccessible.queryAccessibleInterface(widget)
        if not isinstance(described, PaintedInterface):
            QAccessible.deleteAccessibleInterface(QAccessible.uniqueId(described))
