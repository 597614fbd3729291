"""Python's search for garbage, kept out of edits.

It goes through what was made since it last did, for milliseconds each time and tens of them when it goes
through everything, and hardly ever finds anything.  So it is done while the person rests.
"""

from __future__ import annotations

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

from memgui.document.document import Document

REST_MS: Final = 1000
"""So long after an edit nobody waits for a picture."""
_WITHOUT_REST: Final = (50_000, 20, 100)
"""When Python looks by itself, edit upon edit without a rest: after so many things are made and kept."""
_MOST_KEPT: Final = 20
"""Rests after which those things are gone through too that were still in use when last looked at."""


class Garbage(QObject):
    """Looks for garbage after each rest, from now on; what stands now stays."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        gc.freeze()
        gc.set_threshold(*_WITHOUT_REST)
        gc.enable()
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self.collect)
        document.changed.connect(self._rest.start)

    def collect(self) -> None:
        """Look for it now."""
        young, old = 1, 2
        gc.collect(old if gc.get_count()[old] > _MOST_KEPT else young)
