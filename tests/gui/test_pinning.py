"""Pinning by key and mouse: ghost, differences and sentence against direct calls of the estimator."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.gui.interior import Interior
from memgui.gui.legend.model import LAST
from memgui.gui.numbers import Numbers
from memgui.presets.paths import AppPaths
from memgui.spec import replace
from tests.e2e.program import started
from tests.gui.house import House

FIRST = Catalog().first_scenario()
LENGTH = "training.sequence_length"


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> House:
    """A house with the real estimator."""
    made = House(tmp_path / "home", estimate)
    made.document.use_model(FIRST, "test")
    made.document.settle()
    return made


def press(inside: Interior, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(inside.window, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier | modifiers)


def test_a_key_pins_and_unpins(inside: Interior, house: House, qtbot: QtBot) -> None:
    qtbot.waitUntil(inside.window.isActiveWindow)
    press(inside)
    baseline = house.pins.baseline
    assert baseline is not None
    assert baseline.scenario == FIRST
    assert inside.toolbar.pin.isChecked()
    press(inside)
    assert house.pins.baseline is None
    assert not inside.toolbar.pin.isChecked()
    assert house.told == []  # what is open is not lost


def test_the_picture_is_held_against_the_pin(inside: Interior, house: House) -> None:
    QTest.mouseClick(inside.toolbar.pin, Qt.MouseButton.LeftButton)
    house.document.edit(LENGTH, 8192)
    house.document.settle()
    before, after = estimate(FIRST), estimate(replace(FIRST, LENGTH, 8192))
    scene = inside.window.donut.scene()
    assert scene is not None
    assert scene.pinned == {node.key: float(node.bytes) for node in before.components}
    numbers = Numbers.of(house.view.view)
    rows = {row.path: row for row in inside.window.legend.model.rows}
    for node in after.components:
        if (node.key,) in rows:
            change = node.bytes - before.component(node.key).bytes
            assert rows[(node.key,)].change == change
            index = inside.window.legend.model.index_of((node.key,)).siblingAtColumn(LAST)
            assert index.data() == numbers.delta(change)
    gap = numbers.gap(after.peak_bytes, before.peak_bytes)
    assert inside.window.verdict.versus.text() == f"{gap} more than pinned"
    house.document.edit(LENGTH, 1024)
    house.document.settle()
    assert inside.window.verdict.versus.text().endswith("less than pinned")
    house.document.edit(LENGTH, 4096)
    house.document.settle()
    assert inside.window.verdict.versus.text() == "As much as pinned"
    QTest.mouseClick(inside.toolbar.pin, Qt.MouseButton.LeftButton)
    assert inside.window.verdict.versus.text() == ""
    scene = inside.window.donut.scene()
    assert scene is not None
    assert scene.pinned == {}


def test_several_pins_are_named_by_what_sets_them_apart(inside: Interior, house: House, qtbot: QtBot) -> None:
    qtbot.waitUntil(inside.window.isActiveWindow)
    press(inside)
    house.document.edit("training.activation_checkpointing", "full")
    press(inside, Qt.KeyboardModifier.ShiftModifier)
    house.document.edit(LENGTH, 8192)
    press(inside, Qt.KeyboardModifier.ShiftModifier)
    first, second, third = house.pins.all
    assert first.name.startswith(FIRST.model.name)
    assert second.name == "Checkpointing Every layer"
    assert third.name == "Sequence length 8,192, Checkpointing Every layer"


def test_a_lost_baseline_can_be_pinned_again(inside: Interior, house: House) -> None:
    inside.actions.pin.trigger()
    house.document.edit(LENGTH, 8192)
    inside.actions.pin.trigger()
    assert list(house.pins.all) == []
    assert inside.notices.isVisible()
    QTest.mouseClick(inside.notices.action_button, Qt.MouseButton.LeftButton)
    assert [pin.scenario for pin in house.pins.all] == [FIRST]
    assert inside.toolbar.pin.isChecked()


def test_what_cannot_be_computed_cannot_be_pinned(inside: Interior, house: House) -> None:
    house.document.edit("model.num_key_value_heads", 7)
    house.document.settle()
    assert not inside.actions.pin.isEnabled()
    assert not inside.actions.add_pin.isEnabled()


def test_pins_are_there_at_the_next_start(qapp: QApplication, tmp_path: Path, qtbot: QtBot) -> None:
    paths = AppPaths.default(home=tmp_path / "home")
    with started(qapp, qtbot, paths) as program:
        assert program.interior is not None
        program.interior.actions.pin.trigger()
        program.document.edit(LENGTH, 8192)
        program.interior.actions.add_pin.trigger()
        names = [pin.name for pin in program.context.pins.all]
    with started(qapp, qtbot, paths) as again:
        assert again.interior is not None
        assert [pin.name for pin in again.context.pins.all] == names
        assert again.interior.toolbar.pin.isChecked()
        qtbot.waitUntil(lambda: again.window.verdict.versus.text() != "")
