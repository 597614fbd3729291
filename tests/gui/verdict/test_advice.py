"""The chips through the window, their figures against direct calls of the estimator."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.gui.interior import Interior
from memgui.gui.numbers import Numbers
from memgui.gui.verdict.chips import Chip, ChipButton
from memgui.planning.devices import of_a_sort
from memgui.planning.ladder import climbed
from memgui.planning.ways import ways_to_fit
from memgui.spec import Scenario, replace
from tests.gui.house import House

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
LONG = replace(FIRST, "training.micro_batch_size", 2)
SMALL = replace(replace(FIRST, "training.sequence_length", 512), "training.activation_checkpointing", "full")
SERVING = replace(replace(FIRST, "task", "inference"), "inference.batch_size", 4)


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> House:
    """A house with the real estimator."""
    return House(tmp_path / "home", estimate)


def show(inside: Interior, scenario: Scenario, qtbot: QtBot) -> None:
    document = inside.context.document
    document.use_model(scenario, "test")
    document.settle()
    inside.window.resize(1280, 800)
    questions = (inside.answers.ways, inside.answers.reach, inside.answers.ladder)
    qtbot.waitUntil(lambda: any(one.is_current for one in questions), timeout=20_000)


def chips(inside: Interior) -> list[Chip]:
    return [one.chip for one in inside.window.verdict.chips.buttons() if isinstance(one, ChipButton)]


def test_fixes_say_what_the_estimator_says(inside: Interior, qtbot: QtBot) -> None:
    show(inside, LONG, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    found = ways_to_fit(LONG, of_a_sort(CATALOG.devices, LONG)).all
    numbers = Numbers.of(inside.context.view.view)
    for chip, way in zip(chips(inside), found, strict=False):
        direct = estimate(way.scenario)
        assert chip.kind == direct.verdict.kind
        assert chip.text.startswith(numbers.sentence(direct.peak_bytes))
        assert numbers.gap_figure(direct.peak_bytes, direct.verdict.capacity_bytes) in chip.text
    assert chips(inside)[0].title == "Checkpoint activations"
    assert "Checkpointing: None → Every layer" in chips(inside)[0].tip


def test_a_press_is_one_undo_step(inside: Interior, qtbot: QtBot) -> None:
    show(inside, LONG, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    document = inside.context.document
    steps = document.undo_stack.count()
    first = inside.window.verdict.chips.buttons()[0]
    QTest.mouseClick(first, Qt.MouseButton.LeftButton)
    assert document.scenario == replace(LONG, "training.activation_checkpointing", "full")
    assert document.undo_stack.count() == steps + 1
    assert "Checkpoint activations" in document.undo_stack.undoText()
    # what fits now goes further; the fixes stay until that is known
    assert chips(inside)[0].title == "Checkpoint activations"
    qtbot.waitUntil(lambda: chips(inside)[0].title.startswith("Sequence up to"), timeout=20_000)
    document.undo_stack.undo()
    assert document.scenario == LONG
    # its fixes are known: nobody is asked again
    qtbot.waitUntil(lambda: chips(inside)[0].title == "Checkpoint activations", timeout=5_000)
    assert not inside.window.verdict.chips.is_stale


def test_the_keyboard_presses_a_chip(inside: Interior, qtbot: QtBot) -> None:
    show(inside, SMALL, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    first = inside.window.verdict.chips.buttons()[0]
    first.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(first, Qt.Key.Key_Space)
    length = inside.context.document.scenario.training.sequence_length
    assert chips(inside)[0].title == f"Sequence up to {length:,}"
    assert estimate(replace(SMALL, "training.sequence_length", length)).verdict.headroom_bytes >= 0
    if length < SMALL.model.max_position_embeddings:
        beyond = estimate(replace(SMALL, "training.sequence_length", length + 1))
        assert beyond.verdict.headroom_bytes < 0


def test_inference_has_the_ladder(inside: Interior, qtbot: QtBot) -> None:
    show(inside, SERVING, qtbot)
    row = inside.window.verdict.chips
    qtbot.waitUntil(lambda: len(row.cells) > 3, timeout=20_000)
    rungs = climbed(SERVING)
    numbers = Numbers.of(inside.context.view.view)
    assert [cell.title for cell in row.cells] == [numbers.tokens(rung.tokens) for rung in rungs]
    for cell, rung in zip(row.cells, rungs, strict=True):
        prompt = rung.tokens - SERVING.inference.generated_tokens
        direct = estimate(replace(SERVING, "inference.prompt_tokens", prompt))
        assert cell.kind == direct.verdict.kind
        assert cell.text == ("largest" if rung.is_largest else numbers.one(direct.peak_bytes))
    assert [cell.current for cell in row.cells].count(True) == 1
    longest = next(index for index, cell in enumerate(row.cells) if cell.text == "largest")
    QTest.mouseClick(row.buttons()[longest], Qt.MouseButton.LeftButton)
    prompt = inside.context.document.scenario.inference.prompt_tokens
    assert estimate(replace(SERVING, "inference.prompt_tokens", prompt)).verdict.headroom_bytes >= 0
    assert estimate(replace(SERVING, "inference.prompt_tokens", prompt + 1)).verdict.headroom_bytes < 0
    title = row.cells[longest].title
    qtbot.waitUntil(lambda: [one.title for one in row.cells if one.current] == [title], timeout=20_000)


def test_where_no_length_fits_there_are_fixes(inside: Interior, qtbot: QtBot) -> None:
    card = replace(SERVING, "device.memory_bytes", 10 * 2**30)
    show(inside, card, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    assert inside.window.verdict.chips.cells == []


def test_the_unknown_has_no_chips(inside: Interior, qtbot: QtBot) -> None:
    show(inside, LONG, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    inside.context.document.edit("model.num_key_value_heads", 7)
    inside.context.document.settle()
    assert chips(inside) == []


def test_chips_are_back_with_their_scenario(inside: Interior, qtbot: QtBot) -> None:
    show(inside, LONG, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    before = chips(inside)
    document = inside.context.document
    document.edit("model.num_key_value_heads", 7)
    document.settle()
    document.undo_stack.undo()
    document.settle()
    assert chips(inside) == before


def test_chips_of_an_earlier_set_up_fade_where_the_answer_takes_long(
    inside: Interior, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(inside, LONG, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    row = inside.window.verdict.chips
    assert not row.is_stale
    monkeypatch.setattr(inside.context.jobs, "run", lambda *args: None)
    inside.context.document.edit("training.sequence_length", 4097)
    assert not row.is_stale
    qtbot.waitUntil(lambda: row.is_stale)
    assert len(chips(inside)) == 3
    row.grab()
    inside.context.document.undo_stack.undo()
    inside.context.document.settle()
    assert not row.is_stale


def test_units_are_followed(inside: Interior, qtbot: QtBot) -> None:
    show(inside, LONG, qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) == 3, timeout=20_000)
    inside.context.view.change(units="GB")
    assert all(" GB · " in chip.text.replace(" each", "") for chip in chips(inside))


@pytest.mark.parametrize("width", [1024, 1280, 2560])
def test_no_chip_is_cut(inside: Interior, qtbot: QtBot, width: int) -> None:
    show(inside, replace(FIRST, "training.micro_batch_size", 8), qtbot)
    qtbot.waitUntil(lambda: len(chips(inside)) > 1, timeout=20_000)
    inside.window.resize(width, 800)
    shown = [one for one in inside.window.verdict.chips.buttons() if isinstance(one, ChipButton)]
    assert any(" + " in one.chip.title for one in shown)
    assert all(one.least_width() <= one.width() for one in shown)
    assert not inside.window.verdict.grab().isNull()
