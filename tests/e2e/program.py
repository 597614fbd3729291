"""The whole program in one process: started, used by mouse and key, closed, started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.app import Program
from memgui.planning.opening import Opened
from memgui.presets.paths import AppPaths


@contextmanager
def started(
    app: QApplication, qtbot: QtBot, paths: AppPaths, content: Opened | None = None
) -> Iterator[Program]:
    """A program whose window has been painted, closed at the end as a person closes it."""
    sheet, palette, font = app.styleSheet(), app.palette(), app.font()
    program = Program(app, paths, content)
    with qtbot.waitSignal(program.ready):
        program.window.show()
    try:
        yield program
    finally:
        program.window.close()
        program.close()
        program.deleteLater()
        app.setStyleSheet(sheet)
        app.setPalette(palette)
        app.setFont(font)
