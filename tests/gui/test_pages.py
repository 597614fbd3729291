import time
from typing import Any

import pytest
from PySide6.QtCore import QElapsedTimer, QEvent, QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.gui import pages
from memgui.gui.interior import Interior
from memgui.gui.pages import BEHIND_MS
from tests.gui.house import House

LENGTH = "training.sequence_length"


class Order(QObject):
    """What happened to the window and its pages, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def result(self, _: Any) -> None:
        self.seen.append("result")

    def page(self, key: str) -> None:
        self.seen.append(key)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            self.seen.append("painted")
        return False


def watched(inside: Interior, house: House, tab: str, qtbot: QtBot) -> Order:
    inside.tabs.show_tab(tab)
    qtbot.waitUntil(lambda: inside.tabs.current == tab)
    order = Order()
    order.setParent(inside)
    inside.window.installEventFilter(order)
    house.document.result.connect(order.result)
    inside.pages.caught_up.connect(order.page)
    return order


def test_no_edit_waits_for_the_page_in_front(inside: Interior, house: House, qtbot: QtBot) -> None:
    order = watched(inside, house, "timeline", qtbot)
    with qtbot.waitSignal(inside.pages.caught_up):
        house.document.edit(LENGTH, 640)
    begun = order.seen[order.seen.index("result") :]
    assert begun.index("painted") < begun.index("timeline")


def test_why_comes_with_the_figures(inside: Interior, house: House, qtbot: QtBot) -> None:
    order = watched(inside, house, "why", qtbot)
    house.document.edit(LENGTH, 640)
    house.document.settle()
    assert {"result", "why"} == set(order.seen[-2:])  # the painting is still to come


def test_a_page_is_not_left_behind_by_edits_without_end(
    inside: Interior, house: House, qapp: QApplication, qtbot: QtBot
) -> None:
    order = watched(inside, house, "timeline", qtbot)
    clock = QElapsedTimer()
    clock.start()
    length = 640
    while not clock.hasExpired(4 * BEHIND_MS):
        length += 1
        house.document.edit(LENGTH, length)
        qapp.processEvents()
    assert 1 <= order.seen.count("timeline") < order.seen.count("result")

    def is_caught_up() -> bool:
        since = order.seen[::-1]
        return since[0] == "painted" and "result" not in since[: since.index("timeline")]

    qtbot.waitUntil(is_caught_up)


def test_a_page_does_not_come_on_top_of_a_slow_edit_unless_far_behind(
    inside: Interior, house: House, qapp: QApplication, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "SLOW_MS", 1)  # every edit is
    monkeypatch.setattr(pages, "FAR_BEHIND_MS", 6 * BEHIND_MS)
    order = watched(inside, house, "timeline", qtbot)
    inside.pages._turn.setInterval(10_000)  # the person does not rest
    clock = QElapsedTimer()
    clock.start()
    length = 640
    while not clock.hasExpired(3 * BEHIND_MS):
        length += 1
        house.document.edit(LENGTH, length)
        time.sleep(0.003)
        qapp.processEvents()
    assert "timeline" not in order.seen
    while not clock.hasExpired(9 * BEHIND_MS):
        length += 1
        house.document.edit(LENGTH, length)
        time.sleep(0.003)
        qapp.processEvents()
    assert "timeline" in order.seen
