"""How things are shown: units, theme, motion.  Chosen once, the same everywhere."""

from __future__ import annotations

from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

UNITS = ("GiB", "GB")
THEMES = ("system", "light", "dark")


class View(msgspec.Struct, frozen=True):
    """``units`` and ``theme``: one of the tuples above; ``language``: a locale name, empty for the system."""

    units: str = "GiB"
    theme: str = "system"
    language: str = ""
    reduced_motion: bool = False

    def __post_init__(self) -> None:
        if self.units not in UNITS or self.theme not in THEMES:
            raise ValueError(f"units are one of {UNITS}, theme one of {THEMES}: not {self}")

    @property
    def unit_bytes(self) -> int:
        """Bytes in one unit."""
        return 2**30 if self.units == "GiB" else 10**9


class ViewSettings(QObject):
    """The present :class:`View`; ``changed(View)`` tells that it is another."""

    changed = Signal(object)
    figures_changed = Signal(object)
    """The units are others: figures are to be written anew.  Colours and motion are none of theirs."""

    def __init__(self, view: View | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._view = view or View()

    @property
    def view(self) -> View:
        """How things are shown now."""
        return self._view

    def change(self, **values: Any) -> None:
        """Set some of :class:`View`'s values; ``ValueError`` where one is not allowed."""
        new = msgspec.structs.replace(self._view, **values)
        if new != self._view:
            others = new.units != self._view.units
            self._view = new
            self.changed.emit(new)
            if others:
                self.figures_changed.emit(new)
