"""The keys at a glance, and what memgui is; windows beside the window, never in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QCoreApplication, Qt, qVersion
from PySide6.QtGui import QAction, QFontDatabase, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from memgui import __version__
from memgui.gui.controls.buttons import Button
from memgui.gui.theme import Look, Role


class _Sheet(QDialog):
    """A titled window that Esc closes and that is gone when closed."""

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        look = Look.of(self)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(*(look.px(20),) * 4)
        self.column.setSpacing(look.px(12))
        heading = QLabel(title, self)
        heading.setFont(look.font(Role.TITLE, 600))
        self.column.addWidget(heading)

    def finish(self) -> None:
        """Put the button under what was added, and show it."""
        close = Button(self.tr("Close"), parent=self)
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(close)
        self.column.addStretch(1)
        self.column.addLayout(row)
        close.setFocus()
        self.show()


class Shortcuts(_Sheet):
    """Every action that has a key, and the keys that fields and pictures know."""

    def __init__(self, actions: Iterable[QAction], parent: QWidget) -> None:
        super().__init__(QCoreApplication.translate("Shortcuts", "Keyboard shortcuts"), parent)
        rows = [
            (action.text().replace("&", "").rstrip("…"), action.shortcut())
            for action in actions
            if not action.shortcut().isEmpty()
        ]
        keys = [(text, key.toString(QKeySequence.SequenceFormat.NativeText)) for text, key in rows]
        keys += [
            (self.tr("Turn a slider by a step"), self.tr("Left, Right")),
            (self.tr("Turn a slider by one"), self.tr("Shift+Left, Shift+Right")),
            (self.tr("Double or halve"), self.tr("Page Up, Page Down")),
            (self.tr("Put a slider back to its default"), self.tr("Double click")),
            (self.tr("Take back what is being typed"), self.tr("Esc")),
            (self.tr("Go through the donut and into it"), self.tr("Arrows, Enter, Backspace")),
            (self.tr("Rename, delete a preset"), self.tr("F2, Del")),
        ]
        look = Look.of(self)
        grid = QGridLayout()
        grid.setHorizontalSpacing(look.px(24))
        grid.setVerticalSpacing(look.px(6))
        half = (len(keys) + 1) // 2
        for place, (text, key) in enumerate(keys):
            row, column = place % half, 2 * (place // half)
            shown = QLabel(key, self)
            shown.setFont(look.font(Role.BODY, 500))
            grid.addWidget(QLabel(text, self), row, column)
            grid.addWidget(shown, row, column + 1)
        self.column.addLayout(grid)
        self.finish()


class About(_Sheet):
    """Name, version, what the figures stand for, whose work it rests on."""

    def __init__(self, stands_for: str, parent: QWidget) -> None:
        super().__init__(QCoreApplication.translate("About", "About memgui"), parent)
        lines = (
            self.tr("memgui {version}").format(version=__version__),
            self.tr(
                "How much GPU memory a transformer takes, where it goes, and what to change so that it fits."
            ),
            self.tr("Figures stand for {version}.").format(version=stands_for) if stands_for else "",
            self.tr("Qt {version}. MIT licence. Nothing is sent anywhere.").format(version=qVersion()),
        )
        for line in filter(None, lines):
            text = QLabel(line, self)
            text.setWordWrap(True)
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self.column.addWidget(text)
        self.setMinimumWidth(Look.of(self).px(420))
        self.finish()


class Diagnostics(_Sheet):
    """What a report of a fault should hold; English, as it is for others to read."""

    def __init__(self, text: str, copy: Callable[[str], None], parent: QWidget) -> None:
        super().__init__(QCoreApplication.translate("Diagnostics", "Diagnostics"), parent)
        look = Look.of(self)
        self.shown = QPlainTextEdit(text, self)
        self.shown.setReadOnly(True)
        self.shown.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.shown.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.shown.setAccessibleName(self.tr("Diagnostics"))
        self.shown.setMinimumSize(look.px(640), look.px(360))
        self.column.addWidget(self.shown, 1)
        self.copy = Button(self.tr("Copy all"), parent=self)
        self.copy.clicked.connect(lambda: copy(text))
        self.column.addWidget(self.copy, 0, Qt.AlignmentFlag.AlignLeft)
        self.finish()
