import itertools
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.estimator.result import Moment
from memgui.gui.palette import DARK, DISPLAY_ORDER, LIGHT
from memgui.gui.theme import Look
from memgui.gui.timeline import TimelinePage, geometry
from memgui.spec import Message
from tests.gui import fakes

Make = Callable[..., tuple[TimelinePage, Selection, ViewSettings]]
GIB = 2**30


@pytest.fixture
def make(qtbot: QtBot) -> Iterator[Make]:
    kept: list[object] = []

    def page(width: int = 768, height: int = 300) -> tuple[TimelinePage, Selection, ViewSettings]:
        selection, view = Selection(), ViewSettings(View(reduced_motion=True))
        made = TimelinePage(selection, view)
        made.setPalette(LIGHT.qpalette())
        made.resize(width, height)
        qtbot.addWidget(made)
        with qtbot.waitExposed(made):
            made.show()
        kept.extend((made, selection, view))
        return made, selection, view

    yield page
    kept.clear()


def moment(key: str, **sizes: int) -> Moment:
    return Moment(key, Message(key), "forward", sum(sizes.values()), sizes)


MOMENTS = st.lists(
    st.dictionaries(st.sampled_from(DISPLAY_ORDER), st.integers(0, 2**50), min_size=1),
    min_size=1,
    max_size=30,
).map(lambda rows: [moment(f"step1.forward.layer.{at}", **sizes) for at, sizes in enumerate(rows)])


@given(MOMENTS)
def test_stack_reaches_the_total_at_every_moment(timeline: list[Moment]) -> None:
    layers = geometry.stacked(timeline)
    for index, one in enumerate(timeline):
        if layers:
            assert layers[-1].upper[index] == one.bytes
            assert layers[0].lower[index] == 0
    assert [layer.key for layer in layers] == [
        key for key in DISPLAY_ORDER if key in {one.key for one in layers}
    ]


@given(MOMENTS)
def test_what_is_left_out_between_kinks_is_straight(timeline: list[Moment]) -> None:
    layers = geometry.stacked(timeline)
    kept = geometry.kinks(layers, timeline)
    assert kept[0] == 0
    assert kept[-1] == len(timeline) - 1
    for before, after in itertools.pairwise(kept):
        for index in range(before + 1, after):
            for layer in layers:
                rise = layer.upper[after] - layer.upper[before]
                assert (layer.upper[index] - layer.upper[before]) * (after - before) == rise * (
                    index - before
                )


@given(MOMENTS, st.floats(0, 50), st.floats(60, 2000))
def test_columns_stand_side_by_side(timeline: list[Moment], left: float, right: float) -> None:
    across = geometry.across_for(timeline, left, right)
    assert across.left == left
    assert across.right == pytest.approx(right)
    assert list(across.edges) == sorted(across.edges)
    for index in range(len(timeline)):
        assert across.at(across.x(index)) == index
    assert across.at(-1e9) == 0
    assert across.at(1e9) == len(timeline) - 1


def test_what_happens_once_is_wide_enough_to_see() -> None:
    layers = [moment(f"step1.forward.layer.{at}", weights=1) for at in range(80)]
    across = geometry.across_for([*layers, moment("step1.forward.loss", weights=1)], 0, 900)
    assert across.edges[-1] - across.edges[-2] == pytest.approx(10 * (across.edges[1] - across.edges[0]))


@given(st.floats(1, 1e14), st.floats(1, 1e14))
def test_axis_holds_the_highest_moment(highest: float, limit: float) -> None:
    axis = geometry.axis_for(highest, limit, GIB, 10, 310, 34)
    assert axis.end >= highest
    assert axis.y(0) == 310
    assert axis.y(axis.end) == 10
    if limit <= geometry.FAR * highest:
        assert axis.end >= limit
    assert 2 <= len(axis.grid()) <= 14


def test_name_stands_inside_its_area_and_off_the_limit() -> None:
    layer = geometry.Layer("weights", (0,) * 20, (80,) * 20)
    axis = geometry.Axis(100, 10, 0, 100)
    across = geometry.Across(tuple(float(10 * at) for at in range(21)))
    at = geometry.name_place(layer, axis, across, 60, 14, line=-10)
    assert at is not None
    assert at[1] == pytest.approx(60)
    at = geometry.name_place(layer, axis, across, 60, 14, line=60)
    assert at is not None
    assert abs(at[1] - 60) > 10
    at = geometry.name_place(layer, axis, across, 60, 14, line=-10, uprights=(90.0, 120.0))
    assert at is not None
    assert min(abs(at[0] - 90), abs(at[0] - 120)) >= 30
    crossed = geometry.name_place(layer, axis, across, 60, 14, line=-10, uprights=range(0, 200, 10))
    assert crossed is not None  # better there than nowhere
    assert geometry.name_place(layer, axis, across, 60, 90, line=-10) is None
    assert geometry.name_place(layer, axis, across, 500, 14, line=-10) is None


def test_shows_the_peak_until_another_moment_is_read_off(make: Make) -> None:
    page, _, _ = make()
    page.set_result(fakes.training())
    panel = page.panel
    assert panel.title() == "Alive at the peak"
    assert "93.39 GiB" in panel.summary()
    assert dict(panel.rows())["activations"] == fakes.training().shown.component("activations").bytes  # type: ignore[union-attr]
    chart = page.chart
    drawing = chart._drawing()
    assert drawing is not None
    moments: list[int] = []
    chart.pointed.connect(moments.append)
    QTest.mouseMove(chart, QPoint(round(drawing.across.x(3)), 60))
    assert moments == [3]
    assert panel.title() == "Alive at this moment"
    QTest.mouseMove(chart, QPoint(1, 60))
    assert moments == [3, chart.peak]
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=QPoint(round(drawing.across.x(5)), 60))
    QTest.mouseMove(chart, QPoint(1, 60))
    assert chart.moment == 5
    page.grab()


def test_keyboard_walks_moments_and_phases(make: Make) -> None:
    page, _, _ = make()
    page.set_result(fakes.training())
    chart = page.chart
    chart.setFocus()
    peak = chart.peak
    keys = Qt.Key
    QTest.keyClick(chart, keys.Key_Right)
    assert chart.moment == peak + 1
    QTest.keyClick(chart, keys.Key_Left)
    QTest.keyClick(chart, keys.Key_Left)
    assert chart.moment == peak - 1
    QTest.keyClick(chart, keys.Key_Home)
    assert chart.moment == 0
    QTest.keyClick(chart, keys.Key_Left)
    assert chart.moment == 0
    QTest.keyClick(chart, keys.Key_PageDown)
    assert chart.moment == chart._phases()[1].first
    QTest.keyClick(chart, keys.Key_End)
    assert chart.moment == chart._phases()[-1].last
    QTest.keyClick(chart, keys.Key_PageUp)
    assert chart.moment == chart._phases()[-2].first
    QTest.keyClick(chart, keys.Key_Escape)
    assert chart.moment == peak
    page.grab()


def test_buttons_step_through_moments(make: Make) -> None:
    page, _, _ = make()
    page.set_result(fakes.training())
    peak = page.chart.peak
    QTest.mouseClick(page._after, Qt.MouseButton.LeftButton)
    assert page.chart.moment == peak + 1
    QTest.mouseClick(page._before, Qt.MouseButton.LeftButton)
    assert page.chart.moment == peak


def test_areas_share_hover_and_selection(make: Make) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    chart = page.chart
    drawing = chart._drawing()
    assert drawing is not None
    hovered: list[object] = []
    selection.hovered.connect(hovered.append)
    bottom = round(drawing.axis.bottom) - 4
    QTest.mouseMove(chart, QPoint(round(drawing.across.x(10)), bottom))
    assert hovered == [("weights",)]
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=QPoint(round(drawing.across.x(10)), bottom))
    assert selection.component == ("weights",)
    row = page.panel._head
    selected: list[object] = []
    selection.selected.connect(selected.append)
    QTest.mouseClick(page.panel, Qt.MouseButton.LeftButton, pos=QPoint(40, row(Look.of(page)) + 30))
    assert selected == [("optimizer_states",)]


def test_hidden_page_works_nothing_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _, _ = make()
    page.hide()
    asked: list[object] = []
    monkeypatch.setattr(page.chart, "show_estimate", asked.append)
    page.set_result(fakes.training())
    assert asked == []
    page.show()
    assert len(asked) == 1
    page.set_result(fakes.training())
    assert len(asked) == 2
    page.set_result(fakes.unknown())
    assert len(asked) == 3


def test_picture_is_kept_while_the_crosshair_moves(make: Make) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    page.grab()
    picture = page.chart._picture
    assert picture is not None
    page.chart.pin(4)
    page.grab()
    assert page.chart._picture is picture
    selection.select(("loss",))
    page.grab()
    assert page.chart._picture is not picture


def test_screen_reader_hears_every_phase_with_its_highest_moment(make: Make) -> None:
    page, _, _ = make()
    page.set_result(fakes.training())
    interface = QAccessible.queryAccessibleInterface(page.chart)
    names = [interface.child(index).text(QAccessible.Text.Name) for index in range(interface.childCount())]
    assert names[0].startswith("Forward: ")
    assert any(name.startswith("Loss: loss, micro batch 2, 93.39 GiB") for name in names)
    assert page.panel.accessibleName().startswith("Alive at the peak: ")


def _in_phases(result: Result, others: dict[str, str]) -> Result:
    estimate = result.estimate
    assert estimate is not None
    moments = [
        msgspec.structs.replace(one, phase=others.get(one.phase, one.phase)) for one in estimate.timeline
    ]
    return msgspec.structs.replace(
        result, estimate=msgspec.structs.replace(estimate, timeline=tuple(moments))
    )


def test_units_and_titles(make: Make) -> None:
    page, _, view = make()
    page.set_result(fakes.training())
    assert page.title() == "Training step of 8 micro batches"
    view.change(units="GB")
    assert "GB" in page.panel.summary()
    page.set_result(fakes.serving())
    assert page.title() == "Serving: load, prompt, last token"
    for phase, title in (("profile", "load, profile, last token"), ("load", "load, last token")):
        page.set_result(_in_phases(fakes.serving(), {"prefill": phase}))
        assert page.title() == f"Serving: {title}"
    page.set_result(fakes.tight())
    assert page.title() == "Training step"


@pytest.mark.parametrize("size", [(240, 140), (500, 236), (768, 236), (1500, 800)])
def test_paints_every_case(make: Make, size: tuple[int, int]) -> None:
    page, selection, _ = make(*size)
    page.grab()
    for result in (fakes.training(), fakes.serving(), fakes.huge(), fakes.tiny(), fakes.unknown()):
        page.set_result(result)
        page.chart.pin(0)
        assert not page.grab().isNull()
        page.chart.pin(-1)
        page.grab()
    selection.select(("activations",))
    page.setPalette(DARK.qpalette())
    assert page.grab().toImage().pixelColor(2, 2).name() == DARK.base.name()
