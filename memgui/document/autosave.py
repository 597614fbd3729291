"""The open scenario is written a moment after each change and at exit, so that nothing is lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from memgui.document.document import Document, State
from memgui.document.notice import Notice
from memgui.files.bounded import FileFault
from memgui.spec import QT_TRANSLATE_NOOP, Message

if TYPE_CHECKING:
    from memgui.document.jobs import Jobs

log = logging.getLogger(__name__)

DELAY_MS = 2000


class Autosave(QObject):
    """Keeps the document when it has rested, in the background, and on :meth:`flush`, at once.

    A fault of writing (:class:`FileFault`) is told once by ``failed(Notice)`` until a write succeeds.
    """

    failed = Signal(object)

    def __init__(
        self,
        document: Document,
        prepare: Callable[[State], Callable[[], None]],
        jobs: Callable[[], Jobs],
        delay_ms: int = DELAY_MS,
        parent: QObject | None = None,
    ) -> None:
        """``prepare`` takes down what is to be kept; what it returns writes that, in any thread.

        ``jobs`` is asked for when the first write is due: a disk may take longer over it than a frame.
        """
        super().__init__(parent)
        self._document = document
        self._prepare = prepare
        self._jobs = jobs
        self._written: State | None = None
        self._told = False
        self._taken = 0
        self._newest = 0
        self._turn = threading.Lock()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(delay_ms)
        self._timer.timeout.connect(self._begin)
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
        write = self._numbered(state)
        try:
            write()
        except FileFault as fault:
            self._fail(fault)
        else:
            self._succeed(state)

    def _begin(self) -> None:
        state = self._document.state
        if state == self._written:
            return
        write = self._numbered(state)
        self._jobs().run("autosave", lambda _: write(), lambda _: self._succeed(state), self._fail)

    def _numbered(self, state: State) -> Callable[[], None]:
        """Writes the state, unless a newer one was written meanwhile."""
        self._taken += 1
        number, write = self._taken, self._prepare(state)

        def write_in_turn() -> None:
            with self._turn:
                if number > self._newest:
                    write()
                    self._newest = number

        return write_in_turn

    def _succeed(self, state: State) -> None:
        self._written, self._told = state, False

    def _fail(self, fault: Exception) -> None:
        if not isinstance(fault, FileFault):
            raise fault
        log.warning("the open set-up cannot be kept: %s", fault)
        if not self._told:
            self._told = True
            self.failed.emit(Notice(self._meaning(fault.message), "warning", (fault.message,)))

    def _meaning(self, fault: Message) -> Message:
        """What the fault means to the person, who knows what is open and not the file that it is kept in."""
        state = self._document.state
        known = {**fault.args, "file": state.name or state.scenario.model.name}
        return Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "What is open cannot be kept, and would be lost if memgui ended now. {reason}",
            ),
            {"reason": msgspec.structs.replace(fault, args=known)},
        )
