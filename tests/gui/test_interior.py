import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QSplitterHandle, QWidget
from pytestqt.qtbot import QtBot

from memgui.gui.help import Diagnostics
from memgui.gui.interior import Interior
from memgui.gui.palette import DARK, LIGHT
from memgui.gui.search_popup import SearchPopup
from tests.document.test_library import CONFIG
from tests.gui.house import House

LENGTH = "training.sequence_length"


def config(folder: Path) -> Path:
    path = folder / "Small-1B" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG), "utf-8")
    return path


def drop(inside: Interior, mime: QMimeData) -> None:
    actions, buttons = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    keys = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(10, 10), actions, mime, buttons, keys)
    inside.window.dragEnterEvent(enter)
    assert enter.isAccepted()
    inside.window.dropEvent(QDropEvent(QPointF(10, 10), actions, mime, buttons, keys))


def test_a_dropped_config_is_opened(inside: Interior, house: House, tmp_path: Path, qtbot: QtBot) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(config(tmp_path)))])
    drop(inside, mime)
    qtbot.waitUntil(lambda: house.document.scenario.model.name == "Small-1B")
    assert "Small-1B" in inside.window.windowTitle()
    house.document.settle()
    assert "Small-1B" in inside.toolbar.model.accessibleName()


def test_a_bad_drop_is_said_in_the_window(inside: Interior, tmp_path: Path, qtbot: QtBot) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "gone.json"))])
    drop(inside, mime)
    qtbot.waitUntil(inside.notices.isVisible)
    assert "gone.json" in inside.notices.text
    QTest.keyClick(inside.window, Qt.Key.Key_Escape)
    assert not inside.notices.isVisible()


def test_of_several_files_the_first_that_can_be_is_opened_and_the_rest_accounted_for(
    inside: Interior, house: House, tmp_path: Path, qtbot: QtBot
) -> None:
    house.library.save_as("Mine")
    preset = next((tmp_path / "home").rglob("*.memgui.json"))
    broken = tmp_path / "broken.json"
    broken.write_text("{", "utf-8")
    mime = QMimeData()
    files = (tmp_path / "gone.json", broken, config(tmp_path), preset)
    mime.setUrls([*(QUrl.fromLocalFile(str(path)) for path in files), QUrl("https://example.com/a")])
    drop(inside, mime)
    qtbot.waitUntil(lambda: house.document.scenario.model.name == "Small-1B")
    notice = house.told[-1]
    assert notice.message.text == "Small-1B/config.json is open; not opened: 4."
    details = [line.text for line in notice.details]
    assert [name in line for name, line in zip(("gone", "broken", preset.name), details, strict=False)] == [
        True
    ] * 3
    assert "one file is open at a time" in details[2]
    assert "nothing from a network" in details[3]
    assert any("is not stated" in line for line in details[4:])  # what there is to say of what is open
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in files[:2]])
    drop(inside, mime)
    qtbot.waitUntil(lambda: house.told[-1] is not notice)
    assert house.told[-1].message.text == "Nothing of it can be opened: 2 files."
    assert [line.text for line in house.told[-1].details] == details[:2]
    assert house.document.scenario.model.name == "Small-1B"


def test_a_dropped_preset_has_its_own_name(
    inside: Interior, house: House, tmp_path: Path, qtbot: QtBot
) -> None:
    house.document.edit(LENGTH, 12_345)
    house.library.save_as("Twelve thousand")
    house.document.edit(LENGTH, 8)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(next((tmp_path / "home").rglob("*.memgui.json"))))])
    drop(inside, mime)
    qtbot.waitUntil(lambda: house.document.scenario.training.sequence_length == 12_345)
    assert house.document.state.name == "Twelve thousand"


@pytest.mark.parametrize(
    ("address", "said"),
    [("", "no file and no text"), ("https://example.com/a.json", "nothing from a network: https://example")],
)
def test_what_is_no_file_is_told_apart(inside: Interior, house: House, address: str, said: str) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl(address)])
    inside.take(mime)
    assert said in house.told[-1].message.text


def test_dropped_and_pasted_text(inside: Interior, house: House) -> None:
    house.document.edit(LENGTH, 12_345)
    shared = house.library.shared_text()
    house.document.undo_stack.undo()
    mime = QMimeData()
    mime.setText(shared)
    drop(inside, mime)
    assert house.document.scenario.training.sequence_length == 12_345
    QGuiApplication.clipboard().setText("gpt2")
    inside.actions.paste.trigger()
    assert house.document.scenario.model.name.lower() == "gpt2"


@pytest.mark.parametrize(
    "text",
    [
        *("", "  \n", "~nobody-of-that-name/x", "~", "/a\0b", "/" + "x" * 4000, "/" + "x/" * 2040, "\ufffd"),
        *(
            "file:///tmp/%00x",
            "file://elsewhere/share/x",
            "http://example.com/x",
            "smb://a/b",
            "1e9",
            '"/tmp"',
        ),
        *("memgui1:", "memgui1:\u202e", "memgui1:AAAA", "memgui1:" + "A" * 10**6, "x" * 10**6, "/dev/zero"),
    ],
)
def test_whatever_is_pasted_is_one_line(inside: Interior, house: House, qtbot: QtBot, text: str) -> None:
    before = house.document.state
    mime = QMimeData()
    mime.setText(text)
    inside.take(mime)
    qtbot.waitUntil(lambda: bool(house.told))
    (notice,) = house.told
    assert notice.message.text.isprintable()
    assert house.document.state == before


def test_the_address_of_a_file_as_text_is_the_file(
    inside: Interior, house: House, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "a name" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG), "utf-8")
    mime = QMimeData()
    mime.setText(path.as_uri())
    drop(inside, mime)
    qtbot.waitUntil(lambda: house.document.scenario.model.name == "a name")


def test_keys_reach_their_actions(inside: Interior, house: House, qtbot: QtBot) -> None:
    qtbot.waitUntil(inside.window.isActiveWindow)
    QTest.keyClick(inside.window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert inside.picker is not None
    popup = inside.picker.popup
    assert popup.isVisible()
    QTest.keyClicks(popup.line, "gpt2")
    QTest.keyClick(popup.line, Qt.Key.Key_Return)
    assert house.document.scenario.model.name.lower().startswith("gpt2")
    QTest.keyClick(inside.window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert house.document.scenario.model.name == "Llama-3.1-8B"
    QTest.keyClick(inside.window, Qt.Key.Key_Slash)
    assert inside.form.find_line.hasFocus()
    QTest.keyClick(inside.form.find_line, Qt.Key.Key_Escape)
    QTest.keyClick(inside.window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    box = inside.form.sections["device"].rows["device.name"].box
    devices = box.findChild(SearchPopup)
    assert devices is not None
    assert devices.isVisible()
    QTest.keyClicks(devices.line, "Tesla T4")
    QTest.keyClick(devices.line, Qt.Key.Key_Return)
    assert house.document.scenario.device.name == "Tesla T4"
    assert box.hasFocus()


def test_undo_in_a_field_is_the_documents(inside: Interior, house: House, qtbot: QtBot) -> None:
    qtbot.waitUntil(inside.window.isActiveWindow)
    inside.form.go_to(LENGTH)
    line = inside.form.sections["workload"].rows[LENGTH].box.lineEdit()  # type: ignore[attr-defined]
    QTest.keyClicks(line, "8192")
    QTest.keyClick(line, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    house.document.settle()
    assert house.document.scenario.training.sequence_length == 4096
    assert line.text() == "4,096"
    QTest.keyClick(line, Qt.Key.Key_Y, Qt.KeyboardModifier.ControlModifier)
    house.document.settle()
    assert line.text() == "8,192"


def test_a_slash_in_a_text_is_a_slash(inside: Interior, qtbot: QtBot) -> None:
    qtbot.waitUntil(inside.window.isActiveWindow)
    inside.names.ask("Name", "", lambda name: True)
    QTest.keyClicks(inside.names.line, "a/b")
    assert inside.names.line.text() == "a/b"
    assert not inside.form.find_line.isVisible()
    inside.names.hide()


def test_saving_asks_for_a_name_once(inside: Interior, house: House) -> None:
    inside.actions.save.trigger()
    assert inside.names.isVisible()
    inside.names.line.setText("Mine")
    QTest.keyClick(inside.names.line, Qt.Key.Key_Return)
    assert not inside.names.isVisible()
    assert [entry.name for entry in house.library.presets()] == ["Mine"]
    house.document.edit(LENGTH, 8)
    assert inside.window.isWindowModified()
    inside.actions.save.trigger()
    assert not inside.names.isVisible()
    assert not inside.window.isWindowModified()


@pytest.mark.parametrize("action", ["save_as", "rename pin"])
def test_no_name_is_cut(inside: Interior, house: House, action: str) -> None:
    if action == "save_as":
        inside.actions.save_as.trigger()
    else:
        inside.pinning.add()
        inside.pinning.rename(house.pins.all[0])
    inside.names.line.setText("x" * 500)
    QTest.keyClick(inside.names.line, Qt.Key.Key_Return)
    assert "1 to 200 characters; this one has 500" in house.told[-1].message.text
    assert inside.names.isVisible()
    assert inside.names.line.text() == "x" * 500
    assert house.library.presets() == ()
    inside.names.line.setText("x" * 200)
    QTest.keyClick(inside.names.line, Qt.Key.Key_Return)
    assert not inside.names.isVisible()


def test_a_taken_name_keeps_the_question_open(inside: Interior, house: House) -> None:
    house.library.save_as("Mine")
    house.document.edit(LENGTH, 8)
    inside.actions.save_as.trigger()
    inside.names.line.setText("Mine")
    QTest.keyClick(inside.names.line, Qt.Key.Key_Return)
    assert inside.names.isVisible()
    assert inside.notices.isVisible()
    QTest.keyClick(inside.names.line, Qt.Key.Key_Escape)
    assert not inside.names.isVisible()
    assert inside.notices.isVisible()
    inside.actions.save_as.trigger()
    QTest.mouseClick(inside.notices.action_button, Qt.MouseButton.LeftButton)
    assert not inside.names.isVisible()
    assert not inside.window.isWindowModified()


def test_copies(inside: Interior, house: House) -> None:
    clipboard = QGuiApplication.clipboard()
    inside.actions.copy_verdict.trigger()
    assert "Llama-3.1-8B" in clipboard.text()
    inside.actions.copy_markdown.trigger()
    assert "| **Total** |" in clipboard.text()
    inside.actions.copy_csv.trigger()
    assert clipboard.text().startswith("part,label,bytes")


def test_diagnostics_are_shown_and_copied(inside: Interior, qtbot: QtBot) -> None:
    inside.actions.diagnostics.trigger()
    qtbot.waitUntil(lambda: inside.window.findChild(Diagnostics) is not None)
    sheet = inside.window.findChild(Diagnostics)
    assert isinstance(sheet, Diagnostics)
    text = sheet.shown.toPlainText()
    for word in ("PySide6", "Platform", "Qt platform", "GPU", "Data", "Log:"):
        assert word in text
    QTest.mouseClick(sheet.copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text().strip() == text.strip()
    sheet.close()


def test_units_and_theme_are_kept(inside: Interior, house: House) -> None:
    QTest.mouseClick(inside.toolbar.units.segment("GB"), Qt.MouseButton.LeftButton)
    inside.toolbar.themes["dark"].trigger()
    assert (house.library.settings.units, house.library.settings.theme) == ("GB", "dark")
    assert house.view.view.unit_bytes == 10**9


def test_menus_follow_the_theme(inside: Interior, qtbot: QtBot) -> None:
    app, window = QApplication.instance(), inside.window
    assert isinstance(app, QApplication)
    before = app.palette()
    try:
        for colours in (DARK, LIGHT, DARK):
            app.setPalette(colours.qpalette())
            ground = colours.window.name()
            qtbot.waitUntil(lambda ground=ground: ground in window.menuBar().styleSheet())  # type: ignore[misc]
    finally:
        app.setPalette(before)


def drag(handle: QSplitterHandle, by: QPoint) -> None:
    place = handle.rect().center()
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=place)
    QTest.mouseMove(handle, place + by)
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=place + by)


def test_each_size_has_its_own_places_until_a_handle_is_moved(inside: Interior) -> None:
    body, window = inside.window.body, inside.window
    window.resize(1024, 700)
    window.put_back()
    small = body.right.sizes(), body.picture.sizes()
    window.resize(2560, 1440)
    assert body.right.sizes()[0] > 2 * small[0][0] * 0.9
    window.resize(1024, 700)
    assert (body.right.sizes(), body.picture.sizes()) == small
    window.resize(2560, 1440)
    drag(body.right.handle(1), QPoint(0, 300))
    picture = body.right.sizes()[0]
    window.resize(2500, 1440)
    assert body.right.sizes()[0] == picture
    window.resize(1024, 700)
    assert body.right.sizes()[1] >= 180


def test_where_everything_was_is_remembered(inside: Interior, house: House, qtbot: QtBot) -> None:
    inside.window.resize(780, 700)  # the screen of these tests has 800 x 800
    inside.form.sections["model"].set_open(True)
    inside.form.sections["workload"].set_open(False)
    drag(inside.window.body.main.handle(2), QPoint(400 - inside.form.width(), 0))
    wide = inside.form.width()
    assert wide > 380
    assert inside.window.close()
    window = house.window()
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.painted):
        window.show()
    again = Interior(window, house.context)
    qtbot.waitUntil(again.form.isVisible)
    assert (window.width(), window.height()) == (780, 700)
    assert again.form.width() == wide
    assert again.form.sections["model"].is_open
    assert not again.form.sections["workload"].is_open
    again.put_back()
    assert again.form.width() < wide


def test_a_broken_window_file_counts_as_none(house: House, qtbot: QtBot) -> None:
    path = house.context.paths.window
    path.parent.mkdir(parents=True)
    path.write_bytes(b"[General]\ngeometry=@ByteArray(garbage)\nsections=%%%\n\x00\xff")
    QSettings(str(path), QSettings.Format.IniFormat).sync()
    made = house.window()
    qtbot.addWidget(made)
    made.show()
    assert made.width() > 800


def test_the_presets_give_way_in_a_narrow_window(inside: Interior) -> None:
    assert inside.actions.show_presets.isChecked()
    inside.window.resize(1024, 700)
    assert not inside.actions.show_presets.isChecked()
    assert inside.toolbar.presets.isVisible()
    inside.actions.show_presets.trigger()
    assert inside.presets.isVisible()


def test_the_presets_come_back_with_the_room_and_the_form_keeps_its_width(inside: Interior) -> None:
    window, wide = inside.window, inside.window.size()
    form = window.body.form.width()
    window.resize(1030, 700)
    assert window.body.presets.isHidden()
    window.resize(wide)
    assert inside.presets.isVisible()
    assert not inside.toolbar.presets.isVisible()
    window.resize(2 * wide.width(), wide.height())
    assert window.body.form.width() == form
    inside.actions.show_presets.trigger()
    window.resize(1030, 700)
    window.resize(wide)
    assert window.body.presets.isHidden()


def test_expanding_the_tabs_hides_the_picture(inside: Interior) -> None:
    inside.actions.expand_tabs.trigger()
    assert not inside.window.body.picture.isVisible()
    inside.tabs.expand_asked.emit()
    assert inside.window.body.picture.isVisible()


def test_f6_walks_the_panes(inside: Interior, qtbot: QtBot) -> None:
    qtbot.waitUntil(inside.window.isActiveWindow)
    seen: list[QWidget] = []
    for _ in range(3):
        inside.actions.next_pane.trigger()
        focus = inside.window.focusWidget()
        assert focus is not None
        seen.append(focus)
    assert len({id(widget) for widget in seen}) == 3
    assert inside.form.isAncestorOf(seen[0])


def test_every_stop_of_the_keyboard_has_a_name(inside: Interior, qtbot: QtBot) -> None:
    assert inside.presets.isVisible()
    assert inside.tabs.page("why") is not None
    nameless = [
        widget
        for widget in inside.window.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.isVisible()
        and not widget.accessibleName()
        and widget.objectName() != "qt_spinbox_lineedit"
    ]
    assert nameless == []


def test_closing_is_never_refused(inside: Interior, house: House) -> None:
    house.document.edit(LENGTH, 8)
    event = QCloseEvent()
    inside.window.closeEvent(event)
    assert event.isAccepted()


def test_all_presets_go_into_one_file_and_come_back(
    inside: Interior, house: House, tmp_path: Path, qtbot: QtBot
) -> None:
    inside.actions.export_presets.trigger()
    assert "no preset of your own" in inside.notices.text
    for name in ("One", "Two"):
        house.library.save_as(name)
    inside.actions.export_presets.trigger()
    dialog = inside.window.findChild(QFileDialog)
    assert isinstance(dialog, QFileDialog)
    target = tmp_path / "all.memgui.json"
    dialog.fileSelected.emit(str(target))
    dialog.close()
    for entry in house.library.presets():
        house.library.delete(entry)
    assert not house.library.presets()
    house.library.import_file(target)
    assert [entry.name for entry in house.library.presets()] == ["One", "Two"]


def test_a_shared_text_pastes_back(inside: Interior, house: House) -> None:
    house.document.edit(LENGTH, 4321)
    inside.actions.copy_share.trigger()
    house.document.edit(LENGTH, 1)
    inside.actions.paste.trigger()
    assert house.document.scenario.training.sequence_length == 4321


def test_after_a_name_is_given_the_keys_go_where_they_were(inside: Interior) -> None:
    for answer in (Qt.Key.Key_Return, Qt.Key.Key_Escape):
        inside.form.go_to(LENGTH)
        before = inside.window.focusWidget()
        inside.files.ask_save_as()
        assert inside.window.focusWidget() is inside.names.line
        inside.names.line.setText("Mine")
        QTest.keyClick(inside.names.line, answer)
        assert not inside.names.isVisible()
        assert inside.window.focusWidget() is before


def test_a_path_pasted_into_the_model_search_opens_the_file(
    inside: Interior, house: House, tmp_path: Path, qtbot: QtBot
) -> None:
    file = config(tmp_path)
    inside.open_model_picker()
    line = inside.picker.popup.line
    line.setText(f' "{file}" ')
    QTest.keyClick(line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: house.document.scenario.model.name == "Small-1B")


def test_a_path_is_looked_for_when_it_is_opened_and_not_while_it_is_typed(
    inside: Interior, house: House, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a network folder that does not answer the window would stand still."""
    gone = tmp_path / "mount" / "config.json"
    looked: list[str] = []
    stat, here = os.stat, threading.get_ident()

    def watched(path: Any, *args: Any, **more: Any) -> os.stat_result:
        if str(path).startswith(str(gone.parent)) and threading.get_ident() == here:
            looked.append(str(path))
        return stat(path, *args, **more)

    monkeypatch.setattr(os, "stat", watched)
    inside.open_model_picker()
    inside.picker.popup.line.setText(str(gone))
    assert [item.group for item in inside.picker.items(str(gone))] == ["Open a file"]
    QTest.keyClick(inside.picker.popup.line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(house.told))
    assert house.told[-1].message.text == "config.json is not there (any more)."
    assert looked == []


def test_how_opening_went_is_no_news_once_something_else_is_open(inside: Interior, house: House) -> None:
    library, bar = house.library, inside.notices
    library.open_named("no such model")
    house.document.edit(LENGTH, 64)
    assert "no such model" in bar.text
    assert bar.isVisible()  # an edit opens nothing
    library.open_named("Qwen3-8B")
    assert not bar.isVisible()
    library.open_named("Qwen3-8B-Instruct")  # another version, which is said
    assert "Qwen3-8B" in bar.text
    assert bar.isVisible()
    house.document.undo_stack.undo()
    assert not bar.isVisible()
    library.save_as("Mine")
    (entry,) = library.presets()
    library.delete(entry)
    library.open_named("gpt2")
    assert bar.isVisible()
    assert bar.notice is not None
    assert not bar.notice.of_opening or "gpt2" in bar.text


@pytest.mark.parametrize("said", ["no such model", "is being read"])
def test_news_of_opening_goes_when_the_same_model_is_opened_again(
    inside: Interior,
    house: House,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
) -> None:
    library, bar = house.library, inside.notices
    library.open_named("Qwen3-8B")
    steps, go_on = house.document.undo_stack.count(), threading.Event()

    def slow(*_: object) -> None:
        go_on.wait(5)

    with monkeypatch.context() as patch:
        patch.setattr("memgui.planning.opening.opened_path", slow)
        patch.setattr("memgui.document.reading.TOLD_AFTER_MS", 5)
        if said == "is being read":
            library.open_path(config(tmp_path))
        else:
            library.open_named(said)
        qtbot.waitUntil(lambda: bar.isVisible() and said in bar.text)
        library.open_named("Qwen3-8B")
        assert not bar.isVisible()
        go_on.set()
    assert house.document.undo_stack.count() == steps  # the document had nothing to change


def test_a_name_that_none_has_finds_what_is_near_it(inside: Interior) -> None:
    found = inside.picker.items("unsloth/Qwen3-4B-bnb-4bit")
    assert found[0].title == "Qwen3-4B"
    assert {item.group for item in found} == {"Nothing is called so; near it"}
    assert inside.picker.items("zzzz") == []


def test_what_is_no_path_opens_no_file(inside: Interior) -> None:
    assert "Open a file" not in {item.group for item in inside.picker.items("/\0")}
