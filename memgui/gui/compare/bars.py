"""Set-ups as bars over one scale: chosen by key or mouse, each with a menu of what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from memgui.gui import accessible
from memgui.gui.compare.painting import BAR, HEAD, ROW, SetUpBar, paint_ticks, scale_of
from memgui.gui.compare.setups import SetUp
from memgui.gui.controls.frames import by_keyboard, outlined
from memgui.gui.icons import paint_icon
from memgui.gui.numbers import Numbers
from memgui.gui.theme import Look
from memgui.gui.verdict.bar_geometry import Scale
from memgui.gui.ways.texts import exact_figures, tip

_FOOT = 22


class Bars(QWidget):
    """Arrows choose the set-up that is held against the first one; Enter opens it."""

    accessible_role = "List"
    item_role = "ListItem"

    chosen = Signal(int)
    """The set-up at this place is compared with the first one."""
    opened = Signal(int)
    removed = Signal(int)
    renamed = Signal(int)
    menu_asked = Signal(int, QPoint)
    """What can be done with a set-up, at a point of the screen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._set_ups: Sequence[SetUp] = ()
        self._numbers: Numbers | None = None
        self._current = 0
        self._under = -1
        self._ring = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Set-ups"))
        self.setAccessibleDescription(
            self.tr("Enter opens a set-up, the menu key shows what else can be done.")
        )

    def show_set_ups(self, set_ups: Sequence[SetUp], current: int, numbers: Numbers) -> None:
        """Show these, the one at ``current`` compared with the first."""
        before, was = self._set_ups, (self._current, self._numbers, self._scale(), len(self._set_ups))
        self._set_ups, self._current, self._numbers = set_ups, current, numbers
        if was != (current, numbers, self._scale(), len(set_ups)):
            self.updateGeometry()
            self.update()
            return
        for place, (old, new) in enumerate(zip(before, set_ups, strict=True)):
            if (
                old.estimate is not new.estimate
                or (old.name, old.issue, old.is_open) != (new.name, new.issue, new.is_open)
                or (old.pin is None) != (new.pin is None)
            ):
                self.update(self.row_rect(place))

    def _scale(self) -> Scale | None:
        """One scale for all of them."""
        if self._numbers is None:
            return None
        look = Look.of(self)
        width = float(self.width() - 2 * look.px(16))
        return scale_of([one.estimate for one in self._set_ups], width, self._numbers, look)

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(600), len(self._set_ups) * look.px(ROW) + look.px(_FOOT))

    def minimumSizeHint(self) -> QSize:
        return QSize(Look.of(self).px(240), self.sizeHint().height())

    def row_rect(self, place: int) -> QRect:
        """Where a set-up is."""
        high = Look.of(self).px(ROW)
        return QRect(0, place * high, self.width(), high)

    def menu_rect(self, place: int) -> QRect:
        """Where the button of its menu is."""
        look = Look.of(self)
        row = self.row_rect(place)
        side = look.px(24)
        return QRect(row.right() - look.px(12) - side, row.top() + look.px(4), side, side)

    def _at(self, at: QPoint) -> int:
        place = at.y() // Look.of(self).px(ROW)
        return place if 0 <= place < len(self._set_ups) else -1

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per set-up: letter, name, need, verdict."""
        numbers = self._numbers
        if numbers is None:
            return ()
        items = []
        for place, one in enumerate(self._set_ups):
            need = f"{numbers.sentence(one.estimate.peak_bytes)}, " if one.estimate is not None else ""
            name = f"{one.letter}, {one.name}: {need}{one.said(numbers)}"
            items.append(accessible.Item(name, self.row_rect(place), place == self._current))
        return items

    # what the person does

    def _choose(self, place: int) -> None:
        if 0 <= place < len(self._set_ups) and place != self._current:
            self.chosen.emit(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        self._ring = True
        match event.key():
            case keys.Key_Down | keys.Key_Right:
                self._choose(self._current + 1)
            case keys.Key_Up | keys.Key_Left:
                self._choose(self._current - 1)
            case keys.Key_Home:
                self._choose(0)
            case keys.Key_End:
                self._choose(len(self._set_ups) - 1)
            case keys.Key_Return | keys.Key_Enter:
                self.opened.emit(self._current)
            case keys.Key_Delete | keys.Key_Backspace:
                self.removed.emit(self._current)
            case keys.Key_F2:
                self.renamed.emit(self._current)
            case _:
                super().keyPressEvent(event)
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        under = self._at(event.position().toPoint())
        if under != self._under:
            self._under = under
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._under = -1
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        place = self._at(at)
        self._ring = False
        if place < 0 or event.button() is not Qt.MouseButton.LeftButton:
            return
        self._choose(place)
        if self.menu_rect(place).contains(at):
            self.menu_asked.emit(place, self.mapToGlobal(self.menu_rect(place).bottomLeft()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position().toPoint())
        if place >= 0 and event.button() is Qt.MouseButton.LeftButton:
            self.opened.emit(place)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() is QContextMenuEvent.Reason.Mouse
        place = self._at(event.pos()) if by_mouse else self._current
        if place >= 0:
            self._choose(place)
            at = event.globalPos() if by_mouse else self.mapToGlobal(self.menu_rect(place).bottomLeft())
            self.menu_asked.emit(place, at)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            place = self._at(event.pos())
            if place >= 0 and self._numbers is not None:
                QToolTip.showText(event.globalPos(), self._tip(self._set_ups[place], self._numbers), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def _tip(self, one: SetUp, numbers: Numbers) -> str:
        estimate = one.estimate
        if estimate is None:
            return tip(one.name, [one.said(numbers)])
        return tip(one.name, [exact_figures(estimate, numbers), numbers.exact(estimate.peak_bytes)])

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        numbers = self._numbers
        if numbers is None or not self._set_ups:
            return
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edge = look.px(16)
        width = float(self.width() - 2 * edge)
        scale = self._scale()
        assert scale is not None
        for place, one in enumerate(self._set_ups):
            if not event.rect().intersects(self.row_rect(place)):
                continue
            row = QRectF(self.row_rect(place))
            current = place == self._current
            if current and len(self._set_ups) > 1:
                painter.fillRect(row, colours.selected)
                painter.fillRect(QRectF(0, row.top(), look.px(3), row.height()), colours.accent)
            elif place == self._under:
                painter.fillRect(row, colours.hover)
            bar = SetUpBar(painter, look, numbers, one, scale)
            head = QRectF(edge, row.top() + look.px(2), width - look.px(24), look.px(HEAD))
            bar.paint_head(head, is_base=place == 0, is_alone=len(self._set_ups) == 1)
            bar.paint_bar(QRectF(edge, row.top() + look.px(2 + HEAD), width, look.px(BAR)))
            if place in (self._under, self._current):
                centre = QPointF(QRectF(self.menu_rect(place)).center())
                paint_icon(painter, "more", centre, look.px(18), colours.secondary)
            if current and self._ring and self.hasFocus():
                clear = QColor(0, 0, 0, 0)
                outlined(painter, row.adjusted(1, 1, -1, -1), look.px(4), clear, colours.accent, 2)
        top = len(self._set_ups) * look.px(ROW)
        paint_ticks(painter, look, numbers, scale, QRectF(edge, top, width, look.px(18)))
