from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.autosave import Autosave
from memgui.document.document import Document, State
from memgui.files.bounded import FileFault
from memgui.spec import Message
from tests.document.fakes import Estimator, scenario

LENGTH = "training.sequence_length"


class Disk:
    def __init__(self) -> None:
        self.written: list[State] = []
        self.fault: FileFault | None = None

    def write(self, state: State) -> None:
        if self.fault is not None:
            raise self.fault
        self.written.append(state)


@pytest.fixture
def document(qapp: QApplication) -> Iterator[Document]:
    made = Document(scenario(), Estimator())
    yield made
    made.settle()


def test_it_writes_once_after_a_rest(document: Document, qtbot: QtBot) -> None:
    disk = Disk()
    autosave = Autosave(document, disk.write, delay_ms=1)
    document.edit(LENGTH, 8)
    document.edit(LENGTH, 16)
    assert disk.written == []
    qtbot.waitUntil(lambda: len(disk.written) == 1)
    assert disk.written[0].scenario.training.sequence_length == 16
    autosave.flush()
    assert len(disk.written) == 1


def test_at_exit_it_writes_at_once(document: Document) -> None:
    disk = Disk()
    autosave = Autosave(document, disk.write)
    document.edit(LENGTH, 8)
    autosave.flush()
    assert [state.scenario.training.sequence_length for state in disk.written] == [8]


def test_a_full_disk_is_told_once_and_tried_again(document: Document) -> None:
    disk, told = Disk(), list[Message]()
    disk.fault = FileFault("session.json", "{file} cannot be written: the disk is full.")
    autosave = Autosave(document, disk.write)
    autosave.failed.connect(told.append)
    autosave.flush()
    autosave.flush()
    assert told == [disk.fault.message]
    disk.fault = None
    autosave.flush()
    assert len(disk.written) == 1
