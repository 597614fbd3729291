"""What the controls share: the frame of a field, a pill, the ring that shows the keyboard's focus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from memgui.gui.theme import Look, Role

RING_GAP = 3
RING_WIDTH = 2


@contextmanager
def painting(size: QSizeF, ratio: float, ground: QColor) -> Iterator[tuple[QPixmap, QPainter]]:
    """A picture of so many px of the window, ``ratio`` px of the screen for each, and what paints on it."""
    picture = QPixmap(round(size.width() * ratio), round(size.height() * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(ground)
    painter = QPainter(picture)
    try:  # a painter must end before its picture goes, whatever happens
        yield picture, painter
    finally:
        painter.end()


def filled(painter: QPainter, rect: QRect | QRectF, colour: QColor) -> None:
    """A box in one colour; takes pen and brush.

    ``QPainter.fillRect`` paints the same, but has a start make the enums of gradients first, for 2 ms.
    """
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawRect(rect)


def outlined(
    painter: QPainter, rect: QRectF, radius: float, fill: QColor, edge: QColor, width: int = 1
) -> None:
    """A rounded box whose edge lies inside ``rect``."""
    inset = width / 2
    painter.setPen(QPen(edge, width) if width else Qt.PenStyle.NoPen)
    painter.setBrush(fill)
    painter.drawRoundedRect(rect.adjusted(inset, inset, -inset, -inset), radius, radius)


def paint_field(painter: QPainter, widget: QWidget, look: Look, invalid: bool) -> None:
    """The box of anything to fill in: 2 px when focused or invalid, quiet when disabled."""
    colours = look.colours
    rect = QRectF(widget.rect())
    if not widget.isEnabled():
        outlined(painter, rect, look.px(4), colours.window, colours.hairline)
    elif invalid:
        outlined(painter, rect, look.px(4), colours.raised, colours.bad, 2)
    elif widget.hasFocus():
        outlined(painter, rect, look.px(4), colours.raised, colours.accent, 2)
    else:
        edge = colours.secondary if widget.underMouse() else colours.border
        outlined(painter, rect, look.px(4), colours.raised, edge)


def pill_width(text: str, look: Look) -> float:
    """Width of :func:`paint_pill`."""
    return look.width(text, Role.SMALL, 500) + look.px(12)


def paint_pill(painter: QPainter, rect: QRectF, text: str, look: Look) -> None:
    """A short remark in accent on its tint, such as "2 changed"."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.colours.tint)
    painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2)
    painter.setPen(look.colours.accent)
    painter.setFont(look.font(Role.SMALL, 500))
    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)


def by_keyboard(event: QFocusEvent) -> bool:
    """Whether the focus came in a way that must be shown, which a click need not."""
    return event.reason() in (
        Qt.FocusReason.TabFocusReason,
        Qt.FocusReason.BacktabFocusReason,
        Qt.FocusReason.ShortcutFocusReason,
        Qt.FocusReason.OtherFocusReason,
    )


class FocusRing(QWidget):
    """The ring 3 px outside a focused button; it lies over the button's neighbours and takes no click."""

    def __init__(self, target: QWidget, radius: float) -> None:
        super().__init__(target.parentWidget())
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._target = target
        self._radius = radius
        target.installEventFilter(self)
        self._follow()
        self.show()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
            self._follow()
        elif event.type() in (QEvent.Type.Hide, QEvent.Type.FocusOut):
            self.hide()
        return False

    def _follow(self) -> None:
        out = RING_GAP + RING_WIDTH
        self.setGeometry(self._target.geometry().adjusted(-out, -out, out, out))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(Look.of(self).colours.accent, RING_WIDTH))
        inset = RING_WIDTH / 2
        radius = self._radius + RING_GAP
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), radius, radius)


class Ringed:
    """For buttons: shows a :class:`FocusRing` while the keyboard's focus is here."""

    _ring: FocusRing | None = None

    def show_ring(self, target: QWidget, event: QFocusEvent, radius: float) -> None:
        """Call it in ``focusInEvent``."""
        if by_keyboard(event) and target.parentWidget() is not None:
            self.drop_ring()
            self._ring = FocusRing(target, radius)

    def drop_ring(self) -> None:
        """Call it in ``focusOutEvent``."""
        if self._ring is not None:
            self._ring.hide()
            self._ring.deleteLater()
            self._ring = None
