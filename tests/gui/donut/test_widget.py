import math
from collections.abc import Callable, Iterator

import msgspec
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QAccessible, QImage, QPainter, QRegion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolTip, QWidget
from pytestqt.qtbot import QtBot

from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.gui.accessible import install
from memgui.gui.donut import geometry
from memgui.gui.donut.widget import Donut
from memgui.gui.metrics import Metrics
from memgui.gui.palette import DARK, LIGHT
from tests.gui import fakes

Make = Callable[..., tuple[Donut, Selection, ViewSettings]]


@pytest.fixture
def make(qtbot: QtBot) -> Iterator[Make]:
    kept: list[object] = []

    def donut(reduced_motion: bool = True) -> tuple[Donut, Selection, ViewSettings]:
        selection, view = Selection(), ViewSettings(View(reduced_motion=reduced_motion))
        made = Donut(selection, view)
        made.setPalette(LIGHT.qpalette())
        made.resize(360, 320)
        qtbot.addWidget(made)
        with qtbot.waitExposed(made):
            made.show()
        kept.extend((made, selection, view))
        return made, selection, view

    yield donut
    QToolTip.hideText()
    kept.clear()


def selected(selection: Selection) -> tuple[str, ...]:
    return selection.component


def point(donut: Donut, path: tuple[str, ...]) -> QPoint:
    """A point of the widget in the middle of a slice."""
    piece = next(piece for piece in geometry.slices(donut.need()) if piece.path == path)
    angle = math.radians(piece.middle)
    reach = donut._radius * (piece.ring[0] + piece.ring[1]) / 2
    return (donut._centre + QPointF(reach * math.sin(angle), -reach * math.cos(angle))).toPoint()


def test_slices_are_where_they_are_painted(make: Make) -> None:
    donut, _, _ = make()
    donut.set_result(fakes.training())
    image = donut.grab().toImage()
    for key in ("weights", "gradients", "optimizer_states", "activations", "loss"):
        at = point(donut, (key,))
        assert donut.path_at(QPointF(at)) == (key,)
        seen = {
            image.pixelColor(at.x() + x, at.y() + y).name() for x in range(-14, 15) for y in range(-10, 11)
        }
        assert LIGHT.component(key).fill.name() in seen


def test_its_ground_covers_whole_pixels_of_a_scaled_screen(make: Make) -> None:
    donut, _, _ = make()
    donut.resize(333, 301)
    image = QImage(500, 452, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(1.5)
    image.fill(Qt.GlobalColor.black)
    donut.render(image, QPoint(), QRegion(), QWidget.RenderFlag(0))
    assert {image.pixelColor(x, 440).name() for x in range(490, 500)} <= {"#000000", LIGHT.base.name()}


def test_click_selects_and_double_click_opens(make: Make, qtbot: QtBot) -> None:
    donut, selection, _ = make()
    donut.set_result(fakes.training())
    donut.grab()
    QTest.mouseClick(donut, Qt.MouseButton.LeftButton, pos=point(donut, ("activations", "mlp")))
    assert selected(selection) == ("activations", "mlp")
    QTest.mouseClick(donut, Qt.MouseButton.LeftButton, pos=QPoint(2, 60))
    assert selected(selection) == ()
    with qtbot.waitSignal(selection.activated) as opened:
        QTest.mouseDClick(donut, Qt.MouseButton.LeftButton, pos=point(donut, ("weights",)))
    assert opened.args == [("weights",)]


def test_hover_points_and_tells_the_exact_figures(make: Make) -> None:
    donut, selection, _ = make()
    donut.set_result(fakes.training())
    donut.grab()
    hovered: list[object] = []
    selection.hovered.connect(hovered.append)
    QTest.mouseMove(donut, point(donut, ("activations",)))
    assert hovered == [("activations",)]
    assert "24.64 GiB" in QToolTip.text()
    assert "26,458,340,720 bytes" in QToolTip.text()
    QTest.mouseMove(donut, QPoint(2, 60))
    assert hovered[-1] == ()


def test_free_slice_tells_what_is_left_and_cannot_be_selected(make: Make) -> None:
    donut, selection, _ = make()
    donut.set_result(fakes.serving())
    donut.grab()
    assert donut.path_at(QPointF(point(donut, ("free",)))) == ("free",)
    QTest.mouseMove(donut, point(donut, ("free",)))
    assert "Free" in QToolTip.text()
    QTest.mouseClick(donut, Qt.MouseButton.LeftButton, pos=point(donut, ("free",)))
    assert selected(selection) == ()


def test_keyboard_walks_in_and_out(make: Make, qtbot: QtBot) -> None:
    donut, selection, _ = make()
    donut.set_result(fakes.training())
    donut.setFocus()
    keys = Qt.Key
    QTest.keyClick(donut, keys.Key_Right)
    assert selected(selection) == ("weights",)
    QTest.keyClick(donut, keys.Key_Left)
    assert selected(selection) == ("overhead",)
    QTest.keyClick(donut, keys.Key_Home)
    QTest.keyClick(donut, keys.Key_Right)
    assert selected(selection) == ("optimizer_states",)
    QTest.keyClick(donut, keys.Key_Return)
    assert selected(selection) == ("optimizer_states", "first_moment")
    QTest.keyClick(donut, keys.Key_Down)
    assert selected(selection) == ("optimizer_states", "second_moment")
    QTest.keyClick(donut, keys.Key_Right)
    assert selected(selection) == ("optimizer_states", "first_moment")
    with qtbot.waitSignal(selection.activated) as opened:
        QTest.keyClick(donut, keys.Key_Return)
    assert opened.args == [("optimizer_states", "first_moment")]
    QTest.keyClick(donut, keys.Key_Backspace)
    assert selected(selection) == ("optimizer_states",)
    QTest.keyClick(donut, keys.Key_End)
    assert selected(selection) == ("overhead",)
    QTest.keyClick(donut, keys.Key_Escape)
    assert selected(selection) == ()
    donut.grab()


def test_component_without_parts_opens_by_enter(make: Make, qtbot: QtBot) -> None:
    donut, selection, _ = make()
    donut.set_result(fakes.training())
    selection.select(("gradients",))
    with qtbot.waitSignal(selection.activated):
        QTest.keyClick(donut, Qt.Key.Key_Return)


def test_selected_part_stands_in_full_colour(make: Make) -> None:
    donut, selection, _ = make()
    donut.set_result(fakes.training())
    before = donut.grab().toImage().pixelColor(point(donut, ("activations", "mlp"))).name()
    assert before == LIGHT.part("activations", 1).fill.name()
    selection.select(("activations", "mlp"))
    after = donut.grab().toImage().pixelColor(point(donut, ("activations", "mlp"))).name()
    assert after == LIGHT.component("activations").fill.name()


def test_same_result_is_not_painted_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    donut, _, _ = make()
    result = fakes.training()
    donut.set_result(result)
    asked: list[int] = []
    monkeypatch.setattr(donut, "update", lambda: asked.append(1))
    donut.set_result(result)
    assert asked == []
    donut.set_result(fakes.training())
    assert asked


def test_motion_ends_at_the_new_sizes_and_stops_when_hidden(make: Make, qtbot: QtBot) -> None:
    donut, _, _ = make(reduced_motion=False)
    donut.set_result(fakes.training())
    assert donut.need().total == pytest.approx(fakes.training().shown.peak_bytes)  # type: ignore[union-attr]
    serving = fakes.serving()
    donut.set_result(serving)
    assert serving.shown is not None
    qtbot.waitUntil(lambda: donut.need().total == serving.shown.peak_bytes, timeout=5000)  # type: ignore[union-attr]
    assert "gradients" not in donut.need().components or donut.need().components["gradients"] == 0
    donut.set_result(fakes.training())
    donut.hide()
    assert donut.need().total == pytest.approx(fakes.training().shown.peak_bytes)  # type: ignore[union-attr]


def test_screen_reader_finds_every_slice(make: Make) -> None:
    donut, selection, view = make()
    install(donut)
    donut.set_result(fakes.training())
    donut.grab()
    interface = QAccessible.queryAccessibleInterface(donut)
    assert interface.role() is QAccessible.Role.Chart
    assert interface.text(QAccessible.Text.Name) == "Memory by component"
    assert interface.text(QAccessible.Text.Description) == "93.4 GiB of 79.2 GiB"
    names = [interface.child(index).text(QAccessible.Text.Name) for index in range(interface.childCount())]
    assert names[0] == "Weights, 14.96 GiB, 16.0\u2009%"
    assert "MLP, 15.00 GiB, 16.1\u2009%" in names
    assert len(names) == len(donut._walk())
    child = interface.child(0)
    assert interface.indexOfChild(child) == 0
    assert child.role() is QAccessible.Role.ListItem
    assert not child.state().selected
    selection.select(("weights",))
    assert child.state().selected
    assert child.parent().object() is donut
    assert child.rect().contains(donut.mapToGlobal(point(donut, ("weights",))))
    view.change(units="GB")
    assert child.text(QAccessible.Text.Name).startswith("Weights, 16.06 GB")
    donut.set_result(fakes.serving())
    assert interface.childCount() < len(names)
    assert not child.rect().isEmpty()


def test_paints_every_case(make: Make) -> None:
    donut, selection, view = make()
    donut.grab()
    selection.select(("activations",))
    donut.set_pinned(fakes.tight().estimate)
    for size in ((160, 160), (244, 220), (360, 320), (900, 700), (20, 20)):
        donut.resize(*size)
        for result in (
            fakes.training(),
            fakes.serving(),
            fakes.tight(),
            fakes.huge(),
            fakes.tiny(),
            fakes.unknown(),
        ):
            donut.set_result(result)
            assert not donut.grab().isNull()
    donut.resize(360, 320)
    donut.setPalette(DARK.qpalette())
    view.change(units="GB")
    assert donut.grab().toImage().pixelColor(2, 60).name() == DARK.base.name()


def test_unknown_dims_the_picture(make: Make) -> None:
    donut, _, _ = make()
    donut.set_result(fakes.training())
    full = donut.grab().toImage().pixelColor(point(donut, ("gradients",)) + QPoint(0, 14)).name()
    donut.set_result(fakes.unknown())
    dimmed = donut.grab().toImage().pixelColor(point(donut, ("gradients",)) + QPoint(0, 14)).name()
    assert full != dimmed


def test_a_per_cent_too_wide_for_the_hole_is_left_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = Metrics.write

    def kept(self: Metrics, painter: QPainter, room: QRectF, text: str, *across: float) -> None:
        written.append(text)
        write(self, painter, room, text, *across)

    monkeypatch.setattr(Metrics, "write", kept)
    donut, _, _ = make()
    result = fakes.training()
    donut.set_result(result)
    donut.grab()
    assert "118\N{NARROW NO-BREAK SPACE}%" in written or "118\N{THIN SPACE}%" in written
    assert result.estimate is not None
    verdict = msgspec.structs.replace(result.estimate.verdict, capacity_bytes=1)
    tiny = msgspec.structs.replace(result.estimate, verdict=verdict)
    written.clear()
    donut.set_result(msgspec.structs.replace(result, estimate=tiny, last_good=tiny, generation=2))
    donut.grab()
    assert any(text.startswith("of ") for text in written)
    assert not any("," in text and text.endswith("%") for text in written)
