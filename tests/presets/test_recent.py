"""Recent files: newest first, no doubles, and no waiting for a disk that does not answer."""

import os
import threading
import time
from pathlib import Path

import pytest

from memgui.presets.recent import MOST, missing, with_recent, without_recent


def test_newest_first_without_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = with_recent(with_recent((), "a"), tmp_path / "b")
    assert files == (str(tmp_path / "b"), str(tmp_path / "a"))
    assert with_recent(files, tmp_path / "x" / ".." / "a") == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert without_recent(files, "a") == (str(tmp_path / "b"),)


def test_list_has_an_end() -> None:
    files: tuple[str, ...] = ()
    for number in range(MOST + 5):
        files = with_recent(files, f"/{number}")
    assert len(files) == MOST
    assert files[0] == f"/{MOST + 4}"


def test_path_that_settings_cannot_hold_is_not_remembered() -> None:
    assert with_recent(("/a",), os.fsdecode(b"/b\xff")) == ("/a",)


def test_missing_files_are_told_from_silent_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, gone, silent = (str(tmp_path / name) for name in ("there", "gone", "silent"))
    Path(there).touch()
    answer = threading.Event()
    real = os.stat

    def slow(path: str) -> os.stat_result:
        if path == silent:
            answer.wait(20)
        return real(path)

    monkeypatch.setattr("memgui.presets.recent.os.stat", slow)
    started = time.monotonic()
    assert missing([silent, there, gone, silent, "nul\0"], patience_s=0.3) == {gone}
    assert time.monotonic() - started < 10
    answer.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(5)
