import threading
import time
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.ahead import Ahead, Pieces, classes, in_a_thread


def doing(pieces: Iterable[Callable[[], threading.Thread | None]]) -> Pieces:
    return (piece() for piece in pieces)


def test_the_loop_has_its_turn_between_two_pieces(qapp: QApplication, qtbot: QtBot) -> None:
    order: list[str] = []
    beat, parent = QTimer(), QObject()
    beat.timeout.connect(lambda: order.append("turn"))
    beat.start(0)
    pieces = [lambda: order.append("piece") for _ in range(5)]
    ahead = Ahead(doing(pieces), lambda: order.append("then"), parent)
    assert order == []
    qtbot.waitUntil(lambda: ahead.done)
    beat.stop()
    assert order.count("piece") == 5
    assert "".join("p" if one == "piece" else "-" for one in order if one != "then").count("pp") <= 1
    assert order.count("then") == 1


def test_a_thread_is_waited_for(qapp: QApplication, qtbot: QtBot) -> None:
    order: list[str] = []
    parent = QObject()

    def work() -> None:
        time.sleep(0.03)
        assert threading.current_thread() is not threading.main_thread()
        order.append("thread")

    def after() -> None:
        order.append("after")

    Ahead(doing((lambda: in_a_thread(work), after)), lambda: order.append("then"), parent)
    qtbot.waitUntil(lambda: "then" in order)
    assert order == ["thread", "after", "then"]


def test_what_cannot_be_imported_is_left_to_who_needs_it(
    qapp: QApplication, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    def lacking() -> None:
        raise ImportError("no such module")

    told: list[bool] = []
    parent = QObject()
    Ahead(doing((lacking,)), lambda: told.append(True), parent)
    Ahead(doing((lambda: in_a_thread(lacking),)), lambda: told.append(True), parent)
    qtbot.waitUntil(lambda: len(told) == 2)
    assert caplog.text.count("no such module") == 2


def test_who_is_gone_is_not_told(qapp: QApplication, qtbot: QtBot) -> None:
    told: list[bool] = []
    stopped, gone = QObject(), QObject()
    ahead = Ahead(doing(()), lambda: told.append(True), stopped)
    Ahead(doing(()), lambda: told.append(True), gone)
    ahead.stop()
    gone.deleteLater()
    qtbot.wait(20)
    assert not told


def test_every_class_is_looked_up_a_few_in_a_turn() -> None:
    seen: list[str] = []

    class Module(SimpleNamespace):
        def __getattribute__(self, name: str) -> object:
            if name.startswith("Q"):
                seen.append(name)
            return super().__getattribute__(name)

    module = Module(**{f"Q{number}": number for number in range(100)})
    turns = len(list(classes((module,))))  # type: ignore[arg-type]
    assert len(seen) == 100
    assert turns >= 6
