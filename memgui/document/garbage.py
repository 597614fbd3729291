"""Python's search for garbage, kept out of edits.

It goes through what was made since it last did, for milliseconds each time and tens of them when it goes
through everything, and hardly ever finds anything.  So it is done while the person rests, and bit by bit
while jobs make things: a pass through what a whole job has made would hold the windows for frames, and one
in the middle of a job would take apart what belongs to them in another thread.
"""

from __future__ import annotations

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

from memgui.document.document import Document
from memgui.document.jobs import Jobs

REST_MS: Final = 1000
"""So long after an edit nobody waits for a picture."""
SWEEP_MS: Final = 5
"""So often what a running job has made is looked through."""
_MADE: Final = 4000
"""So many new things are gone through in a millisecond or two."""
_KEPT: Final = 4
"""Passes after which those are gone through once more that were still in use."""
WITHOUT_REST: Final = (50_000, 1_000, 1_000)
"""When Python looks by itself, edit upon edit without a rest: after so many things are made and kept."""
_MOST_KEPT: Final = 100
"""Passes through what was kept after which all that there is is gone through, at the next rest."""


class Garbage(QObject):
    """Looks for garbage after each rest and while ``jobs`` run, from now on; what stands now stays."""

    def __init__(self, document: Document, jobs: Jobs) -> None:
        super().__init__(document)
        gc.freeze()
        gc.set_threshold(*WITHOUT_REST)
        gc.enable()
        self._running: set[str] = set()
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self.collect)
        self._sweep = QTimer(self)
        self._sweep.setInterval(SWEEP_MS)
        self._sweep.timeout.connect(sweep)
        document.changed.connect(self._rest.start)
        jobs.busy.connect(self._follow)

    def collect(self) -> None:
        """Look for it now."""
        young, old = 1, 2
        gc.collect(old if gc.get_count()[old] > _MOST_KEPT else young)

    def _follow(self, kind: str, begins: bool) -> None:
        if begins:
            self._running.add(kind)
        else:
            self._running.discard(kind)
        if not self._running:
            self._sweep.stop()
        elif not self._sweep.isActive():
            self._sweep.start()


def sweep() -> None:
    """Look through what was made just now, where that is much."""
    made, passes, _ = gc.get_count()
    if made > _MADE:
        gc.collect(1 if passes >= _KEPT else 0)
