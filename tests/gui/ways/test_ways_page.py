"""The Ways to fit tab through the window: figures against the estimator, keys, mouse, undo."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.gui.interior import Interior
from memgui.gui.numbers import UNCHANGED, Numbers
from memgui.gui.palette import DARK, LIGHT
from memgui.gui.theme import Look, Role
from memgui.gui.ways import texts
from memgui.gui.ways.page import WaysPage
from memgui.gui.ways.painting import MOST_LINES, columns_for, cost_lines, title_lines
from memgui.planning import ways
from memgui.planning.ask import surely_fits
from memgui.planning.devices import of_a_sort
from memgui.planning.ways import ways_to_fit
from memgui.spec import Scenario, replace
from tests.gui.house import House

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
LONG = replace(FIRST, "training.micro_batch_size", 2)
HUGE = replace(FIRST, "model", CATALOG.model("DeepSeek-V3").model)
PAIRS = replace(replace(FIRST, "training.micro_batch_size", 8), "training.attention", "eager")


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> House:
    """A house with the real estimator."""
    return House(tmp_path / "home", estimate)


def show(inside: Interior, scenario: Scenario, qtbot: QtBot) -> WaysPage:
    document = inside.context.document
    document.use_model(scenario, "test")
    document.settle()
    inside.window.resize(1280, 800)
    inside.tabs.show_tab("ways")
    inside.actions.expand_tabs.setChecked(True)
    page = inside.tabs.page("ways")
    assert isinstance(page, WaysPage)
    qtbot.waitUntil(lambda: page.model.rowCount() > 0, timeout=20_000)
    return page


def press(page: WaysPage, row: int) -> None:
    rows = page.list
    rows.scrollTo(page.model.index(row))
    QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=rows.button_at(row).center().toPoint())


def test_rows_say_what_the_estimator_says(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    found = ways_to_fit(LONG, of_a_sort(CATALOG.devices, LONG))
    assert [line.way.key for line in page.model.lines] == [way.key for way in found.all]
    numbers = Numbers.of(inside.context.view.view)
    before = estimate(LONG).peak_bytes
    for line in page.model.lines:
        direct = estimate(line.way.scenario)
        assert line.needs == numbers.two(direct.peak_bytes)
        saved = before - direct.peak_bytes
        assert line.saves == (numbers.two(saved) if abs(saved) * 200 > 2**30 else UNCHANGED)
        gap = numbers.gap_figure(direct.peak_bytes, direct.verdict.capacity_bytes)
        assert line.gap == f"{gap} {'over' if direct.verdict.headroom_bytes < 0 else 'spare'}"
        assert line.cost
        assert "→" in line.from_to
    assert f"{len(found.singles)} single changes" in page.title()


def test_the_buttons_apply_as_one_undo_step(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    document = inside.context.document
    steps = document.undo_stack.count()
    way = page.model.lines[2].way
    press(page, 2)
    assert document.scenario == way.scenario
    assert document.undo_stack.count() == steps + 1
    assert page.list.currentIndex().row() == 2
    old = page.model.lines
    assert old, "the old answer stays"
    qtbot.waitUntil(lambda: page.model.lines is not old, timeout=20_000)
    document.undo_stack.undo()
    assert document.scenario == LONG


def test_a_press_that_leaves_the_button_does_nothing(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    rows = page.list
    at = rows.button_at(1).center().toPoint()
    QTest.mousePress(rows.viewport(), Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseRelease(rows.viewport(), Qt.MouseButton.LeftButton, pos=at - QPoint(300, 0))
    QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=at - QPoint(300, 0))
    QTest.mouseDClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=at - QPoint(300, 0))
    assert inside.context.document.scenario == LONG


def test_the_keyboard_chooses_and_applies(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    page.list.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(page.list, Qt.Key.Key_Down)
    assert page.list.currentIndex().row() == 1
    way = page.model.lines[1].way
    QTest.keyClick(page.list, Qt.Key.Key_Return)
    assert inside.context.document.scenario == way.scenario


def test_filters_count_and_keep_their_kind(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    every = ways_to_fit(LONG, of_a_sort(CATALOG.devices, LONG)).all
    for which, wanted in (
        ("fit", [way for way in every if surely_fits(way.estimate)]),
        ("same", [way for way in every if way.same_results]),
        ("all", list(every)),
    ):
        QTest.mouseClick(page.filter.segment(which), Qt.MouseButton.LeftButton)
        assert [line.way.key for line in page.model.lines] == [way.key for way in wanted]
        assert page.filter.segment(which).text().endswith(f" {len(wanted)}")


def test_the_chosen_way_stays_chosen(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    document = inside.context.document
    key = page.model.lines[3].way.key
    document.edit("training.sequence_length", 4000)
    qtbot.waitUntil(lambda: inside.answers.ways.is_current, timeout=20_000)
    assert page.list.currentIndex().row() == 0, "nobody chose one yet"
    row = page.model.row_of(key)
    assert row > 0
    rows = page.list
    place = rows.visualRect(page.model.index(row)).topLeft() + QPoint(60, 20)
    QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
    document.edit("training.sequence_length", 4001)
    qtbot.waitUntil(lambda: inside.answers.ways.is_current, timeout=20_000)
    inside.context.view.change(units="GB")
    line = page.model.line_at(page.list.currentIndex())
    assert line is not None
    assert line.way.key == key
    numbers = Numbers.of(inside.context.view.view)
    assert line.needs == numbers.two(line.way.estimate.peak_bytes)


def test_pairs_are_named_by_both_changes(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, PAIRS, qtbot)
    pairs = [line for line in page.model.lines if line.way.parts]
    if not pairs:
        pytest.skip("one change is enough here")
    assert all(" + " in line.title and " + " in line.short for line in pairs)
    assert "pairs" in page.title()
    row = page.model.lines.index(pairs[0])
    press(page, row)
    assert inside.context.document.scenario == pairs[0].way.scenario


def test_a_huge_model_on_one_device_is_a_press_away_from_fitting(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, HUGE, qtbot)
    rows = [row for row, line in enumerate(page.model.lines) if line.way.kind == "fits"]
    assert rows[:1] == [0]
    assert page.model.lines[0].title == "80 GPUs, TP 8 × PP 10"
    press(page, 0)
    after = inside.context.document.settle()
    assert after.scenario.device.count == 80
    assert after.estimate is not None
    assert surely_fits(after.estimate)


def test_out_of_sight_nothing_is_asked(inside: Interior, qtbot: QtBot) -> None:
    document = inside.context.document
    fits = replace(FIRST, "training.sequence_length", 256)
    page = show(inside, replace(fits, "training.activation_checkpointing", "full"), qtbot)
    assert surely_fits(document.settle().estimate or estimate(FIRST))
    inside.tabs.show_tab("why")
    asked = inside.answers.ways.scenario
    document.edit("training.sequence_length", 128)
    qtbot.waitUntil(lambda: inside.answers.reach.is_current, timeout=20_000)
    assert inside.answers.ways.scenario is asked
    inside.tabs.show_tab("ways")
    qtbot.waitUntil(lambda: inside.answers.ways.is_current, timeout=20_000)
    assert page.title().startswith("It fits.")


def test_what_cannot_be_computed_is_said(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    inside.context.document.edit("model.num_key_value_heads", 7)
    qtbot.waitUntil(lambda: page.nothing() != "", timeout=20_000)
    assert "cannot be computed: " in page.nothing()
    assert page.list.isHidden()
    page.grab()


def test_rows_are_spoken(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, LONG, qtbot)
    said = page.model.index(0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert said.startswith("1. Checkpoint activations, None → Every layer: Fits, ")
    assert "About a third slower." in said
    assert "Checkpointing: None → Every layer" in page.model.index(0).data(Qt.ItemDataRole.ToolTipRole)


def test_a_line_says_that_the_list_is_worked_out_again(inside: Interior, qtbot: QtBot) -> None:
    show(inside, LONG, qtbot)
    inside.tabs.set_busy("ways", True)
    assert not inside.tabs.is_busy
    qtbot.waitUntil(lambda: inside.tabs.is_busy)
    inside.tabs.set_busy("ways", False)
    assert not inside.tabs.is_busy


@pytest.mark.parametrize("width", [420, 560, 712, 960, 2200])
def test_columns_never_overlap(inside: Interior, width: int) -> None:
    columns = columns_for(Look.of(inside.window), float(width))
    places = [columns.change]
    if columns.bar is not None:
        places.append(columns.bar)
    places += [(columns.saves - 40, columns.saves), (columns.needs - 40, columns.needs), columns.verdict]
    if columns.cost is not None:
        places.append(columns.cost)
    places.append(columns.button)
    edges = [edge for place in places for edge in place]
    assert edges == sorted(edges) or width < 560
    assert columns.button[1] <= width


def test_every_short_name_is_of_a_title_there_is() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(ways.__path__[0]).glob("*.py"))
    for long in texts._SHORT:
        assert f'"{long}"' in source


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_only_the_chosen_rows_button_is_filled(inside: Interior, qtbot: QtBot, colours: object) -> None:
    page = show(inside, LONG, qtbot)
    palette = DARK if colours is DARK else LIGHT
    page.setPalette(palette.qpalette())
    page.list.choose(1)
    picture = page.list.viewport().grab().toImage()
    for row in range(3):
        corner = page.list.button_at(row).topLeft().toPoint() + QPoint(8, 5)
        filled = picture.pixelColor(corner).name() == palette.accent.name()
        assert filled == (row == 1)


@pytest.mark.parametrize("width", [797, 1280])
def test_a_small_gap_keeps_clear_of_the_costs(inside: Interior, width: int) -> None:
    look = Look.of(inside.window)
    columns = columns_for(look, width)
    assert columns.cost is not None
    longest = look.width("999.8 MiB spare", Role.SMALL)
    assert columns.verdict[0] + look.px(22) + longest + 4 <= columns.cost[0]


@pytest.mark.parametrize("width", [1024, 1280])
@pytest.mark.parametrize("scenario", [PAIRS, HUGE], ids=["pairs", "huge"])
def test_what_a_way_costs_is_told_whole(
    inside: Interior, qtbot: QtBot, scenario: Scenario, width: int
) -> None:
    page = show(inside, scenario, qtbot)
    inside.actions.expand_tabs.setChecked(False)
    inside.window.resize(width, 800)
    look, rows = Look.of(page), page.list
    columns = rows.columns()
    assert columns.cost is not None
    room = columns.cost[1] - columns.cost[0]
    cut = [line for line in page.model.lines if len(cost_lines(look, line.cost, room)) > MOST_LINES]
    assert cut == []
    heights = {rows.visualRect(page.model.index(row)).height() for row in range(3)}
    assert heights == {rows.height_of(page.model.index(row)) for row in range(3)}
    wide = columns.change[1] - columns.change[0]
    titles = {title for line in page.model.lines for title in title_lines(look, columns, line)}
    assert {title for title in titles if look.width(title, Role.BODY, 600) > wide} == set()
