import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from memgui.gui.main_window import MainWindow
from tests.document.test_library import CONFIG
from tests.gui.house import House

LENGTH = "training.sequence_length"


@pytest.fixture
def window(house: House, qtbot: QtBot) -> Iterator[MainWindow]:
    made = MainWindow(house.context)
    qtbot.addWidget(made)
    with qtbot.waitSignal(made.painted):
        made.show()
    yield made
    house.document.settle()


def config(folder: Path) -> Path:
    path = folder / "Small-1B" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG), "utf-8")
    return path


def drop(window: MainWindow, mime: QMimeData) -> None:
    actions, buttons = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    keys = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(10, 10), actions, mime, buttons, keys)
    window.dragEnterEvent(enter)
    assert enter.isAccepted()
    window.dropEvent(QDropEvent(QPointF(10, 10), actions, mime, buttons, keys))


def test_a_dropped_config_is_opened(window: MainWindow, house: House, tmp_path: Path, qtbot: QtBot) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(config(tmp_path)))])
    drop(window, mime)
    qtbot.waitUntil(lambda: house.document.scenario.model.name == "Small-1B")
    assert "Small-1B" in window.windowTitle()
    house.document.settle()
    assert "Small-1B" in window.toolbar.model.accessibleName()


def test_a_bad_drop_is_said_in_the_window(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "gone.json"))])
    drop(window, mime)
    qtbot.waitUntil(window.notices.isVisible)
    assert "gone.json" in window.notices.text
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert not window.notices.isVisible()


def test_dropped_and_pasted_text(window: MainWindow, house: House) -> None:
    house.document.edit(LENGTH, 12_345)
    shared = house.library.shared_text()
    house.document.undo_stack.undo()
    mime = QMimeData()
    mime.setText(shared)
    drop(window, mime)
    assert house.document.scenario.training.sequence_length == 12_345
    QGuiApplication.clipboard().setText("gpt2")
    window.actions_.paste.trigger()
    assert house.document.scenario.model.name.lower() == "gpt2"


def test_keys_reach_their_actions(window: MainWindow, house: House, qtbot: QtBot) -> None:
    qtbot.waitUntil(window.isActiveWindow)
    QTest.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert window._picker is not None
    popup = window._picker.popup
    assert popup.isVisible()
    QTest.keyClicks(popup.line, "gpt2")
    QTest.keyClick(popup.line, Qt.Key.Key_Return)
    assert house.document.scenario.model.name.lower().startswith("gpt2")
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert house.document.scenario.model.name == "Llama-3.1-8B"
    QTest.keyClick(window, Qt.Key.Key_Slash)
    assert window.form.find_line.hasFocus()
    QTest.keyClick(window.form.find_line, Qt.Key.Key_Escape)
    QTest.keyClick(window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    assert window.form.sections["device"].rows["device.name"].box.hasFocus()


def test_a_slash_in_a_text_is_a_slash(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(window.isActiveWindow)
    window.names.ask("Name", "", lambda name: True)
    QTest.keyClicks(window.names.line, "a/b")
    assert window.names.line.text() == "a/b"
    assert not window.form.find_line.isVisible()
    window.names.hide()


def test_saving_asks_for_a_name_once(window: MainWindow, house: House) -> None:
    window.actions_.save.trigger()
    assert window.names.isVisible()
    window.names.line.setText("Mine")
    QTest.keyClick(window.names.line, Qt.Key.Key_Return)
    assert not window.names.isVisible()
    assert [entry.name for entry in house.library.presets()] == ["Mine"]
    house.document.edit(LENGTH, 8)
    assert window.isWindowModified()
    window.actions_.save.trigger()
    assert not window.names.isVisible()
    assert not window.isWindowModified()


def test_a_taken_name_keeps_the_question_open(window: MainWindow, house: House) -> None:
    house.library.save_as("Mine")
    house.document.edit(LENGTH, 8)
    window.actions_.save_as.trigger()
    window.names.line.setText("Mine")
    QTest.keyClick(window.names.line, Qt.Key.Key_Return)
    assert window.names.isVisible()
    assert window.notices.isVisible()
    QTest.keyClick(window.names.line, Qt.Key.Key_Escape)
    assert not window.names.isVisible()
    assert window.notices.isVisible()
    window.actions_.save_as.trigger()
    QTest.mouseClick(window.notices.action_button, Qt.MouseButton.LeftButton)
    assert not window.names.isVisible()
    assert not window.isWindowModified()


def test_copies(window: MainWindow, house: House) -> None:
    clipboard = QGuiApplication.clipboard()
    window.actions_.copy_verdict.trigger()
    assert "Llama-3.1-8B" in clipboard.text()
    window.actions_.copy_markdown.trigger()
    assert "| **Total** |" in clipboard.text()
    window.actions_.copy_csv.trigger()
    assert clipboard.text().startswith("part,label,bytes")
    window.actions_.diagnostics.trigger()
    assert "PySide6" in clipboard.text()


def test_units_and_theme_are_kept(window: MainWindow, house: House) -> None:
    QTest.mouseClick(window.toolbar.units.segment("GB"), Qt.MouseButton.LeftButton)
    window.toolbar.themes["dark"].trigger()
    assert (house.library.settings.units, house.library.settings.theme) == ("GB", "dark")
    assert house.view.view.unit_bytes == 10**9


def test_where_everything_was_is_remembered(window: MainWindow, house: House, qtbot: QtBot) -> None:
    window.resize(780, 700)  # the screen of these tests has 800 x 800
    window.form.sections["model"].set_open(True)
    window.form.sections["workload"].set_open(False)
    window.body.main.setSizes([0, 400, sum(window.body.main.sizes()) - 400])
    assert window.form.width() == 400
    assert window.close()
    again = MainWindow(house.context)
    qtbot.addWidget(again)
    with qtbot.waitExposed(again):
        again.show()
    assert (again.width(), again.height()) == (780, 700)
    assert again.form.width() == 400
    assert again.form.sections["model"].is_open
    assert not again.form.sections["workload"].is_open
    again.put_back()
    assert again.form.width() < 400


def test_a_broken_window_file_counts_as_none(house: House, qtbot: QtBot) -> None:
    path = house.context.paths.window
    path.parent.mkdir(parents=True)
    path.write_bytes(b"[General]\ngeometry=@ByteArray(garbage)\nsections=%%%\n\x00\xff")
    QSettings(str(path), QSettings.Format.IniFormat).sync()
    made = MainWindow(house.context)
    qtbot.addWidget(made)
    made.show()
    assert made.width() > 800


def test_the_presets_give_way_in_a_narrow_window(window: MainWindow) -> None:
    assert window.actions_.show_presets.isChecked()
    window.resize(1024, 700)
    assert not window.actions_.show_presets.isChecked()
    assert window.toolbar.presets.isVisible()
    window.actions_.show_presets.trigger()
    assert window.body.presets is not None
    assert window.body.presets.isVisible()


def test_expanding_the_tabs_hides_the_picture(window: MainWindow) -> None:
    window.actions_.expand_tabs.trigger()
    assert not window.body.picture.isVisible()
    window.tabs.expand_asked.emit()
    assert window.body.picture.isVisible()


def test_f6_walks_the_panes(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(window.isActiveWindow)
    seen: list[QWidget] = []
    for _ in range(3):
        window.actions_.next_pane.trigger()
        focus = window.focusWidget()
        assert focus is not None
        seen.append(focus)
    assert len({id(widget) for widget in seen}) == 3
    assert window.form.isAncestorOf(seen[0])


def test_every_stop_of_the_keyboard_has_a_name(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window.body.presets is not None)
    nameless = [
        widget
        for widget in window.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.isVisible()
        and not widget.accessibleName()
        and widget.objectName() != "qt_spinbox_lineedit"
    ]
    assert nameless == []


def test_closing_is_never_refused(window: MainWindow, house: House) -> None:
    house.document.edit(LENGTH, 8)
    event = QCloseEvent()
    window.closeEvent(event)
    assert event.isAccepted()
