"""PySide6 6.12 on Python 3.11 drops a reference to None at each void call, until the process aborts."""

import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QLabel, QSlider

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
CALLS = 200


def pins(python: str) -> list[Requirement]:
    """The requirements on PySide6 that hold for that Python."""
    lines = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]
    environment = {"python_version": python}
    pins = [Requirement(line) for line in lines if line.startswith("PySide6")]
    return [pin for pin in pins if pin.marker is None or pin.marker.evaluate(environment)]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal: its references are not counted")
def test_void_calls_keep_their_references_to_none(qapp: QApplication) -> None:
    thing, timer, action, label, slider = QObject(), QTimer(), QAction(), QLabel(), QSlider()
    void_calls: dict[str, Callable[[], None]] = {
        "QObject.setObjectName": lambda: thing.setObjectName("a"),
        "QTimer.stop": lambda: timer.stop(),
        "QAction.setText": lambda: action.setText("a"),
        "QLabel.setText": lambda: label.setText("a"),
        "QSlider.setValue": lambda: slider.setValue(1),
        "QApplication.processEvents": lambda: qapp.processEvents(),
    }
    lost = {}
    for name, call in void_calls.items():
        before = sys.getrefcount(None)
        for _ in range(CALLS):
            call()
        lost[name] = before - sys.getrefcount(None)
    assert all(abs(count) < CALLS / 2 for count in lost.values()), lost


@pytest.mark.parametrize(
    ("python", "release", "allowed"),
    [
        ("3.11", "6.8.2", False),
        ("3.11", "6.8.3", True),
        ("3.11", "6.11.3", True),
        ("3.11", "6.12.0", False),
        ("3.12", "6.8.2", False),
        ("3.12", "6.12.0", True),
        ("3.13", "6.12.0", True),
    ],
)
def test_pin_of_pyside(python: str, release: str, allowed: bool) -> None:
    (pin,) = pins(python)
    assert pin.name == "PySide6-Essentials"
    assert pin.specifier.contains(Version(release)) is allowed


def test_installed_pyside_is_what_the_pin_allows() -> None:
    (pin,) = pins(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert pin.specifier.contains(version("PySide6-Essentials"))
