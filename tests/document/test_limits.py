from collections.abc import Iterator, Mapping

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.limits import PATHS, Limit, Limits
from memgui.spec.fields import BY_PATH
from tests.document.fakes import Estimator, scenario

LENGTH, BATCH, MEMORY = "training.sequence_length", "training.micro_batch_size", "device.memory_bytes"


class Watched:
    def __init__(self, document: Document, jobs: Jobs) -> None:
        self.document = document
        self.limits = Limits(document, jobs)
        self.limits._rest.setInterval(0)
        self.heard: list[Mapping[str, Limit]] = []
        self.limits.changed.connect(self.heard.append)

    @property
    def now(self) -> Mapping[str, Limit]:
        return self.heard[-1] if self.heard else {}


@pytest.fixture
def watched(qapp: QApplication) -> Iterator[Watched]:
    document, jobs = Document(scenario(device__memory_bytes=10_000), Estimator()), Jobs()
    made = Watched(document, jobs)
    document.settle()
    yield made
    document.settle()
    made.limits._rest.stop()
    assert jobs.close()


def test_each_field_is_solved_with_the_others_as_they_are(watched: Watched, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: len(watched.now) == 2)
    assert watched.now == {LENGTH: Limit(10_000), BATCH: Limit(2)}  # one byte a token


def test_turning_a_field_keeps_its_own_limit_and_drops_the_others(watched: Watched, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: len(watched.now) == 2)
    watched.limits._rest.setInterval(60_000)
    watched.document.edit(LENGTH, 5000)
    watched.document.settle()
    assert watched.now == {LENGTH: Limit(10_000)}
    watched.limits._rest.setInterval(0)
    watched.limits._rest.start()
    qtbot.waitUntil(lambda: watched.now.get(BATCH) == Limit(2))
    watched.document.edit(BATCH, 3)
    qtbot.waitUntil(lambda: watched.now.get(LENGTH) == Limit(3333))


def test_where_nothing_fits_it_says_so(watched: Watched, qtbot: QtBot) -> None:
    watched.document.edit(MEMORY, 1000)
    qtbot.waitUntil(lambda: watched.now == {LENGTH: Limit(1000), BATCH: Limit(None)})


def test_what_cannot_be_computed_has_no_limits(watched: Watched, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: len(watched.now) == 2)
    watched.document.edit(BATCH, 0)
    watched.document.settle()
    assert watched.now == {}


def test_every_field_that_is_solved_has_a_slider_to_show_it_on() -> None:
    for path in PATHS:
        field = BY_PATH[path]
        assert field.log_scale
        assert not field.optional
        assert field.section == "workload"
