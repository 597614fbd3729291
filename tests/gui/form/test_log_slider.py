import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from memgui.gui.form.log_slider import LogScale, LogSlider

SCALES = st.sampled_from(
    [LogScale(1, 4096), LogScale(1, 10_000_000), LogScale(0, 1_000_000), LogScale(1, 2**42), LogScale(2, 300)]
)


@given(SCALES, st.integers(0, 2**43))
def test_positions_stay_on_the_groove_and_keep_the_order(scale: LogScale, value: int) -> None:
    assert 0 <= scale.position(value) <= scale.length
    assert scale.position(value) <= scale.position(value + 1)


@given(SCALES, st.integers(0, 10_000))
def test_places_lead_to_numbers_in_range(scale: LogScale, place: int) -> None:
    place %= scale.length + 1
    assert scale.low <= scale.value(place) <= scale.high
    assert scale.low <= scale.value(place, free=True) <= scale.high
    assert scale.value(place) in scale.ticks


@given(SCALES)
def test_each_tick_is_where_it_says(scale: LogScale) -> None:
    for tick in scale.ticks:
        assert scale.value(scale.position(tick)) == tick


@pytest.mark.parametrize(
    ("value", "steps", "expected"),
    [(4096, 1, 6144), (4096, -1, 3072), (5000, 1, 6144), (5000, -1, 4096), (1, -1, 1), (4096, 2, 8192)],
)
def test_steps_go_from_any_number_to_the_next_tick(value: int, steps: int, expected: int) -> None:
    assert LogScale(1, 10_000_000).step(value, steps) == expected


def slider(qtbot: QtBot, value: int) -> tuple[LogSlider, list[tuple[int, bool]]]:
    made = LogSlider(LogScale(1, 4096))
    qtbot.addWidget(made)
    made.resize(200, 28)
    made.set_value(value)
    edits: list[tuple[int, bool]] = []
    made.edited.connect(lambda value, held: edits.append((value, held)))
    return made, edits


def test_a_value_from_outside_is_not_echoed(qtbot: QtBot) -> None:
    made, edits = slider(qtbot, 1)
    made.set_value(100)
    made.set_value(1_000_000)  # beyond the groove: the handle stands at its end
    assert edits == []
    assert made.value() == made.maximum()


def test_a_drag_is_held_until_it_is_let_go(qtbot: QtBot) -> None:
    made, edits = slider(qtbot, 1)
    left = Qt.MouseButton.LeftButton
    QTest.mousePress(made, left, pos=QPoint(7, 14))
    for x in range(20, 190, 10):
        QTest.mouseMove(made, QPoint(x, 14))
    QTest.mouseRelease(made, left, pos=QPoint(190, 14))
    assert len(edits) > 5
    assert all(held for _, held in edits[:-1])
    assert edits[-1] == (edits[-2][0], False)
    assert all(value in LogScale(1, 4096).ticks for value, _ in edits)


def test_taking_the_handle_moves_nothing(qtbot: QtBot) -> None:
    made, edits = slider(qtbot, 100)  # no tick
    x = round(made._x(made.value()))
    QTest.mouseClick(made, Qt.MouseButton.LeftButton, pos=QPoint(x + 3, 14))
    assert {value for value, _ in edits} == {100}


def test_shift_turns_freely(qtbot: QtBot) -> None:
    made, edits = slider(qtbot, 1)
    QTest.mousePress(made, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, QPoint(133, 14))
    QTest.mouseRelease(made, Qt.MouseButton.LeftButton, pos=QPoint(133, 14))
    assert edits[0][0] not in LogScale(1, 4096).ticks


def test_a_double_click_asks_for_the_default(qtbot: QtBot) -> None:
    made, _ = slider(qtbot, 8)
    with qtbot.waitSignal(made.reset):
        QTest.mouseDClick(made, Qt.MouseButton.LeftButton, pos=QPoint(150, 14))


@pytest.mark.parametrize(
    ("key", "modifier", "expected"),
    [
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 128),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, 96),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, 101),
        (Qt.Key.Key_PageUp, Qt.KeyboardModifier.NoModifier, 200),
        (Qt.Key.Key_PageDown, Qt.KeyboardModifier.NoModifier, 50),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, 1),
        (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, 4096),
    ],
)
def test_keys(qtbot: QtBot, key: Qt.Key, modifier: Qt.KeyboardModifier, expected: int) -> None:
    made, edits = slider(qtbot, 100)
    QTest.keyClick(made, key, modifier)
    assert edits == [(expected, False)]


def test_past_the_largest_that_fits_the_groove_is_tinted(qtbot: QtBot) -> None:
    made, _ = slider(qtbot, 100)
    plain = made.grab().toImage()
    made.set_largest(200)
    assert made.grab().toImage() != plain
    made.set_largest(None)
    assert made.grab().toImage() == plain
