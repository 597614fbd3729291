"""Tab goes through the window as it is read."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from memgui.gui.interior import Interior
from memgui.gui.stops import stops_in
from tests.gui.house import House


def part_of(inside: Interior, widget: QWidget) -> str:
    body = inside.window.body
    parts = {
        "toolbar": inside.toolbar,
        "verdict": inside.window.verdict,
        "presets": body.presets,
        "form": body.form,
        "picture": body.picture,
        "tabs": body.tabs,
    }
    return next(name for name, part in parts.items() if part.isAncestorOf(widget))


def test_tab_goes_from_the_toolbar_to_the_tabs_and_back(inside: Interior) -> None:
    window = inside.window
    window.setFocus()
    visited: list[QWidget] = []
    while True:
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        focus = QApplication.focusWidget()
        assert focus is not None
        if focus in visited:
            break
        visited.append(focus)
    assert focus is visited[0]  # round once, and nothing left out twice
    parts = [part_of(inside, widget) for widget in visited]
    assert parts == sorted(parts, key=["toolbar", "verdict", "presets", "form", "picture", "tabs"].index)
    assert {"toolbar", "presets", "form", "picture", "tabs"} <= set(parts)
    QTest.keyClick(focus, Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    assert QApplication.focusWidget() is visited[-1]


def held_by(widget: QWidget) -> dict[str, QObject]:
    """Everything of Qt's that a widget of ours holds in an attribute, by itself or in a dictionary."""
    held: dict[str, QObject] = {}
    for name, value in vars(widget).items():
        inside = value.items() if isinstance(value, dict) else (("", value),)
        held |= {f"{name}[{key}]": thing for key, thing in inside if isinstance(thing, QObject)}
    return held


def test_the_window_outlives_going_through_it_by_tab(inside: Interior, house: House, qtbot: QtBot) -> None:
    window = inside.window
    window.setFocus()
    for step in range(240):
        window.focusNextChild() if step < 120 else window.focusPreviousChild()
        qtbot.wait(0)  # what a stop puts around itself is deleted
    ours = [widget for widget in (window, *window.findChildren(QWidget)) if hasattr(widget, "__dict__")]
    held = {f"{type(w).__name__}.{name}": thing for w in ours for name, thing in held_by(w).items()}
    assert {"Toolbar.themes[dark]", "LegendTree.ground[]"} <= set(held)
    assert [name for name, thing in held.items() if not isValid(thing)] == []
    house.view.change(units="GB", theme="dark")
    assert inside.toolbar.themes["dark"].isChecked()


def test_stops_are_read_line_by_line_and_columns_one_after_the_other(qtbot: QtBot) -> None:
    pane = QWidget()
    qtbot.addWidget(pane)
    names = {name: QPushButton(name) for name in ("bottom", "right", "left", "second", "first")}
    line = QLineEdit()
    columns, left = QHBoxLayout(), QVBoxLayout()
    left.addWidget(names["first"])
    left.addWidget(names["second"])
    columns.addLayout(left)
    columns.addWidget(line)
    row = QHBoxLayout()
    row.addWidget(names["left"])
    row.addWidget(names["right"])
    column = QVBoxLayout(pane)
    for part in (columns, row):
        column.addLayout(part)
    column.addWidget(names["bottom"])
    pane.show()
    qtbot.waitExposed(pane)
    names["second"].setEnabled(False)
    expected = [names["first"], line, names["left"], names["right"], names["bottom"]]
    assert list(stops_in(pane)) == expected
