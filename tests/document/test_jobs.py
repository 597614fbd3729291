import sys
import threading
import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QThread
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.jobs import HOLD_MS, SWITCH_S, Job, Jobs


@pytest.fixture
def jobs(qapp: QApplication) -> Iterator[Jobs]:
    made = Jobs()
    yield made
    assert made.close()


def test_the_answer_comes_in_the_thread_of_the_windows(jobs: Jobs, qtbot: QtBot) -> None:
    threads: list[object] = []
    answers: list[object] = []

    def work(job: Job) -> int:
        threads.append(threading.get_ident())
        return 7

    def done(answer: object) -> None:
        answers.append(answer)
        threads.append(threading.get_ident())
        assert QThread.currentThread() is jobs.thread()

    jobs.run("sum", work, done)
    assert jobs.is_running("sum")
    qtbot.waitUntil(lambda: answers == [7])
    assert threads[0] != threading.get_ident() == threads[1]
    assert not jobs.is_running("sum")


def test_a_job_amid_its_work_holds_the_windows_for_a_moment_only(jobs: Jobs) -> None:
    assert sys.getswitchinterval() <= SWITCH_S < 0.001


def test_the_newest_of_a_kind_wins(jobs: Jobs, qtbot: QtBot) -> None:
    go, answers = threading.Event(), list[object]()

    def slow(job: Job) -> str:
        go.wait(5)
        job.check()
        return "old"

    old = jobs.run("sum", slow, answers.append)
    jobs.run("sum", lambda job: "new", answers.append)
    assert old.cancelled
    go.set()
    qtbot.waitUntil(lambda: answers == ["new"])


def test_an_answer_under_way_when_it_is_cancelled_is_dropped(jobs: Jobs, qtbot: QtBot) -> None:
    answers: list[object] = []
    jobs.run("sum", lambda job: "late", answers.append)
    assert jobs._pool.waitForDone(5000)
    jobs.cancel("sum")
    jobs.run("other", lambda job: "next", answers.append)
    qtbot.waitUntil(lambda: answers == ["next"])


def test_a_fault_is_handed_over(jobs: Jobs, qtbot: QtBot) -> None:
    faults: list[Exception] = []
    error = ValueError("no header")

    def work(job: Job) -> None:
        raise error

    jobs.run("file", work, lambda answer: None, faults.append)
    qtbot.waitUntil(lambda: faults == [error])


def test_busy_says_when_it_begins_and_ends(jobs: Jobs, qtbot: QtBot) -> None:
    said: list[tuple[str, bool]] = []
    jobs.busy.connect(lambda kind, on: said.append((kind, on)))
    jobs.run("sum", lambda job: 1, lambda answer: None)
    qtbot.waitUntil(lambda: len(said) == 2)
    jobs.run("sum", lambda job: 1, lambda answer: None)
    jobs.cancel("sum")
    assert said == [("sum", True), ("sum", False)] * 2


def test_after_the_end_nothing_begins(jobs: Jobs) -> None:
    ran: list[int] = []
    assert jobs.close()
    job = jobs.run("sum", lambda job: ran.append(1), lambda answer: None)
    assert job.cancelled
    assert not jobs.is_running("sum")
    assert jobs.close()
    assert ran == []


def test_what_a_person_waits_for_does_not_queue_behind_what_is_computed_ahead(
    jobs: Jobs, qtbot: QtBot
) -> None:
    go, answers = threading.Event(), list[object]()
    jobs.run("ahead", lambda job: go.wait(5), answers.append)
    jobs.run("open", lambda job: "file", answers.append, asked=True)
    qtbot.waitUntil(lambda: answers == ["file"])
    go.set()
    qtbot.waitUntil(lambda: answers == ["file", True])


def test_jobs_hardly_move_while_an_edit_is_painted(jobs: Jobs, qtbot: QtBot) -> None:
    steps = list[int]()

    def work(job: Job) -> None:
        for step in range(100_000_000):
            steps.append(step)
            job.check()

    def made_in(seconds: float) -> int:
        before = len(steps)
        time.sleep(seconds)
        return len(steps) - before

    job = jobs.run("sum", work, lambda answer: None)
    qtbot.waitUntil(lambda: len(steps) > 100)
    free = made_in(0.2)
    jobs.hold()  # no event comes here that would let them go on
    assert made_in(0.2) < free / 4
    qtbot.wait(2 * HOLD_MS)
    assert made_in(0.2) > free / 4
    job.cancel()
