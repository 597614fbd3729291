import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from memgui.gui.form.number_box import NumberBox, number_text
from memgui.spec.fields import BY_PATH
from memgui.spec.values import read

LENGTH, BATCH, MEMORY = "training.sequence_length", "training.micro_batch_size", "device.memory_bytes"
DROPOUT = "training.dropout"


def box(qtbot: QtBot, path: str, value: object) -> tuple[NumberBox, list[object], list[object]]:
    made = NumberBox(BY_PATH[path])
    qtbot.addWidget(made)
    made.set_value(value)  # type: ignore[arg-type]
    edits: list[object] = []
    faults: list[object] = []
    made.edited.connect(lambda value, held: edits.append(value))
    made.failed.connect(faults.append)
    return made, edits, faults


def write(made: NumberBox, text: str) -> None:
    made.lineEdit().selectAll()
    QTest.keyClicks(made.lineEdit(), text)


@pytest.mark.parametrize(
    ("path", "text", "value", "shown"),
    [
        (LENGTH, "128k", 131_072, "131,072"),
        (LENGTH, "8,192", 8192, "8,192"),
        (BATCH, "7B", 7_000_000_000, "7,000,000,000"),
        (MEMORY, "24 GiB", 24 * 2**30, "24 GiB"),
        (MEMORY, "24 GB", 24 * 10**9, "24 GB"),
        (MEMORY, "1152921504606846976000000", 1152921504606846976000000, None),
        (BATCH, "0", 0, "0"),
        (DROPOUT, "0.25", 0.25, "0.25"),
    ],
)
def test_what_is_typed_is_taken_exactly(
    qtbot: QtBot, path: str, text: str, value: object, shown: str | None
) -> None:
    made, edits, _ = box(qtbot, path, 1.0 if path == DROPOUT else 1)
    write(made, text)
    assert edits[-1] == value
    assert made.value() == value
    QTest.keyClick(made.lineEdit(), Qt.Key.Key_Return)
    if shown is not None:
        assert made.lineEdit().text() == shown
    assert read(path, made.lineEdit().text()) == value


def test_a_unit_is_resolved_at_once(qtbot: QtBot) -> None:
    made, _, _ = box(qtbot, LENGTH, 4096)
    write(made, "128k")
    assert made.lineEdit().text() == "131,072"
    made.lineEdit().selectAll()
    made.lineEdit().insert("  64k ")  # as pasted
    made.lineEdit().textEdited.emit("  64k ")
    assert made.lineEdit().text() == "65,536"
    share, edits, _ = box(qtbot, "inference.gpu_memory_utilization", 0.9)
    write(share, "85%")
    assert share.lineEdit().text() == "0.85"
    assert edits[-1] == 0.85


def test_text_that_is_no_number_is_kept_and_told(qtbot: QtBot) -> None:
    made, edits, faults = box(qtbot, LENGTH, 4096)
    write(made, "abc")
    assert edits == []
    assert faults[-1] is not None
    assert made.value() == 4096
    QTest.keyClick(made.lineEdit(), Qt.Key.Key_Return)
    assert made.lineEdit().text() == "abc"
    QTest.keyClick(made, Qt.Key.Key_Escape)
    assert made.lineEdit().text() == "4,096"
    assert faults[-1] is None


def test_a_value_from_outside_replaces_bad_text(qtbot: QtBot) -> None:
    made, edits, faults = box(qtbot, LENGTH, 4096)
    write(made, "abc")
    made.set_value(4096)
    assert made.lineEdit().text() == "4,096"
    assert faults[-1] is None
    assert edits == []


def test_what_comes_back_late_does_not_take_bad_text_from_under_the_hand(qtbot: QtBot) -> None:
    made, edits, faults = box(qtbot, LENGTH, 1)
    made.show()
    made.setFocus()
    qtbot.waitUntil(made.hasFocus)
    write(made, "4.096")
    made.set_value(4)  # the document's answer to the first key
    assert edits == [4]
    assert made.lineEdit().text() == "4.096"
    assert faults[-1] is not None
    made.set_value(8)  # undone, or set elsewhere
    assert made.lineEdit().text() == "8"
    assert faults[-1] is None


def test_typing_is_not_reformatted_under_the_hand(qtbot: QtBot) -> None:
    made, edits, _ = box(qtbot, LENGTH, 1)
    write(made, "4096")
    made.set_value(4096)  # what comes back from the document
    assert made.lineEdit().text() == "4096"
    assert edits == [4, 40, 409, 4096]


def test_an_emptied_optional_field_is_the_models_own(qtbot: QtBot) -> None:
    made, edits, faults = box(qtbot, DROPOUT, 0.1)
    made.lineEdit().selectAll()
    QTest.keyClick(made.lineEdit(), Qt.Key.Key_Delete)
    assert edits == [None]
    assert faults == []
    assert made.lineEdit().placeholderText().rstrip() == "the model's own"


@pytest.mark.parametrize(
    ("path", "value", "steps", "expected"),
    [
        (BATCH, 1, 1, 2),
        (BATCH, 1, -1, 1),
        (BATCH, 10, 10, 20),
        (LENGTH, 4096, 1, 4608),
        (LENGTH, 4100, -1, 4096),
        (LENGTH, 4100, 1, 4608),
        (LENGTH, 1, -1, 1),
        (MEMORY, 24 * 2**30 + 1, 1, 25 * 2**30),
        (MEMORY, 24 * 2**30 + 1, -1, 24 * 2**30),
    ],
)
def test_steps_go_to_round_numbers_and_stop_at_the_end(
    qtbot: QtBot, path: str, value: int, steps: int, expected: int
) -> None:
    made, edits, _ = box(qtbot, path, value)
    made.stepBy(steps)
    assert made.value() == expected
    assert edits == ([expected] if expected != value else [])


def wheel(target: QWidget) -> bool:
    at = QPointF(target.rect().center())
    event = QWheelEvent(
        at,
        target.mapToGlobal(at),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    target.wheelEvent(event)
    return event.isAccepted()


def test_the_wheel_turns_it_only_when_it_has_the_focus(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    one, other = NumberBox(BY_PATH[BATCH], window), NumberBox(BY_PATH[BATCH], window)
    for made in (one, other):
        column.addWidget(made)
        made.set_value(5)
    with qtbot.waitExposed(window):
        window.show()
    one.setFocus()
    qtbot.waitUntil(one.hasFocus)
    assert not wheel(other)
    assert wheel(one)
    assert (one.value(), other.value()) == (6, 5)


def test_it_is_announced_and_painted_in_every_state(qtbot: QtBot) -> None:
    made, _, _ = box(qtbot, MEMORY, 85_029_615_043)
    made.resize(176, 28)
    plain = made.grab().toImage()
    made.set_invalid(True)
    assert made.grab().toImage() != plain
    made.set_invalid(False)
    assert made.grab().toImage() == plain
    made.setEnabled(False)
    assert made.grab().toImage() != plain


@given(st.integers(0, 10**30))
def test_what_the_box_writes_reads_back_as_the_same_number(value: int) -> None:
    for path in (LENGTH, BATCH, MEMORY):
        assert read(path, number_text(BY_PATH[path], value)) == value


@given(st.floats(0, 1, allow_nan=False))
def test_a_ratio_reads_back_as_the_same_number(value: float) -> None:
    if "e" not in number_text(BY_PATH[DROPOUT], value):
        assert read(DROPOUT, number_text(BY_PATH[DROPOUT], value)) == value


def test_a_long_number_is_seen_whole(qtbot: QtBot) -> None:
    made, _, _ = box(qtbot, LENGTH, 4096)
    usual = made.sizeHint().width()
    for value in (131_072, 999_999, 1_048_576, 1_000_000_000):
        made.set_value(value)
        made.resize(made.sizeHint())
        line = made.lineEdit()
        assert line.fontMetrics().horizontalAdvance(line.text()) + 4 <= line.width(), value
    assert made.sizeHint().width() > usual
    write(made, "9" * 60)
    widest = made.sizeHint().width()
    write(made, "9" * 40)
    assert made.sizeHint().width() == widest
    write(made, "4096")
    assert made.sizeHint().width() == usual
