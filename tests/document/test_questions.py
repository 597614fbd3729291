"""Questions follow the document: asked at rest, taken back by an edit, answered once."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.document import Document
from memgui.document.jobs import Cancelled, Jobs
from memgui.document.questions import Question
from memgui.planning.ask import Asker
from memgui.spec import Scenario
from tests.document.fakes import Estimator, scenario

LENGTH = "training.sequence_length"


class Desk:
    """A document, a pool, and a question that answers with the length it was asked about."""

    def __init__(self) -> None:
        self.document = Document(scenario(), Estimator())
        self.jobs = Jobs()
        self.asked: list[int] = []
        self.hold: threading.Event | None = None
        self.ended: list[str] = []
        self.answers: list[Any] = []
        self.question = Question("length", self._work, self.document, self.jobs, rest_ms=0)
        self.question.answered.connect(lambda: self.answers.append(self.question.answer))

    def _work(self, asked: Scenario, ask: Asker) -> int:
        self.asked.append(asked.training.sequence_length)
        try:
            while self.hold is not None and not self.hold.is_set():
                ask.check()
        except Cancelled:
            self.ended.append("cancelled")
            raise
        estimate = ask(asked).estimate
        assert estimate is not None
        return estimate.peak_bytes


@pytest.fixture
def desk(qapp: QApplication) -> Iterator[Desk]:
    made = Desk()
    yield made
    made.document.settle()
    made.question.want("test", False)
    assert made.jobs.close()


def test_nobody_asks_what_nobody_wants(desk: Desk, qtbot: QtBot) -> None:
    desk.document.settle()
    desk.document.edit(LENGTH, 8)
    desk.document.settle()
    qtbot.wait(20)
    assert desk.asked == []
    desk.question.want("test")
    qtbot.waitUntil(lambda: desk.answers == [8])
    assert desk.question.is_current


def test_saving_takes_nothing_back(desk: Desk, qtbot: QtBot) -> None:
    """No result follows a new name: what was taken back would never be asked again."""
    desk.hold = threading.Event()
    desk.question.want("test")
    qtbot.waitUntil(lambda: desk.asked == [4096])
    desk.document.saved_as("a name", "its preset")
    desk.hold.set()
    qtbot.waitUntil(lambda: desk.answers == [4096])
    desk.document.edit(LENGTH, 8)
    desk.document.settle()
    desk.document.renamed("its preset", "another name")
    qtbot.waitUntil(lambda: desk.answers == [4096, 8])
    assert desk.asked == [4096, 8]
    assert not desk.ended


def test_the_answer_stands_until_the_next_one(desk: Desk, qtbot: QtBot) -> None:
    desk.question.want("test")
    qtbot.waitUntil(lambda: desk.answers == [4096])
    desk.document.edit(LENGTH, 16)
    assert desk.question.answer == 4096
    assert not desk.question.is_current
    qtbot.waitUntil(lambda: desk.answers == [4096, 16])
    assert desk.question.is_current


def test_an_edit_takes_back_what_is_being_worked_out(desk: Desk, qtbot: QtBot) -> None:
    desk.hold = threading.Event()
    desk.question.want("test")
    qtbot.waitUntil(lambda: desk.asked == [4096])
    desk.document.edit(LENGTH, 16)
    qtbot.waitUntil(lambda: desk.ended == ["cancelled"])
    desk.hold.set()
    qtbot.waitUntil(lambda: desk.answers == [16])


def test_what_nobody_wants_any_more_is_taken_back(desk: Desk, qtbot: QtBot) -> None:
    desk.hold = threading.Event()
    desk.question.want("one")
    desk.question.want("two")
    qtbot.waitUntil(lambda: desk.asked == [4096])
    desk.question.want("one", False)
    assert desk.jobs.is_running("length")
    desk.question.want("two", False)
    assert not desk.jobs.is_running("length")


def test_an_answered_scenario_is_not_asked_again(desk: Desk, qtbot: QtBot) -> None:
    desk.question.want("test")
    qtbot.waitUntil(lambda: desk.answers == [4096])
    desk.document.edit(LENGTH, 16)
    desk.document.undo_stack.undo()
    desk.document.settle()
    desk.question.want("again")
    qtbot.wait(20)
    assert desk.asked == [4096]
    desk.question.ask_again()
    qtbot.waitUntil(lambda: desk.asked == [4096, 4096])


def test_what_cannot_be_computed_has_no_answer(desk: Desk, qtbot: QtBot) -> None:
    desk.question.want("test")
    qtbot.waitUntil(lambda: desk.answers == [4096])
    desk.document.edit(LENGTH, -1)
    qtbot.waitUntil(lambda: desk.answers == [4096, None])
    assert desk.asked == [4096]


def test_a_fault_is_no_answer_and_no_end(desk: Desk, qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    desk.document.settle()
    fault = RuntimeError("a fault of ours")

    def broken(asked: Scenario, ask: Asker) -> None:
        raise fault

    question = Question("broken", broken, desk.document, desk.jobs, rest_ms=0)
    with qtbot.waitSignal(question.answered):
        question.want("test")
    assert question.answer is None
    assert "a fault of ours" in caplog.text
    question.want("test", False)
