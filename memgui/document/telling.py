"""Whatever does work for a person and has to say how it went."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from memgui.document.notice import Notice
from memgui.files.bounded import FileFault
from memgui.spec import Message

T = TypeVar("T")


class Telling(QObject):
    """Turns faults of files into notices."""

    told = Signal(object)
    """A :class:`Notice`."""

    def _try(self, work: Callable[[], T], *, of_opening: bool = False) -> T | None:
        try:
            return work()
        except FileFault as fault:
            self._failed(fault, of_opening=of_opening)
            return None

    def _failed(self, error: Exception, *, of_opening: bool = False) -> None:
        if not isinstance(error, FileFault):
            raise error
        self._tell(error.message, severity="error", of_opening=of_opening)

    def _tell(
        self,
        message: Message,
        details: tuple[Message, ...] = (),
        *,
        severity: str = "info",
        action_text: str = "",
        action: Callable[[], object] | None = None,
        of_opening: bool = False,
    ) -> None:
        self.told.emit(Notice(message, severity, details, action_text, action, of_opening))
