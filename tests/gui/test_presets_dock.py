import json
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from memgui.gui.actions import Actions
from memgui.gui.presets_dock import PresetsDock
from memgui.gui.presets_model import COUNT, KIND, VERDICT, Row
from memgui.gui.theme import Look
from memgui.importers.local_models import HUGGING_FACE, LocalModel
from memgui.presets.store import PresetStore
from tests.gui.house import House

LENGTH = "training.sequence_length"


@pytest.fixture
def dock(house: House, qtbot: QtBot) -> PresetsDock:
    window = QWidget()
    qtbot.addWidget(window)
    made = PresetsDock(house.library, house.document, Actions(window, house.document.undo_stack), window)
    made.fill()
    made.resize(192, 600)
    with qtbot.waitExposed(window):
        window.show()
    return made


def names(dock: PresetsDock, kind: Row) -> list[str]:
    return [item.text() for item in dock.model.items() if item.data(KIND) is kind]


def index(dock: PresetsDock, name: str) -> QModelIndex:
    return next(item.index() for item in dock.model.items() if item.text() == name)


def press(dock: PresetsDock, name: str) -> None:
    at = index(dock, name)
    dock.tree.scrollTo(at)
    QTest.mouseClick(dock.tree.viewport(), Qt.MouseButton.LeftButton, pos=dock.tree.visualRect(at).center())


def test_at_first_it_says_what_will_stand_here(dock: PresetsDock, house: House) -> None:
    assert len(names(dock, Row.HINT)) == 2
    families = [item for item in dock.model.items() if item.data(KIND) is Row.FAMILY]
    assert sum(item.data(COUNT) for item in families) == len(house.library.catalog.models)
    assert not names(dock, Row.MODEL)  # until a family is opened
    for family in families:
        press(dock, family.text())
    assert len(names(dock, Row.MODEL)) == len(house.library.catalog.models)


def test_headings_and_families_are_read_whole_at_the_first_width(
    dock: PresetsDock, monkeypatch: pytest.MonkeyPatch
) -> None:
    dock.resize(Look.of(dock).px(192), 600)
    painted: list[str] = []
    real = QPainter.drawText

    def drawn(painter: QPainter, *asked: object) -> object:
        painted.append(str(asked[-1]))
        return real(painter, *asked)  # type: ignore[call-overload]

    monkeypatch.setattr(QPainter, "drawText", drawn)
    dock.tree.grab()
    assert {"My presets", "Recent files", "Built-in models"} <= set(painted)
    assert not [text for text in painted if "…" in text]


def test_saved_presets_appear_and_open_with_one_press(dock: PresetsDock, house: House) -> None:
    house.document.edit(LENGTH, 8192)
    house.library.save_as("Long")
    house.document.edit(LENGTH, 1)
    house.library.save_as("Short")
    assert names(dock, Row.PRESET) == ["Long", "Short"]
    press(dock, "Long")
    assert house.document.scenario.training.sequence_length == 8192
    house.document.undo_stack.undo()
    assert house.document.scenario.training.sequence_length == 1


def test_headings_fold_and_stay_so(dock: PresetsDock, house: House) -> None:
    press(dock, "My presets")
    assert not dock.tree.isExpanded(index(dock, "My presets"))
    press(dock, "Llama")
    assert dock.tree.isExpanded(index(dock, "Llama"))
    house.library.save_as("One")
    assert not dock.tree.isExpanded(index(dock, "My presets"))
    assert dock.tree.isExpanded(index(dock, "Llama"))


def test_a_model_goes_into_the_open_set_up(dock: PresetsDock, house: House) -> None:
    house.document.edit(LENGTH, 77)
    dock.search.setText("gpt2")
    name = names(dock, Row.MODEL)[0]
    press(dock, name)
    assert house.document.scenario.model.name == name
    assert house.document.scenario.training.sequence_length == 77


def test_search_looks_everywhere(dock: PresetsDock, house: House) -> None:
    house.library.save_as("Llama for work")
    house.library.save_as("Other")
    dock.search.setText("llama")
    assert names(dock, Row.PRESET) == ["Llama for work"]
    assert len(names(dock, Row.MODEL)) > 5
    dock.search.setText("nothing like it")
    assert list(dock.model.items()) == []
    dock.search.clear()
    assert names(dock, Row.PRESET) == ["Llama for work", "Other"]


def test_keys_open_rename_and_delete(dock: PresetsDock, house: House, qtbot: QtBot) -> None:
    house.document.edit(LENGTH, 8)
    house.library.save_as("One")
    house.document.edit(LENGTH, 16)
    dock.tree.setCurrentIndex(index(dock, "One"))
    dock.tree.setFocus()
    QTest.keyClick(dock.tree, Qt.Key.Key_Return)
    assert house.document.scenario.training.sequence_length == 8
    QTest.keyClick(dock.tree, Qt.Key.Key_F2)
    editor = dock.tree.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    QTest.keyClicks(editor, "Two")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: names(dock, Row.PRESET) == ["Two"])
    dock.tree.setCurrentIndex(index(dock, "Two"))
    QTest.keyClick(dock.tree, Qt.Key.Key_Delete)
    assert names(dock, Row.PRESET) == []
    bring_back = house.told[-1].action
    assert bring_back is not None
    bring_back()
    assert names(dock, Row.PRESET) == ["Two"]


def test_recent_files_can_be_taken_off(dock: PresetsDock, house: House, tmp_path: Path) -> None:
    house.library.change_settings(recent_files=(str(tmp_path / "Small" / "config.json"),))
    dock.fill()
    assert names(dock, Row.FILE) == ["Small/config.json"]
    dock.tree.setCurrentIndex(index(dock, "Small/config.json"))
    QTest.keyClick(dock.tree, Qt.Key.Key_Delete)
    assert names(dock, Row.FILE) == []


def test_verdicts_stand_beside_presets(dock: PresetsDock, house: House) -> None:
    house.library.save_as("One")
    (entry,) = house.library.presets()
    plain = dock.grab().toImage()
    dock.set_verdicts({entry.key: "tight"})
    assert index(dock, "One").data(VERDICT) == "tight"
    assert dock.grab().toImage() != plain


def test_a_verdict_that_comes_while_a_name_is_typed_takes_nothing_back(
    dock: PresetsDock, house: House, qtbot: QtBot
) -> None:
    house.library.save_as("One")
    (entry,) = house.library.presets()
    dock.tree.setCurrentIndex(index(dock, "One"))
    dock.tree.setFocus()
    QTest.keyClick(dock.tree, Qt.Key.Key_F2)
    editor = dock.tree.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    QTest.keyClicks(editor, "Two")
    dock.set_verdicts({entry.key: "fits"})
    assert editor.text() == "Two"
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: names(dock, Row.PRESET) == ["Two"])


def test_models_on_this_machine_appear_when_found_and_open(
    dock: PresetsDock, house: House, tmp_path: Path, qtbot: QtBot
) -> None:
    assert "On this machine" not in names(dock, Row.HEADING)
    folder = tmp_path / "snapshot"
    folder.mkdir()
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 100}), "utf-8")
    house.library.nearby.models = (LocalModel(HUGGING_FACE, "owner/tiny", folder),)
    house.library.nearby.models_found.emit()
    assert "On this machine" in names(dock, Row.HEADING)
    press(dock, "owner/tiny")
    qtbot.waitUntil(lambda: house.document.scenario.model.hidden_size == 64)


def test_a_strangers_name_stays_on_one_line_and_his_tags_are_text(dock: PresetsDock, house: House) -> None:
    """Qt would read the file that a tag in a tooltip names, were it not text."""
    store = PresetStore(house.context.paths)
    name = "two\nlines \u202e<img src='/dev/zero'>"
    entry = store.create(name, house.document.scenario, notes="<img src='/dev/zero'>")
    dock.fill()
    shown = "two\\nlines \\u202e<img src='/dev/zero'>"
    assert names(dock, Row.PRESET) == [shown]
    tip = index(dock, shown).data(Qt.ItemDataRole.ToolTipRole)
    assert "<img" not in tip
    assert "&lt;img src=" in tip
    house.library.open_preset(entry)
    assert "\n" not in house.document.state.name
    assert store.entries()[0].name == name


def test_what_an_earlier_run_deleted_is_brought_back_from_the_list(
    house: House, dock: PresetsDock, qtbot: QtBot
) -> None:
    assert "Deleted" not in names(dock, Row.HEADING)  # nothing is there
    house.library.save_as("Mine")
    store = PresetStore(house.context.paths)  # as another window, or the run before
    store.delete(store.entries()[0])
    dock.fill()
    assert names(dock, Row.PRESET) == []
    assert names(dock, Row.DELETED) == ["Mine"]
    heading = index(dock, "Deleted")
    assert not dock.tree.isExpanded(heading)
    dock.tree.setExpanded(heading, True)
    dock.tree.setCurrentIndex(
        next(one.index() for one in dock.model.items() if one.data(KIND) is Row.DELETED)
    )
    QTest.keyClick(dock.tree, Qt.Key.Key_Return)
    assert names(dock, Row.PRESET) == ["Mine"]
    assert names(dock, Row.DELETED) == []
    assert house.told[-1].message.text == "“Mine” is back."


def test_a_row_that_was_renamed_has_the_keys_again(house: House, dock: PresetsDock, qtbot: QtBot) -> None:
    house.library.save_as("Mine")
    dock.tree.setFocus()
    dock.tree.setCurrentIndex(index(dock, "Mine"))
    QTest.keyClick(dock.tree, Qt.Key.Key_F2)
    editor = dock.tree.findChild(QLineEdit)
    assert editor is not None
    editor.setText("Ours")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: names(dock, Row.PRESET) == ["Ours"])
    assert dock.window().focusWidget() is dock.tree
    assert dock.tree.currentIndex().data() == "Ours"
    QTest.keyClick(dock.tree, Qt.Key.Key_Delete)
    assert house.told[-1].message.text == "“Ours” is deleted."
    house.document.undo_stack.undo()
    assert house.told[-1].message.text == "“Ours” is back."  # what was said before holds no more
