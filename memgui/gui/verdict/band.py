"""The verdict band: the sentence, the device and the range, what to do, and the bar."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QVBoxLayout, QWidget

from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.gui.controls.link import LinkButton
from memgui.gui.icons import paint_verdict
from memgui.gui.numbers import Numbers
from memgui.gui.texts import message_text
from memgui.gui.theme import Look, Role
from memgui.gui.verdict import sentence
from memgui.gui.verdict.bar import CapacityBar
from memgui.gui.verdict.chips import Cell, Chip, ChipRow

HEIGHT = 136


_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


class VerdictBand(QWidget):
    """The first thing to read.  Chips are set by whoever computes them; there are none until then."""

    chip_pressed = Signal(object)
    """``data`` of the chip or ladder cell that was pressed."""
    more_requested = Signal()
    """All the ways there are, not only those on the chips."""

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._result: Result | None = None
        self._headline = ""
        self._details: tuple[str, str] = ("", "")
        self._assumptions = LinkButton("", self)
        self._assumptions.hide()
        self._assumptions.clicked.connect(self.show_assumptions)
        self._chips = ChipRow(self)
        self._bar = CapacityBar(selection, view, self)
        self._chips.pressed.connect(self.chip_pressed)
        self._chips.more_requested.connect(self.more_requested)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        view.changed.connect(self._reword)
        self.setTabOrder(self._assumptions, self._chips)

    @property
    def bar(self) -> CapacityBar:
        """The capacity bar."""
        return self._bar

    @property
    def chips(self) -> ChipRow:
        """The row of chips."""
        return self._chips

    @property
    def headline(self) -> str:
        """The sentence as it stands."""
        return self._headline

    def set_result(self, result: Result) -> None:
        """Show another result."""
        self._result = result
        self._bar.set_result(result)
        self._reword()

    def set_chips(self, chips: Sequence[Chip], more: int = 0) -> None:
        """Up to three fixes, or how far it goes; ``more`` others stand behind them."""
        self._chips.set_chips(chips, more)
        self._place()
        self.update()

    def set_ladder(self, caption: str, cells: Sequence[Cell]) -> None:
        """The context ladder in place of the chips; a line break in the caption is kept."""
        self._chips.set_ladder(caption, cells)
        self._place()
        self.update()

    def announce(self) -> None:
        """Have a screen reader say the verdict; called when a gesture has ended."""
        if self._headline and QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, self._headline))

    def show_assumptions(self) -> None:
        """Open the list of what the estimate assumes, under its link."""
        estimate = self._result.estimate if self._result is not None else None
        if estimate is not None and estimate.assumptions:
            popup = AssumptionsPopup([message_text(text) for text in estimate.assumptions], self)
            popup.open_at(self._assumptions.mapToGlobal(QPoint(0, self._assumptions.height() + 4)))

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(1024), look.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(Look.of(self).px(480), Look.of(self).px(HEIGHT))

    def _reword(self) -> None:
        result = self._result
        if result is None:
            return
        numbers = Numbers.of(self._view.view)
        headline = sentence.headline(result, numbers)
        details = sentence.detail(result, numbers), sentence.detail(result, numbers, short=True)
        estimate = result.estimate
        count = len(estimate.assumptions) if estimate is not None else 0
        link = sentence.assumptions_text(count) if count else ""
        self._assumptions.setText(link)
        self._assumptions.setVisible(bool(link))
        if (headline, details) != (self._headline, self._details):
            self._headline, self._details = headline, details
            self.setAccessibleName(headline)
            self.setAccessibleDescription(details[0])
        self._place()
        self.update()

    def _kind(self) -> str:
        return sentence.kind_of(self._result) if self._result is not None else "unknown"

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._place()
        super().changeEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _text_left(self, look: Look) -> int:
        return look.px(60)

    def _place(self) -> None:
        look = Look.of(self)
        left, top = look.px(20), look.px(62)
        self._bar.setGeometry(left, top, self.width() - 2 * left, self._bar.sizeHint().height())
        start = self._text_left(look) + round(self._words_width(look)) + look.px(24)
        right = self.width() - look.px(16)
        self._chips.setGeometry(start, look.px(11), max(0, right - start), look.px(48))
        self._chips.place()  # a hidden widget is told of its size only when it is shown
        detail = self._detail_shown(look)
        at = self._text_left(look) + round(look.width(detail, Role.SMALL)) + look.px(12)
        self._assumptions.setGeometry(
            at, look.px(47) - look.px(10), self._assumptions.sizeHint().width(), look.px(20)
        )

    def _words_width(self, look: Look) -> float:
        """What the sentence needs, or the line below it and its link at their shortest."""
        link = self._assumptions.sizeHint().width() + look.px(12) if self._assumptions.text() else 0
        return max(
            look.width(self._headline, Role.VERDICT, 600),
            look.width(self._details[1], Role.SMALL) + link,
        )

    def _detail_shown(self, look: Look) -> str:
        """The longer line if it and the link behind it end before the chips."""
        long, short = self._details
        end = self._chips.x() + self._chips.content_left()
        link = self._assumptions.sizeHint().width() + look.px(24) if self._assumptions.text() else 0
        room = end - self._text_left(look) - link
        return long if look.width(long, Role.SMALL) <= room else short

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        kind = self._kind()
        painter.fillRect(self.rect(), colours.base)
        painter.fillRect(QRectF(0, 0, look.px(4), self.height()), colours.verdict(kind))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), colours.hairline)
        paint_verdict(painter, kind, QPointF(look.px(34), look.px(32)), look.px(28), colours)
        left = self._text_left(look)
        room = self.width() - left - look.px(16)
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.VERDICT, 600))
        metrics = look.metrics(Role.VERDICT, 600)
        shown = metrics.elidedText(self._headline, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRectF(left, look.px(10), room, look.px(28)), _LEFT, shown)
        painter.setPen(colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        painter.drawText(QRectF(left, look.px(37), room, look.px(20)), _LEFT, self._detail_shown(look))


class AssumptionsPopup(QFrame):
    """What the estimate assumes, one line each; closes by a click beside it or Escape."""

    def __init__(self, texts: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(self.tr("Assumptions"))
        look = Look.of(parent)
        layout = QVBoxLayout(self)
        pad = look.px(12)
        layout.setContentsMargins(pad, pad, pad, pad)
        layout.setSpacing(look.px(6))
        for text in texts:
            label = QLabel("•  " + text, self)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            label.setMinimumWidth(look.px(320))
            label.setMaximumWidth(look.px(460))
            flags = (
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            label.setTextInteractionFlags(flags)
            layout.addWidget(label)

    def open_at(self, corner: QPoint) -> None:
        """Show it with its top left corner at a point of the screen."""
        self.adjustSize()
        self.move(corner)
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = Look.of(self).colours
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.border)
        painter.fillRect(self.rect().adjusted(1, 1, -1, -1), colours.raised)
