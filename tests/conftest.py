"""What every test gets: no display, a home of its own, and a look at what it left behind."""

import gc
import itertools
import os
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from PySide6.QtCore import QAbstractAnimation, QCoreApplication, QEvent, QLocale, QThread, QThreadPool, QTimer
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import Shiboken

pytest_plugins = ["pytester"]

OFF_SCREEN = -1000, -1000
FAILED = pytest.StashKey[bool]()

# Machines under test are slow and shared: an example is wrong or right, never late.
settings.register_profile("memgui", deadline=None)
settings.load_profile("memgui")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--headed", action="store_true", help="show the windows on the real display")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--headed"):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    # What the machine's owner set must not change a picture, a number or a text.
    for name in ("QT_QPA_PLATFORMTHEME", "QT_STYLE_OVERRIDE", "LANGUAGE", "LC_ALL", "MEMGUI_HOME"):
        os.environ.pop(name, None)
    os.environ["LANG"] = "C.UTF-8"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders without end, none twice; cheaper for thousands of tests than tmp_path."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, so that no test reads or writes what the person running it keeps in theirs."""
    home = next(homes)
    runtime = home / "runtime"
    runtime.mkdir(parents=True)
    runtime.chmod(0o700)  # Qt warns of a runtime folder that others may read
    for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    for name in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_DIRS", str(home / "site" / name.lower()))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    QLocale.setDefault(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
    return home


@pytest.fixture(scope="module")
def frozen_heap(qapp: QApplication) -> QApplication:
    """Takes what was made before out of the collector's sight, so that collecting after a test is quick."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return qapp


def running() -> dict[int, object]:
    """Every timer, animation and thread now at work, by identity."""
    wrappers = Shiboken.getAllValidWrappers()
    found: list[object] = [
        *(timer for timer in wrappers if isinstance(timer, QTimer) and timer.isActive()),
        *(thread for thread in wrappers if isinstance(thread, QThread) and thread.isRunning()),
        *(
            animation
            for animation in wrappers
            if isinstance(animation, QAbstractAnimation)
            and animation.state() is QAbstractAnimation.State.Running
        ),
        *threading.enumerate(),
    ]
    return {id(thing): thing for thing in found}


def top_levels() -> dict[int, QWidget]:
    """Every window there is, by identity; not the tooltip, which Qt owns and shows again and again."""
    widgets = QApplication.topLevelWidgets()
    return {id(widget): widget for widget in widgets if widget.metaObject().className() != "QTipLabel"}


def delete_later() -> None:
    """Carry out every deleteLater(), which processEvents() leaves undone."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest, home: Path) -> Iterator[None]:
    """Fails a Qt test that leaves a window, timer, animation or thread behind for the next one.

    Where a test leaves the mouse, the next would have its widgets pointed at: each begins with it off screen.
    """
    if "qapp" not in request.fixturenames:
        yield
        return
    request.getfixturevalue("frozen_heap")
    if QApplication.platformName() == "offscreen":  # else it is a person's
        QCursor.setPos(*OFF_SCREEN)
    before, windows_before = running(), top_levels()
    yield
    QThreadPool.globalInstance().waitForDone(5000)
    delete_later()
    windows = [widget for key, widget in top_levels().items() if key not in windows_before]
    left = [f"window: {widget!r} {widget.windowTitle()!r}" for widget in windows]
    left += [f"running: {thing!r}" for key, thing in running().items() if key not in before]
    if QThreadPool.globalInstance().activeThreadCount():
        left.append("running: a job of the global thread pool")
    for widget in windows:
        widget.close()
        widget.deleteLater()
    delete_later()
    # The traceback of a failed test keeps what the test held.
    if left and not request.node.stash.get(FAILED, False):
        pytest.fail("the test left behind:\n" + "\n".join(left), pytrace=False)
