from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.pins import MOST, Pins
from tests.document.fakes import Estimator, scenario

LENGTH = "training.sequence_length"


class Desk:
    def __init__(self) -> None:
        self.estimator = Estimator()
        self.document = Document(scenario(), self.estimator)
        self.jobs = Jobs()
        self.pins = Pins(self.document, self.jobs)
        self.told = 0
        self.pins.changed.connect(self._tell)

    def _tell(self) -> None:
        self.told += 1

    def names(self) -> list[str]:
        return [pin.name for pin in self.pins.all]


@pytest.fixture
def desk(qapp: QApplication) -> Iterator[Desk]:
    made = Desk()
    yield made
    made.document.settle()
    assert made.jobs.close()


def test_what_is_pinned_is_the_newest_scenario_and_its_estimate(desk: Desk) -> None:
    desk.document.edit(LENGTH, 8)
    desk.pins.pin("A")
    baseline = desk.pins.baseline
    assert baseline is not None
    assert baseline.scenario.training.sequence_length == 8
    assert baseline.estimate is not None
    assert baseline.estimate.peak_bytes == 8
    desk.document.edit(LENGTH, 16)
    assert desk.pins.baseline is baseline


def test_the_baseline_is_the_first_pin(desk: Desk) -> None:
    desk.pins.add("A")
    desk.document.edit(LENGTH, 8)
    desk.pins.add("B")
    desk.document.edit(LENGTH, 16)
    desk.pins.pin("C")
    assert desk.names() == ["C", "A", "B"]
    desk.pins.put(desk.pins.all[2], 0)
    assert desk.names() == ["B", "C", "A"]
    desk.pins.remove(desk.pins.all[0])
    assert desk.names() == ["C", "A"]
    assert desk.told == 5


def test_one_set_up_is_pinned_once(desk: Desk) -> None:
    desk.pins.add("A")
    desk.pins.add("again")
    assert desk.names() == ["A"]
    desk.document.edit(LENGTH, 8)
    desk.pins.add("B")
    desk.pins.pin("other")
    assert desk.names() == ["B", "A"]
    assert desk.told == 3


def test_what_cannot_be_computed_is_not_pinned(desk: Desk) -> None:
    desk.document.edit(LENGTH, -1)
    desk.pins.pin("A")
    assert desk.pins.baseline is None
    assert not desk.pins.can_pin


def test_pins_are_renamed_in_their_place(desk: Desk) -> None:
    desk.pins.add("A")
    desk.document.edit(LENGTH, 8)
    desk.pins.add("B")
    desk.pins.rename(desk.pins.all[0], "first")
    assert desk.names() == ["first", "B"]


def test_pins_of_last_time_get_their_estimates_aside(desk: Desk, qtbot: QtBot) -> None:
    desk.pins.restore([("A", scenario(training__sequence_length=8)), ("B", scenario())])
    assert desk.names() == ["A", "B"]
    assert desk.pins.all[0].estimate is None
    qtbot.waitUntil(lambda: all(pin.estimate is not None for pin in desk.pins.all))
    assert [pin.estimate.peak_bytes for pin in desk.pins.all if pin.estimate] == [8, 4096]


def test_a_pin_that_cannot_be_computed_any_more_stays_a_name(desk: Desk, qtbot: QtBot) -> None:
    desk.document.settle()
    desk.estimator.fault = RuntimeError("no")
    desk.pins.restore([("A", scenario(training__sequence_length=8))])
    qtbot.waitUntil(lambda: not desk.jobs.is_running("pins"))
    assert desk.names() == ["A"]
    assert desk.pins.all[0].estimate is None


def test_there_is_an_end_to_pins(desk: Desk) -> None:
    desk.pins.restore([(str(number), scenario()) for number in range(2 * MOST)])
    assert len(desk.pins.all) == MOST
    assert not desk.pins.can_pin
