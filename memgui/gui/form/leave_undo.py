"""Undo is the document's, also while the cursor stands in a field."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QKeyEvent, QKeySequence

KEYS = (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo)


class LeaveUndo(QObject):
    """An event filter: keeps a line edit from taking the keys of undo and redo for its own text.

    ``has_own`` says whether the field has text that the document knows nothing of: then the field undoes it.
    """

    def __init__(self, parent: QObject, has_own: Callable[[], bool] = bool) -> None:
        super().__init__(parent)
        self._has_own = has_own

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or event.type() is not QEvent.Type.ShortcutOverride:
            return False
        if not any(event.matches(key) for key in KEYS):
            return False
        if event.matches(KEYS[0]) and self._has_own():
            event.accept()
        else:
            event.ignore()  # nobody overrides it: the window's action gets the key
        return True
