"""A fault of ours in what is worked out aside: a sentence in the panel concerned, and nothing else breaks."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.result import Estimate
from memgui.gui.compare.page import ComparePage
from memgui.gui.interior import Interior
from memgui.gui.measured.page import MeasuredPage
from memgui.gui.ways.page import WaysPage
from memgui.gui.whatif.page import WhatIfPage
from memgui.gui.why.page import WhyPage
from memgui.spec import Scenario
from tests.gui.house import House
from tests.gui.measured.test_measured_page import OOM

FIRST = Catalog().first_scenario()
LENGTH = "training.sequence_length"
FAULT = "ZeroDivisionError: not by you"


def broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("not by you")


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> House:
    """A house with the real estimator."""
    made = House(tmp_path / "home", estimate)
    made.document.use_model(FIRST, "test")
    made.document.settle()
    return made


def said_in_ways(page: object) -> str:
    assert isinstance(page, WaysPage)
    return page.nothing()


def said_in_compare(page: object) -> str:
    assert isinstance(page, ComparePage)
    return page.nothing()


def turn_to(which: str) -> Callable[[object], str]:
    def said(page: object) -> str:
        assert isinstance(page, ComparePage)
        if page.mode.value() != which:
            QTest.mouseClick(page.mode.segment(which), Qt.MouseButton.LeftButton)
        return page.nothing()

    return said


def said_over(part: str) -> Callable[[object], str]:
    def said(page: object) -> str:
        assert isinstance(page, WhatIfPage)
        found: str = {
            "sweep": page._sweep_part.fault,
            "heat": page._heat_part.fault,
            "largest": page.largest.accessibleDescription(),
        }[part]
        return found

    return said


@pytest.mark.parametrize(
    ("place", "tab", "said"),
    [
        ("memgui.document.what_if.points", "what_if", said_over("sweep")),
        ("memgui.document.what_if.heat_map", "what_if", said_over("heat")),
        ("memgui.document.what_if.crossings", "what_if", said_over("largest")),
        ("memgui.planning.ways.ways_to_fit", "ways", said_in_ways),
        ("memgui.planning.compare.by_method", "compare", turn_to("methods")),
        ("memgui.planning.compare.by_device", "compare", turn_to("devices")),
    ],
    ids=["sweep", "heat map", "largest", "ways", "methods", "devices"],
)
def test_the_panel_says_so_until_an_answer_comes(
    inside: Interior,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    tab: str,
    said: Callable[[object], str],
) -> None:
    monkeypatch.setattr(place, broken)
    inside.context.document.edit(LENGTH, 2048)  # what was answered before would stand
    inside.window.resize(1280, 800)
    inside.tabs.show_tab(tab)
    inside.actions.expand_tabs.setChecked(True)
    page = inside.tabs.page(tab)
    qtbot.waitUntil(lambda: FAULT in said(page), timeout=20_000)
    assert page is not None
    assert not page.grab().isNull()
    assert inside.context.document.last_result.estimate is not None
    monkeypatch.undo()
    inside.context.document.edit(LENGTH, 64)
    qtbot.waitUntil(lambda: said(page) == "" or "pinned" in said(page), timeout=20_000)
    assert not page.grab().isNull()


def test_the_chips_say_so(inside: Interior, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgui.planning.ways.ways_to_fit", broken)
    inside.context.document.edit(LENGTH, 8192)
    chips = inside.window.verdict.chips
    qtbot.waitUntil(lambda: [one.toolTip() for one in chips.buttons() if FAULT in one.toolTip()] != [])
    before = inside.context.document.scenario
    QTest.mouseClick(chips.buttons()[0], Qt.MouseButton.LeftButton)
    assert inside.context.document.scenario == before


def test_why_says_so(inside: Interior, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgui.planning.serving.limits", broken)
    inside.context.document.edit("task", "inference")
    inside.tabs.show_tab("why")
    page = inside.tabs.page("why")
    assert isinstance(page, WhyPage)

    def copied() -> str:
        page.copy_text()
        return QGuiApplication.clipboard().text()

    qtbot.waitUntil(lambda: FAULT in copied(), timeout=20_000)


@pytest.mark.parametrize(
    "place", ["memgui.document.measurements.parse", "memgui.document.measurements.explain"]
)
def test_measured_says_so(
    inside: Interior, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(place, broken)
    inside.tabs.show_tab("measured")
    page = inside.tabs.page("measured")
    assert isinstance(page, MeasuredPage)
    page.read(OOM)
    qtbot.waitUntil(lambda: FAULT in page.fault.text(), timeout=20_000)
    assert page.fault.isVisible()


def test_one_set_up_that_the_estimator_fails_at_hides_no_other(
    qapp: QApplication, tmp_path: Path, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(scenario: Scenario) -> Estimate:
        if scenario.training.sequence_length // 64 % 2:
            broken()
        return estimate(scenario)

    house = House(tmp_path / "home", failing)
    house.document.use_model(FIRST, "test")
    house.document.settle()
    page = WhatIfPage(house.context)
    page.resize(960, 560)
    qtbot.addWidget(page)
    house.document.result.connect(page.set_result)
    page.set_result(house.document.last_result)
    page.show()
    qtbot.waitUntil(lambda: page.what_if.sweep.is_current, timeout=20_000)
    swept = page.what_if.sweep.answer
    assert {int(one.value) // 64 % 2 for one in swept.known} == {0}
    assert {FAULT in one.issue.text for one in swept.points if one.issue is not None} == {True}
    assert len([record for record in caplog.records if record.name == "memgui.document.questions"]) <= 3
    assert not page.grab().isNull()
    page.hide()
    house.close()
