"""Up to three chips at the right of the band, or the context ladder: what to do, how far it goes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from memgui.gui.controls.frames import Ringed, filled, outlined
from memgui.gui.icons import paint_verdict
from memgui.gui.theme import Look, Role
from memgui.gui.verdict.sentence import verdict_word

_LEFT, _RIGHT = 40, 10
"""What a chip has beside its texts."""
FADED = 0.5
"""Opacity of figures of an earlier set-up."""


class Chip(msgspec.Struct, frozen=True):
    """One thing to press: a change and what it comes to.  ``data`` is handed back when pressed.

    ``brief`` is a shorter title for where the whole one has no room; it may be of two lines.
    """

    title: str
    text: str
    kind: str
    tip: str = ""
    data: object = None
    brief: str = ""


class Cell(msgspec.Struct, frozen=True):
    """One rung of the ladder: a value, what it needs, and whether it is the present one."""

    title: str
    text: str
    kind: str
    tip: str = ""
    current: bool = False
    data: object = None


class _Pressable(QAbstractButton, Ringed):
    """What chips and cells share."""

    radius = 6

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.show_ring(self, event, Look.of(self).px(self.radius))
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.drop_ring()
        super().focusOutEvent(event)

    def opacity(self) -> float:
        """How strongly the texts stand out."""
        row = self.parentWidget()
        return FADED if isinstance(row, ChipRow) and row.is_stale else 1.0

    def name(self, title: str, text: str, kind: str, tip: str) -> None:
        word = verdict_word(kind)
        self.setAccessibleName(
            f"{title}, {text}" if word.lower() in text.lower() else f"{title}, {word}, {text}"
        )
        self.setToolTip(tip)


class ChipButton(_Pressable):
    """Verdict icon, title, and one line of figures."""

    def __init__(self, chip: Chip, parent: QWidget) -> None:
        super().__init__(parent)
        self.chip = chip
        self.name(chip.title, chip.text, chip.kind, chip.tip)

    def set_chip(self, chip: Chip) -> None:
        """Say something else."""
        if chip != self.chip:
            self.chip = chip
            self.name(chip.title, chip.text, chip.kind, chip.tip)
            self.update()

    def title_for(self, room: float) -> str:
        """The title, or the shorter one where ``room`` px do not hold it: a figure is not cut."""
        chip = self.chip
        return (
            chip.brief if chip.brief and _width(Look.of(self), chip.title, chip.text) > room else chip.title
        )

    def least_width(self) -> int:
        """The width in px that cuts nothing."""
        look, chip = Look.of(self), self.chip
        wide = min(_width(look, title, chip.text) for title in (chip.title, chip.brief) if title)
        return ceil(wide) + look.px(_LEFT) + look.px(_RIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        touched = self.underMouse() or self.isDown()
        fill = colours.hover if touched else colours.raised
        edge = colours.accent if self.isDown() else colours.secondary if touched else colours.border
        outlined(painter, QRectF(self.rect()), look.px(self.radius), fill, edge)
        painter.setOpacity(self.opacity())
        middle = self.height() / 2
        paint_verdict(painter, self.chip.kind, QPointF(look.px(22), middle), look.px(18), colours)
        left = look.px(_LEFT)
        room = self.width() - left - look.px(_RIGHT)
        side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        cut = Qt.TextElideMode.ElideRight
        lines = _lines(self.title_for(room), self.chip.text)
        step = look.scale * (18 if len(lines) == 2 else 14)
        for number, (text, role, weight) in enumerate(lines):
            painter.setPen(colours.text if weight == 600 else colours.secondary)
            painter.setFont(look.font(role, weight))
            centre = middle + (number - (len(lines) - 1) / 2) * step
            row = QRectF(left, centre - look.px(10), room + 2, look.px(20))
            painter.drawText(row, side, look.metrics(role, weight).elidedText(text, cut, room))


def _lines(title: str, text: str) -> list[tuple[str, float, int]]:
    """The lines of a chip with their size and weight; a title of two lines makes all of them smaller."""
    titles = title.split("\n")
    large, small = (Role.BODY, Role.SMALL) if len(titles) == 1 else (Role.SMALL, Role.CAPTION)
    return [*((line, large, 600) for line in titles), (text, small, 400)]


def _width(look: Look, title: str, text: str) -> float:
    return max(look.width(line, role, weight) for line, role, weight in _lines(title, text))


def _widths(needs: Sequence[int], usual: int, room: int) -> list[int]:
    """Widths of chips side by side with ``room`` px for each: alike, unless one needs another's room."""
    count, most = len(needs), max(needs, default=0)
    spare = room * count - sum(needs)
    if most <= room or spare < 0:
        return [min(max(usual, most), room)] * count
    return [need + spare // count for need in needs]


class MoreButton(_Pressable):
    """``15 more``: the way to all of them."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._count = 0

    def set_count(self, count: int) -> None:
        """How many more there are."""
        if count != self._count:
            self._count = count
            self.setAccessibleName(self.tr("{count} more").format(count=count))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        touched = self.underMouse() or self.isDown()
        edge = colours.secondary if touched else colours.border
        outlined(painter, QRectF(self.rect()), look.px(6), colours.hover if touched else colours.raised, edge)
        middle = self.height() / 2
        across = Qt.AlignmentFlag.AlignCenter
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(QRectF(0, middle - look.px(19), self.width(), look.px(20)), across, str(self._count))
        painter.setPen(colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        painter.drawText(QRectF(0, middle - look.px(1), self.width(), look.px(20)), across, self.tr("more"))


class _CellButton(_Pressable):
    """One rung; its neighbours touch it."""

    def __init__(self, cell: Cell, parent: QWidget) -> None:
        super().__init__(parent)
        self.cell = cell
        self.setCheckable(True)
        self.setChecked(cell.current)
        self.name(cell.title, cell.text, cell.kind, cell.tip)

    def nextCheckState(self) -> None:
        """Pressing does not move the outline: the next ladder does, once the value has changed."""

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect())
        if self.cell.current:
            outlined(painter, rect, look.px(5), colours.selected, colours.accent, 2)
        elif self.underMouse() or self.isDown():
            filled(painter, rect.adjusted(1, 1, -1, -1), colours.hover)
        painter.setOpacity(self.opacity())
        middle = self.height() / 2
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        row = QRectF(0, middle - look.px(19), self.width(), look.px(20))
        painter.drawText(row, Qt.AlignmentFlag.AlignCenter, self.cell.title)
        icon = look.px(13)
        wide = look.width(self.cell.text, Role.SMALL)
        left = (self.width() - icon - look.px(5) - wide) / 2
        low = middle + look.px(9)
        paint_verdict(painter, self.cell.kind, QPointF(left + icon / 2, low), icon, colours)
        painter.setPen(colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        row = QRectF(left + icon + look.px(5), low - look.px(10), wide + 2, look.px(20))
        painter.drawText(row, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.cell.text)


class ChipRow(QWidget):
    """Holds chips, or a ladder with its caption, or nothing; they stand at its right end."""

    pressed = Signal(object)
    """``data`` of the chip or cell."""
    more_requested = Signal()

    WIDEST, NARROWEST, GAP = 232, 188, 8

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chips: list[ChipButton] = []
        self._cells: list[_CellButton] = []
        self._caption = ""
        self._hidden_count = 0
        self._stale = False
        self._more = MoreButton(self)
        self._more.hide()
        self._more.clicked.connect(self.more_requested)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_stale(self, stale: bool) -> None:
        """Fade what is of an earlier set-up; it can be pressed all the same."""
        if stale != self._stale:
            self._stale = stale
            for button in self.buttons():
                button.update()

    @property
    def is_stale(self) -> bool:
        """Whether what is shown is of an earlier set-up, and has been for a while."""
        return self._stale

    def set_chips(self, chips: Sequence[Chip], more: int = 0) -> None:
        """Show up to three chips; ``more`` others stand behind the last one."""
        self.set_stale(False)
        self._drop_cells()
        shown = list(chips)[:3]
        for button, chip in zip(self._chips, shown, strict=False):
            button.set_chip(chip)
        while len(self._chips) > len(shown):
            self._remove(self._chips.pop())
        for chip in shown[len(self._chips) :]:
            button = ChipButton(chip, self)
            button.clicked.connect(self._tell_chip)
            self._chips.append(button)
        self._hidden_count = more + len(chips) - len(shown)
        self.place()

    def set_ladder(self, caption: str, cells: Sequence[Cell]) -> None:
        """Show a ladder of values instead."""
        self.set_stale(False)
        if cells and caption == self._caption and [button.cell for button in self._cells] == list(cells):
            return
        self.set_chips(())
        self._caption = caption
        for cell in cells:
            button = _CellButton(cell, self)
            button.clicked.connect(self._tell_cell)
            self._cells.append(button)
        self.place()

    def buttons(self) -> list[QAbstractButton]:
        """What can be pressed now."""
        return [button for button in (*self._chips, *self._cells, self._more) if not button.isHidden()]

    @property
    def cells(self) -> list[Cell]:
        """The rungs of the ladder; none while there are chips."""
        return [button.cell for button in self._cells]

    def content_left(self) -> int:
        """Where the leftmost thing begins; the row's width while it is empty."""
        left = min((button.x() for button in self.buttons()), default=self.width())
        return left - self._caption_room(Look.of(self), left)

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(3 * self.WIDEST + 2 * self.GAP), look.px(48))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, Look.of(self).px(48))

    def _tell_chip(self) -> None:
        button = self.sender()
        assert isinstance(button, ChipButton)
        self.pressed.emit(button.chip.data)

    def _tell_cell(self) -> None:
        button = self.sender()
        assert isinstance(button, _CellButton)
        self.pressed.emit(button.cell.data)

    def _drop_cells(self) -> None:
        while self._cells:
            self._remove(self._cells.pop())
        self._caption = ""

    @staticmethod
    def _remove(button: QAbstractButton) -> None:
        button.hide()
        button.deleteLater()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place()

    def place(self) -> None:
        """Lay everything out for the present width."""
        look = Look.of(self)
        if self._cells:
            self._place_cells(look)
        else:
            self._place_chips(look)
        self.update()

    def _place_chips(self, look: Look) -> None:
        gap, room, every = look.px(self.GAP), self.width(), len(self._chips)
        # A button of its own only where a chip had to give way; the whole list is a tab away anyhow.
        mores = [0 if count == every else look.px(64) + gap for count in range(every + 1)]
        rooms = [0, *((room - mores[count] + gap) // count - gap for count in range(1, every + 1))]
        needs = [button.least_width() for button in self._chips]
        could = [count for count in range(1, every + 1) if rooms[count] >= look.px(self.NARROWEST)]
        # One chip fewer is better than a title that is cut.
        whole = [count for count in could if count > 1 and rooms[count] * count >= sum(needs[:count])]
        fitting = max(whole or could, default=0)
        more = mores[fitting] if fitting else 0
        self._more.setVisible(bool(more))
        right = room - more
        if more:
            self._more.set_count(self._hidden_count + every - fitting)
            self._more.setGeometry(right + gap, 0, more - gap, self.height())
        widths = _widths(needs[:fitting], look.px(self.WIDEST), rooms[fitting])
        left = right - sum(widths) - gap * (fitting - 1)
        for index, button in enumerate(self._chips):
            button.setVisible(index < fitting)
            if index < fitting:
                button.setGeometry(left, 0, widths[index], self.height())
                left += widths[index] + gap

    def _place_cells(self, look: Look) -> None:
        room, widest, narrowest = self.width(), look.px(92), look.px(58)
        shown = self._nearest(max(0, room // narrowest))
        if not shown:
            for button in self._cells:
                button.hide()
            return
        width = min(widest, (room - self._caption_width(look) - look.px(12)) // len(shown))
        if width < narrowest:
            width = min(widest, room // len(shown))
        left = room - width * len(shown)
        for button in self._cells:
            button.setVisible(button in shown)
        for index, button in enumerate(shown):
            button.setGeometry(left + index * width, 0, width, self.height())

    def _nearest(self, most: int) -> list[_CellButton]:
        """The rungs for which there is room: the present one, and those nearest to where it stops fitting."""
        if most >= len(self._cells):
            return self._cells
        fitting = [index for index, button in enumerate(self._cells) if button.cell.kind in ("fits", "tight")]
        last = fitting[-1] if fitting else 0

        def away(index: int) -> tuple[bool, float]:
            return not self._cells[index].cell.current, abs(index - last - 0.4)

        kept = sorted(range(len(self._cells)), key=away)[:most]
        return [self._cells[index] for index in sorted(kept)]

    def _caption_room(self, look: Look, left: int) -> int:
        """What the caption takes before ``left``; 0 where it has no room."""
        if not self._caption:
            return 0
        room = self._caption_width(look) + look.px(12)
        return room if room <= left else 0

    def _caption_width(self, look: Look) -> int:
        lines = self._caption.split("\n")
        return round(max(look.width(line, Role.SMALL) for line in lines)) + 1

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = [button for button in self._cells if not button.isHidden()]
        if not shown:
            return
        look = Look.of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = shown[0].x()
        frame = QRectF(left, 0, self.width() - left, self.height())
        outlined(painter, frame, look.px(6), look.colours.raised, look.colours.border)
        for button in shown[1:]:
            filled(painter, QRectF(button.x(), 1, 1, self.height() - 2), look.colours.hairline)
        if self._caption_room(look, left):
            painter.setPen(look.colours.secondary)
            painter.setFont(look.font(Role.SMALL))
            side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(QRectF(0, 0, left - look.px(12), self.height()), side, self._caption)
