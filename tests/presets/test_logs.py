"""The log, the crash report and the diagnostics text: best effort, never a fault of their own."""

import faulthandler
import logging
import subprocess
import sys
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from memgui import __version__
from memgui.presets import logs
from memgui.presets.paths import AppPaths


@pytest.fixture(autouse=True)
def quiet_root() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


def test_log_goes_to_a_file_that_is_rotated(paths: AppPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 2000)
    assert logs.start_logging(paths) is not None
    (file,) = (one for one in logging.getLogger().handlers if isinstance(one, RotatingFileHandler))
    maker = logging.getLogger("memgui.test")
    for number in range(300):  # to the file alone: what pytest captures must be text that it can send on
        file.handle(maker.makeRecord(maker.name, logging.INFO, "", 0, "line %d \ud83d", (number,), None))
    found = sorted(path.name for path in paths.log.iterdir())
    assert found == ["memgui.log", "memgui.log.1", "memgui.log.2", "memgui.log.3"]
    assert "INFO memgui.test: line 299" in paths.log_file.read_text("utf-8")


def test_without_a_log_folder_there_is_no_log_and_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert logs.start_logging(AppPaths.default(home=tmp_path / "file")) is None


def test_full_disk_is_no_fault_of_the_log(
    paths: AppPaths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert logs.start_logging(paths) is not None

    def full(self: logging.FileHandler) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(logging.FileHandler, "flush", full)
        logging.getLogger("memgui.test").warning("nowhere to go")
    assert capsys.readouterr().err == ""


def test_crash_is_kept_for_the_next_start_and_shown_once(paths: AppPaths, home: Path) -> None:
    try:
        raise RuntimeError(f"no {home}/x")
    except RuntimeError as error:
        report = logs.keep_crash(paths, type(error), error, error.__traceback__)
    assert f"memgui {__version__}" in report
    assert "RuntimeError: no ~/x" in report
    assert logs.take_crash_report(paths) == report
    assert logs.take_crash_report(paths) == ""


def test_crash_report_is_bounded_and_needs_no_disk(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    paths = AppPaths.default(home=tmp_path / "file")
    error = RuntimeError("x" * 10**6 + " end")
    report = logs.keep_crash(paths, RuntimeError, error, None)
    assert len(report) < logs.MAX_REPORT_BYTES
    assert report.endswith(" end\n")
    assert logs.take_crash_report(paths) == ""
    logs.watch_for_faults(paths)
    assert not (faulthandler.is_enabled() and paths.state.exists())


def test_death_in_native_code_leaves_its_stack(paths: AppPaths) -> None:
    code = """
import faulthandler, sys
from pathlib import Path
from memgui.presets import logs
from memgui.presets.paths import AppPaths
logs.watch_for_faults(AppPaths.default(home=Path(sys.argv[1])))
def fall():
    faulthandler._sigsegv()
fall()
"""
    home = paths.state.parent
    run = subprocess.run([sys.executable, "-c", code, home], capture_output=True, check=False, timeout=60)
    assert run.returncode != 0
    report = logs.take_crash_report(paths)
    assert "Segmentation fault" in report
    assert "in fall" in report
    assert logs.take_crash_report(paths) == ""


def test_diagnostics_name_versions_and_paths_but_not_the_person(paths: AppPaths, home: Path) -> None:
    own = AppPaths(home / "config", home / "data", home / "state", home / "log")
    logs.start_logging(own)
    for number in range(300):
        logging.getLogger("memgui.test").info("line %d of %s", number, home)
    text = logs.diagnostics(own, {"Qt platform": "offscreen"})
    assert f"memgui              {__version__}\n" in text
    assert "offscreen" in text
    assert f"Config              ~{'/'}config\n" in text
    assert "line 299 of ~" in text
    assert "line 99 of ~" not in text
    assert str(home) not in text
    assert "PySide6-Essentials" in text
