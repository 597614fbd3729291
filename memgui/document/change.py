"""A step of the document's undo stack."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtGui import QUndoCommand

if TYPE_CHECKING:
    from memgui.document.document import Document, State


class Change(QUndoCommand):
    """One step from a state to another.  ``paths`` are the fields it touches, none for a load.

    Which preset is open is no part of an edit: undone or done again it leaves that as it is by now.
    A step that ``opens`` goes back to the preset that was open, as it was when the step was last left.
    """

    def __init__(
        self,
        document: Document,
        new: State,
        text: str,
        paths: tuple[str, ...],
        gesture: int,
        beside: Callable[[bool], None] | None = None,
        *,
        opens: bool = False,
    ) -> None:
        super().__init__(text)
        self._beside = beside
        self._opens = opens
        # Weakly: a cycle through Qt's stack would be taken apart by the collector, in the wrong order.
        self._document = weakref.ref(document)
        self._old, self._new = document.state, new
        self._paths, self._gesture = paths, gesture
        self._done_once = False

    def id(self) -> int:
        return 1 if self._paths else -1

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, Change) or other._gesture != self._gesture:
            return False
        if other._paths[0] != self._paths[0]:
            return False
        self._new = other._new
        self.setObsolete(self._new == self._old)
        return True

    def redo(self) -> None:
        self._old = self._go(self._new, self._old, self._paths if self._done_once else None)
        self._done_once = True
        if self._beside is not None:
            self._beside(True)

    def undo(self) -> None:
        self._new = self._go(self._old, self._new, self._paths)
        if self._beside is not None:
            self._beside(False)

    def _go(self, state: State, other: State, look_at: tuple[str, ...] | None) -> State:
        """Go to ``state`` from ``other``; the state to come back to."""
        document = self._document()
        if document is None:
            return other
        left = document.state
        if not self._opens:
            state = msgspec.structs.replace(state, name=left.name, preset=left.preset)
        document.enter(state, look_at)
        return left
