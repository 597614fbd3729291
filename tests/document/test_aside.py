import threading
import time

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.aside import Aside


def test_it_is_read_in_another_thread_and_told_of_in_this(qapp: QApplication, qtbot: QtBot) -> None:
    read: list[threading.Thread] = []
    told: list[threading.Thread] = []
    parent = QObject()
    aside = Aside(
        lambda: read.append(threading.current_thread()),
        lambda: told.append(threading.current_thread()),
        parent,
    )
    qtbot.waitUntil(lambda: bool(told))
    assert aside.done
    assert told == [threading.main_thread()]
    assert read != told


def test_what_cannot_be_imported_is_left_to_who_needs_it(
    qapp: QApplication, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> None:
        raise ImportError("no such module")

    told: list[bool] = []
    parent = QObject()
    Aside(read, lambda: told.append(True), parent)
    qtbot.waitUntil(lambda: bool(told))
    assert "no such module" in caplog.text


def test_who_is_gone_is_not_told(qapp: QApplication, qtbot: QtBot) -> None:
    told: list[bool] = []
    stopped, gone = QObject(), QObject()
    aside = Aside(lambda: time.sleep(0.01), lambda: told.append(True), stopped)
    Aside(lambda: time.sleep(0.01), lambda: told.append(True), gone)
    aside.stop()
    gone.deleteLater()
    qtbot.wait(60)
    assert not told
