"""Tabs whose pages are made of modules that may have to be read first."""

import importlib
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from memgui.document.ahead import Pieces
from memgui.gui.modules import Part
from memgui.gui.tabs import Tabs

MODULE = "page_of_a_tab"


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Part:
    """A module that nobody has imported."""
    (tmp_path / f"{MODULE}.py").write_text("", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)

    def read() -> Pieces:
        yield None
        importlib.import_module(MODULE)

    return Part(MODULE, read)


def tabs(qtbot: QtBot, part: Part, *, at_once: bool) -> Tabs:
    made = Tabs(at_once=at_once)
    qtbot.addWidget(made)
    for key in ("one", "two"):
        made.add(key, key, page(key), part=None if key == "one" else part)
    made.resize(400, 200)
    with qtbot.waitExposed(made):
        made.show()
    return made


class Page(QLabel):
    """What a tab shows."""


def page(key: str) -> type[QWidget]:
    return type(key, (Page,), {})


def test_a_page_comes_when_what_it_is_made_of_is_read(qtbot: QtBot, part: Part) -> None:
    made = tabs(qtbot, part, at_once=False)
    assert made.page("one") is not None
    shown: list[str] = []
    made.shown.connect(shown.append)
    made.show_tab("two")
    assert made.page("two") is None
    first = made.page("one")
    assert first is not None
    assert not first.isVisible()  # nor does what was there before stand under the other tab
    qtbot.waitUntil(lambda: made.page("two") is not None)
    assert shown == ["two"]
    second = made.page("two")
    assert second is not None
    assert second.isVisible()


def test_who_goes_on_to_another_tab_is_not_taken_back(qtbot: QtBot, part: Part) -> None:
    made = tabs(qtbot, part, at_once=False)
    made.show_tab("two")
    made.show_tab("one")
    qtbot.waitUntil(lambda: MODULE in sys.modules)
    qtbot.wait(20)
    assert made.current == "one"
    assert made.page("two") is None
    made.show_tab("two")
    assert made.page("two") is not None


def test_a_tab_under_the_mouse_is_read_ahead(qtbot: QtBot, part: Part) -> None:
    made = tabs(qtbot, part, at_once=False)
    QTest.mouseMove(made.bar, made.bar.tabRect(1).center())
    qtbot.waitUntil(lambda: MODULE in sys.modules)
    qtbot.wait(20)
    assert made.page("two") is None
    QTest.mouseClick(made.bar, Qt.MouseButton.LeftButton, pos=made.bar.tabRect(1).center())
    assert made.page("two") is not None


def test_at_once_means_at_once(qtbot: QtBot, part: Part) -> None:
    made = tabs(qtbot, part, at_once=True)
    QTest.mouseMove(made.bar, QPoint(2, 2))
    made.show_tab("two")
    assert made.page("two") is not None
