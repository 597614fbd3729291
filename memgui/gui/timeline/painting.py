"""How a timeline is drawn, on a widget, a picture or a page of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from memgui.estimator.result import Estimate
from memgui.gui.metrics import MIDDLE, RIGHT
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import hatch_brush
from memgui.gui.texts import message_text
from memgui.gui.theme import Look, Role
from memgui.gui.timeline import geometry
from memgui.gui.timeline.geometry import Across, Axis, Layer
from memgui.gui.verdict.sentence import limit_text
from memgui.gui.why.qt_words import QtWords
from memgui.planning.moments import Spans, first_step_peak, peak_index, spans_of

_CENTRE = Qt.AlignmentFlag.AlignCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class Content:
    """What of an estimate is drawn, whatever the size."""

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate
        steps = estimate.scenario.training.gradient_accumulation_steps
        timeline = estimate.timeline
        self.spans = spans_of(timeline, steps if estimate.scenario.task == "training" else 1)
        self.layers = geometry.stacked(timeline)
        self.kinks = geometry.kinks(self.layers, timeline)
        self.peak = peak_index(estimate)
        self.first = first_step_peak(estimate)
        self.highest = max((moment.bytes for moment in timeline), default=0)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A timeline laid out for one size."""

    axis: Axis
    across: Across
    layers: list[Layer]
    kinks: list[int]
    spans: Spans
    peak: int
    first: int | None

    def point(self, estimate: Estimate, index: int) -> QPointF:
        """Where the total of a moment stands."""
        return QPointF(self.across.x(index), self.axis.y(estimate.timeline[index].bytes))


def lay_out(content: Content, look: Look, numbers: Numbers, width: float, height: float) -> Drawing:
    """Lay a timeline out for a size in px."""
    spans = content.spans
    rows = 1 + bool(spans.batches) + bool(spans.steps)
    bottom = max(height - rows * look.px(18) - look.px(4), 1.0)
    limit = float(content.estimate.verdict.capacity_bytes)
    top = float(look.px(14))
    axis = geometry.axis_for(float(content.highest), limit, numbers.unit_bytes, top, bottom, look.px(34))
    left = look.width(grid_text(axis.end, axis, numbers), Role.CAPTION) + look.px(10)
    right = max(width - look.px(2), left + 1)
    across = geometry.across_for(content.estimate.timeline, left, right)
    return Drawing(axis, across, content.layers, content.kinks, spans, content.peak, content.first)


def grid_text(size: float, axis: Axis, numbers: Numbers) -> str:
    """A grid line's bare figure in the unit, with as many decimals as its step has."""
    step = axis.step / numbers.unit_bytes
    decimals = 0 if step >= 1 else 1 if step >= 0.1 else 2 if step >= 0.01 else 3
    return numbers.axis(f"{size / numbers.unit_bytes:.{decimals}f}")


@dataclass(frozen=True, slots=True)
class Artist:
    """Paints one drawing; ``pointed`` are the components selected or under the mouse."""

    painter: QPainter
    look: Look
    drawing: Drawing
    estimate: Estimate
    numbers: Numbers
    pointed: frozenset[str]
    ratio: float

    def paint(self) -> None:
        """Grid, areas, names, limit, peaks."""
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.grid()
        names = self.areas()
        self.spans()
        self.peaks([*names, *self.limit()])

    def grid(self) -> None:
        painter, look, drawing = self.painter, self.look, self.drawing
        numbers = self.numbers
        axis, across = drawing.axis, drawing.across
        small = look.metrics(Role.CAPTION)
        for size in axis.grid():
            y = round(axis.y(size))
            painter.fillRect(QRectF(across.left, y, across.right - across.left, 1), look.colours.hairline)
            painter.setPen(look.colours.tertiary)
            text = grid_text(size, axis, numbers)
            room = QRectF(0, y - look.px(8), across.left - look.px(6), look.px(16))
            small.write(painter, room, text, RIGHT)

    def areas(self) -> list[QRectF]:
        """Areas, their edges and names; the names' places are returned."""
        painter, look, drawing, estimate = self.painter, self.look, self.drawing, self.estimate
        colours = look.colours
        pointed = self.pointed
        names = look.metrics(Role.SMALL, 600)
        line = drawing.axis.y(estimate.verdict.capacity_bytes)
        uprights = [drawing.across.edges[span.first] for span in drawing.spans.steps[1:]]
        uprights.append(drawing.across.x(drawing.peak))
        written = []
        upper = self.edge(drawing.layers[0].lower)
        for layer in drawing.layers:
            paint = colours.component(layer.key)
            lower, upper = upper, self.edge(layer.upper)
            area = QPolygonF([*upper, *reversed(lower)])
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(paint.fill)
            painter.drawPolygon(area)
            if paint.hatch is not None:
                painter.setBrush(hatch_brush(paint.hatch, self.ratio))
                painter.drawPolygon(area)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(paint.edge, 1))
            painter.drawPolyline(QPolygonF(upper))
            if layer.key in pointed:
                painter.setPen(QPen(colours.text, 2))
                painter.drawPolygon(area)
            name = component_name(layer.key)
            wide, high = names.horizontalAdvance(name) + look.px(8), names.height()
            at = (
                None
                if paint.hatch is not None
                else geometry.name_place(layer, drawing.axis, drawing.across, wide, high, line, uprights)
            )
            if at is not None:
                written.append((QRectF(at[0] - wide / 2, at[1] - high / 2, wide, high), name, paint.ink))
        painter.setPen(QPen(colours.text, 1.5))
        painter.drawPolyline(QPolygonF(upper))
        for rect, name, ink in written:
            painter.setPen(ink)
            names.write(painter, rect, name, MIDDLE)
        return [rect for rect, _, _ in written]

    def edge(self, sizes: Sequence[int]) -> list[QPointF]:
        """The upper edge of one area, which is the lower one of the next."""
        drawing = self.drawing
        points = geometry.outline(sizes, drawing.axis, drawing.across, drawing.kinks)
        return [QPointF(x, y) for x, y in points]

    def spans(self) -> None:
        """Names of phases, and brackets under micro batches and steps."""
        painter, look, drawing = self.painter, self.look, self.drawing
        colours = look.colours
        words = QtWords(self.numbers)
        across, bottom = drawing.across, drawing.axis.bottom
        row = bottom + look.px(4)
        for spans, strong in (
            (drawing.spans.phases, False),
            (drawing.spans.batches, True),
            (drawing.spans.steps, True),
        ):
            if not spans:
                continue
            weight = 600 if strong else 400
            metrics = look.metrics(Role.CAPTION, weight)
            for span in spans:
                left, right = across.edges[span.first], across.edges[span.last + 1]
                if strong and right - left > look.px(8):
                    painter.setPen(QPen(colours.border, 1))
                    y = round(row) + 0.5
                    painter.drawLine(QPointF(left + 3, y), QPointF(right - 3, y))
                    for x in (left + 3, right - 3):
                        painter.drawLine(QPointF(x, y), QPointF(x, y - look.px(3)))
                text = span.title.text(words)
                room = right - left - look.px(4)
                if metrics.horizontalAdvance(text) <= room:
                    painter.setPen(colours.text if strong else colours.secondary)
                    metrics.write(painter, QRectF(left, row, right - left, look.px(18)), text, MIDDLE)
            row += look.px(18)
        for span in drawing.spans.steps[1:]:
            x = round(across.edges[span.first]) + 0.5
            painter.setPen(QPen(colours.secondary, 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(x, drawing.axis.top), QPointF(x, row))

    def limit(self) -> list[QRectF]:
        """The limit's line and name, or a word where it is far above; the places taken are returned."""
        painter, look, drawing, estimate = self.painter, self.look, self.drawing, self.estimate
        colours = look.colours
        limit = estimate.verdict.capacity_bytes
        text = limit_text(estimate, self.numbers)
        bold = look.metrics(Role.SMALL, 600)
        wide = bold.horizontalAdvance(text) + look.px(6)
        passed = estimate.peak_bytes > limit
        colour = colours.bad if passed else colours.text
        left, top = drawing.across.left + look.px(6), drawing.axis.top
        painter.setFont(look.font(Role.SMALL, 600))
        if limit > drawing.axis.end:
            painter.setPen(colours.secondary)
            rect = QRectF(drawing.across.right - wide - look.px(14), 0, wide + look.px(14), look.px(16))
            painter.drawText(rect, _RIGHT, f"↑ {text}")
            return [rect]
        y = round(drawing.axis.y(limit))
        painter.fillRect(
            QRectF(drawing.across.left, y - 2, drawing.across.right - drawing.across.left, 4), colours.base
        )
        painter.fillRect(
            QRectF(drawing.across.left, y - 1, drawing.across.right - drawing.across.left, 2), colour
        )
        above = y - look.px(18)
        rect = QRectF(left, above if above >= top - look.px(14) else y + look.px(2), wide, look.px(16))
        ground = QRectF(rect)
        painter.setOpacity(0.86)
        painter.fillRect(ground, colours.base)
        painter.setOpacity(1.0)
        painter.setPen(colour)
        painter.drawText(rect.adjusted(look.px(3), 0, 0, 0), _LEFT, text)
        line = QRectF(drawing.across.left, y - 2, drawing.across.right - drawing.across.left, 4)
        return [rect, line]

    def peaks(self, taken: list[QRectF]) -> None:
        painter, look, drawing, estimate = self.painter, self.look, self.drawing, self.estimate
        colours = look.colours
        numbers = self.numbers
        peak = drawing.point(estimate, drawing.peak)
        painter.setPen(QPen(colours.text, 1, Qt.PenStyle.DotLine))
        painter.drawLine(peak, QPointF(peak.x(), drawing.axis.bottom))
        tag = QCoreApplication.translate("timeline", "Peak {size}").format(
            size=numbers.sentence(estimate.timeline[drawing.peak].bytes)
        )
        taken.append(self.tag(peak, tag, taken))
        painter.setBrush(colours.text)
        painter.setPen(QPen(colours.base, 1.5))
        painter.drawEllipse(peak, look.px(5), look.px(5))
        if drawing.first is None:
            return
        first = drawing.point(estimate, drawing.first)
        painter.setBrush(colours.base)
        painter.setPen(QPen(colours.text, 1.5))
        painter.drawEllipse(first, look.px(4), look.px(4))
        text = QCoreApplication.translate("timeline", "First step {size}").format(
            size=numbers.one(estimate.timeline[drawing.first].bytes)
        )
        wide = look.width(text, Role.SMALL, 600) + look.px(6)
        high = look.px(16)
        for rect in (
            QRectF(first.x() - wide / 2, first.y() - high - look.px(6), wide, high),
            QRectF(first.x() + look.px(8), first.y() - high / 2, wide, high),
            QRectF(first.x() - wide - look.px(8), first.y() - high / 2, wide, high),
            QRectF(first.x() - wide - look.px(8), first.y() - 2 * high, wide, high),
        ):
            if (
                rect.left() >= drawing.across.left
                and rect.top() >= 0
                and not any(rect.intersects(other) for other in taken)
            ):
                painter.setOpacity(0.86)
                painter.fillRect(rect, colours.base)
                painter.setOpacity(1.0)
                painter.setPen(colours.text)
                painter.setFont(look.font(Role.SMALL, 600))
                painter.drawText(rect, _CENTRE, text)
                return

    def tag(self, peak: QPointF, text: str, taken: list[QRectF]) -> QRectF:
        """A dark tag beside the peak, and the moment's name behind it where there is room."""
        painter, look, drawing, estimate = self.painter, self.look, self.drawing, self.estimate
        colours = look.colours
        bold, plain = look.metrics(Role.SMALL, 600), look.metrics(Role.SMALL)
        wide, high = bold.horizontalAdvance(text) + look.px(16), float(look.px(22))
        name = message_text(estimate.timeline[drawing.peak].label)
        named = plain.horizontalAdvance(name) + look.px(8)
        y = max(0.0, peak.y() - high / 2)
        away = look.px(12)
        left, right = peak.x() - away, drawing.across.right - peak.x() - away
        if right >= wide:
            rect = QRectF(peak.x() + away, y, wide, high)
            label = QRectF(rect.right() + look.px(8), y, named, high) if right >= wide + named else None
        else:
            rect = QRectF(peak.x() - away - wide, y, wide, high)
            label = QRectF(rect.left() - named - look.px(2), y, named, high) if left >= wide + named else None
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.tip)
        painter.drawRoundedRect(rect, look.px(4), look.px(4))
        painter.setPen(colours.tip_text)
        painter.setFont(look.font(Role.SMALL, 600))
        painter.drawText(rect, _CENTRE, text)
        if label is not None and not any(label.intersects(other) for other in taken):
            painter.setOpacity(0.86)
            painter.fillRect(label.adjusted(-2, 3, 2, -3), colours.base)
            painter.setOpacity(1.0)
            painter.setPen(colours.text)
            painter.setFont(look.font(Role.SMALL))
            painter.drawText(label, _LEFT, name)
            return rect.united(label)
        return rect
