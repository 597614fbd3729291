"""Tells of a mistake of ours in plain words."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from memgui.gui.controls.buttons import Button
from memgui.gui.theme import Look, Role


class CrashDialog(QDialog):
    """Plain words, the details to copy, go on or quit."""

    def __init__(self, report: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("memgui made a mistake"))
        look = Look.of(self)
        title = QLabel(self.tr("memgui made a mistake"), self)
        title.setFont(look.font(Role.TITLE, 600))
        text = QLabel(
            self.tr(
                "Your set-up is kept. You can go on; if something looks wrong, start memgui again. "
                "The details below help to repair it: they hold no more than is shown."
            ),
            self,
        )
        text.setWordWrap(True)
        self.details = QPlainTextEdit(report, self)
        self.details.setReadOnly(True)
        self.details.setAccessibleName(self.tr("Details"))
        self.copy = Button(self.tr("Copy the details"), "copy", parent=self)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(report))
        self.go_on = Button(self.tr("Go on"), primary=True, parent=self)
        self.go_on.clicked.connect(self.accept)
        self.quit = Button(self.tr("Quit"), parent=self)
        self.quit.clicked.connect(self._quit)
        row = QHBoxLayout()
        row.addWidget(self.copy)
        row.addStretch(1)
        row.addWidget(self.quit)
        row.addWidget(self.go_on)
        column = QVBoxLayout(self)
        column.setContentsMargins(*(look.px(16),) * 4)
        column.setSpacing(look.px(12))
        for part in (title, text):
            column.addWidget(part)
        column.addWidget(self.details, 1)
        column.addLayout(row)
        self.resize(look.px(560), look.px(360))
        self.go_on.setFocus()

    def _quit(self) -> None:
        self.reject()
        QGuiApplication.quit()
