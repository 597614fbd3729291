"""Garbage is looked for when the person rests, and only then."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from memgui.document import garbage
from memgui.document.document import Document
from memgui.document.garbage import Garbage
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
    Garbage(edited)
    gone = weakref.ref(_Ring())
    edited.edit("training.sequence_length", 777)
    edited.settle()
    assert gone() is not None
    qtbot.waitUntil(lambda: gone() is None, timeout=2000)
