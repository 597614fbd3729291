"""What is written over a sweep: names in areas, devices, crossings, the present value, the read-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.theme import Look, Role
from memgui.gui.whatif.layout import Sheet, name_place
from memgui.planning.sweep import Crossing

_CENTRE = Qt.AlignmentFlag.AlignCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


HIGHEST = 16
"""A crossing's tag stands at most so many quarters of its height above its dot."""


@dataclass(slots=True)
class Tags:
    """Paints over one sheet; what is written keeps clear of what was written before."""

    painter: QPainter
    look: Look
    sheet: Sheet
    numbers: Numbers
    taken: list[QRectF] = field(default_factory=list)
    written: list[tuple[QRectF, str]] = field(default_factory=list)
    """The tags of crossings, to be written again over what is painted later."""
    above: tuple[QRectF, str] | None = None
    """The word on what lies above the axis, likewise."""

    def crossings(self, found: Sequence[Crossing]) -> None:
        """A dot where each device's limit is crossed, a tag with the last value that fits."""
        painter, look, sheet = self.painter, self.look, self.sheet
        limits = {line.device: line.capacity_bytes for line in sheet.lines}
        shown = [
            (one.solution.largest, limits[one.device])
            for one in found
            if one.device in limits and one.solution.largest is not None and one.solution.next is not None
        ]
        inside = [(value, size) for value, size in shown if sheet.across.low <= value <= sheet.across.high]
        for value, size in inside:
            at = QPointF(sheet.across.x(value), sheet.axis.y(size))
            painter.setPen(QPen(look.colours.text, 1, Qt.PenStyle.DotLine))
            painter.drawLine(at, QPointF(at.x(), sheet.axis.bottom))
        for value, size in inside:
            at = QPointF(sheet.across.x(value), sheet.axis.y(size))
            self.dot(at, look.colours.text)
            self.tag(at, self.numbers.grouped(value))

    def dot(self, at: QPointF, colour: QColor) -> None:
        """A filled dot with a halo."""
        self.painter.setBrush(colour)
        self.painter.setPen(QPen(self.look.colours.base, 1.5))
        self.painter.drawEllipse(at, self.look.px(5), self.look.px(5))

    def tag(self, at: QPointF, text: str) -> None:
        """A dark tag beside a dot; at the left of it, where the curve does not run."""
        look, across = self.look, self.sheet.across
        wide, high = look.width(text, Role.BODY, 600) + look.px(16), float(look.px(24))
        away = look.px(10)
        places = (
            QRectF(at.x() - away - wide, at.y() - high / 2, wide, high),
            QRectF(at.x() + away, at.y() - high / 2, wide, high),
            QRectF(at.x() - away - wide, at.y() - high - away / 2, wide, high),
            QRectF(at.x() + away, at.y() + away / 2, wide, high),
            *(  # limits that lie close together: one tag over the other
                QRectF(left, at.y() - high / 2 - step * (high / 4), wide, high)
                for step in range(1, HIGHEST + 1)
                for left in (at.x() - away - wide, at.x() + away)
            ),
        )
        top = self.sheet.axis.top
        inside = [
            one
            for one in places
            if one.left() >= across.left and one.right() <= across.right + 2 and one.top() >= top - high / 2
        ]
        free = [one for one in inside if not self._is_taken(one)]
        rect = (free or inside or list(places))[0]
        self.write(rect, text)
        self.written.append((rect, text))
        self.taken.append(rect)

    def write(self, rect: QRectF, text: str) -> None:
        """A crossing's tag."""
        self.pill(rect, text, self.look.colours.tip, self.look.colours.tip_text)

    def pill(self, rect: QRectF, text: str, fill: QColor, ink: QColor) -> None:
        """A filled tag with a text in its middle."""
        painter, look = self.painter, self.look
        painter.setPen(QPen(look.colours.base, 1))
        painter.setBrush(fill)
        painter.drawRoundedRect(rect, look.px(4), look.px(4))
        painter.setPen(ink)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(rect, _CENTRE, text)

    def devices(self, beyond: Sequence[str]) -> None:
        """Each limit's device at the left, above its line; a word on those that lie above the axis."""
        painter, look, sheet, numbers = self.painter, self.look, self.sheet, self.numbers
        high = look.px(16)
        for line in sheet.lines:
            y = sheet.axis.y(line.capacity_bytes)
            name, figure = line.device.name, numbers.one(line.capacity_bytes)
            bold, plain = look.metrics(Role.SMALL, 600), look.metrics(Role.SMALL)
            first = bold.horizontalAdvance(name)
            wide = first + plain.horizontalAdvance(figure) + look.px(12)
            for top in (y - high - 2, y + 2):
                rect = QRectF(sheet.across.left + look.px(6), top, wide, high)
                # over the axis stands the present value's tag
                inside = sheet.axis.top - 2 <= top <= sheet.axis.bottom - high
                if inside and not self._is_taken(rect):
                    break
            else:
                continue
            self.taken.append(rect)
            self._ground(rect.adjusted(-2, 0, 2, 0))
            painter.setPen(look.colours.text)
            painter.setFont(look.font(Role.SMALL, 600))
            painter.drawText(rect, _LEFT, name)
            painter.setPen(look.colours.secondary)
            painter.setFont(look.font(Role.SMALL))
            painter.drawText(rect.adjusted(first + look.px(6), 0, look.px(4), 0), _LEFT, figure)
        if beyond:
            text = "↑ " + ", ".join(beyond)
            room = sheet.across.right - sheet.across.left - look.px(12)
            shown = look.cut(text, room, Role.SMALL)
            wide = look.width(shown, Role.SMALL) + look.px(4)
            rect = QRectF(sheet.across.left + look.px(6), sheet.axis.top - 2, wide, high)
            if not self._is_taken(rect):
                self.above = rect, shown
                self.say(rect, shown)

    def say(self, rect: QRectF, text: str) -> None:
        """A quiet word on the ground of the chart."""
        self._ground(rect)
        self.painter.setPen(self.look.colours.secondary)
        self.painter.setFont(self.look.font(Role.SMALL))
        self.painter.drawText(rect, _LEFT, text)

    def names(self) -> None:
        """Each component's name inside its area, where there is room."""
        painter, look, sheet = self.painter, self.look, self.sheet
        metrics = look.metrics(Role.SMALL, 600)
        lines = [sheet.axis.y(line.capacity_bytes) for line in sheet.lines]
        painter.setFont(look.font(Role.SMALL, 600))
        for layer in sheet.layers:
            paint = look.colours.component(layer.key)
            name = component_name(layer.key)
            wide, high = metrics.horizontalAdvance(name) + look.px(8), metrics.height()
            at = None if paint.hatch is not None else name_place(layer, sheet, wide, high, lines)
            if at is None:
                continue
            rect = QRectF(at[0] - wide / 2, at[1] - high / 2, wide, high)
            if not self._is_taken(rect):
                painter.setPen(paint.ink)
                painter.drawText(rect, _CENTRE, name)
                self.taken.append(rect)

    def pinned(self, name: str, at: QPointF) -> None:
        """The pinned curve's name at its end."""
        look = self.look
        text = look.cut(name, float(look.px(160)), Role.SMALL, 600)
        wide, high = look.width(text, Role.SMALL, 600) + look.px(8), float(look.px(16))
        for x, y in (
            (at.x() - wide, at.y() + 4),
            (at.x() - wide, at.y() - high - 4),
            (at.x() - wide, at.y() + 24),
        ):
            rect = QRectF(x, max(y, self.sheet.axis.top), wide, high)
            if not self._is_taken(rect):
                self._ground(rect)
                self.painter.setPen(look.colours.secondary)
                self.painter.setFont(look.font(Role.SMALL, 600))
                self.painter.drawText(rect, _CENTRE, text)
                self.taken.append(rect)
                return

    def _ground(self, rect: QRectF) -> None:
        self.painter.setOpacity(0.86)
        self.painter.fillRect(rect, self.look.colours.base)
        self.painter.setOpacity(1.0)

    def _is_taken(self, rect: QRectF) -> bool:
        return any(rect.intersects(other) for other in self.taken)
