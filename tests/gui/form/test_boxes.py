import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from memgui.gui.form.choice_box import ChoiceBox, FlagBox
from memgui.gui.form.device_box import DeviceBox
from memgui.gui.form.text_box import TextBox
from memgui.gui.search_item import Item
from memgui.spec import Device
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import Message

TARGETS = "training.lora.target_modules"


def test_a_choice_is_shown_without_echo_and_taken_by_key(qtbot: QtBot) -> None:
    box = ChoiceBox(BY_PATH["training.precision"])
    qtbot.addWidget(box)
    edits: list[object] = []
    box.edited.connect(lambda value, held: edits.append(value))
    box.set_value("bf16")
    assert edits == []
    assert box.currentText() == "bf16"
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert edits == ["fp16"]
    assert box.value() == "fp16"


def test_what_cannot_be_taken_is_grey_says_why_and_is_passed_over(qtbot: QtBot) -> None:
    box = ChoiceBox(BY_PATH["training.precision"])
    qtbot.addWidget(box)
    box.asks = lambda: {"fp16": Message("{path} is {value}, which is unusual.", {"path": "it", "value": 2})}
    box.set_value("bf16")
    edits: list[object] = []
    box.edited.connect(lambda value, held: edits.append(value))
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert edits
    assert edits != ["fp16"]
    row = box.findData("fp16")
    assert not box.model().flags(box.model().index(row, 0)) & Qt.ItemFlag.ItemIsEnabled
    assert "unusual" in box.itemData(row, Qt.ItemDataRole.ToolTipRole)
    box.asks = dict
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert edits[-1] == "fp16"


def test_a_value_that_is_no_choice_is_listed_as_it_stands(qtbot: QtBot) -> None:
    box = ChoiceBox(BY_PATH["training.precision"])
    qtbot.addWidget(box)
    box.set_value("fp2")
    assert box.currentText() == "fp2"
    box.set_value("bf16")
    assert box.findData("fp2") < 0


def test_an_optional_choice_begins_with_what_nothing_means(qtbot: QtBot) -> None:
    box = ChoiceBox(BY_PATH["method_variant"])
    qtbot.addWidget(box)
    box.set_value(None)
    assert box.currentText() == "the method's default"


def test_a_flag_says_on_or_off(qtbot: QtBot) -> None:
    box = FlagBox(BY_PATH["training.padding_mask"])
    qtbot.addWidget(box)
    edits: list[object] = []
    box.edited.connect(lambda value, held: edits.append(value))
    box.set_value(True)
    assert (box.text(), edits) == ("on", [])
    QTest.keyClick(box, Qt.Key.Key_Space)
    assert (box.text(), edits) == ("off", [False])


def test_names_are_typed_or_ticked(qtbot: QtBot) -> None:
    box = TextBox(BY_PATH[TARGETS])
    qtbot.addWidget(box)
    edits: list[object] = []
    box.edited.connect(lambda value, held: edits.append(value))
    box.set_value(("q_proj",))
    assert box.text() == "q_proj"
    box.end(False)
    QTest.keyClicks(box, ", my_proj")
    assert edits[-1] == ("q_proj", "my_proj")
    box.show()
    box.open_menu()
    menu = box.findChild(QMenu)
    assert isinstance(menu, QMenu)
    ticked = {action.data(): action for action in menu.actions()}
    assert ticked["q_proj"].isChecked()
    ticked["v_proj"].trigger()
    ticked["q_proj"].trigger()
    assert edits[-1] == ("my_proj", "v_proj")
    assert box.text() == "my_proj, v_proj"
    menu.close()


def test_names_that_have_no_room_end_in_an_ellipsis_and_those_of_the_model_are_offered(qtbot: QtBot) -> None:
    box = TextBox(BY_PATH[TARGETS])
    qtbot.addWidget(box)
    box.resize(150, 28)
    box.offers = lambda: ("all-linear", "kv_b_proj")
    box.set_value(("kv_a_proj_with_mqa", "o_proj"))
    box.show()
    box.clearFocus()
    place = box.cut_at()
    assert place is not None
    assert place < 150 - box.textMargins().right()
    box.grab()
    box.open_menu()
    menu = box.findChild(QMenu)
    assert isinstance(menu, QMenu)
    offered = [(action.data(), action.isChecked()) for action in menu.actions()]
    assert offered == [
        ("all-linear", False),
        ("kv_b_proj", False),
        ("kv_a_proj_with_mqa", True),
        ("o_proj", True),
    ]
    menu.close()
    box.resize(400, 28)
    assert box.cut_at() is None


@pytest.mark.parametrize("path", ["model.name", TARGETS])
def test_what_turns_the_direction_of_a_text_is_written_out(qtbot: QtBot, path: str) -> None:
    box = TextBox(BY_PATH[path])
    qtbot.addWidget(box)
    box.setFocus()
    QGuiApplication.clipboard().setText("a\u202eb\x1b")
    box.paste()
    said = box.value()
    assert (said if isinstance(said, str) else said and said[0]) == "a\\u202eb\\x1b"
    box.editingFinished.emit()
    assert box.text() == "a\\u202eb\\x1b"


def test_escape_takes_back_what_was_typed(qtbot: QtBot) -> None:
    box = TextBox(BY_PATH["model.name"])
    qtbot.addWidget(box)
    edits: list[object] = []
    box.edited.connect(lambda value, held: edits.append(value))
    box.set_value("Llama")
    QTest.keyClicks(box, "x")
    QTest.keyClick(box, Qt.Key.Key_Escape)
    assert edits[-1] == "Llama"
    assert box.text() == "Llama"


def test_a_device_is_searched_picked_or_named(qtbot: QtBot) -> None:
    box = DeviceBox(BY_PATH["device.name"])
    qtbot.addWidget(box)
    found = Device(name="RTX 4090", memory_bytes=25_000_000_000)
    box.search = lambda text: [Item("RTX 4090", value=found)] if text in "rtx 4090" else []
    picked: list[object] = []
    named: list[object] = []
    box.picked.connect(picked.append)
    box.edited.connect(lambda value, held: named.append(value))
    box.set_value("H100")
    box.show()
    box.showPopup()
    popup = box._popup
    assert popup is not None
    QTest.keyClicks(popup.line, "rtx")
    QTest.keyClick(popup.line, Qt.Key.Key_Return)
    assert picked == [found]
    box.showPopup()
    QTest.keyClicks(popup.line, "My card")
    QTest.keyClick(popup.line, Qt.Key.Key_Return)
    assert named == ["My card"]
    assert box.currentText() == "My card"
    assert not popup.isVisible()
