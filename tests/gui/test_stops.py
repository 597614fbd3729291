"""Tab goes through the window as it is read."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from memgui.gui.interior import Interior


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
