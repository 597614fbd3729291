"""The open scenario is written a moment after each change and at exit, so that nothing is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from memgui.document.document import Document, State
from memgui.files.bounded import FileFault

log = logging.getLogger(__name__)

DELAY_MS = 2000


class Autosave(QObject):
    """Calls ``write(state)`` when the document has rested, and on :meth:`flush`.

    A fault of ``write`` (:class:`FileFault`) is told once by ``failed(Message)`` until a write succeeds.
    """

    failed = Signal(object)

    def __init__(
        self,
        document: Document,
        write: Callable[[State], None],
        delay_ms: int = DELAY_MS,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._write = write
        self._written: State | None = None
        self._told = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(delay_ms)
        self._timer.timeout.connect(self.flush)
        document.changed.connect(self._timer.start)

    def look_again(self) -> None:
        """Something beside the document's state is to be kept too."""
        self._written = None
        self._timer.start()

    def flush(self) -> None:
        """Write now what is not written yet."""
        self._timer.stop()
        state = self._document.state
        if state == self._written:
            return
        try:
            self._write(state)
        except FileFault as fault:
            log.warning("the open set-up cannot be kept: %s", fault)
            if not self._told:
                self._told = True
                self.failed.emit(fault.message)
            return
        self._written, self._told = state, False
