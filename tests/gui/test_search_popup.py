import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from memgui.gui.search_item import Item
from memgui.gui.search_popup import SearchPopup

WORDS = ("alpha", "beta", "gamma", "gamut")


def search(text: str) -> list[Item]:
    return [Item(word, details=f"about {word}", value=word) for word in WORDS if text in word]


@pytest.fixture
def field(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    with qtbot.waitExposed(made):
        made.show()
    return made


def popup(field: QWidget) -> tuple[SearchPopup, list[object]]:
    made = SearchPopup(search, "Search", field)
    taken: list[object] = []
    made.chosen.connect(taken.append)
    made.open_at(field, 400, 300)
    return made, taken


def test_typing_narrows_and_enter_takes_the_first(field: QWidget) -> None:
    made, taken = popup(field)
    QTest.keyClicks(made.line, "gam")
    assert made.details.text() == "about gamma"
    QTest.keyClick(made.line, Qt.Key.Key_Return)
    assert taken == ["gamma"]
    assert not made.isVisible()


def test_arrows_move_while_the_text_stays(field: QWidget) -> None:
    made, taken = popup(field)
    QTest.keyClicks(made.line, "gam")
    QTest.keyClick(made.line, Qt.Key.Key_Down)
    QTest.keyClick(made.line, Qt.Key.Key_Down)
    assert made.details.text() == "about gamut"
    QTest.keyClick(made.line, Qt.Key.Key_Up)
    QTest.keyClick(made.line, Qt.Key.Key_PageDown)
    QTest.keyClick(made.line, Qt.Key.Key_Return)
    assert taken == ["gamut"]
    assert made.line.text() == "gam"


def test_nothing_found_is_said_and_enter_takes_nothing(field: QWidget) -> None:
    made, taken = popup(field)
    QTest.keyClicks(made.line, "zzz")
    assert made.empty.isVisible()
    assert not made.list.isVisible()
    QTest.keyClick(made.line, Qt.Key.Key_Return)
    assert taken == []
    QTest.keyClick(made.line, Qt.Key.Key_Escape)
    assert not made.isVisible()


def test_a_click_takes(field: QWidget) -> None:
    made, taken = popup(field)
    rect = made.list.visualRect(made.list.model().index(1, 0))
    QTest.mouseClick(made.list.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    assert taken == ["beta"]


def test_what_is_open_is_chosen_at_first(field: QWidget) -> None:
    made, taken = popup(field)
    made.close()
    made.open_at(field, 400, 300, "gamma")
    QTest.keyClick(made.line, Qt.Key.Key_Return)
    assert taken == ["gamma"]


def test_more_to_find_leaves_the_choice_and_the_text(field: QWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    made, taken = popup(field)
    QTest.keyClicks(made.line, "gam")
    QTest.keyClick(made.line, Qt.Key.Key_Down)
    monkeypatch.setattr("tests.gui.test_search_popup.WORDS", ("gambit", *WORDS))
    made.refresh()
    assert made.line.text() == "gam"
    assert made.details.text() == "about gamut"
    QTest.keyClick(made.line, Qt.Key.Key_Home)
    QTest.keyClick(made.line, Qt.Key.Key_Return)
    assert taken == ["gamut"]
    made.refresh()
    assert not made.isVisible()
