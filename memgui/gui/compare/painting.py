"""How a set-up is drawn in the comparison: its letter, its name, its verdict, its bar."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from memgui.estimator.result import Estimate
from memgui.gui.compare.setups import SetUp
from memgui.gui.controls.frames import outlined, paint_pill, pill_width
from memgui.gui.icons import paint_verdict
from memgui.gui.metrics import MIDDLE
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import hatch_brush
from memgui.gui.theme import Look, Role
from memgui.gui.verdict import bar_geometry as geometry
from memgui.gui.verdict.bar import bar_piece

ROW, HEAD, BAR = 66, 28, 24
FAR = 4
"""A limit of more than this many times the largest need would leave nothing to compare."""
translate = QCoreApplication.translate


def scale_of(
    estimates: Sequence[Estimate | None], width: float, numbers: Numbers, look: Look
) -> geometry.Scale:
    """One scale for all: to the next round step past every need, and every limit that is not far away."""
    known = [one for one in estimates if one is not None]
    most = max((float(max(one.high_bytes, one.peak_bytes)) for one in known), default=1.0)
    needs = most
    for one in known:
        if one.verdict.capacity_bytes <= FAR * needs:
            most = max(most, one.verdict.capacity_bytes)
    everything = geometry.Sizes({}, 0.0, 0.0, 0.0, most, most)
    return geometry.scale_for(everything, width, numbers.unit_bytes, look.px(100), 0.0)


def paint_ticks(painter: QPainter, look: Look, numbers: Numbers, scale: geometry.Scale, row: QRectF) -> None:
    """The figures under the last bar."""
    metrics = look.metrics(Role.CAPTION)
    painter.setPen(look.colours.tertiary)
    labels = geometry.tick_labels(
        scale, numbers.unit_bytes, numbers.unit, numbers.axis, metrics.horizontalAdvance, (), look.px(8)
    )
    for label in labels:
        place = QRectF(row.left() + label.x, row.top(), label.width + 2, row.height())
        metrics.write(painter, place, label.text)


class SetUpBar:
    """Paints one set-up."""

    def __init__(
        self, painter: QPainter, look: Look, numbers: Numbers, one: SetUp, scale: geometry.Scale
    ) -> None:
        self._painter = painter
        self._look = look
        self._numbers = numbers
        self._one = one
        self._scale = scale

    def paint_head(self, row: QRectF, *, is_base: bool, is_alone: bool) -> None:
        """Letter, name and remarks at the left; need and verdict at the right."""
        painter, look, one = self._painter, self._look, self._one
        colours = look.colours
        side = look.px(20)
        badge = QRectF(row.left(), round(row.center().y() - side / 2), side, side)
        fill = colours.text if is_base else colours.base
        outlined(painter, badge, look.px(4), fill, colours.text)
        painter.setPen(colours.base if is_base else colours.text)
        look.metrics(Role.SMALL, 600).write(painter, badge, one.letter, MIDDLE)
        end = self._paint_verdict(row, row.left() + look.px(180))
        left = row.left() + look.px(28)
        pills = [translate("Compare", "baseline")] if is_base and not is_alone else []
        if one.is_open and one.pin is not None:
            pills.append(translate("Compare", "open now"))
        room = end - left - sum(pill_width(text, look) + look.px(8) for text in pills) - look.px(12)
        painter.setPen(colours.text)
        metrics = look.metrics(Role.BODY, 500)
        shown = metrics.cut(one.name, max(room, 0))
        metrics.write(painter, QRectF(left, row.top(), room + 2, row.height()), shown)
        left += look.width(shown, Role.BODY, 500) + look.px(8)
        for text in pills:
            wide, high = pill_width(text, look), look.px(20)
            if left + wide <= end:
                paint_pill(painter, QRectF(left, row.center().y() - high / 2, wide, high), text, look)
                left += wide + look.px(8)

    def _paint_verdict(self, row: QRectF, least: float) -> float:
        """At the right; where it would come left of ``least``, without its words.  Its left edge."""
        painter, look, one = self._painter, self._look, self._one
        colours = look.colours
        estimate = one.estimate
        said = one.said(self._numbers)
        total = self._numbers.sentence(estimate.peak_bytes) if estimate is not None else ""
        icon = look.px(14)
        figure = look.width(total, Role.BODY, 600)
        wide = look.width(said, Role.SMALL)
        left = row.right() - wide - icon - figure - look.px(20)
        if left < least:
            said, wide = "", 0.0
            left = row.right() - icon - figure - look.px(20)
        painter.setPen(colours.text)
        bold = look.metrics(Role.BODY, 600)
        bold.write(painter, QRectF(left, row.top(), figure + 2, row.height()), total)
        kind = "unknown" if estimate is None else estimate.verdict.kind
        at = left + figure + look.px(12) + icon / 2
        paint_verdict(painter, kind, QPointF(at, row.center().y()), icon, colours)
        painter.setPen(colours.secondary)
        room = QRectF(row.right() - wide, row.top(), wide + 2, row.height())
        look.metrics(Role.SMALL).write(painter, room, said)
        return left

    def paint_bar(self, area: QRectF) -> None:
        """Components to their scale, the likely range, expected total and limit."""
        painter, look = self._painter, self._look
        colours = look.colours
        estimate = self._one.estimate
        radius = look.px(3)
        if estimate is None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.track)
            painter.drawPath(bar_piece(area, radius, True, True))
            return
        limit = self._scale.x(estimate.verdict.capacity_bytes)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.track)
        track = QRectF(area.left(), area.top(), limit, area.height())
        painter.drawPath(bar_piece(track, radius, True, True))
        sizes = geometry.Sizes(
            {node.key: float(node.bytes) for node in estimate.components},
            float(estimate.low_bytes),
            float(estimate.high_bytes),
            float(estimate.peak_bytes),
            float(estimate.verdict.capacity_bytes),
            float(estimate.verdict.capacity_bytes),
        )
        found = geometry.segments(sizes, self._scale)
        for place, segment in enumerate(found):
            last = place == len(found) - 1
            self._paint_segment(area, segment, sizes, first=place == 0, last=last)
        passed = sizes.total > sizes.limit
        for size, beyond, colour in (
            (sizes.total, look.px(2), colours.text),
            (sizes.limit, look.px(4), colours.bad if passed else colours.text),
        ):
            if size > self._scale.end:
                continue
            x = round(area.left() + self._scale.x(size)) - 1
            mark = QRectF(x, area.top() - beyond, 2, area.height() + 2 * beyond)
            painter.fillRect(mark.adjusted(-1, 0, 1, 0), colours.base)
            painter.fillRect(mark, colour)

    def _paint_segment(
        self, area: QRectF, segment: geometry.Segment, sizes: geometry.Sizes, *, first: bool, last: bool
    ) -> None:
        painter, look = self._painter, self._look
        paint = look.colours.component(segment.key)
        right = segment.right
        if segment.key == "overhead":
            right = max(right, self._scale.x(sizes.high))
        wide = right - segment.left - (0 if last else 1)
        if wide < 0.5:
            return
        rect = QRectF(area.left() + segment.left, area.top(), max(wide, 1.0), area.height())
        if rect.width() < 3:
            painter.fillRect(rect, paint.edge)
            return
        painter.setPen(QPen(paint.edge, 1))
        painter.setBrush(paint.fill)
        inside = rect.adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawPath(bar_piece(inside, look.px(3) - 0.5, first, last))
        if paint.hatch is not None:
            start = max(rect.left(), area.left() + self._scale.x(sizes.low))
            hatched = QRectF(start, rect.top() + 1, rect.right() - start - 1, rect.height() - 2)
            if hatched.width() > 1:
                painter.fillRect(hatched, hatch_brush(paint.hatch, painter.device().devicePixelRatioF()))
            return
        left, end = geometry.free_of(rect.left(), rect.right(), area.left() + self._scale.x(sizes.limit))
        room = QRectF(left, rect.top(), end - left, rect.height())
        self._write(room, segment.key, int(sizes.components[segment.key]))

    def _write(self, rect: QRectF, key: str, size: int) -> None:
        painter, look = self._painter, self._look
        pad = look.px(8)
        if rect.width() < 3 * pad:
            return
        bold, plain = look.metrics(Role.SMALL, 600), look.metrics(Role.SMALL)
        name, figure = geometry.inner_label(
            rect.width(),
            component_name(key),
            component_name(key, short=True),
            self._numbers.two(size),
            bold.horizontalAdvance,
            plain.horizontalAdvance,
            pad,
        )
        painter.setPen(look.colours.component(key).ink)
        if not figure:
            bold.write(painter, rect, name, MIDDLE)
            return
        bold.write(painter, rect.adjusted(pad, 0, 0, 0), name)
        plain.write(painter, rect.adjusted(pad * 1.75 + bold.horizontalAdvance(name), 0, 0, 0), figure)


def difference(numbers: Numbers, gap: int, reference: int) -> tuple[str, str, int]:
    """A difference as figure, per cent and sign."""
    rise = (gap > 0) - (gap < 0)
    if not gap or not reference:
        return numbers.delta(gap), numbers.delta(0), rise
    few = abs(gap) * 100 < reference  # less than one per cent
    percent = numbers.share(abs(gap), reference, 1 if few else 0)
    return numbers.delta(gap), ("+" if gap > 0 else "−") + percent, rise
