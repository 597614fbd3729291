"""Says how far a long reading is, with a button that stops it; a quick one says nothing."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

from memgui.document.notice import Notice
from memgui.spec import QT_TRANSLATE_NOOP, Message

TOLD_AFTER_MS = 400
"""A reading that takes less than this is not spoken of."""


class Reading(QObject):
    """One reading of ``name``; :meth:`report` may be called from any thread."""

    def __init__(
        self, name: str, tell: Callable[[Notice], None], cancel: Callable[[], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self.name = name
        self._tell = tell
        self._cancel = cancel
        self._done = self._total = 0
        self._told = False
        self._timer = QTimer(self)
        self._timer.setInterval(TOLD_AFTER_MS)
        self._timer.timeout.connect(self._say)
        self._timer.start()

    def report(self, done: int, total: int) -> None:
        """``done`` of ``total`` files are read."""
        self._done, self._total = done, total

    def end(self) -> bool:
        """Say nothing more; whether anything was said, so that it has to be taken back."""
        self._timer.stop()
        return self._told

    def _say(self) -> None:
        self._told = True
        message = Message(QT_TRANSLATE_NOOP("messages", "{name} is being read."), {"name": self.name})
        if self._total > 1:
            message = Message(
                QT_TRANSLATE_NOOP("messages", "{name} is being read: {done} of {total} files."),
                {"name": self.name, "done": self._done, "total": self._total},
            )
        stop = QT_TRANSLATE_NOOP("messages", "Stop reading")
        self._tell(Notice(message, action_text=stop, action=self._stop, of_opening=True))

    def _stop(self) -> None:
        self.end()
        self._cancel()
