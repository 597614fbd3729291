"""The line under a field: what is wrong, what is unusual, how far it goes."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.gui.icons import paint_verdict
from memgui.gui.texts import breakable
from memgui.gui.theme import Look, Role

_KINDS = {"error": "does_not_fit", "warning": "tight", "note": "tight"}
"""The verdict whose shape and colour each severity borrows."""


class Note(QWidget):
    """A sentence in a severity's colour with its icon before it, wrapped over the whole row.

    ``limit`` has no icon and stands under the control, ``indent`` px (13 px body) from the left.
    """

    def __init__(self, parent: QWidget, indent: int) -> None:
        super().__init__(parent)
        self._indent = indent
        self._text = ""
        self._severity = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hide()

    @property
    def text(self) -> str:
        """What it says."""
        return self._text

    @property
    def severity(self) -> str:
        """``error``, ``warning``, ``note``, ``limit``, or empty."""
        return self._severity

    def say(self, text: str, severity: str) -> None:
        """Show ``text``; hide where it is empty."""
        if (text, severity) == (self._text, self._severity):
            return
        self._text, self._severity = text, severity
        self._fit()
        self.setVisible(bool(text))
        self.update()

    def _left(self, look: Look) -> int:
        return look.px(20 if self._severity in _KINDS else self._indent)

    def _fit(self) -> None:
        """Take the height that the text needs at this width."""
        look = Look.of(self)
        room = QRectF(0, 0, max(look.px(80), self.width() - self._left(look)), 10_000)
        needed = look.metrics(Role.SMALL).boundingRect(room, Qt.TextFlag.TextWordWrap, breakable(self._text))
        self.setFixedHeight(round(needed.height()) + look.px(6))

    def resizeEvent(self, event: QResizeEvent) -> None:
        if self._text and event.size().width() != event.oldSize().width():
            self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        kind = _KINDS.get(self._severity, "does_not_fit")
        left = self._left(look)
        if self._severity in _KINDS:
            paint_verdict(painter, kind, QPointF(look.px(7), look.px(9)), look.px(14), look.colours)
        painter.setPen(look.colours.verdict(kind))
        painter.setFont(look.font(Role.SMALL))
        painter.drawText(self.rect().adjusted(left, 0, 0, 0), Qt.TextFlag.TextWordWrap, breakable(self._text))
