import threading
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.autosave import Autosave
from memgui.document.document import Document, State
from memgui.document.jobs import Jobs
from memgui.document.notice import Notice
from memgui.files.bounded import FileFault
from tests.document.fakes import Estimator, scenario

LENGTH = "training.sequence_length"


class Disk:
    def __init__(self) -> None:
        self.written: list[State] = []
        self.fault: FileFault | None = None
        self.threads: set[int] = set()
        self.free = threading.Event()
        self.free.set()

    def keep(self, state: State) -> Callable[[], None]:
        return lambda: self.write(state)

    def write(self, state: State) -> None:
        self.threads.add(threading.get_ident())
        assert self.free.wait(5)
        if self.fault is not None:
            raise self.fault
        self.written.append(state)

    def lengths(self) -> list[int]:
        return [state.scenario.training.sequence_length for state in self.written]


@pytest.fixture
def jobs(qapp: QApplication) -> Iterator[Jobs]:
    made = Jobs()
    yield made
    assert made.close()


@pytest.fixture
def document(qapp: QApplication) -> Iterator[Document]:
    made = Document(scenario(), Estimator())
    yield made
    made.settle()


def test_it_writes_once_after_a_rest(document: Document, jobs: Jobs, qtbot: QtBot) -> None:
    disk = Disk()
    autosave = Autosave(document, disk.keep, lambda: jobs, delay_ms=1)
    document.edit(LENGTH, 8)
    document.edit(LENGTH, 16)
    assert disk.written == []
    qtbot.waitUntil(lambda: len(disk.written) == 1)
    qtbot.waitUntil(lambda: not jobs.is_running("autosave"))
    assert disk.lengths() == [16]
    assert threading.get_ident() not in disk.threads  # no window waits for a disk
    autosave.flush()
    assert len(disk.written) == 1


def test_at_exit_it_writes_at_once(document: Document, jobs: Jobs) -> None:
    disk = Disk()
    autosave = Autosave(document, disk.keep, lambda: jobs)
    document.edit(LENGTH, 8)
    autosave.flush()
    assert disk.lengths() == [8]


def test_a_slow_write_does_not_undo_a_newer_one(document: Document, jobs: Jobs, qtbot: QtBot) -> None:
    disk = Disk()
    jobs.run("before", lambda job: disk.free.wait(5), lambda _: None)
    disk.free.clear()
    autosave = Autosave(document, disk.keep, lambda: jobs, delay_ms=1)
    document.edit(LENGTH, 8)
    qtbot.waitUntil(lambda: jobs.is_running("autosave"))
    document.edit(LENGTH, 16)
    disk.free.set()
    autosave.flush()
    qtbot.waitUntil(lambda: not jobs.is_running("autosave"))
    assert disk.lengths()[-1] == 16


def test_a_full_disk_is_told_once_and_tried_again(document: Document, jobs: Jobs, qtbot: QtBot) -> None:
    disk, told = Disk(), list[Notice]()
    disk.fault = FileFault("7f3a.json", "{file} cannot be written in {folder}.", folder="/home/me/sessions")
    autosave = Autosave(document, disk.keep, lambda: jobs, delay_ms=1)
    autosave.failed.connect(told.append)
    autosave.flush()
    autosave.flush()
    assert [notice.details for notice in told] == [(disk.fault.message,)]
    said = told[0].message.text
    assert said.startswith("What is open cannot be kept")
    assert said.endswith("Llama-3.1-8B cannot be written in /home/me/sessions.")  # no file that nobody knows
    document.edit(LENGTH, 8)
    qtbot.waitUntil(lambda: len(disk.threads) == 2 and not jobs.is_running("autosave"))
    assert len(told) == 1
    disk.fault = None
    autosave.flush()
    assert len(disk.written) == 1
