"""Undo is the document's, also while the cursor stands in a field."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QKeyEvent, QKeySequence

KEYS = (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo)


class LeaveUndo(QObject):
    """An event filter: keeps a line edit from taking the keys of undo and redo for its own text."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or event.type() is not QEvent.Type.ShortcutOverride:
            return False
        if not any(event.matches(key) for key in KEYS):
            return False
        event.ignore()  # nobody overrides it: the window's action gets the key
        return True
