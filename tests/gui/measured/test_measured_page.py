"""The Measured tab through its widgets, its figures against the estimator and the parsers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from memgui.document.document import State
from memgui.document.view_settings import View
from memgui.estimator import estimate
from memgui.gui.controls.buttons import Button
from memgui.gui.measured.page import MeasuredPage
from memgui.gui.measured.rows import MeasuredRows
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DARK
from memgui.gui.theme import Look, Role
from memgui.planning.measured import Counter, typed
from memgui.spec import replace
from tests.gui.house import House

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of "
    "79.19 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.16 GiB memory in "
    "use. Of the allocated memory 76.02 GiB is allocated by PyTorch, and 1.51 GiB is reserved by PyTorch but "
    "unallocated."
)


@pytest.fixture
def real(qapp: QApplication, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "home", estimate)
    yield made
    made.close()


@pytest.fixture
def page(real: House, qtbot: QtBot) -> Iterator[MeasuredPage]:
    result = real.document.settle()
    made = MeasuredPage(real.context)
    made.resize(820, 480)
    qtbot.addWidget(made)
    real.document.result.connect(made.set_result)
    with qtbot.waitExposed(made):
        made.show()
    made.set_result(result)
    yield made
    made.hide()


def type_in(page: MeasuredPage, text: str, counter: Counter) -> None:
    page.counter.setCurrentIndex(page.counter.findData(counter))
    page.figure.setFocus()
    QTest.keyClicks(page.figure, text)
    QTest.keyClick(page.figure, Qt.Key.Key_Return)


def explained(page: MeasuredPage, qtbot: QtBot) -> str:
    qtbot.waitUntil(lambda: page.measurements.explained.is_current, timeout=20_000)
    return "\n".join(label.text() for run in page.runs for label in run.findChildren(QLabel))


def test_a_typed_figure_stands_beside_its_own_counter(page: MeasuredPage, real: House) -> None:
    found = real.document.settle().estimate
    assert found is not None
    type_in(page, "61.4 GB", Counter.ALLOCATED)
    (row,) = page.runs[0].figures.rows
    assert row.figure.bytes == 61_400_000_000
    assert row.expected == found.allocated_bytes
    assert page.figure.text() == ""
    type_in(page, f"{found.reserved_bytes:,}", Counter.RESERVED)
    assert page.runs[1].figures.rows[0].within


def test_the_example_is_in_the_unit_that_was_chosen(page: MeasuredPage, real: House) -> None:
    assert page.figure.placeholderText() == "23.4 GiB"
    real.view.change(units="GB")
    assert page.figure.placeholderText() == "25.1 GB"


def test_what_is_no_figure_is_refused_and_kept_in_the_box(page: MeasuredPage, real: House) -> None:
    type_in(page, "lots", Counter.PROCESS)
    assert page.fault.isVisible()
    assert "lots" in page.fault.text()
    assert page.figure.text() == "lots"
    assert not real.document.state.measured
    QTest.keyClick(page.figure, Qt.Key.Key_Backspace)
    assert not page.fault.isVisible()


def test_a_pasted_message_is_read_and_explained(page: MeasuredPage, qtbot: QtBot) -> None:
    QGuiApplication.clipboard().setText(OOM)
    QTest.mouseClick(page.paste, Qt.MouseButton.LeftButton)
    counters = [row.figure.counter for row in page.runs[0].figures.rows]
    assert counters == [Counter.CAPACITY, Counter.ALLOCATED, Counter.RESERVED, Counter.PROCESS]
    assert "1.96 GiB" in explained(page, qtbot)
    QGuiApplication.clipboard().setText("nothing of the kind")
    QTest.keyClick(page, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert page.fault.isVisible()


def test_a_dropped_text_is_read(page: MeasuredPage) -> None:
    mime = QMimeData()
    mime.setText(OOM)
    action, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(page, QDragEnterEvent(QPoint(5, 5), action, mime, button, none))
    QApplication.sendEvent(page, QDropEvent(QPointF(5, 5), action, mime, button, none))
    assert len(page.runs) == 1


def test_an_explanation_is_applied_in_one_step(page: MeasuredPage, real: House, qtbot: QtBot) -> None:
    other = replace(real.document.scenario, "training.activation_checkpointing", "full")
    type_in(page, f"{estimate(other).allocated_bytes}", Counter.ALLOCATED)
    explained(page, qtbot)
    buttons = [one for run in page.runs for one in run.findChildren(Button) if one.text() == "Apply"]
    said = [button.accessibleDescription() for button in buttons]
    at = next(index for index, text in enumerate(said) if "heckpoint" in text)
    steps = real.document.undo_stack.count()
    buttons[at].click()
    assert estimate(real.document.scenario).allocated_bytes == estimate(other).allocated_bytes
    assert real.document.undo_stack.count() == steps + 1


def test_the_gpu_of_a_message_is_opened_by_one_press(page: MeasuredPage, real: House, qtbot: QtBot) -> None:
    page.read(OOM.replace("79.19", "47.53").replace("78.16", "46.16").replace("76.02", "45.02"))
    assert "such as RTX A6000" in explained(page, qtbot)
    (button,) = [one for one in page.runs[0].findChildren(Button) if one.text() == "Apply"]
    button.click()
    assert real.document.scenario.device.name == "RTX A6000"


def test_each_run_is_an_undo_step_and_kept_with_the_preset(page: MeasuredPage, real: House) -> None:
    type_in(page, "61.4 GB", Counter.ALLOCATED)
    type_in(page, "70 GiB", Counter.PROCESS)
    kept = real.document.state.measured
    assert real.library.save_as("measured")
    page.remove(0)
    assert len(page.runs) == 1
    real.document.undo_stack.undo()
    assert len(page.runs) == 2
    real.document.load(State(real.document.scenario, real.document.scenario.model), "other")
    assert page.runs == []
    assert page.empty.isVisible()
    (entry,) = real.library.presets()
    real.library.open_preset(entry)
    assert real.document.state.measured == kept
    assert len(page.runs) == 2
    text = real.library.shared_text()
    real.document.load(State(real.document.scenario, real.document.scenario.model), "other")
    assert real.library.open_text(text)
    assert real.document.state.measured == kept


def test_a_strangers_measurement_is_left_out(page: MeasuredPage, real: House) -> None:
    real.document.measure({"schema": 1, "measurements": [{"source": 7}]}, "odd")
    assert page.measurements.all == ()
    assert page.empty.isVisible()


def test_it_follows_the_estimate_and_speaks(page: MeasuredPage, real: House) -> None:
    type_in(page, "61.4 GB", Counter.ALLOCATED)
    before = page.runs[0].figures.rows[0].expected
    real.document.edit("training.micro_batch_size", 2)
    real.document.settle()
    assert page.runs[0].figures.rows[0].expected > before
    interface = QAccessible.queryAccessibleInterface(page.runs[0].figures)
    assert interface is not None
    assert "57.18 GiB" in interface.child(0).text(QAccessible.Text.Name)
    page.setPalette(DARK.qpalette())
    assert not page.grab().isNull()


def test_a_run_of_another_set_up_says_so(page: MeasuredPage, real: House, qtbot: QtBot) -> None:
    page.read(OOM)
    real.document.settle()
    name = real.document.scenario.model.name
    (run,) = page.runs
    assert not [label for label in run.findChildren(QLabel) if name in label.text()]
    real.document.edit("model.name", "Another")
    real.document.settle()
    (run,) = page.runs
    assert [label.text() for label in run.findChildren(QLabel) if name in label.text()] == [
        f"PyTorch’s out-of-memory message · a run of {name}"
    ]


HOSTILE = {
    "ten million characters": "CUDA out of memory. " * 500_000,
    "control characters": "\x00\x1b[31mCUDA out of memory. Tried to allocate \x00 20 MiB\x7f\u202e",
    "400 digits": f"CUDA out of memory. Tried to allocate {'9' * 400} GiB. GPU 0 has a capacity of 8 xB",
    "not numbers": "CUDA out of memory. Tried to allocate nan GiB (GPU 0; inf GiB total capacity; -1 GiB",
    "nothing": "   \n\n",
    "markup": "<b>bold</b><img src=x onerror=alert(1)> 12 lots",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_refused_in_a_sentence(page: MeasuredPage, real: House, text: str) -> None:
    QGuiApplication.clipboard().setText(text)
    QTest.mouseClick(page.paste, Qt.MouseButton.LeftButton)
    assert page.fault.isVisible()
    assert 20 < len(page.fault.text()) < 400
    assert page.runs == []
    assert not real.document.state.measured
    assert not page.grab().isNull()


VLLM = """Model loading took {weights:.4f} GiB and 3.52 seconds
Available KV cache memory: {pool:.2f} GiB
GPU KV cache size: 428,512 tokens
Graph capturing finished in 18 secs, took 0.25 GiB
"""


def test_an_engines_log_stands_beside_the_estimate_part_by_part(
    page: MeasuredPage, real: House, qtbot: QtBot
) -> None:
    real.document.edit("task", "inference")
    real.document.edit("inference.engine", "vllm")
    found = real.document.settle().estimate
    assert found is not None
    weights, pool = found.component("weights").bytes, found.extra["kv_pool_bytes"]
    page.read(VLLM.format(weights=weights / 2**30, pool=pool / 2**30 - 4))
    figures = page.runs[0].figures
    rows = {row.figure.part: row for row in figures.rows}
    assert rows["weights"].expected == weights
    assert rows["weights"].within
    assert rows["KV cache pool"].expected == pool
    assert not rows["KV cache pool"].within
    (tokens,) = figures.counts
    assert (tokens.measured, tokens.expected) == (428_512, found.extra["pool_tokens"])
    assert "Weights" in figures.name(rows["weights"])
    assert "“KV cache pool”" in explained(page, qtbot) or "cache pool is what" in explained(page, qtbot)
    assert not page.grab().isNull()


@pytest.mark.parametrize("width", [720, 780, 1200])
def test_figures_of_many_digits_stand_apart(real: House, qtbot: QtBot, width: int) -> None:
    found = real.document.settle().estimate
    assert found is not None
    large = msgspec.structs.replace(found, allocated_bytes=2744 * 2**30)
    rows = MeasuredRows(typed("2469.67 GiB", Counter.ALLOCATED), large, Numbers.of(View()))
    qtbot.addWidget(rows)
    rows.resize(width, 60)
    look = Look.of(rows)
    _, end, *edges = rows._edges(look)
    weights = (600, 400, 400)
    for text, weight, left, right in zip(
        rows.figures(rows.rows[0]), weights, (end, *edges[:2]), edges, strict=True
    ):
        assert right - look.width(text, Role.BODY, weight) >= left + look.px(8), text


SHARED = """total_gpu_memory     23.64GiB
the current vLLM instance can use    21.28GiB
available_kv_cache_memory    4.95GiB
the estimated maximum model length is 10,000
"""


def test_no_two_rows_have_one_name_and_counts_have_room_for_theirs(
    page: MeasuredPage, real: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.document.edit("task", "inference")
    real.document.edit("inference.engine", "vllm")
    real.document.settle()
    page.resize(560, 480)
    page.read(SHARED)
    figures = page.runs[0].figures
    names = [figures.name(row) for row in figures.rows]
    assert "Device" in names
    assert len(set(names)) == len(names)
    assert [one.label for one in figures.counts] == ["Longest sequence, tokens"]
    shown: list[str] = []
    cut = Look.cut

    def keep(self: Look, text: str, *more: Any) -> str:
        shown.append(cut(self, text, *more))
        return shown[-1]

    monkeypatch.setattr(Look, "cut", keep)
    assert not figures.grab().isNull()
    assert "Longest sequence, tokens" in shown
