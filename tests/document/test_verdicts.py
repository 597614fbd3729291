import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.verdicts import Verdicts
from memgui.presets.entries import Entry
from memgui.presets.paths import AppPaths
from memgui.spec import Scenario
from tests.document.fakes import Estimator
from tests.document.test_library import House, make

LENGTH = "training.sequence_length"


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> Iterator[House]:
    made = make(AppPaths.default(home=tmp_path))
    yield made
    made.document.settle()
    assert made.jobs.close()


def test_each_preset_gets_its_verdict_once(house: House, qtbot: QtBot) -> None:
    estimator = house.document.estimator
    assert isinstance(estimator, Estimator)
    house.library.save_as("Small")
    house.document.edit(LENGTH, 10**9)
    house.document.edit("training.micro_batch_size", 1000)
    house.library.save_as("Large")
    house.library.save_as("Only a model", model_only=True)
    verdicts = Verdicts(house.document, house.library, house.jobs)
    found: list[dict[str, str]] = []
    verdicts.found.connect(found.append)
    house.document.settle()
    estimator.calls.clear()
    verdicts.look()
    qtbot.waitUntil(lambda: len(found) == 1)
    names = {entry.key: entry.name for entry in house.library.presets()}
    assert {names[key]: kind for key, kind in found[0].items()} == {"Small": "fits", "Large": "does_not_fit"}
    assert len(estimator.calls) == 2
    house.document.edit(LENGTH, 5)
    house.document.edit("training.micro_batch_size", 1)
    house.document.settle()
    estimator.calls.clear()
    house.library.save_as("Third")
    qtbot.waitUntil(lambda: len(found) == 2)
    assert len(found[1]) == 3
    assert [call.training.sequence_length for call in estimator.calls] == [5]  # the others are known


def test_a_preset_that_cannot_be_computed_is_unknown(house: House, qtbot: QtBot) -> None:
    house.library.save_as("One")
    estimator = house.document.estimator
    assert isinstance(estimator, Estimator)
    estimator.fault = ZeroDivisionError()
    verdicts = Verdicts(house.document, house.library, house.jobs)
    with qtbot.waitSignal(verdicts.found) as heard:
        verdicts.look()
    assert list(heard.args[0].values()) == ["unknown"]
    estimator.fault = None


def test_presets_are_read_in_the_thread_of_the_job(
    house: House, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.library.save_as("One")
    house.library.save_as("Two")
    reading: list[int] = []
    read = house.library.scenario_of

    def watched(entry: Entry) -> Scenario | None:
        reading.append(threading.get_ident())
        return read(entry)

    monkeypatch.setattr(house.library, "scenario_of", watched)
    verdicts = Verdicts(house.document, house.library, house.jobs)
    with qtbot.waitSignal(verdicts.found):
        verdicts.look()
    assert len(reading) == 2
    assert threading.get_ident() not in reading
