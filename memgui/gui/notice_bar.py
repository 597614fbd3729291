"""One line over the verdict: what went wrong or was done, with a way back; it stops nobody."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QPointF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from memgui.document.notice import Notice
from memgui.gui.controls.buttons import Button, ToolButton
from memgui.gui.controls.scrolling import slim
from memgui.gui.icons import paint_icon, paint_verdict
from memgui.gui.metrics import breaks
from memgui.gui.texts import message_text
from memgui.gui.theme import Look

STAYS_MS = 8000
"""How long a plain piece of news stays; what is wrong stays until it is closed."""

DETAILS_HEIGHT = 144
"""Some six lines at most; the rest scrolls."""

_SHAPES = {"warning": "tight", "error": "does_not_fit"}


class NoticeBar(QWidget):
    """Shows the newest :class:`Notice`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._notice: Notice | None = None
        self._text = QLabel(self)
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details_button = Button(self.tr("Details"), parent=self)
        self._details_button.setCheckable(True)
        self._details_button.toggled.connect(self._show_details)
        self._copy = Button(self.tr("Copy"), parent=self)
        self._copy.setToolTip(self.tr("Copy the message and its details"))
        self._copy.clicked.connect(self._copy_all)
        self._copy.hide()
        self._action = Button("", parent=self)
        self._action.clicked.connect(self._act)
        self._close = ToolButton("close", self.tr("Close the message"), self)
        self._close.clicked.connect(self.dismiss)
        self._details: QPlainTextEdit | None = None
        look = Look.of(self)
        line = QHBoxLayout()
        line.setSpacing(look.px(8))
        line.addWidget(self._text, 1)
        line.addWidget(self._copy)
        line.addWidget(self._details_button)
        line.addWidget(self._action)
        line.addWidget(self._close)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(look.px(44), look.px(6), look.px(12), look.px(7))
        column.setSpacing(look.px(6))
        column.addLayout(line)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(STAYS_MS)
        self._timer.timeout.connect(self.dismiss)
        self.hide()

    @property
    def notice(self) -> Notice | None:
        """What is shown now."""
        return self._notice

    @property
    def text(self) -> str:
        """The sentence shown now."""
        return self._text.text()

    @property
    def action_button(self) -> Button:
        """The button that does what the notice offers."""
        return self._action

    def show_notice(self, notice: Notice) -> None:
        """Show a notice in the place of the one before."""
        self._notice = notice
        text = message_text(notice.message)
        self._text.setText(text)
        self.setAccessibleName(text)
        self._action.setText(QCoreApplication.translate("messages", notice.action_text))
        self._action.setVisible(notice.action is not None)
        self._action.updateGeometry()
        self._details_button.setVisible(bool(notice.details))
        self._details_button.setChecked(False)
        self.show()
        self._fit()
        self.update()
        if notice.severity == "info" and notice.action is None and not notice.details:
            self._timer.start()
        else:
            self._timer.stop()

    def dismiss(self) -> None:
        """Take the notice away."""
        self._timer.stop()
        self._notice = None
        self.hide()

    def _act(self) -> None:
        notice = self._notice
        self.dismiss()
        if notice is not None and notice.action is not None:
            notice.action()

    @property
    def details(self) -> str:
        """The details shown now; empty while nobody asked for them."""
        return self._details.toPlainText() if self._details is not None and self._details.isVisible() else ""

    def _show_details(self, on: bool) -> None:
        if self._details is None:
            self._details = QPlainTextEdit(self)
            self._details.setReadOnly(True)
            slim(self._details)
            self._details.setAccessibleName(self.tr("Details"))
            self._column.addWidget(self._details)
        details = self._notice.details if self._notice is not None else ()
        self._details.setPlainText("\n".join(message_text(message) for message in details))
        self._details.setVisible(on)
        self._copy.setVisible(on)
        self._fit()
        if on:
            self._timer.stop()

    def _copy_all(self) -> None:
        QGuiApplication.clipboard().setText(f"{self.text}\n{self.details}\n")

    def hasHeightForWidth(self) -> bool:
        return False  # else the window's scroll area would ask everything for its preferred height

    def _fit(self) -> None:
        """Take the height that text and details need at this width."""
        if self._details is not None and self._details.isVisibleTo(self):
            self._fit_details(self._details)
        self._column.activate()  # the nested layout must forget the height of the text before
        self.setFixedHeight(max(Look.of(self).px(43), self._column.heightForWidth(self.width())))

    def _fit_details(self, shown: QPlainTextEdit) -> None:
        """Show all lines, or as many as there is room for, none cut in two.

        They are counted here: Qt lays out what it paints, and knows of no more lines.
        """
        around = 2 * shown.document().documentMargin()
        width = self._column.contentsRect().width() - around
        lines = sum(
            max(1, len(breaks(text, shown.font(), width))) for text in shown.toPlainText().split("\n")
        )
        spacing = shown.fontMetrics().lineSpacing()
        most = (Look.of(self).px(DETAILS_HEIGHT) - around) // spacing
        shown.setFixedHeight(round(min(lines, most) * spacing + around) + 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()
        # Activated inside a resize, the layout takes the height before for the present one.
        self._column.setGeometry(self.rect())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.dismiss()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.raised)
        painter.fillRect(0, self.height() - 1, self.width(), 1, colours.hairline)
        centre = QPointF(look.px(26), look.px(20))
        shape = _SHAPES.get(self._notice.severity if self._notice is not None else "")
        if shape is None:
            paint_icon(painter, "info", centre, look.px(18), colours.accent)
        else:
            paint_verdict(painter, shape, centre, look.px(18), colours)
            painter.fillRect(0, 0, look.px(4), self.height(), colours.verdict(shape))
