"""What happens when something of ours breaks: save first, say it plainly, go on if the person wants to."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from PySide6.QtCore import QObject, Qt, QThread, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from memgui.gui.controls import Button
from memgui.gui.theme import Look, Role

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
        log.critical("nobody caught this", exc_info=(kind, error, trace))
        if self._handling:
            return
        self._handling = True
        try:
            if QThread.currentThread() is self.thread():
                self._save()
            self._caught.emit(self._report(kind, error, trace))
        except Exception:
            log.exception("handling it failed too")
            self._hooks[0](kind, error, trace)
            self._handling = False

    def _show(self, report: str) -> None:
        window = QApplication.activeWindow()
        self.dialog = CrashDialog(report, window)
        self.dialog.finished.connect(self._closed)
        self.dialog.open()

    def _closed(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
        self.dialog = None
        self._handling = False


class CrashDialog(QDialog):
    """Plain words, the details to copy, go on or quit."""

    def __init__(self, report: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("memgui made a mistake"))
        look = Look.of(self)
        title = QLabel(self.tr("memgui made a mistake"), self)
        title.setFont(look.font(Role.TITLE, 600))
        text = QLabel(
            self.tr(
                "Your set-up is kept. You can go on; if something looks wrong, start memgui again. "
                "The details below help to repair it: they hold no more than is shown."
            ),
            self,
        )
        text.setWordWrap(True)
        self.details = QPlainTextEdit(report, self)
        self.details.setReadOnly(True)
        self.details.setAccessibleName(self.tr("Details"))
        self.copy = Button(self.tr("Copy the details"), "copy", parent=self)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(report))
        self.go_on = Button(self.tr("Go on"), primary=True, parent=self)
        self.go_on.clicked.connect(self.accept)
        self.quit = Button(self.tr("Quit"), parent=self)
        self.quit.clicked.connect(self._quit)
        row = QHBoxLayout()
        row.addWidget(self.copy)
        row.addStretch(1)
        row.addWidget(self.quit)
        row.addWidget(self.go_on)
        column = QVBoxLayout(self)
        column.setContentsMargins(*(look.px(16),) * 4)
        column.setSpacing(look.px(12))
        for part in (title, text):
            column.addWidget(part)
        column.addWidget(self.details, 1)
        column.addLayout(row)
        self.resize(look.px(560), look.px(360))
        self.go_on.setFocus()

    def _quit(self) -> None:
        self.reject()
        QGuiApplication.quit()
