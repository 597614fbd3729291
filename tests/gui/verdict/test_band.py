from collections.abc import Callable, Iterator

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.gui.palette import DARK, LIGHT
from memgui.gui.theme import Look
from memgui.gui.verdict.band import AssumptionsPopup, VerdictBand
from memgui.gui.verdict.chips import Cell, Chip, ChipButton, _widths
from memgui.spec import ImportReport, Message
from tests.gui import fakes

CHIPS = [
    Chip("Checkpoint activations", "69.3 GiB · fits, 9.9 spare", "fits", data="full"),
    Chip("8-bit AdamW", "78.3 GiB · tight, 0.9 spare", "tight", data="8bit"),
    Chip("2 × H100, FSDP", "64.5 GiB each · fits, 14.7 spare", "fits", data="fsdp"),
]
Make = Callable[[], tuple[VerdictBand, Selection, ViewSettings]]


@pytest.fixture
def make(qtbot: QtBot) -> Iterator[Make]:
    kept: list[object] = []

    def band() -> tuple[VerdictBand, Selection, ViewSettings]:
        selection, view = Selection(), ViewSettings(View(reduced_motion=True))
        made = VerdictBand(selection, view)
        made.setPalette(LIGHT.qpalette())
        made.resize(1280, 136)
        qtbot.addWidget(made)
        with qtbot.waitExposed(made):
            made.show()
        kept.extend((made, selection, view))
        return made, selection, view

    yield band
    kept.clear()


def colours_in(widget: QWidget) -> set[str]:
    image = widget.grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(0, image.height(), 2)}


def test_says_the_verdict_and_names_itself_by_it(make: Make) -> None:
    band, _, view = make()
    band.set_result(fakes.training())
    assert band.headline == band.accessibleName() == "Does not fit: needs 93.4 GiB of 79.2 GiB"
    view.change(units="GB")
    assert band.headline == "Does not fit: needs 100.3 GB of 85.0 GB"
    band.set_result(fakes.serving())
    assert band.accessibleName().startswith("Fits:")
    band.announce()


def test_verdict_colours_the_strip(make: Make) -> None:
    band, _, _ = make()
    for result, colour in (
        (fakes.training(), LIGHT.bad),
        (fakes.serving(), LIGHT.good),
        (fakes.tight(), LIGHT.warn),
        (fakes.unknown(), LIGHT.tertiary),
    ):
        band.set_result(result)
        assert band.grab().toImage().pixelColor(1, 60).name() == colour.name()
    band.setPalette(DARK.qpalette())
    band.set_result(fakes.training())
    assert band.grab().toImage().pixelColor(1, 60).name() == DARK.bad.name()


def test_unknown_dims_the_last_picture(make: Make) -> None:
    band, _, _ = make()
    band.set_result(fakes.training())
    weights = LIGHT.component("weights").fill.name()
    assert weights in colours_in(band)
    band.set_result(fakes.unknown())
    assert weights not in colours_in(band)
    pixel = QColor(band.grab().toImage().pixelColor(60, 90))
    assert pixel.blue() > pixel.red()


def test_bar_shares_hover_and_selection(make: Make, qtbot: QtBot) -> None:
    band, selection, _ = make()
    band.set_result(fakes.training())
    bar = band.bar
    hovered: list[object] = []
    selection.hovered.connect(hovered.append)
    QTest.mouseMove(bar, QPoint(100, 34))
    QTest.mouseMove(bar, QPoint(100, 5))
    assert hovered == [("weights",), ()]
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=QPoint(bar.width() // 3, 34))
    assert selection.component == ("optimizer_states",)
    with qtbot.waitSignal(selection.activated) as opened:
        QTest.mouseDClick(bar, Qt.MouseButton.LeftButton, pos=QPoint(700, 34))
    assert opened.args == [("gradients",)]
    assert bar.segment_at(bar.width() - 1) == ""


def test_selected_segment_has_an_edge_in_text_colour(make: Make) -> None:
    band, selection, _ = make()
    band.set_result(fakes.serving())
    bar = band.bar
    top = round(bar._bar_rect(Look.of(bar)).top())
    assert bar.grab().toImage().pixelColor(200, top).name() != LIGHT.text.name()
    selection.select(("weights",))
    assert bar.grab().toImage().pixelColor(200, top).name() == LIGHT.text.name()


def test_chips_are_pressed_and_dropped(make: Make, qtbot: QtBot) -> None:
    band, _, _ = make()
    band.set_result(fakes.training())
    assert band.chips.buttons() == []
    band.set_chips(CHIPS, more=12)
    first, second, third = band.chips.buttons()
    assert third.geometry().right() < band.chips.width()
    assert first.accessibleName() == "Checkpoint activations, 69.3 GiB · fits, 9.9 spare"
    with qtbot.waitSignal(band.chip_pressed) as pressed:
        QTest.mouseClick(second, Qt.MouseButton.LeftButton)
    assert pressed.args == ["8bit"]
    band.set_chips(CHIPS[:1])
    assert band.chips.buttons() == [first]
    band.grab()


def test_a_chip_without_room_says_its_figure_in_fewer_words(make: Make) -> None:
    chips = make()[0].chips
    chips.set_chips([Chip("Sequence up to 14,799", "14,800 may not fit", "tight", brief="Sequence ≤ 14,799")])
    button = chips.buttons()[0]
    assert isinstance(button, ChipButton)
    assert button.title_for(1000) == "Sequence up to 14,799"
    assert button.title_for(60) == "Sequence ≤ 14,799"


def test_third_chip_gives_way_to_more(make: Make, qtbot: QtBot) -> None:
    band, _, _ = make()
    band.resize(1024, 136)
    band.set_result(fakes.training())
    band.set_chips(CHIPS, more=12)
    first, second, more = band.chips.buttons()
    assert more.accessibleName() == "13 more"
    assert first.geometry().right() < second.geometry().left()
    assert second.geometry().right() < more.geometry().left()
    with qtbot.waitSignal(band.more_requested):
        QTest.mouseClick(more, Qt.MouseButton.LeftButton)


def test_ladder_outlines_the_present_value(make: Make, qtbot: QtBot) -> None:
    band, _, _ = make()
    band.set_result(fakes.serving())
    cells = [Cell("4k", "18.0", "fits", data=4096), Cell("8k", "20.0", "fits", current=True, data=8192)]
    band.set_ladder("Context for each\nof 4 sequences", cells)
    small, present = band.chips.buttons()
    assert present.isChecked()
    assert not small.isChecked()
    with qtbot.waitSignal(band.chip_pressed) as pressed:
        QTest.mouseClick(small, Qt.MouseButton.LeftButton)
    assert pressed.args == [4096]
    assert not small.isChecked()
    assert small.accessibleName() == "4k, Fits, 18.0"
    band.set_ladder("Context for each\nof 4 sequences", cells)
    assert band.chips.buttons() == [small, present]
    band.set_chips(CHIPS)
    assert len(band.chips.buttons()) == 3
    band.grab()


def test_rungs_without_room_give_way_far_from_the_limit_first(make: Make) -> None:
    band, _, _ = make()
    band.set_result(fakes.serving())
    cells = [
        Cell(f"{2**power}k", "18.0", "fits" if power < 6 else "does_not_fit", current=power == 9)
        for power in range(10)
    ]
    band.set_ladder("Context for each\nof 4 sequences", cells)
    assert len(band.chips.buttons()) == 10
    band.resize(800, 136)
    shown = [button.cell.title for button in band.chips._cells if not button.isHidden()]
    assert 3 <= len(shown) < 10
    assert shown[-1] == "512k"
    assert {"32k", "64k"} <= set(shown)
    assert "1k" not in shown
    band.grab()
    band.resize(480, 136)
    assert band.chips.buttons() == []


def test_words_and_chips_never_overlap(make: Make) -> None:
    band, _, _ = make()
    for width in (480, 700, 900, 1024, 1280, 2560):
        band.resize(width, 136)
        for result in (fakes.training(), fakes.serving(), fakes.huge(), fakes.unknown()):
            band.set_result(result)
            band.set_chips(CHIPS, more=3)
            link = band._assumptions
            left = band.chips.x() + band.chips.content_left()
            if not link.isHidden():
                assert link.geometry().right() < left or not band.chips.buttons()


def test_assumptions_open_under_their_link(make: Make, qtbot: QtBot) -> None:
    band, _, _ = make()
    band.set_result(fakes.training())
    assert band._assumptions.text() == "4 assumptions"
    QTest.mouseClick(band._assumptions, Qt.MouseButton.LeftButton)
    popup = band.findChild(AssumptionsPopup)
    assert popup is not None
    texts = [label.text() for label in popup.findChildren(QLabel)]
    assert len(texts) == 4
    assert "bf16 weights" in texts[0]
    popup.grab()
    QTest.keyClick(popup, Qt.Key.Key_Escape)
    popup.close()


def test_nothing_to_show_is_an_empty_bar(make: Make) -> None:
    band, _, _ = make()
    band.grab()
    assert band.bar.segment_at(10) == ""


@pytest.mark.parametrize("units", ["GiB", "GB"])
@pytest.mark.parametrize("width", [480, 1280, 2560])
def test_paints_every_case(make: Make, width: int, units: str) -> None:
    band, _, view = make()
    view.change(units=units)
    band.resize(width, 136)
    for result in (
        fakes.training(),
        fakes.serving(),
        fakes.tight(),
        fakes.huge(),
        fakes.tiny(),
        fakes.unknown(),
    ):
        band.set_result(result)
        assert not band.grab().isNull()


def test_what_was_assumed_of_the_models_file_stands_first(make: Make, qtbot: QtBot) -> None:
    band, _, _ = make()
    said = Message("{key} is not stated.", {"key": "head_dim"})
    result = fakes.training()
    band.set_result(msgspec.structs.replace(result, report=ImportReport("config.json", assumed=(said,))))
    assert band._assumptions.text() == "5 assumptions"
    band.show_assumptions()
    popup = band.findChild(AssumptionsPopup)
    assert popup is not None
    assert popup.findChildren(QLabel)[0].text() == "•  head_dim is not stated."
    popup.close()
    band.set_result(result)
    assert band._assumptions.text() == "4 assumptions"


def test_more_assumptions_than_have_room_are_counted(make: Make) -> None:
    band, _, _ = make()
    said = tuple(Message("{key} is not stated.", {"key": f"key_{number}"}) for number in range(50))
    band.set_result(msgspec.structs.replace(fakes.training(), report=ImportReport("c.json", assumed=said)))
    assert band._assumptions.text() == "54 assumptions"
    band.show_assumptions()
    popup = band.findChild(AssumptionsPopup)
    assert popup is not None
    texts = [label.text() for label in popup.findChildren(QLabel)]
    assert len(texts) == 13
    assert texts[-1] == "•  42 more under Why"
    popup.close()


@pytest.mark.parametrize(
    ("needs", "room", "widths"),
    [
        ([100, 100, 100], 250, [232, 232, 232]),
        ([240, 100], 250, [240, 240]),
        ([171, 235], 210, [178, 242]),  # one has room to give
        ([300, 300], 210, [210, 210]),
    ],
)
def test_chips_are_as_wide_as_each_other_unless_one_would_be_cut(
    needs: list[int], room: int, widths: list[int]
) -> None:
    assert _widths(needs, 232, room) == widths
