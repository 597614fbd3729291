from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QAbstractItemModelTester, QTest
from pytestqt.qtbot import QtBot

from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.gui.legend import Legend
from memgui.gui.legend.model import LegendModel, rows_of
from memgui.gui.legend.rows import columns_for
from memgui.gui.numbers import Numbers
from memgui.gui.palette import LIGHT
from memgui.gui.theme import Look, Role
from tests.gui import fakes

Make = Callable[[], tuple[Legend, Selection, ViewSettings]]


@pytest.fixture
def make(qtbot: QtBot) -> Iterator[Make]:
    kept: list[object] = []

    def legend() -> tuple[Legend, Selection, ViewSettings]:
        selection, view = Selection(), ViewSettings(View(reduced_motion=True))
        made = Legend(selection, view)
        made.setPalette(LIGHT.qpalette())
        made.resize(420, 320)
        qtbot.addWidget(made)
        with qtbot.waitExposed(made):
            made.show()
        kept.extend((made, selection, view))
        return made, selection, view

    yield legend
    kept.clear()


def selected(selection: Selection) -> tuple[str, ...]:
    return selection.component


def texts(legend: Legend) -> list[list[str]]:
    model = legend.model
    return [[model.data(model.index(row, column)) for column in range(4)] for row in range(model.rowCount())]


def test_rows_say_name_size_share_and_bytes(make: Make) -> None:
    legend, _, view = make()
    legend.set_result(fakes.training())
    assert texts(legend)[:2] == [
        ["Weights", "14.96", "16.0\u2009%", "16,060,522,496"],
        ["Optimizer states", "29.92", "32.0\u2009%", "32,121,044,992"],
    ]
    assert [row[0] for row in texts(legend)] == [
        "Weights",
        "Optimizer states",
        "Gradients",
        "Activations",
        "Loss",
        "Temporary",
        "Overhead",
    ]
    assert legend.model.titles() == ("Component", "GiB", "Share", "Bytes")
    view.change(units="GB")
    assert texts(legend)[0][1] == "16.06"
    assert legend.model.titles()[1] == "GB"


def test_pin_turns_the_last_column_into_changes(make: Make) -> None:
    legend, _, _ = make()
    legend.set_result(fakes.training())
    legend.set_pinned(fakes.serving().estimate)
    rows = {row[0]: row for row in texts(legend)}
    assert rows["Weights"][3] == "–"
    assert rows["Gradients"][3] == "+14.96"
    assert rows["KV cache"][1:] == ["0.00", "0.0\u2009%", "−4.00"]
    assert legend.model.titles()[3] == "vs pinned"
    total, free = legend.footer_cells()
    assert total.last.startswith("+73.4")
    assert total.rise == 1
    assert free is None
    legend.grab()
    legend.set_pinned(None)
    assert legend.model.titles()[3] == "Bytes"
    assert "KV cache" not in {row[0] for row in texts(legend)}


def test_total_is_the_sum_and_free_the_rest(make: Make) -> None:
    legend, _, _ = make()
    result = fakes.serving()
    legend.set_result(result)
    estimate = result.estimate
    assert estimate is not None
    total, free = legend.footer_cells()
    assert total.last == f"{sum(node.bytes for node in estimate.components):,}"
    assert free is not None
    assert free.last == f"{estimate.verdict.capacity_bytes - estimate.peak_bytes:,}"


def test_selection_goes_both_ways(make: Make, qtbot: QtBot) -> None:
    legend, selection, _ = make()
    legend.set_result(fakes.training())
    selection.select(("activations", "mlp"))
    row = legend.model.row_at(legend.tree.currentIndex())
    assert row is not None
    assert row.path == ("activations", "mlp")
    assert "activations" in legend.tree.open_components()
    legend.tree.setFocus()
    QTest.keyClick(legend.tree, Qt.Key.Key_Down)
    assert selected(selection) == ("activations", "norms")
    QTest.keyClick(legend.tree, Qt.Key.Key_Backspace)
    assert selected(selection) == ("activations",)
    with qtbot.waitSignal(selection.activated) as opened:
        QTest.keyClick(legend.tree, Qt.Key.Key_Return)
    assert opened.args == [("activations",)]
    QTest.keyClick(legend.tree, Qt.Key.Key_Escape)
    assert selected(selection) == ()
    assert not legend.tree.currentIndex().isValid()
    # A tensor inside a part has no row: the part stands for it.
    selection.select(("activations", "mlp", "gate"))
    row = legend.model.row_at(legend.tree.currentIndex())
    assert row is not None
    assert row.path == ("activations", "mlp")
    assert selected(selection) == ("activations", "mlp", "gate")


def test_mouse_selects_opens_and_hovers(make: Make, qtbot: QtBot) -> None:
    legend, selection, _ = make()
    legend.set_result(fakes.training())
    tree = legend.tree
    height = Look.of(tree).px(24)
    port = tree.viewport()
    hovered: list[object] = []
    selection.hovered.connect(hovered.append)
    QTest.mouseMove(port, QPoint(100, height + 5))
    assert hovered == [("optimizer_states",)]
    QTest.mouseClick(port, Qt.MouseButton.LeftButton, pos=QPoint(100, height + 5))
    assert selected(selection) == ("optimizer_states",)
    QTest.mouseClick(port, Qt.MouseButton.LeftButton, pos=QPoint(10, height + 5))
    assert tree.open_components() == {"optimizer_states"}
    QTest.mouseClick(port, Qt.MouseButton.LeftButton, pos=QPoint(10, height + 5))
    assert tree.open_components() == set()
    with qtbot.waitSignal(selection.activated):
        QTest.mouseDClick(port, Qt.MouseButton.LeftButton, pos=QPoint(100, 5))


def test_arrows_open_and_close(make: Make) -> None:
    legend, selection, _ = make()
    legend.set_result(fakes.training())
    selection.select(("weights",))
    legend.tree.setFocus()
    QTest.keyClick(legend.tree, Qt.Key.Key_Right)
    assert legend.tree.open_components() == {"weights"}
    QTest.keyClick(legend.tree, Qt.Key.Key_Left)
    assert legend.tree.open_components() == set()


def test_edits_keep_what_is_open_and_selected(make: Make) -> None:
    legend, selection, _ = make()
    legend.set_result(fakes.training())
    legend.tree.set_open({"weights", "activations"})
    selection.select(("activations", "mlp"))
    legend.set_result(fakes.huge())
    assert legend.tree.open_components() == {"weights", "activations"}
    legend.set_result(fakes.serving())
    assert legend.tree.open_components() == {"weights"}
    assert selected(selection) == ("activations", "mlp")
    legend.set_result(fakes.training())
    row = legend.model.row_at(legend.tree.currentIndex())
    assert row is not None
    assert row.path == ("activations", "mlp")


def test_total_stands_right_under_the_rows_and_never_scrolls(make: Make) -> None:
    legend, _, _ = make()
    legend.set_result(fakes.training())
    legend.grab()
    assert legend.tree.height() == legend.tree.height_of_rows()
    assert legend._foot.y() == legend.tree.geometry().bottom() + 1
    legend.tree.set_open({"weights", "activations", "loss", "optimizer_states"})
    legend.resize(420, 180)
    legend.grab()
    assert legend.tree.height() < legend.tree.height_of_rows()
    assert legend._foot.geometry().bottom() <= legend.height()
    assert legend.tree.verticalScrollBar().maximum() > 0


def test_columns_give_way_before_names_are_cut(qtbot: QtBot, make: Make) -> None:
    legend, _, _ = make()
    legend.set_result(fakes.training())
    look = Look.of(legend)
    wide = (["100.00"], ["100.0 %"], ["100,283,412,889"])
    full = columns_for(look, 460, wide, 100)
    assert full.share is not None
    assert full.last is not None
    assert full.size < full.share < full.last < 460
    broad, broader = (columns_for(look, width, wide, 100) for width in (900, 1400))
    assert broad == broader  # figures stay near their names
    assert columns_for(look, 330, wide, 100).last is None
    narrow = columns_for(look, 230, wide, 100)
    assert narrow.share is None
    assert narrow.last is None


def test_same_result_is_not_shown_again(make: Make, qtbot: QtBot) -> None:
    legend, _, _ = make()
    result = fakes.training()
    legend.set_result(result)
    with qtbot.assertNotEmitted(legend.model.dataChanged):
        legend.set_result(result)
    with qtbot.waitSignal(legend.model.dataChanged):
        legend.set_result(fakes.huge())


def test_model_is_sound(qtbot: QtBot) -> None:
    model = LegendModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Warning)
    numbers = Numbers.of(View())
    for result in (fakes.tiny(), fakes.training(), fakes.training(), fakes.serving()):
        estimate = result.estimate
        assert estimate is not None
        model.show(rows_of(estimate, None), estimate.peak_bytes, numbers)
    part = model.index_of(("kv_cache", "keys"))
    assert model.parent(part).row() == model.index_of(("kv_cache",)).row()
    assert not model.index_of(("nothing",)).isValid()
    assert not model.index(0, 0, part).isValid()
    assert model.rowCount(part) == 0
    assert model.row_at(QModelIndex()) is None
    assert model.data(model.index(0, 0), Qt.ItemDataRole.ToolTipRole) == "16,060,522,496 bytes"
    del tester


def test_screen_reader_hears_name_size_and_share(make: Make) -> None:
    legend, _, _ = make()
    legend.set_result(fakes.training())
    interface = QAccessible.queryAccessibleInterface(legend.tree)
    assert interface.role() is QAccessible.Role.Tree
    said = [interface.child(index).text(QAccessible.Text.Name) for index in range(interface.childCount())]
    assert "Weights, 14.96 GiB, 16.0\u2009%" in said


def test_paints_every_case(make: Make) -> None:
    legend, selection, _ = make()
    legend.grab()
    for width in (200, 300, 420, 800):
        legend.resize(width, 320)
        for result in (fakes.training(), fakes.serving(), fakes.huge(), fakes.tiny(), fakes.unknown()):
            legend.set_result(result)
            legend.grab()
    selection.select(("weights",))
    legend.tree.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(legend.tree, Qt.Key.Key_Down)
    legend.grab()


def test_the_totals_change_has_room_for_its_sign(make: Make) -> None:
    legend, _, _ = make()
    before, after = fakes.training().estimate, fakes.huge()
    assert before is not None
    legend.set_result(after)
    legend.set_pinned(before)
    legend.grab()
    look = Look.of(legend)
    columns, total = legend.columns(look), legend.footer_cells()[0]
    assert columns is not None
    assert columns.share is not None
    assert columns.last is not None
    assert columns.last - look.width(f"M{total.last}", Role.BODY, 600) > columns.share
