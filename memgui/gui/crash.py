"""What happens when something of ours breaks: save first, say it plainly, go on if the person wants to."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

if TYPE_CHECKING:
    from memgui.gui.crash_dialog import CrashDialog

log = logging.getLogger(__name__)


class CrashGuard(QObject):
    """Catches what nobody caught, in every thread.

    ``save`` is called first, then ``report`` (it keeps the report and returns its text), then one
    dialog is shown; while it is open, and where the handling itself fails, more faults are only logged.
    """

    _caught = Signal(str)

    def __init__(
        self,
        save: Callable[[], None],
        report: Callable[[type[BaseException], BaseException, TracebackType | None], str],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._save = save
        self._report = report
        self._handling = False
        self._kept = False
        self._hooks = (sys.excepthook, threading.excepthook)
        self.dialog: CrashDialog | None = None
        self._caught.connect(self._show, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Take over both hooks."""
        self._hooks = (sys.excepthook, threading.excepthook)
        sys.excepthook = self.handle
        threading.excepthook = self._thread_hook

    def remove(self) -> None:
        """Give the hooks back."""
        sys.excepthook, threading.excepthook = self._hooks

    def _thread_hook(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self.handle(args.exc_type, args.exc_value, args.exc_traceback)

    def handle(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Save, keep the report, tell the person.  Raises nothing."""
        if issubclass(kind, KeyboardInterrupt):
            QGuiApplication.exit(130)
            return
        from PySide6.QtCore import QThread

        log.critical("nobody caught this", exc_info=(kind, error, trace))
        if self._handling:
            return
        self._handling = True
        try:
            self._kept = False
            if QThread.currentThread() is self.thread():
                self._save_first()
            self._caught.emit(self._report(kind, error, trace))
        except Exception:
            log.exception("handling it failed too")
            self._hooks[0](kind, error, trace)
            self._handling = False

    def _save_first(self) -> None:
        """What cannot be saved is no reason to say nothing."""
        self._kept = True
        try:
            self._save()
        except Exception:
            log.exception("what is open cannot be kept")

    def _show(self, report: str) -> None:
        from memgui.gui.crash_dialog import CrashDialog

        if not self._kept:  # another thread's fault: the document is this thread's
            self._save_first()
        window = QApplication.activeWindow()
        self.dialog = CrashDialog(report, window)
        self.dialog.finished.connect(self._closed)
        self.dialog.open()

    def _closed(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
        self.dialog = None
        self._handling = False
