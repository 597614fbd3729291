"""A long reading says how far it is and can be stopped; a quick one says nothing."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document import reading as module
from memgui.document.notice import Notice
from memgui.document.reading import Reading


def test_only_what_takes_long_is_told(
    qapp: QApplication, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOLD_AFTER_MS", 5)
    told: list[Notice] = []
    stopped: list[bool] = []
    parent = QObject()
    quick = Reading("quick", told.append, lambda: stopped.append(True), parent)
    assert not quick.end()
    slow = Reading("slow.gguf", told.append, lambda: stopped.append(True), parent)
    slow.report(3, 200)
    qtbot.waitUntil(lambda: bool(told))
    assert told[-1].message.text == "slow.gguf is being read: 3 of 200 files."
    assert told[-1].action is not None
    told[-1].action()
    assert stopped == [True]
    assert slow.end()
    count = len(told)
    qtbot.wait(20)
    assert len(told) == count
