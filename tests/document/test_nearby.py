"""What other programs keep here and the GPUs here are offered, aside and only on demand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.document.jobs import Jobs
from memgui.document.nearby import Nearby
from memgui.importers import local_models as folders
from memgui.presets import hardware
from memgui.presets.hardware import Gpu, ThisMachine

GPU = Gpu(name="NVIDIA H200", total_bytes=150_754_820_096, used_bytes=5, compute_capability="9.0")


@pytest.fixture
def jobs(qapp: QApplication) -> Iterator[Jobs]:
    made = Jobs()
    yield made
    assert made.close()


def test_models_are_found_when_asked_for_and_once(
    jobs: Jobs, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "models" / "owner" / "tiny" / "tiny.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    asked: list[int] = []

    def found() -> Iterator[folders.LocalModel]:
        asked.append(1)
        yield folders.LocalModel(folders.LM_STUDIO, "owner/tiny", path)

    monkeypatch.setattr(folders, "local_models", found)
    nearby = Nearby(jobs)
    with qtbot.waitSignal(nearby.models_found):
        nearby.look_for_models()
    assert [one.name for one in nearby.models] == ["owner/tiny"]
    nearby.look_for_models()
    assert not jobs.is_running("local models")
    assert asked == [1]


def test_this_machine_is_asked_aside_and_its_absence_is_nothing(
    jobs: Jobs, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearby = Nearby(jobs)
    monkeypatch.setattr(hardware, "this_machine", lambda: ThisMachine((GPU,)))
    with qtbot.waitSignal(nearby.machine_found):
        nearby.look_at_machine()
    assert nearby.gpus == (GPU,)
    other = Nearby(jobs)
    monkeypatch.setattr(hardware, "this_machine", ThisMachine)
    with qtbot.assertNotEmitted(other.machine_found):
        other.look_at_machine()
        qtbot.waitUntil(lambda: not jobs.is_running("this machine"))
    assert other.gpus == ()


def test_a_folder_that_cannot_be_read_costs_nothing(
    jobs: Jobs, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Iterator[folders.LocalModel]:
        raise OSError("gone")

    monkeypatch.setattr(folders, "local_models", broken)
    nearby = Nearby(jobs)
    nearby.look_for_models()
    qtbot.waitUntil(lambda: not jobs.is_running("local models"))
    assert nearby.models == ()
