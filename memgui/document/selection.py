"""What the person points at, shared by legend, donut, bar, Why and the form."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

ComponentPath = tuple[str, ...]
"""Keys of nodes from a top-level component down: ``("activations", "mlp")``; empty: nothing."""


class Selection(QObject):
    """The component selected, the component hovered, and the form field pointed at.

    Every setter ignores what is already so: a view may answer a signal by setting the same value.
    """

    selected = Signal(object)
    """The new selected :data:`ComponentPath`."""
    hovered = Signal(object)
    """The new hovered :data:`ComponentPath`."""
    field_hovered = Signal(str)
    """Path of the field whose number is under the mouse; empty: none.  The form tints its row."""
    field_requested = Signal(str)
    """Path of the field to go to: the form opens its section, scrolls and focuses it."""
    activated = Signal(object)
    """A component was opened (Enter, double click): its :data:`ComponentPath`; Why comes to front."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._component: ComponentPath = ()
        self._hover: ComponentPath = ()
        self._field = ""

    @property
    def component(self) -> ComponentPath:
        """The selected component."""
        return self._component

    @property
    def hover(self) -> ComponentPath:
        """The component under the mouse."""
        return self._hover

    @property
    def field(self) -> str:
        """Path of the field under the mouse in Why."""
        return self._field

    def select(self, path: ComponentPath) -> None:
        """Select a component; ``()`` selects none."""
        if path != self._component:
            self._component = path
            self.selected.emit(path)

    def point_at(self, path: ComponentPath) -> None:
        """Hover a component; ``()`` when the mouse leaves."""
        if path != self._hover:
            self._hover = path
            self.hovered.emit(path)

    def point_at_field(self, path: str) -> None:
        """Hover a field's number; ``""`` when the mouse leaves."""
        if path != self._field:
            self._field = path
            self.field_hovered.emit(path)

    def go_to_field(self, path: str) -> None:
        """Ask the form to show and focus a field."""
        self.field_requested.emit(path)

    def open(self, path: ComponentPath) -> None:
        """Select a component and ask for its reasons."""
        self.select(path)
        self.activated.emit(path)
