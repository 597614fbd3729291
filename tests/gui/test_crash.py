import sys
import threading
from collections.abc import Iterator
from types import TracebackType

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.gui.crash import CrashGuard


class Calls:
    def __init__(self) -> None:
        self.order: list[str] = []
        self.threads: dict[str, threading.Thread] = {}
        self.fault: Exception | None = None

    def save(self) -> None:
        self.order.append("save")
        self.threads["save"] = threading.current_thread()
        if self.fault is not None:
            raise self.fault

    def report(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str:
        self.order.append("report")
        return f"{kind.__name__}: {error}"


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def guard(qapp: QApplication, calls: Calls) -> Iterator[CrashGuard]:
    hooks = (sys.excepthook, threading.excepthook)
    made = CrashGuard(calls.save, calls.report)
    made.install()
    yield made
    made.remove()
    assert (sys.excepthook, threading.excepthook) == hooks


def close(guard: CrashGuard) -> None:
    assert guard.dialog is not None
    guard.dialog.accept()


def test_it_saves_first_then_says_so(guard: CrashGuard, calls: Calls, qtbot: QtBot) -> None:
    error = ValueError("broken")
    sys.excepthook(ValueError, error, None)
    qtbot.waitUntil(lambda: guard.dialog is not None)
    assert calls.order == ["save", "report"]
    dialog = guard.dialog
    assert dialog is not None
    assert dialog.details.toPlainText() == "ValueError: broken"
    QTest.mouseClick(dialog.copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "ValueError: broken"
    sys.excepthook(ValueError, ValueError("again"), None)  # while it is told: no second dialog
    assert calls.order == ["save", "report"]
    QTest.mouseClick(dialog.go_on, Qt.MouseButton.LeftButton)
    sys.excepthook(ValueError, ValueError("third"), None)
    qtbot.waitUntil(lambda: guard.dialog is not None)
    close(guard)


def test_a_thread_of_its_own_is_heard_and_the_documents_thread_saves(
    guard: CrashGuard, calls: Calls, qtbot: QtBot
) -> None:
    thread = threading.Thread(target=lambda: [][1])
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: guard.dialog is not None)
    assert calls.order == ["report", "save"]  # before the dialog says that it is kept
    assert calls.threads["save"] is threading.current_thread()
    close(guard)


def test_what_cannot_be_saved_is_told_all_the_same(guard: CrashGuard, calls: Calls, qtbot: QtBot) -> None:
    calls.fault = OSError("disk full")
    sys.excepthook(ValueError, ValueError("broken"), None)
    qtbot.waitUntil(lambda: guard.dialog is not None)
    assert calls.order == ["save", "report"]
    assert guard.dialog is not None
    assert guard.dialog.details.toPlainText() == "ValueError: broken"
    close(guard)


def test_a_fault_in_the_handling_ends_nothing(
    guard: CrashGuard,
    calls: Calls,
    qtbot: QtBot,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def report(*_: object) -> str:
        raise MemoryError

    monkeypatch.setattr(guard, "_report", report)
    before = guard._hooks
    guard._hooks = (sys.__excepthook__, before[1])
    sys.excepthook(ValueError, ValueError("broken"), None)
    guard._hooks = before
    assert guard.dialog is None
    assert "broken" in capsys.readouterr().err
    monkeypatch.undo()
    sys.excepthook(ValueError, ValueError("later"), None)  # the next one is heard
    assert calls.order == ["save", "save", "report"]
    qtbot.waitUntil(lambda: guard.dialog is not None)
    close(guard)
