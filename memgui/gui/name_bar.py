"""Asks for a name in the window, without a dialog: "Save as", "Save model profile"."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget
from shiboken6 import Shiboken

from memgui.gui.controls.buttons import Button
from memgui.gui.controls.fields import LineEdit
from memgui.gui.theme import Look, Role


class NameBar(QWidget):
    """A line with a question, a box for the name, and two buttons; Esc takes it away."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._answer: Callable[[str], bool] = lambda name: True
        self._before: QWidget | None = None
        self._question = QLabel(self)
        self._question.setFont(Look.of(self).font(Role.BODY, 500))
        self.save = Button(self.tr("Save"), primary=True, parent=self)
        self.line = LineEdit(parent=self)
        self.line.installEventFilter(self)
        self.line.textChanged.connect(lambda text: self.save.setEnabled(bool(text.strip())))
        self.save.clicked.connect(self._take)
        self.cancel = Button(self.tr("Cancel"), parent=self)
        self.cancel.clicked.connect(self.hide)
        look = Look.of(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(look.px(16), look.px(6), look.px(16), look.px(7))
        row.setSpacing(look.px(8))
        row.addWidget(self._question)
        row.addWidget(self.line, 1)
        row.addWidget(self.save)
        row.addWidget(self.cancel)
        self.hide()

    def ask(self, question: str, name: str, answer: Callable[[str], bool]) -> None:
        """Ask; ``answer`` gets the name and says whether it was taken (else it told why)."""
        self._answer = answer
        if not self.isVisible():
            self._before = self.window().focusWidget()
        self._question.setText(question)
        self.line.setAccessibleName(question)
        self.line.setText(name)
        self.line.selectAll()
        self.show()
        self.line.setFocus(Qt.FocusReason.OtherFocusReason)

    def setVisible(self, visible: bool) -> None:
        """Give the keys back to what had them before the question."""
        had = not visible and self.isAncestorOf(self.window().focusWidget())
        super().setVisible(visible)
        before, self._before = self._before, self._before if visible else None
        if had and before is not None and Shiboken.isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.OtherFocusReason)

    def _take(self) -> None:
        name = self.line.text().strip()
        if name and self._answer(name):
            self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take()
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.hide()
                return True
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.fillRect(self.rect(), look.colours.raised)
        painter.fillRect(0, self.height() - 1, self.width(), 1, look.colours.hairline)
