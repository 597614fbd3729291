"""The net below all tests: what conftest promises to catch, it catches."""

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent / "conftest.py"
CONFIG = """
[pytest]
qt_api = pyside6
qt_log_level_fail = WARNING
filterwarnings = error
"""
FAULTS = """
import threading
from PySide6.QtCore import QThread, QTimer, QVariantAnimation
from PySide6.QtWidgets import QLabel

kept = []

def test_window(qapp):
    label = QLabel()
    label.setWindowTitle("left open")
    kept.append(label)

def test_timer(qapp):
    timer = QTimer()
    timer.start(60_000)
    kept.append(timer)

def test_animation(qtbot):
    animation = QVariantAnimation()
    animation.setDuration(60_000)
    animation.setStartValue(0)
    animation.setEndValue(1)
    animation.start()
    kept.append(animation)

def test_qthread(qapp):
    thread = QThread()
    thread.start()
    kept.append(thread)

def test_thread(qapp):
    kept.append(threading.Event())
    threading.Thread(target=kept[-1].wait, args=(60,), daemon=True).start()

def test_end():  # a QThread destroyed while it runs aborts the process
    kept[-1].set()
    kept[-2].quit()
    kept[-2].wait()
"""
CLEAN = """
import os
from pathlib import Path
from PySide6.QtCore import QLocale, QStandardPaths, QThreadPool, QTimer, qWarning
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QDialog, QLabel, QVBoxLayout

def test_window(qtbot):
    dialog = QDialog()
    qtbot.addWidget(dialog)
    label = QLabel("shown", dialog)
    label.cycle = label
    QTimer(dialog).start(1000)
    with qtbot.waitExposed(dialog):
        dialog.show()

def test_local_cycle(qapp):
    label = QLabel("not registered, not kept")
    label.cycle = label

def test_job(qapp):
    QThreadPool.globalInstance().start(lambda: None)

def test_home_is_empty(home):
    assert Path.home() == home
    assert sorted(path.name for path in home.iterdir()) == ["runtime"]
    (home / "trace").touch()

def test_home_is_empty_again(home):
    assert not (home / "trace").exists()
    places = QStandardPaths.standardLocations(QStandardPaths.StandardLocation.GenericConfigLocation)
    assert all(Path(place).is_relative_to(home) for place in places)

def test_mouse_moved(qapp):
    QCursor.setPos(5, 5)

def test_mouse(qapp):
    assert not qapp.primaryScreen().geometry().contains(QCursor.pos())

def test_locale_changed():
    QLocale.setDefault(QLocale("de_DE"))

def test_locale(qapp):
    assert QLocale().name() == "en_US"
    assert qapp.platformName() == "offscreen"
"""


def run(pytester: pytest.Pytester, tests: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST.read_text("utf-8"))
    pytester.makeini(CONFIG)
    pytester.makepyfile(tests)
    return pytester.runpytest_subprocess()


def test_what_a_test_leaves_behind_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, FAULTS)
    result.assert_outcomes(passed=6, errors=5)
    result.stdout.fnmatch_lines(
        [
            "window: *QLabel*'left open'",
            "running: *QTimer*",
            "running: *QVariantAnimation*",
            "running: *QThread*",
            "running: *Thread-1*",
        ]
    )


def test_a_clean_test_passes(pytester: pytest.Pytester) -> None:
    run(pytester, CLEAN).assert_outcomes(passed=9)


def test_a_warning_of_qt_or_python_is_a_failure(pytester: pytest.Pytester) -> None:
    tests = """
import warnings
from PySide6.QtCore import qWarning

def test_qt():
    qWarning("no such slot")

def test_python():
    warnings.warn("old")
"""
    run(pytester, tests).assert_outcomes(failed=2)


def test_what_a_failed_test_still_holds_is_not_reported_too(pytester: pytest.Pytester) -> None:
    tests = """
from PySide6.QtWidgets import QLabel

def test_fails(qapp):
    label = QLabel("held by the traceback")
    assert label.text() == ""

def test_next(qapp):
    assert not [widget for widget in qapp.topLevelWidgets() if widget.isVisible()]
"""
    run(pytester, tests).assert_outcomes(failed=1, passed=1)
