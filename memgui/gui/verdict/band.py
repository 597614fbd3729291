"""The verdict band: the sentence, the device and the range, what to do, and the bar."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QVBoxLayout, QWidget

from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.controls.frames import filled
from memgui.gui.controls.link import LinkButton
from memgui.gui.icons import paint_verdict
from memgui.gui.numbers import Numbers
from memgui.gui.texts import message_text
from memgui.gui.theme import Look, Role
from memgui.gui.tips import two_lines
from memgui.gui.verdict import sentence
from memgui.gui.verdict.bar import CapacityBar
from memgui.gui.verdict.chips import Cell, Chip, ChipRow
from memgui.spec import Message

HEIGHT = 136
WIDE = 1180
"""From this width on (13 px body) chips make room for the words about the pin."""

MOST_LISTED = 12
"""Assumptions that have room under their link; a stranger's file can leave a hundred things open."""

_SLACK = 32
"""Chips stay where they are while this much more than they need lies before them: moving repaints them."""


class VerdictBand(QWidget):
    """The first thing to read.  Chips are set by whoever computes them; there are none until then."""

    chip_pressed = Signal(object)
    """``data`` of the chip or ladder cell that was pressed."""
    more_requested = Signal()
    """All the ways there are, not only those on the chips."""
    compare_requested = Signal()
    """More than the one sentence about the pinned set-up."""

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._view = view
        self._result: Result | None = None
        self._headline = ""
        self._details: tuple[str, str] = ("", "")
        self._detail = ""
        self._painted_kind = ""
        self._assumptions = LinkButton("", self)
        self._assumptions.hide()
        self._assumptions.clicked.connect(self.show_assumptions)
        self._pinned: Estimate | None = None
        self._pinned_name = ""
        self._versus = LinkButton("", self)
        self._versus.hide()
        self._versus.clicked.connect(self.compare_requested)
        self._chips = ChipRow(self)
        self._bar = CapacityBar(selection, view, self)
        self._chips.pressed.connect(self.chip_pressed)
        self._chips.more_requested.connect(self.more_requested)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        view.figures_changed.connect(self._reword)

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

    def set_pinned(self, estimate: Estimate | None, name: str) -> None:
        """Say in a few words how far this is from the pinned set-up called ``name``."""
        self._pinned, self._pinned_name = estimate, name
        self._reword()

    @property
    def versus(self) -> LinkButton:
        """The words about the pinned set-up; they lead to the comparison."""
        return self._versus

    def announce(self) -> None:
        """Have a screen reader say the verdict; called when a gesture has ended."""
        from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent

        if self._headline and QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, self._headline))

    def show_assumptions(self) -> None:
        """Open the list of what the estimate assumes, under its link."""
        assumed = self._assumed()
        if assumed:
            texts = [message_text(text) for text in assumed[:MOST_LISTED]]
            if len(assumed) > MOST_LISTED:
                texts.append(self.tr("{count} more under Why").format(count=len(assumed) - MOST_LISTED))
            popup = AssumptionsPopup(texts, self)
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
        count = len(self._assumed())
        link = sentence.assumptions_text(count) if count else ""
        self._assumptions.setText(link)
        self._assumptions.setVisible(bool(link))
        self._compare(numbers)
        if (headline, details) != (self._headline, self._details):
            self._headline, self._details = headline, details
            self.setAccessibleName(headline)
            self.setAccessibleDescription(details[0])
        self._place(steady=True)
        kind = self._kind()
        if kind != self._painted_kind:
            self.update()
        else:  # what did not change stays as it is: chips are dear to paint
            self.update(0, 0, self._chips.x() + self._chips.content_left(), Look.of(self).px(62))

    def _assumed(self) -> tuple[Message, ...]:
        """What the reader of the model's file assumed, and what the estimate does."""
        if self._result is None or self._result.estimate is None:
            return ()
        return (*self._result.report.assumed, *self._result.estimate.assumptions)

    def _compare(self, numbers: Numbers) -> None:
        result, pinned = self._result, self._pinned
        if pinned is None or result is None or result.estimate is None:
            self._versus.setText("")
            return
        text = sentence.versus(result.estimate, pinned, numbers)
        if text != self._versus.text():
            self._versus.setText(text)
        name = self._pinned_name
        self._versus.setAccessibleName(self.tr("{change}, “{name}”").format(change=text, name=name))
        gap = result.estimate.peak_bytes - pinned.peak_bytes
        self._versus.setToolTip(two_lines(name, numbers.exact(gap)))

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

    def _place(self, *, steady: bool = False) -> None:
        """Lay everything out; ``steady``: the chips stay where they are while the words leave them room."""
        look = Look.of(self)
        left, top = look.px(20), look.px(62)
        self._bar.setGeometry(left, top, self.width() - 2 * left, self._bar.sizeHint().height())
        start = self._text_left(look) + round(self._words_width(look)) + look.px(24)
        right = self.width() - look.px(16)
        if not (steady and start <= self._chips.x() <= start + look.px(_SLACK)):
            self._chips.setGeometry(start, look.px(11), max(0, right - start), look.px(48))
            self._chips.place()  # a hidden widget is told of its size only when it is shown
        self._detail, compared = self._detail_shown(look)
        at = self._text_left(look) + round(look.width(self._detail, Role.SMALL)) + look.px(12)
        for link in (self._assumptions, self._versus):
            width = link.sizeHint().width()
            link.setGeometry(at, look.px(47) - look.px(10), width, look.px(20))
            at += width + look.px(12) if link.text() else 0
        self._versus.setVisible(compared)

    def _words_width(self, look: Look) -> float:
        """What the sentence needs, or the line below it and its links at their shortest.

        The words about the pin only count in a wide window: elsewhere they stand where chips leave room.
        """
        links = [self._assumptions, self._versus] if self.width() >= look.px(WIDE) else [self._assumptions]
        return max(
            look.width(self._headline, Role.VERDICT, 600),
            look.width(self._details[1], Role.SMALL) + self._links_width(look, *links),
        )

    @staticmethod
    def _links_width(look: Look, *links: LinkButton) -> int:
        return sum(link.sizeHint().width() + look.px(12) for link in links if link.text())

    def _detail_shown(self, look: Look) -> tuple[str, bool]:
        """The longer line or the shorter, and whether the words about the pin end before the chips too."""
        long, short = self._details
        end = self._chips.x() + self._chips.content_left()
        room = end - self._text_left(look) - look.px(12)
        if self._versus.text():
            links = self._links_width(look, self._assumptions, self._versus)
            for detail in (long, short):
                if look.width(detail, Role.SMALL) + links <= room:
                    return detail, True
        links = self._links_width(look, self._assumptions)
        return (long if look.width(long, Role.SMALL) + links <= room else short), False

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        filled(painter, self.rect(), colours.base)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        kind = self._painted_kind = self._kind()
        filled(painter, QRectF(0, 0, look.px(4), self.height()), colours.verdict(kind))
        filled(painter, QRectF(0, self.height() - 1, self.width(), 1), colours.hairline)
        paint_verdict(painter, kind, QPointF(look.px(34), look.px(32)), look.px(28), colours)
        left = self._text_left(look)
        room = self.width() - left - look.px(16)
        painter.setPen(colours.text)
        metrics = look.metrics(Role.VERDICT, 600)
        shown = metrics.cut(self._headline, room)
        metrics.write(painter, QRectF(left, look.px(10), room, look.px(28)), shown)
        painter.setPen(colours.secondary)
        row = QRectF(left, look.px(37), room, look.px(20))
        look.metrics(Role.SMALL).write(painter, row, self._detail)


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
        filled(painter, self.rect(), colours.border)
        filled(painter, self.rect().adjusted(1, 1, -1, -1), colours.raised)
