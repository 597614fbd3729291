"""The capacity bar: what is needed, in parts, against what there is."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.controls.frames import filled
from memgui.gui.metrics import MIDDLE
from memgui.gui.motion import Eased
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import Paint, hatch_brush, mixed
from memgui.gui.theme import Look, Role
from memgui.gui.tips import node_tip
from memgui.gui.verdict import bar_geometry as geometry
from memgui.gui.verdict import sentence
from memgui.gui.verdict.ticks import LINE, ROW, Ticks

DIMMED = 0.38
"""Opacity of a picture that shows an earlier scenario."""


def bar_piece(rect: QRectF, radius: float, left: bool, right: bool) -> QPainterPath:
    """A box with its left or right corners rounded."""
    path = QPainterPath()
    near = min(radius, rect.width()) if left else 0.0
    far = min(radius, rect.width()) if right else 0.0
    top, bottom = rect.top(), rect.bottom()
    path.moveTo(rect.left() + near, top)
    path.lineTo(rect.right() - far, top)
    if far:
        path.quadTo(rect.right(), top, rect.right(), top + far)
    path.lineTo(rect.right(), bottom - far)
    if far:
        path.quadTo(rect.right(), bottom, rect.right() - far, bottom)
    path.lineTo(rect.left() + near, bottom)
    if near:
        path.quadTo(rect.left(), bottom, rect.left(), bottom - near)
    path.lineTo(rect.left(), top + near)
    if near:
        path.quadTo(rect.left(), top, rect.left() + near, top)
    path.closeSubpath()
    return path


class Said:
    """The bar's texts, made once for an estimate and its units."""

    __slots__ = ("figures", "gaps", "limit", "numbers", "range")

    def __init__(self, estimate: Estimate, numbers: Numbers) -> None:
        self.numbers = numbers
        self.limit = sentence.limit_text(estimate, numbers)
        self.gaps = [sentence.gap(estimate, numbers), sentence.gap(estimate, numbers, short=True)]
        self.figures = {node.key: numbers.two(node.bytes) for node in estimate.components if node.bytes}
        self.range = ""
        if estimate.low_bytes < estimate.high_bytes:
            low, high = sentence.range_figures(estimate.low_bytes, estimate.high_bytes, numbers)
            self.range = f"{low} \u2013 {high.removesuffix(' ' + numbers.unit)}"


class CapacityBar(QWidget):
    """One line of components from 0 to past the limit; hover and click point at a component."""

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._view = view
        self._estimate: Estimate | None = None
        self._said: Said | None = None
        self._card = 0
        self._ticks = Ticks()
        self._stale = False
        self._eased = Eased(self, view)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Capacity"))
        selection.selected.connect(self.update)
        selection.hovered.connect(self.update)
        view.figures_changed.connect(self._reword)

    def _reword(self, _: object = None) -> None:
        self._said = None
        self.update()

    def _texts(self, estimate: Estimate) -> Said:
        if self._said is None:
            self._said = Said(estimate, Numbers.of(self._view.view))
        return self._said

    def set_result(self, result: Result) -> None:
        """Show an estimate; the last good one, dimmed, where there is none."""
        estimate = result.shown
        if estimate is self._estimate and result.stale == self._stale:
            return
        self._estimate, self._stale, self._said = estimate, result.stale, None
        if estimate is None:
            self.update()
            return
        self._card = estimate.scenario.device.memory_bytes
        lengths = {node.key: float(node.bytes) for node in estimate.components}
        lengths |= {
            "low": float(estimate.low_bytes),
            "high": float(estimate.high_bytes),
            "total": float(estimate.peak_bytes),
            "limit": float(estimate.verdict.capacity_bytes),
            "card": float(max(self._card, estimate.verdict.capacity_bytes)),
        }
        self._eased.go(lengths)

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(600), look.px(74) - 1)  # under it lies the line that ends the band

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def _sizes(self) -> geometry.Sizes:
        now = self._eased.now
        return geometry.Sizes(now, now["low"], now["high"], now["total"], now["limit"], now["card"])

    def _scale(self, look: Look, sizes: geometry.Sizes, said: Said) -> geometry.Scale:
        label = look.width(said.limit, Role.SMALL, 600) + look.px(12)
        return geometry.scale_for(sizes, float(self.width()), said.numbers.unit_bytes, look.px(100), label)

    def segment_at(self, x: float) -> str:
        """Key of the component under ``x`` px; empty where there is none."""
        if self._estimate is None:
            return ""
        sizes = self._sizes()
        scale = self._scale(Look.of(self), sizes, self._texts(self._estimate))
        for segment in geometry.segments(sizes, scale):
            if segment.left <= x < segment.right:
                return segment.key
        return ""

    def _bar_rect(self, look: Look) -> QRectF:
        return QRectF(0, look.px(22), self.width(), look.px(24))

    def _key_at(self, position: QPointF) -> str:
        look = Look.of(self)
        inside = self._bar_rect(look).adjusted(0, -look.px(4), 0, look.px(4)).contains(position)
        return self.segment_at(position.x()) if inside else ""

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position())
        self._selection.point_at((key,) if key else ())

    def leaveEvent(self, event: QEvent) -> None:
        self._selection.point_at(())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position())
        if event.button() is Qt.MouseButton.LeftButton and key:
            self._selection.select((key,))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position())
        if event.button() is Qt.MouseButton.LeftButton and key:
            self._selection.open((key,))

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            key = self._key_at(QPointF(event.pos()))
            if key and self._estimate is not None:
                tip = node_tip(self._estimate, (key,), Numbers.of(self._view.view))
                QToolTip.showText(event.globalPos(), tip, self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        filled(painter, self.rect(), look.colours.base)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bar = self._bar_rect(look)
        if self._estimate is None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colours.track)
            painter.drawRoundedRect(bar, look.px(3), look.px(3))
            return
        said = self._texts(self._estimate)
        sizes = self._sizes()
        scale = self._scale(look, sizes, said)
        if self._stale:
            painter.setOpacity(DIMMED)
        self._paint_track(painter, look, bar, sizes, scale)
        self._paint_segments(painter, look, bar, sizes, scale, said)
        if not self._stale:
            self._paint_above(painter, look, sizes, scale, said)
            self._paint_below(painter, look, bar, sizes, scale, said)
        self._paint_marks(painter, look, bar, sizes, scale)

    def _paint_track(
        self, painter: QPainter, look: Look, bar: QRectF, sizes: geometry.Sizes, scale: geometry.Scale
    ) -> None:
        colours = look.colours
        limit, card = scale.x(sizes.limit), scale.x(sizes.card)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(bar.left(), bar.top(), limit, bar.height())
        painter.setBrush(colours.track)
        painter.drawPath(bar_piece(track, look.px(3), True, card <= limit))
        if card > limit + 1:
            rest = QRectF(bar.left() + limit, bar.top(), card - limit, bar.height())
            faint = mixed(colours.border, colours.base, 0.55)
            painter.setBrush(hatch_brush(faint, self.devicePixelRatioF(), 4))
            painter.drawPath(bar_piece(rest, look.px(3), False, True))

    def _paint_segments(
        self,
        painter: QPainter,
        look: Look,
        bar: QRectF,
        sizes: geometry.Sizes,
        scale: geometry.Scale,
        said: Said,
    ) -> None:
        found = geometry.segments(sizes, scale)
        pointed = {path[0] for path in (self._selection.component, self._selection.hover) if path}
        for index, segment in enumerate(found):
            right = segment.right
            uncertain = segment.key == "overhead"
            if uncertain:
                right = max(right, scale.x(sizes.high))
            width = right - segment.left - (1 if index < len(found) - 1 else 0)
            if width < 0.5:
                continue
            rect = QRectF(bar.left() + segment.left, bar.top(), max(width, 1.0), bar.height())
            paint = look.colours.component(segment.key)
            first, last = index == 0, index == len(found) - 1
            self._fill(painter, look, rect, paint, first, last, segment.key in pointed)
            if uncertain:
                self._hatch(painter, look, rect, paint, scale.x(sizes.low), last)
            elif not self._stale:
                left, end = geometry.free_of(rect.left(), rect.right(), bar.left() + scale.x(sizes.limit))
                free = QRectF(left, rect.top(), end - left, rect.height())
                self._write(painter, look, free, segment.key, paint, said)

    def _fill(
        self,
        painter: QPainter,
        look: Look,
        rect: QRectF,
        paint: Paint,
        first: bool,
        last: bool,
        pointed: bool,
    ) -> None:
        painter.setBrush(paint.fill)
        if rect.width() < 3:
            filled(painter, rect, paint.edge)
            return
        painter.setPen(QPen(look.colours.text, 2) if pointed else QPen(paint.edge, 1))
        inset = 1.0 if pointed else 0.5
        painter.drawPath(
            bar_piece(rect.adjusted(inset, inset, -inset, -inset), look.px(3) - 0.5, first, last)
        )

    def _hatch(
        self, painter: QPainter, look: Look, rect: QRectF, paint: Paint, low: float, last: bool
    ) -> None:
        """Lines from the low end to the high one, with an edge where they begin."""
        assert paint.hatch is not None
        start = max(rect.left(), low)
        if rect.right() - start < 2:
            return
        area = QRectF(start, rect.top(), rect.right() - start, rect.height())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(hatch_brush(paint.hatch, self.devicePixelRatioF()))
        painter.drawPath(bar_piece(area.adjusted(0, 1, -1, -1), look.px(2), False, last))
        filled(painter, QRectF(round(start), rect.top(), 1, rect.height()), paint.edge)

    def _write(self, painter: QPainter, look: Look, rect: QRectF, key: str, paint: Paint, said: Said) -> None:
        bold, plain = look.metrics(Role.SMALL, 600), look.metrics(Role.SMALL)
        pad = look.px(8)
        if rect.width() < 3 * pad:
            return
        figure = said.figures.get(key, "")
        name, figure = geometry.inner_label(
            rect.width(),
            component_name(key),
            component_name(key, short=True),
            figure,
            bold.horizontalAdvance,
            plain.horizontalAdvance,
            pad,
        )
        if not name:
            return
        painter.setPen(paint.ink)
        if not figure:
            bold.write(painter, rect, name, MIDDLE)
            return
        bold.write(painter, rect.adjusted(pad, 0, 0, 0), name)
        plain.write(painter, rect.adjusted(pad * 1.75 + bold.horizontalAdvance(name), 0, 0, 0), figure)

    def _paint_marks(
        self, painter: QPainter, look: Look, bar: QRectF, sizes: geometry.Sizes, scale: geometry.Scale
    ) -> None:
        colours = look.colours
        passed = sizes.total > sizes.limit
        for size, beyond, colour in (
            (sizes.total, look.px(3), colours.text),
            (sizes.limit, look.px(6), colours.bad if passed else colours.text),
        ):
            x = round(bar.left() + scale.x(size)) - 1
            x = min(max(x, 0), self.width() - 2)
            mark = QRectF(x, bar.top() - beyond, 2, bar.height() + 2 * beyond)
            filled(painter, mark.adjusted(-1, 0, 1, 0), colours.base)
            filled(painter, mark, colour)

    def _paint_above(
        self, painter: QPainter, look: Look, sizes: geometry.Sizes, scale: geometry.Scale, said: Said
    ) -> None:
        assert self._estimate is not None
        colours = look.colours
        metrics = look.metrics(Role.SMALL, 600)
        space = look.px(8)
        placed = geometry.above(scale, sizes, said.limit, said.gaps, metrics.horizontalAdvance, space)
        passed = sizes.total > sizes.limit
        colour = colours.bad if passed else colours.verdict(self._estimate.verdict.kind)
        row = QRectF(0, 0, self.width(), look.px(18))
        middle = round(row.center().y()) + 0.5
        painter.setPen(QPen(colour, 1))
        if placed.right - placed.left >= 3:
            for start, end in placed.strokes(space):
                painter.drawLine(QPointF(start, middle), QPointF(end, middle))
            for x in (placed.left, placed.right):
                at = round(x) + (0.5 if x == placed.left else -0.5)
                painter.drawLine(QPointF(at, middle - look.px(3)), QPointF(at, middle + look.px(3)))
        for label, ink in ((placed.gap, colour), (placed.limit, colours.text)):
            if label is not None:
                painter.setPen(ink)
                room = QRectF(label.x, row.top(), label.width + 2, row.height())
                metrics.write(painter, room, label.text)

    def _paint_below(
        self,
        painter: QPainter,
        look: Look,
        bar: QRectF,
        sizes: geometry.Sizes,
        scale: geometry.Scale,
        said: Said,
    ) -> None:
        top = bar.bottom()
        strip = QRectF(0, top + 1, self.width(), look.px(LINE) + look.px(ROW) - 1)
        if not said.range:
            self._ticks.paint(painter, look, strip, scale, said.numbers, ())
            return
        bold = look.metrics(Role.CAPTION, 600)
        label = geometry.range_label(scale, sizes, said.range, bold.horizontalAdvance)
        self._ticks.paint(painter, look, strip, scale, said.numbers, (label,))
        painter.setPen(look.colours.secondary)
        bold.write(painter, QRectF(label.x, top + look.px(LINE), label.width + 2, look.px(ROW)), said.range)
