"""The sweep's chart: stacked need over one field, limits, crossings; a crosshair to read off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.document.what_if import Swept
from memgui.gui import accessible
from memgui.gui.controls.frames import by_keyboard, painting
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.texts import issue_text
from memgui.gui.theme import THEME_EVENTS, Look, Role
from memgui.gui.timeline.painting import grid_text
from memgui.gui.verdict.bar import DIMMED
from memgui.gui.whatif.layout import Sheet, lay_out
from memgui.gui.whatif.tags import Tags
from memgui.gui.whatif.values import axis_title, axis_value, value_text
from memgui.planning.round_values import round_values
from memgui.planning.sweep import Crossing, Point

if TYPE_CHECKING:
    from memgui.gui.whatif.plot import Plot

_CENTRE = Qt.AlignmentFlag.AlignCenter


class SweepChart(QWidget):
    """Arrows move the crosshair, Enter or a click gives the field that value, Escape takes it away.

    The picture is kept; the present value and the crosshair lie over it, so that an edit costs a line.
    """

    chosen = Signal(object)
    """The person wants the field to have this value."""

    accessible_role = "Chart"
    item_role = "ListItem"

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._selection = selection
        self._view = view
        self._swept: Swept | None = None
        self._crossings: tuple[Crossing, ...] = ()
        self._present: tuple[int | float | None, int] = (None, 0)
        self._at: int | None = None
        self._by_mouse = False
        self._ring = False
        self._plot: Plot | None = None
        self._picture: QPixmap | None = None
        self.written: list[tuple[QRectF, str]] = []
        self.above: tuple[QRectF, str] | None = None
        """The crossings' tags, as they were last painted."""
        self._sheet: Sheet | None = None
        self.stale = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Memory over the swept field"))
        selection.selected.connect(self.repaint_all)

    def show_sweep(self, swept: Swept | None) -> None:
        """Draw another sweep."""
        other = self._swept is None or swept is None or swept.plan.path != self._swept.plan.path
        if other or self._by_mouse:
            self._at = None
        self._swept = swept
        self.repaint_all()

    def show_crossings(self, crossings: Sequence[Crossing]) -> None:
        """Mark where the limits are crossed."""
        self._crossings = tuple(crossings)
        self.repaint_all()

    def show_present(self, value: int | float | None, need: int) -> None:
        """The field's present value and what the set-up needs (bytes)."""
        if (value, need) != self._present:
            self._present = (value, need)
            self.update()

    @property
    def read_off(self) -> Point | None:
        """The point under the crosshair."""
        sheet = self.sheet()
        if sheet is None or self._at is None or self._at >= len(sheet.points):
            return None
        return sheet.points[self._at]

    def sheet(self) -> Sheet | None:
        """The sweep laid out for the present size; ``None`` while there is nothing to draw."""
        swept = self._swept
        if swept is None or len(swept.known) < 2:
            return None
        if self._sheet is None:
            look, numbers = Look.of(self), Numbers.of(self._view.view)
            left, top = float(look.px(44)), float(look.px(30))
            right, bottom = self.width() - float(look.px(14)), self.height() - float(look.px(38))
            self._sheet = lay_out(
                swept,
                self._present[1],
                numbers.unit_bytes,
                left,
                top,
                max(right, left + 1),
                max(bottom, top + 1),
                look.px(38),
            )
        return self._sheet

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(500), look.px(320))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(220), look.px(110))

    def accessible_items(self) -> Sequence[accessible.Item]:
        """About a dozen points of the sweep, and the one that is read off."""
        sheet = self.sheet()
        if sheet is None:
            return ()
        count = len(sheet.points)
        wanted = sorted({*range(0, count, max(1, count // 12)), *(() if self._at is None else (self._at,))})
        return [
            accessible.Item(self.said(sheet.points[at]), self._column(sheet, at), at == self._at)
            for at in wanted
            if at < count
        ]

    def said(self, point: Point) -> str:
        """A point in words: the value, the need, the parts."""
        numbers = Numbers.of(self._view.view)
        assert self._swept is not None
        return self.tr("{value}: {need}").format(
            value=value_text(self._swept.plan.path, point.value, numbers), need=numbers.tip(point.peak_bytes)
        )

    def _column(self, sheet: Sheet, at: int) -> QRect:
        return QRectF(sheet.xs[at] - 4, sheet.axis.top, 8, sheet.axis.bottom - sheet.axis.top).toAlignedRect()

    # what the person does

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        sheet = self.sheet()
        if sheet is None:
            return
        x, y = event.position().x(), event.position().y()
        inside = sheet.across.left - 4 <= x <= sheet.across.right + 4
        self._by_mouse = True
        self._read(sheet.nearest(x) if inside else None)
        key = sheet.layer_at(self._at, y) if self._at is not None else ""
        self._selection.point_at((key,) if key else ())

    def leaveEvent(self, event: QEvent) -> None:
        if self._by_mouse:
            self._read(None)
        self._selection.point_at(())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        sheet = self.sheet()
        if event.button() is Qt.MouseButton.LeftButton and sheet is not None:
            x = event.position().x()
            for one in self._crossings:
                value = one.solution.largest
                if value is not None and self._is_dot(sheet, one, value, event.position()):
                    self.chosen.emit(value)
                    return
            if sheet.across.left - 4 <= x <= sheet.across.right + 4:
                self.chosen.emit(sheet.points[sheet.nearest(x)].value)

    def _is_dot(self, sheet: Sheet, one: Crossing, value: int, position: QPointF) -> bool:
        limit = next((line.capacity_bytes for line in sheet.lines if line.device == one.device), None)
        if limit is None:
            return False
        away = position - QPointF(sheet.across.x(value), sheet.axis.y(limit))
        return away.manhattanLength() <= Look.of(self).px(10)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        sheet = self.sheet()
        if sheet is None:
            super().keyPressEvent(event)
            return
        self._ring = True
        self._by_mouse = False
        last = len(sheet.points) - 1
        value = self._present[0]
        here = self._at if self._at is not None else sheet.index_of(value) if value is not None else 0
        keys = Qt.Key
        moves = {
            keys.Key_Left: here - 1,
            keys.Key_Right: here + 1,
            keys.Key_PageDown: here - 10,
            keys.Key_PageUp: here + 10,
            keys.Key_Home: 0,
            keys.Key_End: last,
        }
        if event.key() in moves:
            self._read(min(max(moves[keys(event.key())], 0), last))
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space) and self._at is not None:
            self.chosen.emit(sheet.points[self._at].value)
        elif event.key() == keys.Key_Escape and self._at is not None:
            self._read(None)
        else:
            super().keyPressEvent(event)

    def _read(self, at: int | None) -> None:
        if at != self._at:
            self._at = at
            self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()
        super().focusOutEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.repaint_all()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in THEME_EVENTS:
            self.repaint_all()
        super().changeEvent(event)

    def repaint_all(self, _: object = None) -> None:
        """Throw the kept picture away."""
        self._picture = self._sheet = None
        self.update()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        sheet, look = self.sheet(), Look.of(self)
        painter = QPainter(self)
        if sheet is None:
            self._paint_nothing(painter, look)
            return
        ratio = self.devicePixelRatioF()
        if self._picture is None or self._picture.devicePixelRatio() != ratio:
            self._picture = self._painted(sheet, look, ratio)
        if self.stale:
            painter.setOpacity(DIMMED)
        painter.drawPixmap(0, 0, self._picture)
        painter.setOpacity(1.0)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.stale:
            self._paint_present(painter, look, sheet)
            self._paint_crosshair(painter, look, sheet)
        if self._ring and self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(look.colours.accent, 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), look.px(4), look.px(4))

    def _paint_nothing(self, painter: QPainter, look: Look) -> None:
        if self._swept is None:
            return
        first = next((one.issue for one in self._swept.points if one.issue is not None), None)
        said = self.tr("Nothing in this range can be computed.")
        text = f"{said} {issue_text(first)}" if first is not None else said
        painter.setPen(look.colours.secondary)
        painter.setFont(look.font())
        room = QRectF(self.rect()).adjusted(look.px(16), 0, -look.px(16), 0)
        painter.drawText(room, _CENTRE | Qt.TextFlag.TextWordWrap, text)

    def _painted(self, sheet: Sheet, look: Look, ratio: float) -> QPixmap:
        swept = self._swept
        assert swept is not None
        if self._plot is None:
            from memgui.gui.whatif.plot import Plot

            self._plot = Plot(self)
        numbers = Numbers.of(self._view.view)
        path = swept.plan.path
        most = max(2, round((sheet.across.right - sheet.across.left) / look.px(64)))
        ticks = round_values(path, swept.plan.low, swept.plan.high, most, swept.plan.scale)
        across = [(sheet.across.at(float(tick)), axis_value(path, tick, numbers)) for tick in ticks]
        up = [(size, grid_text(size, sheet.axis, numbers)) for size in sheet.axis.grid()]
        pointed = frozenset(self._selection.component[:1])
        with painting(self.size().toSizeF(), ratio, look.colours.base) as (picture, painter):
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._plot.draw(painter, look, sheet, swept, self.size(), across, up, pointed, ratio)
            painter.setPen(look.colours.tertiary)
            painter.setFont(look.font(Role.CAPTION))
            below = QRectF(
                sheet.across.left, self.height() - look.px(17), self.width() - sheet.across.left, look.px(16)
            )
            painter.drawText(below, _CENTRE, axis_title(path, numbers))
            tags = Tags(painter, look, sheet, numbers)
            tags.crossings(self._crossings)
            self.written = tags.written
            tags.devices([f"{one.device.name} {numbers.one(one.capacity_bytes)}" for one in sheet.beyond])
            self.above = tags.above
            known = [one for one in swept.pinned if one.issue is None and one.peak_bytes <= sheet.axis.end]
            if known:
                at = QPointF(sheet.across.x(float(known[-1].value)), sheet.axis.y(known[-1].peak_bytes))
                tags.pinned(swept.pinned_name, at)
            tags.names()
        return picture

    def _paint_present(self, painter: QPainter, look: Look, sheet: Sheet) -> None:
        value, need = self._present
        if value is None or not sheet.across.low <= value <= sheet.across.high or self._swept is None:
            return
        numbers = Numbers.of(self._view.view)
        colours = look.colours
        x = round(sheet.across.x(float(value))) + 0.0
        painter.setPen(QPen(colours.accent, 2))
        painter.drawLine(QPointF(x, sheet.axis.top - 4), QPointF(x, sheet.axis.bottom))
        tags = Tags(painter, look, sheet, numbers)
        if self.above is not None and self.above[0].left() - 1 <= x <= self.above[0].right() + 1:
            tags.say(*self.above)
        if need <= sheet.axis.end:
            tags.dot(QPointF(x, sheet.axis.y(need)), colours.accent)
        for rect, crossing in self.written:
            tags.write(rect, crossing)
        text = f"{value_text(self._swept.plan.path, value, numbers)} · {numbers.sentence(need)}"
        wide, high = look.width(text, Role.BODY, 600) + look.px(20), float(look.px(24))
        left = min(max(x - wide / 2, 0.0), self.width() - wide)
        tags.pill(
            QRectF(left, sheet.axis.top - high - 2, wide, high), text, colours.accent, colours.on_accent
        )

    def _paint_crosshair(self, painter: QPainter, look: Look, sheet: Sheet) -> None:
        point = self.read_off
        if point is None or self._at is None or self._swept is None:
            return
        colours, numbers = look.colours, Numbers.of(self._view.view)
        x = sheet.xs[self._at]
        painter.setPen(QPen(colours.text, 1))
        painter.drawLine(QPointF(x, sheet.axis.top), QPointF(x, sheet.axis.bottom))
        if point.peak_bytes <= sheet.axis.end:
            Tags(painter, look, sheet, numbers).dot(QPointF(x, sheet.axis.y(point.peak_bytes)), colours.text)
        title = value_text(self._swept.plan.path, point.value, numbers)
        self._paint_read_out(painter, look, x, title, self.read_out())

    def read_out(self) -> list[tuple[str, str]]:
        """What the crosshair reads off: each component, their total, and what the pinned set-up needs."""
        point, sheet, numbers = self.read_off, self.sheet(), Numbers.of(self._view.view)
        if point is None or sheet is None or self._at is None or self._swept is None:
            return []
        rows = [(component_name(key), numbers.two(size)) for key, size in _parts(sheet, self._at)]
        rows.append((self.tr("Total"), numbers.two(point.peak_bytes)))
        pinned = next((one for one in self._swept.pinned if one.value == point.value), None)
        if pinned is not None:
            known = numbers.two(pinned.peak_bytes) if pinned.issue is None else "–"
            rows.append((self.tr("Pinned"), known))
        return rows

    def _paint_read_out(
        self, painter: QPainter, look: Look, x: float, title: str, rows: list[tuple[str, str]]
    ) -> None:
        colours = look.colours
        step = look.px(17)
        names = max(look.width(name, Role.SMALL, 600) for name, _ in rows)
        figures = max(look.width(figure, Role.SMALL, 600) for _, figure in rows)
        wide = max(names + figures + look.px(36), look.width(title, Role.BODY, 600) + look.px(20))
        high = step * (len(rows) + 1) + look.px(12)
        left = x + look.px(12) if x + wide + look.px(16) < self.width() else x - wide - look.px(12)
        rect = QRectF(max(left, 0.0), look.px(30), wide, high)
        painter.setPen(QPen(colours.border, 1))
        painter.setBrush(colours.raised)
        painter.drawRoundedRect(rect, look.px(5), look.px(5))
        inner = rect.adjusted(look.px(10), look.px(6), -look.px(10), 0)
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(
            QRectF(inner.left(), inner.top(), inner.width(), step), Qt.AlignmentFlag.AlignLeft, title
        )
        for at, (name, figure) in enumerate(rows, start=1):
            weight = 600 if name == self.tr("Total") else 400
            row = QRectF(inner.left(), inner.top() + at * step, inner.width(), step)
            painter.setFont(look.font(Role.SMALL, weight))
            painter.setPen(colours.text if weight == 600 else colours.secondary)
            painter.drawText(row, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, name)
            painter.drawText(row, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, figure)


def _parts(sheet: Sheet, at: int) -> list[tuple[str, int]]:
    """The components at a point, the topmost first."""
    return [(layer.key, layer.upper[at] - layer.lower[at]) for layer in reversed(sheet.layers)]
