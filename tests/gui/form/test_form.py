from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.document.document import Document
from memgui.document.limits import Limit
from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.estimator import estimate
from memgui.gui.form.device_box import DeviceBox
from memgui.gui.form.form import OPEN_AT_FIRST, Form
from memgui.gui.form.number_box import NumberBox
from memgui.gui.form.row import Row
from memgui.gui.form.summary import summary
from memgui.gui.model_field import ModelField
from memgui.gui.numbers import Numbers
from memgui.gui.stops import stops_in
from memgui.spec import Device, get, replace
from memgui.spec.fields import BY_PATH, FIELDS, Kind
from tests.document.fakes import Estimator, scenario

LENGTH, BATCH = "training.sequence_length", "training.micro_batch_size"


@pytest.fixture
def document(qapp: QApplication) -> Iterator[Document]:
    made = Document(scenario(), Estimator())
    made.settle()
    yield made
    made.settle()


def opened(document: Document, selection: Selection) -> Form:
    """A form with the sections open that a window opens at first."""
    made = Form(document, selection, ViewSettings(parent=document), lambda text: [])
    for key in OPEN_AT_FIRST:
        made.open_section(key)
    return made


@pytest.fixture
def form(document: Document, qtbot: QtBot) -> Form:
    made = opened(document, Selection(document))
    qtbot.addWidget(made)
    made._rest.setInterval(0)
    made.resize(320, 700)
    with qtbot.waitExposed(made):
        made.show()
    return made


def row(form: Form, path: str) -> Row:
    return next(row for row in form.rows() if row.field.path == path)


def box(form: Form, path: str) -> NumberBox:
    found = row(form, path).box
    assert isinstance(found, NumberBox)
    return found


def visible(form: Form) -> set[str]:
    return {row.field.path for row in form.rows() if row.isVisible()}


def write(form: Form, path: str, text: str) -> None:
    box(form, path).lineEdit().selectAll()
    QTest.keyClicks(box(form, path).lineEdit(), text)


def test_typing_edits_the_document_as_one_step(form: Form, document: Document) -> None:
    box(form, LENGTH).setFocus()
    write(form, LENGTH, "8192")
    assert document.scenario.training.sequence_length == 8192
    assert document.undo_stack.count() == 1
    document.undo_stack.undo()
    document.settle()
    assert box(form, LENGTH).lineEdit().text() == "4,096"


def test_leaving_a_field_ends_the_gesture(form: Form, document: Document) -> None:
    box(form, LENGTH).setFocus()
    write(form, LENGTH, "8")
    box(form, BATCH).setFocus()
    box(form, LENGTH).setFocus()
    write(form, LENGTH, "16")
    assert document.undo_stack.count() == 2


def test_slider_and_box_show_the_same_and_neither_echoes(form: Form, document: Document) -> None:
    document.edit(LENGTH, 4097)
    document.settle()
    assert document.scenario.training.sequence_length == 4097
    assert box(form, LENGTH).value() == 4097
    assert document.undo_stack.count() == 1


def test_a_drag_is_one_step_and_a_double_click_resets(form: Form, document: Document) -> None:
    slider = row(form, BATCH).slider
    assert slider is not None
    left = Qt.MouseButton.LeftButton
    QTest.mousePress(slider, left, pos=QPoint(8, 14))
    for x in (20, 30, 40, 50, 60):
        QTest.mouseMove(slider, QPoint(x, 14))
        document.settle()
    QTest.mouseRelease(slider, left, pos=QPoint(60, 14))
    assert document.scenario.training.micro_batch_size > 1
    assert document.undo_stack.count() == 1
    assert box(form, BATCH).value() == document.scenario.training.micro_batch_size
    QTest.mouseDClick(slider, left, pos=QPoint(60, 14))
    assert document.scenario.training.micro_batch_size == 1


def test_more_devices_take_a_degree_along_in_one_step(form: Form, document: Document) -> None:
    write(form, "device.count", "8")
    document.settle()
    assert document.scenario.parallelism.data == 8
    assert not [issue for issue in document.last_result.issues if issue.code == "degrees_and_devices"]
    form.go_to("parallelism.tensor")
    write(form, "parallelism.tensor", "4")
    document.settle()
    assert (document.scenario.parallelism.data, document.scenario.device.count) == (2, 8)
    document.undo_stack.undo()
    document.undo_stack.undo()
    assert (document.scenario.parallelism.data, document.scenario.device.count) == (1, 1)


def test_fields_that_do_not_apply_are_not_shown(form: Form, document: Document) -> None:
    assert LENGTH in visible(form)
    document.edit("task", "inference")
    document.settle()
    assert LENGTH not in visible(form)
    assert "inference.prompt_tokens" in visible(form)


def test_the_task_switch_is_one_step(form: Form, document: Document) -> None:
    QTest.mouseClick(form.task.segment("inference"), Qt.MouseButton.LeftButton)
    assert document.scenario.task == "inference"
    QTest.mouseClick(form.task.segment("training"), Qt.MouseButton.LeftButton)
    assert document.undo_stack.count() == 2


def test_what_is_wrong_is_said_under_its_field(form: Form, document: Document, qtbot: QtBot) -> None:
    write(form, BATCH, "0")
    qtbot.waitUntil(lambda: "Allowed" in row(form, BATCH).said)
    assert "Micro batch" in row(form, BATCH).said
    assert "training." not in row(form, BATCH).said
    assert "Micro batch" in box(form, BATCH).accessibleDescription()
    write(form, BATCH, "2")
    document.settle()
    assert row(form, BATCH).said == ""


def test_it_waits_for_a_rest(form: Form, document: Document) -> None:
    form._rest.setInterval(60_000)
    write(form, BATCH, "0")
    document.settle()
    assert row(form, BATCH).said == ""
    form._rest.stop()


def test_an_issue_of_several_fields_is_said_once(form: Form, document: Document, qtbot: QtBot) -> None:
    document.edit("device.count", 8)
    document.settle()
    form.go_to("parallelism.tensor")
    document.edit("parallelism.tensor", 3)
    qtbot.waitUntil(lambda: "heads" in row(form, "parallelism.tensor").said)
    document.edit("parallelism.tensor", 16)
    document.edit("parallelism.data", 16)
    qtbot.waitUntil(lambda: "multiply" in row(form, "parallelism.tensor").said)
    assert sum("multiply" in row.said for row in form.rows()) == 1


def test_a_fault_in_a_closed_section_opens_it(form: Form, document: Document, qtbot: QtBot) -> None:
    assert not form.sections["model"].is_open
    document.edit("model.num_key_value_heads", 5)
    qtbot.waitUntil(lambda: form.sections["model"].is_open)
    assert any("heads" in row.said for row in form.rows() if row.isVisible())


def test_text_that_is_no_number_is_said_and_goes_with_undo(form: Form, document: Document) -> None:
    write(form, LENGTH, "many")
    assert "Sequence length" in row(form, LENGTH).said
    assert document.scenario.training.sequence_length == 4096
    QTest.keyClick(box(form, LENGTH), Qt.Key.Key_Escape)
    assert row(form, LENGTH).said == ""


def test_undo_takes_back_what_cannot_be_read_before_any_step(
    form: Form, document: Document, qtbot: QtBot
) -> None:
    document.edit(BATCH, 4)
    document.settle()
    undone: list[bool] = []
    shortcut = QShortcut(QKeySequence(QKeySequence.StandardKey.Undo), form, lambda: undone.append(True))
    number = box(form, BATCH)
    number.setFocus()
    number.lineEdit().selectAll()
    QTest.keyClicks(number.lineEdit(), "many")
    assert number.text() == "many"
    for _ in range(2):
        QTest.keyClick(number.lineEdit(), Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        assert number.text() == "4"
    assert undone == [True]
    shortcut.setEnabled(False)


def test_undo_goes_to_the_field(form: Form, document: Document, qtbot: QtBot) -> None:
    document.edit("training.dropout", 0.1)  # an advanced field, out of sight
    document.settle()
    assert "training.dropout" not in visible(form)
    document.undo_stack.undo()
    qtbot.waitUntil(lambda: "training.dropout" in visible(form))
    assert row(form, "training.dropout").isAncestorOf(form.focusWidget())


def test_a_closed_section_says_what_is_in_it(form: Form, document: Document) -> None:
    section = form.sections["parallelism"]
    assert not section.is_open
    assert section.header.accessibleDescription() == "1 GPU, not sharded"
    workload = form.sections["workload"]
    document.edit(LENGTH, 8)
    document.edit(BATCH, 2)
    document.settle()
    assert workload.header.accessibleDescription() == "2 changed"


def test_rows_are_made_when_a_section_opens(form: Form) -> None:
    assert form.sections["model"].rows == {}
    form.sections["model"].set_open(True)
    assert "model.hidden_size" in visible(form)
    assert "model.norm" not in visible(form)
    form.sections["model"].more.setChecked(True)
    assert "model.norm" in visible(form)


def test_search_finds_advanced_fields_and_goes_there(form: Form, qtbot: QtBot) -> None:
    form.find_field()
    QTest.keyClicks(form.find_line, "gradient clip")
    qtbot.waitUntil(lambda: visible(form) == {"training.gradient_clipping"})
    QTest.keyClick(form.find_line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: row(form, "training.gradient_clipping").isAncestorOf(form.focusWidget()))
    form.find_field()
    QTest.keyClick(form.find_line, Qt.Key.Key_Escape)
    assert {LENGTH, BATCH} <= visible(form)
    assert "training.gradient_clipping" not in visible(form)


def test_who_types_faster_than_rows_are_made_goes_to_the_right_one(form: Form, qtbot: QtBot) -> None:
    form.find_field()
    QTest.keyClicks(form.find_line, "gradient clip")
    QTest.keyClick(form.find_line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: row(form, "training.gradient_clipping").isAncestorOf(form.focusWidget()))


def test_rows_made_ahead_stay_out_of_sight_until_their_section_opens(form: Form, qtbot: QtBot) -> None:
    before = visible(form)
    form.make_ahead()
    qtbot.waitUntil(lambda: bool(form.sections["model"].rows) and bool(form.sections["parallelism"].rows))
    assert visible(form) == before
    form.sections["model"].set_open(True)
    assert "model.hidden_size" in visible(form)
    assert "model.norm" not in visible(form)


def test_a_device_is_one_step_and_other_memory_is_another_device(form: Form, document: Document) -> None:
    device = row(form, "device.name").box
    assert isinstance(device, DeviceBox)
    device.picked.emit(Device(name="RTX 4090", memory_bytes=25_000_000_000, compute_capability="8.9"))
    assert document.scenario.device.compute_capability == "8.9"
    assert document.undo_stack.count() == 1
    document.settle()
    write(form, "device.memory_bytes", "20 GB")
    assert document.scenario.device.name == "Custom GPU"
    assert document.scenario.device.memory_bytes == 20_000_000_000
    assert document.undo_stack.count() == 2


def test_a_number_pointed_at_elsewhere_tints_its_row(document: Document, qtbot: QtBot) -> None:
    selection = Selection(document)
    form = opened(document, selection)
    qtbot.addWidget(form)
    form.resize(320, 700)
    with qtbot.waitExposed(form):
        form.show()
    plain = row(form, LENGTH).grab().toImage()
    selection.point_at_field(LENGTH)
    assert row(form, LENGTH).grab().toImage() != plain
    selection.point_at_field("")
    assert row(form, LENGTH).grab().toImage() == plain
    selection.go_to_field(LENGTH)
    assert form.focusWidget() is row(form, LENGTH).box


def test_how_far_it_goes(form: Form, document: Document) -> None:
    form.set_limits({LENGTH: Limit(1992), BATCH: Limit(None)})
    assert row(form, LENGTH).said == "fits up to 1,992"
    assert row(form, BATCH).said == "no value fits"
    document.edit(LENGTH, 1992)
    document.settle()
    assert row(form, LENGTH).said == ""
    form.set_limits({})
    assert row(form, BATCH).said == ""


def test_every_field_can_be_shown_and_has_a_name(form: Form, document: Document) -> None:
    """All rows at once, in both tasks: nothing breaks and nothing to focus is nameless."""
    for section in form.sections.values():
        section.set_open(True)
        section.more.setChecked(True)
    for task in ("training", "inference"):
        for count in (1, 8):
            for path, value in (("task", task), ("device.count", count), ("training.method", "lora")):
                document.edit(path, value)
            document.settle()
    shown = {row.field.path for row in form.rows()}
    assert shown == {field.path for field in FIELDS} - {"task"}
    nameless = [
        widget
        for widget in form.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and not widget.accessibleName()
        and widget.objectName() != "qt_spinbox_lineedit"
    ]
    assert nameless == []
    assert all(row.box.accessibleDescription() for row in form.rows())


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if field.kind is Kind.CHOICE], ids=lambda f: f.path
)
def test_every_choice_can_be_taken_and_put_back(form: Form, document: Document, field: object) -> None:
    path = field.path  # type: ignore[attr-defined]
    if path == "task":
        return
    before = get(document.scenario, path)
    for choice in field.choices:  # type: ignore[attr-defined]
        document.edit(path, choice.value)
        document.finish_gesture()
        document.settle()
    while document.undo_stack.canUndo():
        document.undo_stack.undo()
    document.settle()
    assert get(document.scenario, path) == before
    assert document.scenario == replace(scenario(), path, before)


def test_a_field_that_does_not_apply_stands_only_among_all_of_its_section(
    form: Form, document: Document
) -> None:
    rank = "training.optimizer_rank"
    assert rank not in visible(form)
    form.sections["precision"].more.setChecked(True)
    assert rank in visible(form)
    assert not row(form, rank).isEnabled()
    document.edit("task", "inference")
    document.settle()
    assert rank not in visible(form)
    document.edit("task", "training")
    document.settle()
    form.sections["precision"].more.setChecked(False)
    assert rank not in visible(form)
    document.edit("training.optimizer", "galore")
    document.settle()
    assert rank in visible(form)
    assert row(form, rank).isEnabled()


def test_tab_goes_from_line_to_line(form: Form, qtbot: QtBot) -> None:
    form.sections["workload"].more.setChecked(True)
    seen: list[Row] = []
    for stop in stops_in(form.sections["workload"]):
        at: QWidget | None = stop
        while at is not None and not isinstance(at, Row):
            at = at.parentWidget()
        if at is not None and at not in seen:
            seen.append(at)
    shown = [row for row in form.sections["workload"].rows.values() if row.isVisible() and row.isEnabled()]
    assert len(shown) > 5
    assert seen == sorted(shown, key=lambda row: row.y())


@pytest.mark.parametrize("name", ["Meta-Llama-3.1-8B", "DeepSeek-V2-Lite"])
@pytest.mark.parametrize(
    "lora", [{}, {"training__lora__modules_to_save": ("lm_head",)}], ids=["adapters", "copies"]
)
def test_adapters_make_no_other_model(qtbot: QtBot, name: str, lora: dict[str, object]) -> None:
    entry = Catalog().model(name)
    tuned = replace(replace(Catalog().first_scenario(), "model", entry.model), "training.method", "lora")
    for path, value in lora.items():
        tuned = replace(tuned, path.replace("__", "."), value)
    full = replace(tuned, "training.method", "full")
    field = ModelField(ViewSettings())
    qtbot.addWidget(field)
    said = []
    for one in (full, tuned):
        result = Result(one, estimate(one))
        field.set_result(result)
        said.append((summary("model", result), field.accessibleDescription()))
    assert said[0] == said[1]
    assert Numbers.of(View()).parameters(entry.parameters) in said[0][0]
    counted, plain = estimate(tuned).parameters, estimate(full).parameters
    assert counted.total > plain.total
    assert (counted.own, counted.own_active) == (plain.total, plain.active)


def test_a_recurrence_has_no_heads_to_tell_of() -> None:
    attending = scenario()
    assert "GQA 32/8" in summary("model", Result(attending, None))
    assert "MQA 32/1" in summary("model", Result(scenario(model__num_key_value_heads=1), None))
    recurrent = scenario(model__layer_types=("mamba",))
    assert "GQA" not in summary("model", Result(recurrent, None))
    assert "GQA" in summary("model", Result(scenario(model__layer_types=("mamba", "full_attention")), None))


def test_a_flag_that_cannot_be_turned_is_disabled_with_the_reason_and_free_again(
    form: Form, document: Document, qtbot: QtBot
) -> None:
    path = "training.padding_mask"
    form.go_to(path)
    form.task.segment("training").setFocus()
    form._flags._rest.setInterval(0)
    document.edit_many({"training.implementation": "megatron", "training.precision": "bf16_master"}, "")
    document.settle()
    qtbot.waitUntil(lambda: not row(form, path).isEnabled())
    assert "not modelled yet with Megatron-LM" in row(form, path).toolTip()
    assert "not modelled yet with Megatron-LM" in row(form, path).box.accessibleDescription()
    document.edit("training.implementation", "transformers")
    document.settle()
    assert row(form, path).isEnabled()
    assert "Megatron" not in row(form, path).toolTip()


def test_a_flag_is_not_disabled_under_the_hand(form: Form, document: Document) -> None:
    path = "training.padding_mask"
    form.go_to(path)
    document.edit_many({"training.implementation": "megatron", "training.precision": "bf16_master"}, "")
    document.settle()
    form._flags.judge()
    assert row(form, path).isEnabled()
    assert row(form, path).box.hasFocus()


@pytest.mark.parametrize("path", ["training.method", "training.precision", "training.optimizer"])
def test_a_rule_of_thumb_knows_no_choices_but_its_own(form: Form, document: Document, path: str) -> None:
    document.edit_many({"training.method": "lora", "training.precision": "fp32"}, "")
    document.edit("method", "gpt_article")
    form.open_section("precision")
    document.settle()
    assert path not in visible(form)
    assert "training.lora.rank" not in visible(form)
    empty = form.sections["precision"]._empty
    assert empty is not None
    assert "of its own" in empty.text()
    form.sections[BY_PATH[path].section].more.setChecked(True)
    document.settle()
    assert not row(form, path).isEnabled()
    assert "rule of thumb" in row(form, path).toolTip()
