"""Garbage is looked for when the person rests, and only then."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from memgui.document import garbage
from memgui.document.document import Document
from memgui.document.garbage import Garbage
from memgui.document.jobs import Job, Jobs
from tests.document.fakes import Estimator, scenario


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Python's own settings, as they were."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


class _Ring:
    """Garbage once nobody holds it."""

    def __init__(self) -> None:
        self.me = self


def test_garbage_goes_at_rest_and_not_in_an_edit(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "REST_MS", 30)
    edited = Document(scenario(), Estimator())
    Garbage(edited, Jobs())
    gone = weakref.ref(_Ring())
    edited.edit("training.sequence_length", 777)
    edited.settle()
    assert gone() is not None
    qtbot.waitUntil(lambda: gone() is None, timeout=2000)


def test_what_a_job_makes_is_looked_through_bit_by_bit(qtbot: QtBot) -> None:
    """Passes are short, in the thread of the windows, and none is left for afterwards."""
    jobs, edited = Jobs(), Document(scenario(), Estimator())
    kept = Garbage(edited, jobs)
    gc.collect()
    passes: list[int] = []
    threads: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            passes.append(len(gc.get_objects(info["generation"])))
            threads.append(threading.get_ident())

    def work(job: Job) -> int:
        made: list[list[object]] = []
        for _ in range(200):
            made += [[] for _ in range(400)]
            time.sleep(0.001)
            job.check()
        return len(made)

    gc.callbacks.append(note)
    try:
        answers: list[int] = []
        jobs.run("made", work, answers.append)
        qtbot.waitUntil(lambda: bool(answers), timeout=10_000)
    finally:
        gc.callbacks.remove(note)
    assert len(passes) > 5
    assert set(threads) == {threading.get_ident()}
    qtbot.waitUntil(lambda: not kept._sweep.isActive(), timeout=2000)
    jobs.close()
