"""Imports in a thread of their own: the event loop goes on while modules are read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

log = logging.getLogger(__name__)

LOOK_MS = 4
"""So often it is looked whether all is read: no thread touches what Qt may be deleting."""


class Aside(QObject):
    """Calls ``read``, which imports, in another thread; ``then`` in this one when that is done.

    What cannot be imported is left to whoever needs it, where the error is seen.  A process that ends
    waits for the thread.
    """

    def __init__(self, read: Callable[[], None], then: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._then = then
        self.done = False
        """Whether all is read and ``then`` is called."""
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._look)
        self._thread = threading.Thread(target=_read, args=(read,), name="imports")
        self._thread.start()
        self._timer.start()

    def stop(self) -> None:
        """Tell nobody any more."""
        self._timer.stop()

    def _look(self) -> None:
        if not self._thread.is_alive():
            self._timer.stop()
            self.done = True
            self._then()


def _read(read: Callable[[], None]) -> None:
    try:
        read()
    except Exception as fault:
        log.warning("what was to be read ahead cannot be imported: %s", fault)
