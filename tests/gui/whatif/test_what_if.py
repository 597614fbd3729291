"""The What if tab through its widgets, its figures against direct calls of the estimator."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QPainter, QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.document.view_settings import View
from memgui.estimator import estimate
from memgui.gui.controls import fields
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DARK, LIGHT
from memgui.gui.theme import Look, Role
from memgui.gui.whatif import heat
from memgui.gui.whatif.page import WhatIfPage
from memgui.gui.whatif.tags import Tags
from memgui.gui.whatif.values import axis_title
from memgui.planning.ask import fits
from memgui.planning.changes import apply
from memgui.planning.devices import moved
from memgui.planning.solve import solve
from memgui.spec import Scenario, get, replace
from tests.gui.house import House

LENGTH, BATCH = "training.sequence_length", "training.micro_batch_size"


@pytest.fixture
def real(qapp: QApplication, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "home", estimate)
    yield made
    made.close()


@pytest.fixture
def page(real: House, qtbot: QtBot) -> Iterator[WhatIfPage]:
    real.document.edit(LENGTH, 2048)
    result = real.document.settle()
    made = WhatIfPage(real.context)
    made.setPalette(LIGHT.qpalette())
    made.resize(960, 560)
    qtbot.addWidget(made)
    real.document.result.connect(made.set_result)
    with qtbot.waitExposed(made):
        made.show()
    made.set_result(result)
    settle(made, qtbot)
    yield made
    made.hide()


def settle(page: WhatIfPage, qtbot: QtBot) -> None:
    """Until every question is answered about what is open and planned now."""
    what_if = page.what_if
    questions = (what_if.sweep, what_if.largest, what_if.heat_map)
    qtbot.waitUntil(lambda: all(one.is_current for one in questions), timeout=20_000)


def need(scenario: Scenario, **values: Any) -> int:
    for path, value in values.items():
        scenario = replace(scenario, path.replace("__", "."), value)
    return estimate(scenario).peak_bytes


def test_sweep_is_what_the_estimator_says_at_each_value(page: WhatIfPage, real: House) -> None:
    swept = page.what_if.sweep.answer
    assert swept.plan.path == LENGTH
    assert len(swept.points) > 100
    for point in swept.points[::40]:
        found = estimate(replace(real.document.scenario, LENGTH, point.value))
        assert point.peak_bytes == found.peak_bytes
        assert point.components == tuple(node.bytes for node in found.components)
    sheet = page.chart.sheet()
    assert sheet is not None
    for index, point in enumerate(sheet.points):
        assert sheet.layers[-1].upper[index] == point.peak_bytes


def test_largest_fits_and_the_next_does_not_on_each_device(page: WhatIfPage, real: House) -> None:
    found = page.what_if.largest.answer
    assert found[0].device == real.document.scenario.device
    for one in found:
        if one.solution.largest is None or one.solution.next is None:
            continue
        there = replace(real.document.scenario, "device", one.device)
        assert need(there, training__sequence_length=one.solution.largest) <= one.device.memory_bytes
        assert need(there, training__sequence_length=one.solution.next) > one.device.memory_bytes
    rows = page.largest.rows()
    assert {row[0] for row in rows} == {one.device.name for one in found}


def test_every_cell_is_the_need_at_its_two_values(page: WhatIfPage, real: House) -> None:
    grid = page.heat.grid
    assert grid is not None
    assert (grid.x_path, grid.y_path) == (LENGTH, BATCH)
    for row, column in ((0, 0), (-1, -1), (1, 2)):
        values = {"training__sequence_length": grid.xs[column], "training__micro_batch_size": grid.ys[row]}
        assert grid.rows[row][column].peak_bytes == need(real.document.scenario, **values)
    assert grid.boundary()


PAIRS = [
    ("model.num_hidden_layers", "training.micro_batch_size", {}),
    ("training.lora.rank", "training.sequence_length", {"training.method": "lora"}),
    ("device.memory_bytes", "training.sequence_length", {}),
    (
        "inference.gpu_memory_utilization",
        "inference.prompt_tokens",
        {"task": "inference", "inference.engine": "vllm"},
    ),
    ("inference.generated_tokens", "inference.batch_size", {"task": "inference"}),
]


@pytest.mark.parametrize(("x", "y", "values"), PAIRS, ids=[f"{x} × {y}" for x, y, _ in PAIRS])
def test_any_two_fields_stand_against_each_other(
    page: WhatIfPage, real: House, qtbot: QtBot, x: str, y: str, values: dict[str, Any]
) -> None:
    for path, value in values.items():
        real.document.edit(path, value)
    real.document.settle()
    settle(page, qtbot)
    for box, path in ((page.controls.field, x), (page.controls.against, y)):
        box.setCurrentIndex(box.findData(path))
        box.activated.emit(box.currentIndex())
    settle(page, qtbot)
    grid = page.heat.grid
    assert grid is not None
    assert (grid.x_path, grid.y_path) == (x, y)
    scenario = real.document.scenario
    known = 0
    for row, column in itertools.product(range(0, len(grid.ys), 2), range(0, len(grid.xs), 3)):
        cell = grid.rows[row][column]
        if cell.issue is None:
            found = estimate(replace(replace(scenario, x, grid.xs[column]), y, grid.ys[row]))
            assert cell.peak_bytes == found.peak_bytes
            assert cell.headroom_bytes == found.verdict.headroom_bytes
            known += 1
    assert known > 2
    for edge in grid.boundary():
        if edge.x0 == edge.x1:
            assert grid.rows[edge.y0][edge.x0 - 1].fits != grid.rows[edge.y0][edge.x0].fits
        else:
            assert grid.rows[edge.y0 - 1][edge.x0].fits != grid.rows[edge.y0][edge.x0].fits
    assert not page.grab().isNull()


SOLVED = [
    ("training.micro_batch_size", {"training.activation_checkpointing": "full"}),
    ("training.sequence_length", {}),
    ("training.lora.rank", {"training.method": "lora"}),
    ("model.num_hidden_layers", {}),
    ("inference.prompt_tokens", {"task": "inference"}),
    ("inference.batch_size", {"task": "inference"}),
]


@pytest.mark.parametrize(("path", "values"), SOLVED, ids=[path for path, _ in SOLVED])
def test_the_largest_stands_with_the_next_value_as_proof(
    page: WhatIfPage, real: House, qtbot: QtBot, path: str, values: dict[str, Any]
) -> None:
    for field, value in values.items():
        real.document.edit(field, value)
    real.document.settle()
    settle(page, qtbot)
    box = page.controls.field
    box.setCurrentIndex(box.findData(path))
    box.activated.emit(box.currentIndex())
    settle(page, qtbot)
    numbers = Numbers.of(real.view.view)
    direct = solve(real.document.scenario, path)
    assert direct.largest is not None
    assert direct.next is not None
    at = next(i for i, one in enumerate(page.largest._found) if one.device == real.document.scenario.device)
    at_largest, at_next = (
        estimate(replace(real.document.scenario, path, value)) for value in (direct.largest, direct.next)
    )
    assert fits(at_largest)
    assert not fits(at_next)
    assert page.largest.rows()[at] == (
        real.document.scenario.device.name,
        numbers.grouped(direct.largest),
        numbers.tip(at_largest.verdict.headroom_bytes),
        numbers.grouped(direct.next),
        numbers.tip(-at_next.verdict.headroom_bytes),
    )
    assert numbers.grouped(direct.next) in page.largest.said(at)
    limit = page.what_if.sweep.answer.lines[0]
    assert limit.capacity_bytes == at_largest.verdict.capacity_bytes


def test_every_devices_limit_and_crossing_is_the_estimators(page: WhatIfPage, real: House) -> None:
    swept = page.what_if.sweep.answer
    assert len(swept.lines) > 2
    for line in swept.lines:
        there = apply(real.document.scenario, moved(real.document.scenario, line.device))
        assert line.capacity_bytes == estimate(there).verdict.capacity_bytes
    page.chart.grab()
    largest = {one.solution.largest for one in page.what_if.largest.answer} - {None}
    inside = {value for value in largest if swept.plan.low <= value <= swept.plan.high}
    numbers = Numbers.of(real.view.view)
    assert {text for _, text in page.chart.written} == {numbers.grouped(value) for value in inside}


def test_click_on_a_cell_sets_both_fields_in_one_step(page: WhatIfPage, real: House, qtbot: QtBot) -> None:
    grid = page.heat.grid
    assert grid is not None
    before, steps = real.document.scenario, real.document.undo_stack.count()
    place = page.heat.cell_rect(1, 2).center().toPoint()
    QTest.mouseClick(page.heat, Qt.MouseButton.LeftButton, pos=place)
    assert get(real.document.scenario, LENGTH) == grid.xs[1]
    assert get(real.document.scenario, BATCH) == grid.ys[2]
    assert real.document.undo_stack.count() == steps + 1
    real.document.undo_stack.undo()
    assert real.document.scenario == before


def test_keys_move_over_the_cells_and_apply(page: WhatIfPage, real: House) -> None:
    grid = page.heat.grid
    assert grid is not None
    here = grid.xs.index(2048), grid.ys.index(1)
    page.heat.setFocus()
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_Return):
        QTest.keyClick(page.heat, key)
    assert get(real.document.scenario, LENGTH) == grid.xs[here[0] - 1]
    assert get(real.document.scenario, BATCH) == grid.ys[here[1] + 1]


def test_crosshair_reads_off_and_enter_applies(page: WhatIfPage, real: House) -> None:
    page.chart.setFocus()
    QTest.keyClick(page.chart, Qt.Key.Key_End)
    point = page.chart.read_off
    assert point is not None
    assert point.value == page.what_if.plan.high
    QTest.keyClick(page.chart, Qt.Key.Key_Escape)
    assert page.chart.read_off is None
    QTest.keyClick(page.chart, Qt.Key.Key_Home)
    QTest.keyClick(page.chart, Qt.Key.Key_Return)
    assert get(real.document.scenario, LENGTH) == page.what_if.plan.low


def test_click_in_the_chart_takes_the_value_under_it(page: WhatIfPage, real: House) -> None:
    sheet = page.chart.sheet()
    assert sheet is not None
    at = QPoint(round(sheet.xs[30]), round(sheet.axis.bottom) - 5)
    QTest.mouseMove(page.chart, at)
    QTest.mouseClick(page.chart, Qt.MouseButton.LeftButton, pos=at)
    assert get(real.document.scenario, LENGTH) == sheet.points[sheet.nearest(at.x())].value


def test_click_on_a_device_takes_its_largest(page: WhatIfPage, real: House) -> None:
    found = {one.device.name: one.solution.largest for one in page.what_if.largest.answer}
    at = next(index for index, row in enumerate(page.largest.rows()) if row[1] != "none")
    name = page.largest.rows()[at][0]
    place = page.largest._row_rect(at).center().toPoint()
    QTest.mouseClick(page.largest, Qt.MouseButton.LeftButton, pos=place)
    assert get(real.document.scenario, LENGTH) == found[name]


def test_the_present_value_leaves_a_crossings_tag_legible(page: WhatIfPage, real: House) -> None:
    """Its line and dot are painted where they may pass under a tag; not over its figure."""
    chart = page.chart
    chart.grab()
    written = chart.written
    assert written
    rect, text = written[0]
    sheet = chart.sheet()
    assert sheet is not None
    value = sheet.points[sheet.nearest(rect.center().x())].value
    picture = chart.grab().toImage()
    chart.show_present(value, sheet.points[sheet.nearest(rect.center().x())].peak_bytes)
    inner = rect.adjusted(3, 3, -3, -3).toRect()
    assert chart.grab().toImage().copy(inner) == picture.copy(inner), text


def test_tags_of_limits_close_together_keep_apart(page: WhatIfPage, real: House, qtbot: QtBot) -> None:
    """The article's quadratic goes so high that all devices' limits lie near the axis."""
    page.resize(806, 270)
    real.document.edit(LENGTH, 4096)
    real.document.edit(BATCH, 3)
    real.document.edit("method", "gpt_article")
    real.document.settle()
    settle(page, qtbot)
    page.chart.grab()
    tags = [rect for rect, _ in page.chart.written]
    assert len(tags) > 2
    assert not any(one.intersects(other) for one, other in itertools.combinations(tags, 2))


def test_no_devices_name_stands_where_the_present_values_tag_is(
    page: WhatIfPage, real: House, qtbot: QtBot
) -> None:
    """Over the axis the tag may stand anywhere; a limit just under the axis' end has its name below it."""
    page.chart.grab()
    sheet = page.chart.sheet()
    assert sheet is not None
    (line, *_) = sheet.lines
    end = line.capacity_bytes * 201 // 200
    cut = dataclasses.replace(sheet, axis=dataclasses.replace(sheet.axis, end=end), lines=(line,))
    picture = QPixmap(page.chart.size())
    painter = QPainter(picture)
    tags = Tags(painter, Look.of(page), cut, Numbers.of(View()))
    tags.devices([])
    painter.end()
    assert len(tags.taken) == 1
    assert tags.taken[0].top() >= sheet.axis.top - 2


def test_a_cells_figure_keeps_clear_of_its_frame(page: WhatIfPage) -> None:
    """Four digits go into every cell as they are."""
    look = Look.of(page.heat)
    cell = page.heat.cell_rect(0, 0)
    assert cell.width() >= page.heat.least_width()
    assert look.width("9,999", Role.CAPTION, 600) <= cell.width() - 2 - heat.FRAME


def test_the_heat_maps_side_names_its_field_whole(page: WhatIfPage) -> None:
    assert page.heat.side_title(1000) == "Micro batch, sequences"
    assert page.heat.side_title(80) == "Micro batch"


@pytest.mark.parametrize("width", [960, 2200])
def test_chart_or_table_is_no_wider_than_its_icons(page: WhatIfPage, width: int) -> None:
    page.resize(width, 560)
    page.grab()
    assert page.controls.switch.width() == page.controls.switch.sizeHint().width()


@pytest.mark.parametrize(("first", "second"), [(LENGTH, BATCH), (BATCH, LENGTH)])
def test_both_fields_names_are_read_whole_in_a_window_1280_wide(
    page: WhatIfPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    page.what_if.sweep_field(first)
    page.what_if.set_against(second)
    settle(page, qtbot)
    page.resize(806, 560)
    painted: list[tuple[str, float]] = []
    monkeypatch.setattr(
        fields, "paint_choice", lambda _, room, text, *more: painted.append((text, room.width()))
    )
    for box in (page.controls.field, page.controls.against):
        box.grab()
    assert sorted(text for text, _ in painted) == ["Micro batch", "Sequence length"]
    metrics = Look.of(page).metrics()
    assert [text for text, width in painted if metrics.horizontalAdvance(text) > width] == []


def test_another_field_range_and_scale_are_swept(page: WhatIfPage, real: House, qtbot: QtBot) -> None:
    box = page.controls.field
    box.setCurrentIndex(box.findData("model.num_hidden_layers"))
    box.activated.emit(box.currentIndex())
    settle(page, qtbot)
    assert page.what_if.sweep.answer.plan.path == "model.num_hidden_layers"
    page.controls.low.lineEdit().selectAll()
    QTest.keyClicks(page.controls.low.lineEdit(), "10")
    page.controls.high.lineEdit().selectAll()
    QTest.keyClicks(page.controls.high.lineEdit(), "20")
    settle(page, qtbot)
    swept = page.what_if.sweep.answer
    assert [one.value for one in swept.points] == list(range(10, 21))
    assert swept.points[0].peak_bytes == need(real.document.scenario, model__num_hidden_layers=10)


def test_a_range_that_is_none_is_refused_beside_the_box(page: WhatIfPage, qtbot: QtBot) -> None:
    before = page.what_if.plan
    page.controls.high.lineEdit().selectAll()
    QTest.keyClicks(page.controls.high.lineEdit(), "7")
    assert page.what_if.plan == before
    assert page.controls.high.toolTip()


def test_pinned_curve_is_that_of_the_pinned_set_up(page: WhatIfPage, real: House, qtbot: QtBot) -> None:
    pinned = real.document.scenario
    real.pins.pin("before")
    real.document.edit("training.activation_checkpointing", "full")
    real.document.settle()
    settle(page, qtbot)
    swept = page.what_if.sweep.answer
    assert swept.pinned_name == "before"
    assert swept.pinned[50].peak_bytes == need(pinned, training__sequence_length=swept.pinned[50].value)
    assert swept.pinned[-1].peak_bytes > swept.points[-1].peak_bytes
    page.chart.setFocus()
    QTest.keyClick(page.chart, Qt.Key.Key_End)
    numbers, there = Numbers.of(real.view.view), {"training__sequence_length": swept.plan.high}
    read = page.chart.read_out()
    assert read[-1] == ("Pinned", numbers.two(need(pinned, **there)))
    found = estimate(replace(real.document.scenario, LENGTH, swept.plan.high))
    assert read[-2] == ("Total", numbers.two(found.peak_bytes))
    sizes = {component_name(node.key): numbers.two(node.bytes) for node in found.components if node.bytes}
    assert sizes.items() <= dict(read).items()
    assert not page.grab().isNull()


def test_devices_are_drawn_when_ticked(page: WhatIfPage, real: House, qtbot: QtBot) -> None:
    card = next(one for one in page.what_if.offered() if one.name == "L40S")
    page.what_if.show_device(card, True)
    settle(page, qtbot)
    assert card in [line.device for line in page.what_if.sweep.answer.lines]
    page.what_if.show_device(card, False)
    settle(page, qtbot)
    assert card not in [line.device for line in page.what_if.sweep.answer.lines]


def test_task_switch_sweeps_what_applies(page: WhatIfPage, real: House, qtbot: QtBot) -> None:
    real.document.edit("task", "inference")
    real.document.settle()
    settle(page, qtbot)
    plan = page.what_if.plan
    assert (plan.path, plan.against) == ("inference.prompt_tokens", "inference.batch_size")
    assert page.controls.field.currentData() == plan.path


def test_another_model_offers_its_own_fields_before_any_answer(page: WhatIfPage, real: House) -> None:
    def offered() -> set[object]:
        return {page.controls.field.itemData(at) for at in range(page.controls.field.count())}

    page.what_if.sweep_field("model.intermediate_size")
    assert "model.intermediate_size" in offered()
    before = page.what_if.sweep.scenario
    real.document.use_model(replace(real.document.scenario, "model", Catalog().model("t5-base").model), "T5")
    real.document.edit(LENGTH, 256)
    page.set_result(real.document.settle())
    assert page.what_if.sweep.scenario == before  # nothing is answered yet
    assert "model.num_encoder_layers" in offered()
    assert "model.intermediate_size" not in offered()
    assert page.what_if.plan.path == LENGTH
    assert page.controls.field.currentData() == LENGTH


def test_table_and_csv_have_every_value(page: WhatIfPage, qtbot: QtBot) -> None:
    page.controls.switch.segment("table").click()
    assert page.table.isVisible()
    swept = page.what_if.sweep.answer
    assert page.table.rows.rowCount() == len(swept.points)
    clipboard = QGuiApplication.clipboard()
    sweep, grid = page.controls.copy.menu().actions()
    sweep.trigger()
    lines = clipboard.text().splitlines()
    assert len(lines) == len(swept.points) + 1
    assert lines[1].startswith(f"{swept.points[0].value},{swept.points[0].peak_bytes},")
    by_menu = clipboard.text()
    grid.trigger()
    assert page.heat.grid is not None
    assert clipboard.text() == page.heat.grid.as_csv()
    for widget in (page.table, page.heat):
        clipboard.clear()
        widget.setFocus()
        QTest.keyClick(widget, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        assert clipboard.text() == (by_menu if widget is not page.heat else page.heat.grid.as_csv())


def test_out_of_sight_it_asks_nothing(page: WhatIfPage, real: House, qtbot: QtBot) -> None:
    answer = page.what_if.sweep.answer
    page.hide()
    real.document.edit(LENGTH, 4096)
    real.document.settle()
    qtbot.wait(300)
    assert not real.jobs.is_running("sweep")
    assert page.what_if.sweep.answer is answer


def test_pictures_speak(page: WhatIfPage, qtbot: QtBot) -> None:
    for widget in (page.chart, page.heat, page.largest):
        interface = QAccessible.queryAccessibleInterface(widget)
        assert interface is not None
        assert interface.text(QAccessible.Text.Name)
        assert interface.childCount() > 0
        assert "GiB" in interface.child(0).text(QAccessible.Text.Name) or widget is page.largest


def test_a_set_up_that_cannot_be_computed_keeps_the_picture(
    page: WhatIfPage, real: House, qtbot: QtBot
) -> None:
    before = page.chart.sheet()
    real.document.edit("parallelism.tensor", 3)
    real.document.settle()
    settle(page, qtbot)
    assert page.chart.stale
    assert page.chart.sheet() is before
    assert not page.grab().isNull()


@pytest.mark.parametrize("size", [(420, 200), (806, 240), (1900, 1200)])
def test_it_paints_at_any_size_in_both_themes(page: WhatIfPage, size: tuple[int, int], qtbot: QtBot) -> None:
    page.resize(*size)
    for palette in (LIGHT, DARK):
        page.setPalette(palette.qpalette())
        assert not page.grab().isNull()


def test_a_unit_that_the_field_is_called_after_is_said_once() -> None:
    numbers = Numbers.of(View())
    assert axis_title("inference.batch_size", numbers) == "Sequences"
    assert axis_title(LENGTH, numbers) == "Sequence length, tokens"


def test_a_cell_without_room_says_thousands() -> None:
    assert heat._thousands(12_149 * 2**30, Numbers.of(View())) == "12k"
