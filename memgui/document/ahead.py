"""Work done ahead, a piece in each turn of the event loop: what is read from disk before it is needed.

It is done here and not in a thread.  PySide6 makes a class of Qt's when its name is first looked up,
and another thread that looks it up meanwhile finds one without its enums.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

from PySide6.QtCore import QObject, QTimer

log = logging.getLogger(__name__)

Pieces = Iterator[threading.Thread | None]
"""Does a piece whenever it is asked for another; waits for the thread that it gives, if it gives one."""


class Ahead(QObject):
    """Does ``pieces`` one in a turn, then calls ``then``, unless it is gone.

    What cannot be imported is left to whoever needs it, where the error is seen.
    """

    def __init__(self, pieces: Pieces, then: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._pieces = pieces
        self._then = then
        self._thread: threading.Thread | None = None
        self.done = False
        """Whether all is done and ``then`` is called."""
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._go_on)
        self._timer.start()

    def stop(self) -> None:
        """Do nothing more, and tell nobody."""
        self._timer.stop()

    def _go_on(self) -> None:
        if self._thread is not None:
            if self._thread.is_alive():
                return
            self._thread = None
            self._timer.setInterval(0)
        try:
            self._thread = next(self._pieces)
        except StopIteration:
            self._end()
        except ImportError as fault:
            log.warning("what was to be read ahead cannot be imported: %s", fault)
            self._end()
        if self._thread is not None:
            self._timer.setInterval(LOOK_MS)

    def _end(self) -> None:
        self._timer.stop()
        gc.freeze()  # modules stay: the search for garbage need not go through them, 15 to 30 ms
        self.done = True
        self._then()


LOOK_MS = 4
"""So often it is looked whether a thread is through."""
AT_ONCE = 16
"""Classes that are made in one turn: about a millisecond's work."""


def in_a_thread(work: Callable[[], None]) -> threading.Thread:
    """A thread that does ``work`` and has begun; a process that ends waits for it."""

    def run() -> None:
        try:
            work()
        except ImportError as fault:
            log.warning("what was to be read ahead cannot be imported: %s", fault)

    thread = threading.Thread(target=run, name="ahead")
    thread.start()
    return thread


def classes(modules: Iterable[ModuleType]) -> Pieces:
    """Have all classes of Qt ``modules`` made; then a thread may import what uses any of them."""
    for module in modules:
        names = dir(module)
        for at in range(0, len(names), AT_ONCE):
            for name in names[at : at + AT_ONCE]:
                getattr(module, name, None)
            yield None
