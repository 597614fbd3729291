"""The Compare tab through the window: figures against the estimator, keys, mouse, swap, methods, devices."""

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.result import COMPONENTS
from memgui.gui.compare.page import ComparePage
from memgui.gui.compare.painting import difference
from memgui.gui.compare.setups import letter
from memgui.gui.interior import Interior
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DARK, LIGHT
from memgui.planning.compare import by_method
from memgui.spec import Scenario, replace
from tests.gui.house import House

FIRST = Catalog().first_scenario()
LENGTH = "training.sequence_length"
CHECKPOINTED = replace(FIRST, "training.activation_checkpointing", "full")
LONG = replace(CHECKPOINTED, LENGTH, 8192)


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> House:
    """A house with the real estimator."""
    made = House(tmp_path / "home", estimate)
    made.document.use_model(FIRST, "test")
    made.document.settle()
    return made


def show(inside: Interior, *pins: Scenario, now: Scenario) -> ComparePage:
    document = inside.context.document
    for pin in pins:
        document.use_scenario(pin, "test")
        inside.pinning.add()
    document.use_scenario(now, "test")
    document.settle()
    inside.window.resize(1280, 800)
    inside.tabs.show_tab("compare")
    inside.actions.expand_tabs.setChecked(True)
    page = inside.tabs.page("compare")
    assert isinstance(page, ComparePage)
    return page


def test_figures_are_the_estimators(inside: Interior) -> None:
    page = show(inside, FIRST, now=LONG)
    before, after = estimate(FIRST), estimate(LONG)
    numbers = Numbers.of(inside.context.view.view)
    assert [one.letter for one in page.set_ups] == ["A", "B"]
    for line in page.table.lines:
        key = line.path[0]
        sizes = before.component(key).bytes, after.component(key).bytes
        assert line.sizes == tuple(map(numbers.two, sizes))
        assert (line.delta, line.percent, line.rise) == difference(numbers, sizes[1] - sizes[0], sizes[0])
    assert [line.path[0] for line in page.table.lines if before.component(line.path[0]).bytes] != []
    assert page.table.foot is not None
    total, spare = page.table.foot
    assert total.sizes == (numbers.two(before.peak_bytes), numbers.two(after.peak_bytes))
    assert total.delta == numbers.delta(after.peak_bytes - before.peak_bytes)
    assert spare.sizes == tuple(numbers.two(one.verdict.headroom_bytes) for one in (before, after))
    gap = numbers.gap(after.peak_bytes, before.peak_bytes)
    assert gap in page.title()
    assert page.title().startswith("B needs ")


def test_differing_inputs_and_their_price_are_listed(inside: Interior) -> None:
    page = show(inside, FIRST, now=LONG)
    listed = {one.path: (one.first, one.second) for one in page.inputs.differences}
    assert listed == {
        LENGTH: ("4,096", "8,192"),
        "training.activation_checkpointing": ("None", "Every layer"),
    }
    assert "About a third slower." in page.inputs.costs


def test_what_is_open_is_compared_live(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, FIRST, now=LONG)
    inside.context.document.edit(LENGTH, 2048)
    peak = estimate(replace(CHECKPOINTED, LENGTH, 2048)).peak_bytes
    qtbot.waitUntil(lambda: (now := page.set_ups[-1].estimate) is not None and now.peak_bytes == peak)
    inside.context.document.edit("model.num_key_value_heads", 7)
    qtbot.waitUntil(lambda: page.set_ups[-1].estimate is None)
    assert page.title() == ""
    page.grab()


def test_arrows_choose_and_enter_opens(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, FIRST, CHECKPOINTED, now=LONG)
    assert page.column == 2
    bars = page.bars
    bars.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(bars, Qt.Key.Key_Up)
    assert page.column == 1
    document = inside.context.document
    steps = document.undo_stack.count()
    QTest.keyClick(bars, Qt.Key.Key_Return)
    assert document.scenario == CHECKPOINTED
    assert document.undo_stack.count() == steps + 1
    qtbot.waitUntil(lambda: [one.is_open for one in page.set_ups] == [False, True])
    document.undo_stack.undo()
    assert document.scenario == LONG


def test_the_mouse_chooses_opens_and_asks_for_the_menu(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, FIRST, CHECKPOINTED, now=LONG)
    bars = page.bars
    left = Qt.MouseButton.LeftButton
    QTest.mouseClick(bars, left, pos=bars.row_rect(1).center())
    assert page.column == 1
    QTest.mouseDClick(bars, left, pos=bars.row_rect(0).center())
    assert inside.context.document.scenario == FIRST
    inside.context.document.settle()
    with qtbot.waitSignal(bars.menu_asked):
        QTest.mouseClick(bars, left, pos=bars.menu_rect(1).center())
    menus = page.findChildren(QMenu)
    assert menus
    for menu in menus:
        menu.close()


def test_the_menu_says_what_can_be_done(inside: Interior, house: House) -> None:
    page = show(inside, FIRST, CHECKPOINTED, now=LONG)
    texts = [action.text() for action in page.menu_of(1)]
    assert texts == ["Open this set-up", "Make it the baseline", "Rename…", "Unpin"]
    page.menu_of(1)[1].trigger()
    assert [pin.scenario for pin in house.pins.all] == [CHECKPOINTED, FIRST]
    page.menu_of(1)[2].trigger()
    inside.names.line.setText("the other")
    QTest.keyClick(inside.names.line, Qt.Key.Key_Return)
    assert house.pins.all[1].name == "the other"
    page.menu_of(1)[3].trigger()
    assert [pin.scenario for pin in house.pins.all] == [CHECKPOINTED]
    assert [action.text() for action in page.menu_of(1)] == ["Open this set-up", "Pin this set-up"]
    assert not page.menu_of(1)[0].isEnabled()
    page.menu_of(1)[1].trigger()
    assert [pin.scenario for pin in house.pins.all] == [CHECKPOINTED, LONG]


def test_delete_unpins_and_f2_renames(inside: Interior, house: House) -> None:
    page = show(inside, FIRST, CHECKPOINTED, now=LONG)
    QTest.keyClick(page.bars, Qt.Key.Key_Home)
    QTest.keyClick(page.bars, Qt.Key.Key_F2)
    assert inside.names.isVisible()
    inside.names.hide()
    QTest.keyClick(page.bars, Qt.Key.Key_Delete)
    assert [pin.scenario for pin in house.pins.all] == [CHECKPOINTED]
    assert inside.notices.isVisible()


def test_pins_are_swapped(inside: Interior, house: House) -> None:
    page = show(inside, FIRST, CHECKPOINTED, now=LONG)
    QTest.keyClick(page.bars, Qt.Key.Key_Up)
    QTest.mouseClick(page.swap, Qt.MouseButton.LeftButton)
    assert [pin.scenario for pin in house.pins.all] == [CHECKPOINTED, FIRST]
    assert inside.context.document.scenario == LONG


def test_a_swap_is_taken_back_by_another(inside: Interior, house: House) -> None:
    page = show(inside, FIRST, CHECKPOINTED, LONG, now=replace(LONG, LENGTH, 64))
    QTest.keyClick(page.bars, Qt.Key.Key_Up)
    assert page.column == 2
    QTest.mouseClick(page.swap, Qt.MouseButton.LeftButton)
    assert [pin.scenario for pin in house.pins.all] == [LONG, CHECKPOINTED, FIRST]
    assert page.column == 2
    QTest.mouseClick(page.swap, Qt.MouseButton.LeftButton)
    assert [pin.scenario for pin in house.pins.all] == [FIRST, CHECKPOINTED, LONG]


def test_undo_of_a_swap_restores_the_pins(inside: Interior, house: House) -> None:
    page = show(inside, FIRST, CHECKPOINTED, now=LONG)
    stack, before = house.document.undo_stack, house.pins.all
    steps = stack.count()
    QTest.mouseClick(page.swap, Qt.MouseButton.LeftButton)
    house.document.settle()
    assert house.document.scenario == FIRST
    assert [pin.scenario for pin in house.pins.all] == [LONG, CHECKPOINTED]
    assert stack.count() == steps + 1
    stack.undo()
    assert house.document.scenario == LONG
    assert house.pins.all == before
    stack.redo()
    assert [pin.scenario for pin in house.pins.all] == [LONG, CHECKPOINTED]
    house.pins.remove(house.pins.all[0])  # what was unpinned since stays so
    stack.undo()
    assert [pin.scenario for pin in house.pins.all] == [CHECKPOINTED]


def test_what_is_open_is_swapped_with_the_baseline(inside: Interior, house: House) -> None:
    page = show(inside, FIRST, now=LONG)
    title = page.title()
    QTest.mouseClick(page.swap, Qt.MouseButton.LeftButton)
    inside.context.document.settle()
    assert [pin.scenario for pin in house.pins.all] == [LONG]
    assert inside.context.document.scenario == FIRST
    assert page.title() != title
    inside.context.document.undo_stack.undo()
    assert inside.context.document.scenario == LONG


def test_the_present_set_up_is_pinned_by_a_button(inside: Interior, house: House) -> None:
    page = show(inside, FIRST, now=LONG)
    QTest.mouseClick(page.add, Qt.MouseButton.LeftButton)
    assert [pin.scenario for pin in house.pins.all] == [FIRST, LONG]
    assert not page.add.isEnabled()


def test_without_pins_it_says_what_to_do(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, now=FIRST)
    assert "Ctrl+D" in page.nothing()
    assert not page.swap.isVisible()
    page.grab()
    inside.actions.pin.trigger()
    assert "What is pinned is what is open" in page.nothing()
    inside.context.document.edit(LENGTH, 64)
    qtbot.waitUntil(lambda: page.nothing() == "")


def test_methods_are_compared_the_same_way(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, now=FIRST)
    QTest.mouseClick(page.mode.segment("methods"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(page.set_ups) > 2, timeout=20_000)
    direct = by_method(FIRST)
    assert [one.scenario for one in page.set_ups] == [column.scenario for column in direct]
    for one in page.set_ups:
        assert one.estimate is not None
        assert one.estimate.peak_bytes == estimate(one.scenario).peak_bytes
    assert page.inputs.differences[0].path == "method"
    assert not page.add.isVisible()
    QTest.keyClick(page.bars, Qt.Key.Key_Return)
    assert inside.context.document.scenario == page.set_ups[1].scenario


def test_devices_are_compared_the_same_way(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, now=FIRST)
    QTest.mouseClick(page.mode.segment("devices"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(page.set_ups) > 3, timeout=20_000)
    assert page.set_ups[0].scenario == FIRST
    fitting = [one for one in page.set_ups if estimate(one.scenario).verdict.kind == "fits"]
    least = min(fitting, key=lambda one: one.scenario.device.memory_bytes)
    assert page.title() == f"It fits on {len(fitting)} of {len(page.set_ups)}; the smallest is {least.name}."
    QTest.mouseClick(page.swap, Qt.MouseButton.LeftButton)
    assert page.set_ups[0].scenario != FIRST
    place = next(i for i, one in enumerate(page.set_ups) if one.name == least.name)
    QTest.mouseDClick(page.bars, Qt.MouseButton.LeftButton, pos=page.bars.row_rect(place).center())
    assert inside.context.document.scenario.device.name == least.name


def test_out_of_sight_nothing_is_asked(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, now=FIRST)
    QTest.mouseClick(page.mode.segment("methods"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: inside.answers.methods.is_current, timeout=20_000)
    comparison = page.comparison
    inside.tabs.show_tab("why")
    inside.context.document.edit(LENGTH, 64)
    qtbot.waitUntil(lambda: inside.answers.reach.is_current, timeout=20_000)
    assert not inside.answers.methods.is_current
    assert page.comparison is comparison


def test_rows_open_and_share_the_selection(inside: Interior) -> None:
    page = show(inside, FIRST, now=LONG)
    table, selection = page.table, inside.context.selection
    count = len(table.lines)
    QTest.mouseClick(table, Qt.MouseButton.LeftButton, pos=QPoint(14, table.row_rect(0).center().y()))
    assert len(table.lines) > count
    parts = [line for line in table.lines if len(line.path) == 2]
    before, after = estimate(FIRST), estimate(LONG)
    numbers = Numbers.of(inside.context.view.view)
    for line in parts:
        sizes = [one.component(line.path[0]).child(line.path[1]).bytes for one in (before, after)]
        assert line.sizes == tuple(map(numbers.two, sizes))
    selection.select(())
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert selection.component == table.lines[0].path
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert len(table.lines) == count
    QTest.keyClick(table, Qt.Key.Key_Right)
    assert len(table.lines) > count
    QTest.mouseClick(table, Qt.MouseButton.LeftButton, pos=table.row_rect(1).center())
    assert selection.component == table.lines[1].path
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert inside.tabs.current == "why"


def test_a_differing_input_leads_to_its_field(inside: Interior) -> None:
    page = show(inside, FIRST, now=LONG)
    place = next(i for i, one in enumerate(page.inputs.differences) if one.path == LENGTH)
    QTest.mouseClick(page.inputs, Qt.MouseButton.LeftButton, pos=page.inputs.row_rect(place).center())
    assert inside.form.sections["workload"].rows[LENGTH].box.hasFocus()
    page.inputs.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(page.inputs, Qt.Key.Key_Down)
    QTest.keyClick(page.inputs, Qt.Key.Key_Up)
    QTest.keyClick(page.inputs, Qt.Key.Key_Return)
    assert not page.inputs.hasFocus()


@pytest.mark.parametrize("width", [420, 760])
def test_no_figure_is_cut_without_being_told(inside: Interior, width: int) -> None:
    page = show(inside, FIRST, now=replace(LONG, "training.micro_batch_size", 100_000))
    page.resize(width, 700)
    assert not page.grab().isNull()
    places = range(len(page.inputs.differences))
    for place in places:
        one = page.inputs.differences[place]
        at = QPointF(page.inputs.row_rect(place).center())
        none = Qt.MouseButton.NoButton
        move = QMouseEvent(QEvent.Type.MouseMove, at, at, none, none, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(page.inputs, move)
        assert one.first in page.inputs.toolTip()
        assert one.second in page.inputs.toolTip()


def test_pictures_have_words(inside: Interior) -> None:
    page = show(inside, FIRST, now=LONG)
    bars = [item.name for item in page.bars.accessible_items()]
    assert bars[0].startswith("A, ")
    assert "GiB" in bars[0]
    rows = [item.name for item in page.table.accessible_items()]
    assert rows[0].startswith("Weights: A 14.96, B 14.96; B − A –")
    assert any(
        item.name.startswith("Sequence length: A 4,096, B 8,192") for item in page.inputs.accessible_items()
    )
    assert all(
        widget.accessibleName() for widget in (page.bars, page.table, page.inputs, page.mode, page.swap)
    )


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("width", [420, 700, 1300])
def test_paints_every_width(inside: Interior, width: int, colours: object) -> None:
    page = show(inside, FIRST, CHECKPOINTED, now=LONG)
    page.setPalette((DARK if colours is DARK else LIGHT).qpalette())
    for units in ("GB", "GiB"):
        inside.context.view.change(units=units)
        page.resize(width, 500)
        assert not page.grab().isNull()
        assert page.table.geometry().right() <= page.width()
        assert not page.table.geometry().intersects(page.inputs.geometry())


def test_components_of_the_comparison_are_all_there() -> None:
    assert [letter(place) for place in (0, 1, 25, 26)] == ["A", "B", "Z", "27"]
    assert len(COMPONENTS) == 8


def test_set_ups_far_apart_have_names_of_their_own(inside: Interior) -> None:
    further = replace(replace(LONG, "training.optimizer", "sgd"), "training.micro_batch_size", 2)
    page = show(inside, FIRST, further, now=LONG)
    names = [one.name for one in page.set_ups]
    assert len(set(names)) == len(names)
    assert "and 2 more" in names[1]
