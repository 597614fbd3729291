"""Open a config, turn a number, take it back, save a preset, start again: everything is as it was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from memgui.app import Program
from memgui.catalog import Catalog
from memgui.files.bounded import FileFault
from memgui.gui.form.number_box import NumberBox
from memgui.gui.interior import Interior
from memgui.gui.presets_model import KIND, Row
from memgui.gui.why.page import WhyPage
from memgui.planning.opening import opened
from memgui.presets.paths import AppPaths
from memgui.presets.store import PresetStore
from tests.document.test_library import CONFIG
from tests.e2e.program import started

ROOT = Path(__file__).parent.parent.parent
LENGTH, BATCH = "training.sequence_length", "training.micro_batch_size"


@pytest.fixture
def paths(tmp_path: Path) -> AppPaths:
    return AppPaths.default(home=tmp_path / "home")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "Small-1B" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG), "utf-8")
    return path


def inside(program: Program) -> Interior:
    assert program.interior is not None
    return program.interior


def test_a_first_start_shows_a_real_model_on_a_real_gpu(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths
) -> None:
    with started(qapp, qtbot, paths) as program:
        result = program.context.document.last_result
        assert result.estimate is not None
        assert "Llama" in result.scenario.model.name
        assert "H100" in result.scenario.device.name
        assert result.estimate.peak_bytes > 2**36
        assert "GiB" in program.window.verdict.headline
        assert "notices" not in inside(program).__dict__  # nothing to say
        memory = inside(program).form.sections["device"].row("device.memory_bytes")
        assert memory is not None
        assert memory._aside == "79.2 GiB"  # beside the bytes, from the first moment on


def test_what_was_asked_for_is_kept_before_it_is_edited(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths, config: Path
) -> None:
    with started(qapp, qtbot, paths, opened(str(config), Catalog())):
        qtbot.waitUntil(lambda: any(paths.sessions.glob("*.json")), timeout=10_000)


def test_what_was_asked_before_a_model_cut_it_is_asked_of_the_next_after_a_restart(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths
) -> None:
    with started(qapp, qtbot, paths) as program:
        asked = program.document.scenario.training.sequence_length
        program.context.library.open_named("gpt2")
        assert program.document.scenario.training.sequence_length == 1024 < asked
    with started(qapp, qtbot, paths) as program:
        assert program.document.scenario.training.sequence_length == 1024
        program.context.library.open_named("Llama-3.1-8B")
        assert program.document.scenario.training.sequence_length == asked
    with started(qapp, qtbot, paths) as program:
        program.context.library.open_named("gpt2")
        program.document.edit(LENGTH, 512)
    with started(qapp, qtbot, paths) as program:
        program.context.library.open_named("Llama-3.1-8B")
        assert program.document.scenario.training.sequence_length == 512  # as it was chosen last


def test_a_set_up_that_cannot_be_computed_has_the_last_picture_after_a_restart_too(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths
) -> None:
    with started(qapp, qtbot, paths) as program:
        program.document.edit(BATCH, 2)
        good = program.document.settle().shown
        program.document.edit(BATCH, -1)
        assert good is not None
    for _ in range(2):
        with started(qapp, qtbot, paths) as program:
            result = program.document.last_result
            assert result.estimate is None
            assert result.scenario.training.micro_batch_size == -1
            assert result.shown is not None
            assert (result.shown.scenario, result.shown.peak_bytes) == (good.scenario, good.peak_bytes)


def test_what_differs_from_its_preset_does_so_after_a_restart(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths
) -> None:
    for edited in (False, True):
        with started(qapp, qtbot, paths) as program:
            assert program.window.isWindowModified() is False
            program.context.library.save_as("Mine")
            if edited:
                program.document.edit(BATCH, 4)
    with started(qapp, qtbot, paths) as program:
        assert program.window.isWindowModified()
        assert program.document.state.name == "Mine"


def test_the_whole_way(qapp: QApplication, qtbot: QtBot, paths: AppPaths, config: Path) -> None:
    with started(qapp, qtbot, paths) as program:
        window, document = program.window, program.context.document
        program.context.library.open_path(config)
        qtbot.waitUntil(lambda: document.scenario.model.name == "Small-1B")
        inside(program).form.go_to(BATCH)
        box = inside(program).form.sections["workload"].rows[BATCH].box
        assert isinstance(box, NumberBox)
        before = document.settle()
        QTest.keyClicks(box.lineEdit(), "4")
        after = document.settle()
        assert before.estimate is not None
        assert after.estimate is not None
        assert after.estimate.peak_bytes > before.estimate.peak_bytes
        inside(program).actions.undo.trigger()
        assert document.settle().scenario == before.scenario
        assert box.value() == 1
        inside(program).actions.redo.trigger()
        inside(program).actions.save.trigger()
        inside(program).names.line.setText("Four at once")
        QTest.keyClick(inside(program).names.line, Qt.Key.Key_Return)
        saved = document.scenario
        assert not window.isWindowModified()
        QTest.mouseClick(inside(program).toolbar.units.segment("GB"), Qt.MouseButton.LeftButton)
        inside(program).form.sections["model"].set_open(True)
    with started(qapp, qtbot, paths) as program:
        window, document = program.window, program.context.document
        assert document.scenario == saved
        assert "hidden_size" in document.settle().report.understood
        inside(program).tabs.show_tab("why")
        qtbot.waitUntil(lambda: inside(program).tabs.page("why") is not None)
        why = inside(program).tabs.page("why")
        assert isinstance(why, WhyPage)
        explanation = why.explanation()
        assert explanation is not None
        assert explanation.report == document.state.report
        assert document.state.name == "Four at once"
        assert program.context.view.view.units == "GB"
        assert "GB" in window.verdict.headline
        assert inside(program).form.sections["model"].is_open
        assert not document.undo_stack.canUndo()
        assert str(config) in program.context.library.recent_files()
        inside(program).actions.show_presets.setChecked(True)
        dock = inside(program).presets
        names = [item.text() for item in dock.model.items() if item.data(KIND) is Row.PRESET]
        assert names == ["Four at once"]
        document.edit(LENGTH, 77)
        inside(program).actions.save.trigger()
        assert not window.isWindowModified()
    with started(qapp, qtbot, paths) as program:
        assert program.context.document.scenario.training.sequence_length == 77


def test_the_window_and_the_command_line_say_the_same(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths, config: Path
) -> None:
    with started(qapp, qtbot, paths, opened(str(config), Catalog())) as program:
        assert program.context.library.recent_files() == (str(config),)
        estimate = program.context.document.settle().estimate
        assert estimate is not None
        legend = {node.key: node.bytes for node in estimate.components}
    run = subprocess.run(
        [sys.executable, "-m", "memgui", "estimate", "--model", str(config), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    device = json.loads(run.stdout)["device"]
    assert device["peak_bytes"] == estimate.peak_bytes
    assert {part["key"]: part["bytes"] for part in device["components"]} == legend


def test_what_was_asked_for_is_opened_and_not_the_last_session(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths, config: Path
) -> None:
    with started(qapp, qtbot, paths) as program:
        program.context.document.edit(LENGTH, 99)
    with started(qapp, qtbot, paths, opened(str(config), Catalog())) as program:
        assert program.context.document.scenario.model.name == "Small-1B"
        assert program.context.document.scenario.training.sequence_length == 99
        program.context.document.undo_stack.undo()  # what was open last time is one step back
        assert program.context.document.scenario.model.name != "Small-1B"
        assert program.context.document.scenario.training.sequence_length == 99


def test_a_killed_program_restores_and_says_so(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(qapp, qtbot, paths) as program:
        program.context.document.edit(LENGTH, 123)
        program.autosave.flush()
        slot = next(paths.sessions.glob("*.json"))
        killed = slot.read_bytes()
    for left in paths.sessions.iterdir():
        left.unlink()
    (paths.sessions / slot.name).write_bytes(killed)  # as it stood when the power went
    with started(qapp, qtbot, paths) as program:
        assert program.context.document.scenario.training.sequence_length == 123
        assert "did not end properly" in inside(program).notices.text


def test_a_full_disk_is_told_and_nothing_is_lost(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(qapp, qtbot, paths) as program:

        def full(*args: object, **more: object) -> None:
            raise FileFault("session.json", "{file} cannot be written: the disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(program.keeper, "write", full)
            program.context.document.edit(LENGTH, 55)
            program.autosave.flush()
            assert "disk is full" in inside(program).notices.text
        assert program.context.document.scenario.training.sequence_length == 55
    with started(qapp, qtbot, paths) as program:
        assert program.context.document.scenario.training.sequence_length == 55


def test_a_settings_file_of_nonsense_is_set_aside_and_said(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths
) -> None:
    paths.settings.parent.mkdir(parents=True)
    paths.settings.write_text("not json", "utf-8")
    with started(qapp, qtbot, paths) as program:
        notice = inside(program).notices.notice
        assert notice is not None
        assert notice.severity == "warning"
        assert program.context.view.view.units == "GiB"


def test_a_preset_is_renamed_in_place(qapp: QApplication, qtbot: QtBot, paths: AppPaths) -> None:
    with started(qapp, qtbot, paths) as program:
        program.context.library.save_as("One")
        inside(program).actions.show_presets.setChecked(True)
        dock = inside(program).presets
        item = next(item for item in dock.model.items() if item.text() == "One")
        dock.tree.setCurrentIndex(item.index())
        dock.tree.setFocus()
        QTest.keyClick(dock.tree, Qt.Key.Key_F2)
        editor = dock.tree.findChild(QLineEdit)
        assert isinstance(editor, QLineEdit)
        QTest.keyClicks(editor, "Two")
        QTest.keyClick(editor, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: program.context.document.state.name == "Two")
        assert "Two" in program.window.windowTitle()


def test_what_another_window_saves_is_in_the_list_when_this_one_is_looked_at(
    qapp: QApplication, qtbot: QtBot, paths: AppPaths
) -> None:
    with started(qapp, qtbot, paths) as program:
        inside(program).actions.show_presets.setChecked(True)
        PresetStore(paths).create("Another's", program.context.document.scenario)
        dock = inside(program).presets
        QApplication.sendEvent(program.window, QEvent(QEvent.Type.WindowActivate))
        PresetStore(paths).create("One more", program.context.document.scenario)
        QApplication.sendEvent(program.window, QEvent(QEvent.Type.WindowActivate))
        names = [item.text() for item in dock.model.items() if item.data(KIND) is Row.PRESET]
        assert names == ["Another's", "One more"]
