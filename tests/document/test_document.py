import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.document import Document, State
from memgui.document.result import Result
from memgui.estimator import estimate
from memgui.spec import Issue, Message, ScenarioError, get, replace
from tests.document.fakes import LLAMA, Estimator, scenario

LENGTH, BATCH = "training.sequence_length", "training.micro_batch_size"


@pytest.fixture
def estimator() -> Estimator:
    return Estimator()


@pytest.fixture
def document(qapp: QApplication, estimator: Estimator) -> Iterator[Document]:
    made = Document(scenario(), estimator)
    made.settle()
    estimator.calls.clear()
    yield made
    made.settle()


def heard(document: Document) -> list[Result]:
    results: list[Result] = []
    document.result.connect(results.append)
    return results


def test_many_edits_of_one_turn_are_one_recompute(document: Document, estimator: Estimator) -> None:
    results = heard(document)
    for length in range(1, 101):
        document.edit(LENGTH, length)
    assert estimator.calls == []
    QCoreApplication.processEvents()
    assert [get(call, LENGTH) for call in estimator.calls] == [100]
    assert [get(result.scenario, LENGTH) for result in results] == [100]
    assert results[0].shown is not None
    assert results[0].shown.peak_bytes == 100


def test_one_gesture_is_one_undo_step(document: Document) -> None:
    for length in (8, 16, 32):
        document.edit(LENGTH, length, held=True)
    document.finish_gesture()
    document.finish_gesture()
    document.edit(LENGTH, 64)
    assert document.undo_stack.count() == 2
    document.undo_stack.undo()
    assert document.scenario.training.sequence_length == 32
    document.undo_stack.undo()
    assert document.scenario.training.sequence_length == 4096
    document.undo_stack.redo()
    document.undo_stack.redo()
    assert document.scenario.training.sequence_length == 64


def test_another_field_is_another_step(document: Document) -> None:
    document.edit(LENGTH, 8)
    document.edit(BATCH, 2)
    document.edit(LENGTH, 16)
    assert document.undo_stack.count() == 3


def test_a_pause_ends_a_gesture_unless_it_is_held(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    document.edit(LENGTH, 8)
    document.edit(LENGTH, 16, held=True)
    monkeypatch.setattr("memgui.document.document.PAUSE_MS", 0)  # every rest is too long
    document.edit(LENGTH, 32, held=True)
    document.edit(LENGTH, 64)
    assert document.undo_stack.count() == 1
    document.edit(LENGTH, 128)
    assert document.undo_stack.count() == 2


def test_a_gesture_that_comes_back_leaves_no_step(document: Document) -> None:
    document.edit(LENGTH, 8)
    document.edit(LENGTH, 4096)
    assert document.undo_stack.count() == 0


def test_an_edit_to_the_same_value_is_nothing(document: Document, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(document.changed):
        document.edit(LENGTH, 4096)
    assert document.undo_stack.count() == 0


def test_undo_says_where_to_look(document: Document) -> None:
    places: list[str] = []
    document.restored.connect(places.append)
    document.edit(LENGTH, 8)
    document.load(State(scenario(task="inference"), LLAMA), "Open")
    assert places == []
    document.undo_stack.undo()
    document.undo_stack.undo()
    document.undo_stack.redo()
    assert places == ["", LENGTH, LENGTH]


@pytest.mark.parametrize(
    "fault", [ScenarioError(Issue("error", "no", (LENGTH,), Message("No."))), ZeroDivisionError()]
)
def test_what_cannot_be_computed_keeps_the_last_good_picture(
    document: Document, estimator: Estimator, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    good = document.last_result
    estimator.fault = fault
    document.edit(LENGTH, 8)
    result = document.settle()
    assert result.stale
    assert result.estimate is None
    assert result.shown is good.estimate
    assert result.reason is not None
    assert result.generation == good.generation + 1
    estimator.fault = None
    document.edit(LENGTH, 16)
    assert not document.settle().stale


def test_an_estimate_without_an_answer_is_none(document: Document, estimator: Estimator) -> None:
    good = document.last_result
    estimator.kind = "unknown"
    document.edit(LENGTH, 8)
    result = document.settle()
    assert result.stale
    assert result.shown is good.estimate
    assert result.reason is not None
    assert result.reason.code == "unknown"
    estimator.kind = ""


def test_an_invalid_scenario_is_not_given_to_the_estimator(document: Document, estimator: Estimator) -> None:
    document.edit("model.num_key_value_heads", 5)
    result = document.settle()
    assert estimator.calls == []
    assert result.reason is not None
    assert "model.num_key_value_heads" in result.reason.paths


def test_a_value_of_another_type_changes_nothing(document: Document) -> None:
    with pytest.raises(ScenarioError):
        document.edit(LENGTH, "8")
    assert document.undo_stack.count() == 0


def test_several_fields_are_one_step(document: Document) -> None:
    document.edit_many({"device.name": "Own", "device.memory_bytes": 80 * 2**30}, "GPU")
    assert document.undo_stack.count() == 1
    assert document.scenario.device.memory_bytes == 80 * 2**30
    document.undo_stack.undo()
    assert document.scenario == scenario()


def test_default_and_changed_follow_the_loaded_model(document: Document) -> None:
    document.edit("model.hidden_size", 8192)
    assert document.is_changed("model.hidden_size")
    assert document.default("model.hidden_size") == 4096
    document.use_model(replace(scenario(), "model.hidden_size", 5120), "Model")
    assert not document.is_changed("model.hidden_size")
    document.undo_stack.undo()
    assert document.is_changed("model.hidden_size")
    assert not document.is_changed(LENGTH)


def place(document: Document) -> tuple[str, str, bool]:
    return document.state.name, document.state.preset, document.is_modified


def test_undo_and_redo_leave_which_preset_is_open(document: Document) -> None:
    document.edit(LENGTH, 8)
    assert place(document) == ("", "", False)
    document.saved_as("A", "user/a")
    document.edit(BATCH, 2)
    document.saved_as("B", "user/b")
    assert place(document) == ("B", "user/b", False)
    document.undo_stack.undo()
    assert place(document) == ("B", "user/b", True)
    document.undo_stack.undo()  # past both savings
    assert place(document) == ("B", "user/b", True)
    document.saved_as("C", "user/c")
    document.undo_stack.redo()
    assert place(document) == ("C", "user/c", True)
    document.undo_stack.undo()
    assert place(document) == ("C", "user/c", False)


def test_coming_back_to_what_was_saved_is_no_change(document: Document) -> None:
    document.saved_as("A", "user/a")
    document.edit(LENGTH, 8)
    document.edit(BATCH, 2)
    document.edit(LENGTH, 4096)
    assert document.is_modified
    document.edit(BATCH, 1)
    assert not document.is_modified


def test_undoing_an_opening_goes_back_to_what_was_open_before(document: Document) -> None:
    document.saved_as("A", "user/a")
    document.edit(BATCH, 2)
    document.load(State(scenario(task="inference"), LLAMA, "B", "user/b"), "Open")
    assert place(document) == ("B", "user/b", False)
    document.saved_as("C", "user/c")
    document.renamed("user/a", "A2")
    document.undo_stack.undo()
    assert place(document) == ("A2", "user/a", True)
    document.undo_stack.redo()
    assert place(document) == ("C", "user/c", False)
    document.renamed("user/c", "C2")
    document.edit(BATCH, 4)
    document.undo_stack.undo()
    assert place(document) == ("C2", "user/c", False)


def test_what_a_preset_holds_by_now_tells_whether_something_is_changed(document: Document) -> None:
    document.saved_as("A", "user/a")
    document.keep("user/a", "A", scenario(task="inference"), {})
    assert place(document) == ("A", "user/a", True)
    document.keep("user/b", "B", scenario(), {})
    assert place(document) == ("A", "user/a", True)
    document.load(document.state, "Open")
    assert place(document) == ("A", "user/a", False)
    assert document.undo_stack.count() == 0


def test_loading_the_same_scenario_is_no_step(document: Document) -> None:
    document.load(State(scenario(), LLAMA), "Open")
    assert document.undo_stack.count() == 0
    assert document.state.origin == LLAMA


def test_a_document_goes_at_once_and_takes_its_history_along(qapp: QApplication) -> None:
    """With a cycle through Qt's stack the collector takes the steps apart in the wrong order and crashes."""
    gone = []
    for _ in range(100):
        document = Document(scenario(), Estimator())
        for length in (1, 2, 3):
            document.edit(LENGTH, length)
            document.finish_gesture()
        document.undo_stack.undo()
        document.settle()
        gone.append(weakref.ref(document))
        del document
    assert [ref for ref in gone if ref() is not None] == []


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.sampled_from([LENGTH, BATCH]), st.integers(1, 5)),
        st.tuples(st.sampled_from(["finish", "undo", "redo"]), st.just(""), st.just(0)),
    ),
    max_size=40,
)


@given(EDITS)
def test_history_is_what_a_plain_list_says(qapp: QApplication, edits: list[tuple[str, str, int]]) -> None:
    document = Document(scenario(), Estimator())
    history, place, gesture = [scenario()], 0, ("", False)
    actions: dict[str, Callable[[], Any]] = {
        "finish": document.finish_gesture,
        "undo": document.undo_stack.undo,
        "redo": document.undo_stack.redo,
    }
    for action, path, value in edits:
        if action == "edit":
            document.edit(path, value)
            new = replace(history[place], path, value)
            if new == history[place]:
                gesture = gesture if gesture[0] == path else ("", False)
                continue
            merge = gesture == (path, True)
            history = [*history[: place + (0 if merge else 1)], new]
            place = len(history) - 1
            gesture = (path, True)
            if merge and history[place] == history[place - 1]:
                history.pop()
                place -= 1
                gesture = ("", False)
        else:
            actions[action]()
            moved = {"undo": -1, "redo": 1}.get(action, 0)
            if 0 <= place + moved < len(history) and (moved or action == "finish"):
                place += moved
                gesture = ("", False)
        assert document.scenario == history[place]
        assert document.undo_stack.index() == place
    document.finish_gesture()
    document.settle()


def test_lengths_cut_for_one_model_are_not_given_back_to_another_set_up(document: Document) -> None:
    short = replace(document.scenario, LENGTH, 1024)
    document.use_model(short, "Model", {LENGTH: (4096, 1024)})
    assert get(document.state.as_asked(), LENGTH) == 4096
    other = replace(short, "model.hidden_size", 2 * short.model.hidden_size)
    document.use_scenario(other, "Set-up")
    assert get(document.state.as_asked(), LENGTH) == 1024


def test_a_document_in_a_cycle_is_taken_apart_steps_first(qapp: QApplication, estimator: Estimator) -> None:
    """Else the collector may free what Qt's stack still owns, which ends the process."""
    for _ in range(20):
        document = Document(scenario(), estimator)
        for size in (2, 3, 4):
            document.edit(BATCH, size)
            document.finish_gesture()
        stack = document.undo_stack
        assert stack.count() == 3
        left = stack.count
        cycle: list[object] = [document]
        cycle.append(cycle)
        cleared: list[int] = []
        weakref.finalize(stack.command(0), cleared.append, 1)
        del document, stack, cycle, left
        gc.collect()
        assert cleared == [1]


def test_a_document_that_goes_lets_go_of_its_steps(qapp: QApplication, estimator: Estimator) -> None:
    document = Document(scenario(), estimator)
    document.edit(BATCH, 2)
    stack = document.undo_stack
    document.__del__()
    assert stack.count() == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"training.method": "lora", "training.lora.target_modules": ("foo_proj",)},
            ("training.lora.target_modules",),
        ),
        (
            {"training.method": "lora", "training.lora.target_modules": ()},
            ("training.lora.target_modules",),
        ),
        (
            {"training.implementation": "unsloth"},
            ("training.method", "training.implementation"),
        ),
    ],
)
def test_what_nothing_models_is_said_of_the_fields_it_names(
    qapp: QApplication, changes: dict[str, Any], named: tuple[str, ...]
) -> None:
    made = Document(scenario(), estimate)
    made.edit_many(changes, "")
    reason = made.settle().reason
    assert reason is not None
    assert reason.code in ("unknown", "not_trained")
    assert reason.paths == named
