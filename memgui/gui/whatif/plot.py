"""The sweep as pyqtgraph draws it: grid, axes, stacked areas, limits, the pinned curve.

The only module that imports pyqtgraph (and with it numpy): whoever opens the tab first pays for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF, QTransform
from PySide6.QtWidgets import QWidget

from memgui.document.what_if import Swept
from memgui.gui.palette import hatch_brush
from memgui.gui.theme import Look, Role
from memgui.gui.timeline.geometry import Layer
from memgui.gui.whatif.layout import Sheet
from memgui.planning.sweep import Point

Ticks = Sequence[tuple[float, str]]


class _Areas(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph has no types
    """The components stacked; edges and hatch keep their px whatever the scale."""

    def __init__(self) -> None:
        super().__init__()
        self.sheet: Sheet | None = None
        self.look: Look | None = None
        self.pointed: frozenset[str] = frozenset()
        self.ratio = 1.0

    def boundingRect(self) -> QRectF:
        sheet = self.sheet
        if sheet is None:
            return QRectF()
        across = sheet.across
        first, last = across.at(across.low), across.at(across.high)
        return QRectF(first, 0.0, last - first, sheet.axis.end)

    def paint(self, painter: QPainter, *_: object) -> None:
        sheet, look = self.sheet, self.look
        if sheet is None or look is None or not sheet.points:
            return
        to_px = painter.transform()
        painter.save()
        painter.setTransform(QTransform())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        steps = [sheet.across.at(float(one.value)) for one in sheet.points]
        for layer in sheet.layers:
            self._area(painter, look, layer, steps, to_px)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(look.colours.text, 2))
        total = QPolygonF(
            [QPointF(x, float(one.peak_bytes)) for x, one in zip(steps, sheet.points, strict=True)]
        )
        painter.drawPolyline(to_px.map(total))
        painter.restore()

    def _area(
        self, painter: QPainter, look: Look, layer: Layer, steps: list[float], to_px: QTransform
    ) -> None:
        paint = look.colours.component(layer.key)
        upper = [QPointF(x, float(size)) for x, size in zip(steps, layer.upper, strict=True)]
        lower = [QPointF(x, float(size)) for x, size in zip(steps, layer.lower, strict=True)]
        area = to_px.map(QPolygonF([*upper, *lower[::-1]]))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(paint.fill)
        painter.drawPolygon(area)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(paint.edge, 1))
        painter.drawPolyline(to_px.map(QPolygonF(upper)))
        if layer.key in self.pointed:
            painter.setPen(QPen(look.colours.text, 2))
            painter.drawPolygon(area)


class _Range(_Areas):
    """What the need may be, from the least to the most, hatched over the total."""

    def paint(self, painter: QPainter, *_: object) -> None:
        sheet, look = self.sheet, self.look
        if sheet is None or look is None or not sheet.points:
            return
        to_px = painter.transform()
        painter.save()
        painter.setTransform(QTransform())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        steps = [sheet.across.at(float(one.value)) for one in sheet.points]
        high = [QPointF(x, float(one.high_bytes)) for x, one in zip(steps, sheet.points, strict=True)]
        low = [QPointF(x, float(one.low_bytes)) for x, one in zip(steps, sheet.points, strict=True)]
        band = to_px.map(QPolygonF([*high, *low[::-1]]))
        paint = look.colours.component("overhead")
        painter.setPen(Qt.PenStyle.NoPen)
        fill = paint.fill
        above = [QPointF(x, float(one.peak_bytes)) for x, one in zip(steps, sheet.points, strict=True)]
        painter.setBrush(fill)
        painter.setOpacity(0.6)
        painter.drawPolygon(to_px.map(QPolygonF([*high, *above[::-1]])))
        painter.setOpacity(1.0)
        painter.setBrush(hatch_brush(paint.hatch or paint.edge, self.ratio))
        painter.drawPolygon(band)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(paint.edge, 1))
        painter.drawPolyline(to_px.map(QPolygonF(high)))
        painter.restore()


class _Axis(pg.AxisItem):  # type: ignore[misc]
    """An axis with the ticks it is given, in the window's own words."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.setStyle(
            tickLength=0, autoExpandTextSpace=False, autoReduceTextSpace=False, hideOverlappingLabels=False
        )

    def dress(self, look: Look, ticks: Ticks, line: bool) -> None:
        self.setTicks([list(ticks)])
        self.setStyle(tickFont=look.font(Role.CAPTION), tickTextOffset=look.px(5))
        self.setTextPen(look.colours.tertiary)
        self.setPen(QPen(look.colours.border, 1) if line else QPen(Qt.PenStyle.NoPen))


def cosmetic(colour: QColor, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """A pen whose width is px, not bytes or tokens."""
    pen = QPen(colour, width, style)
    pen.setCosmetic(True)
    return pen


class Plot:
    """Keeps the plot out of sight and draws it into pictures; mouse and keys are the chart's."""

    def __init__(self, parent: QWidget) -> None:
        self._view = pg.GraphicsView(parent, background=None)
        self._view.setVisible(False)
        self._view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._left, self._bottom = _Axis("left"), _Axis("bottom")
        # Not a PlotItem: that has menus, buttons and a legend, none of which are ours.
        self._box = pg.ViewBox(enableMenu=False, enableMouse=False)
        self._layout = pg.GraphicsLayout()
        self._layout.layout.setSpacing(0)
        self._layout.addItem(self._left, 0, 0)
        self._layout.addItem(self._box, 0, 1)
        self._layout.addItem(self._bottom, 1, 1)
        for axis in (self._left, self._bottom):
            axis.linkToView(self._box)
        self._view.setCentralItem(self._layout)
        self._grid = pg.PlotCurveItem()
        self._areas, self._range = _Areas(), _Range()
        self._pinned = pg.PlotCurveItem()
        self._lines: list[pg.InfiniteLine] = []
        for level, item in enumerate((self._grid, self._areas, self._range, self._pinned)):
            item.setZValue(level)
            self._box.addItem(item, ignoreBounds=True)

    def close(self) -> None:
        """Let go of the scene before Qt does."""
        self._view.close()

    def draw(
        self,
        painter: QPainter,
        look: Look,
        sheet: Sheet,
        swept: Swept,
        size: QSize,
        across_ticks: Ticks,
        up_ticks: Ticks,
        pointed: frozenset[str],
        ratio: float,
    ) -> None:
        """Draw ``sheet`` into a picture of ``size`` px at ``ratio``."""
        axis, across = sheet.axis, sheet.across
        self._view.resize(size)
        self._left.setWidth(across.left)
        self._left.dress(look, up_ticks, line=False)
        self._bottom.setHeight(size.height() - axis.bottom)
        self._bottom.dress(look, across_ticks, line=True)
        self._layout.layout.setContentsMargins(0, axis.top, size.width() - across.right, 0)
        first, last = across.at(across.low), across.at(across.high)
        self._box.setRange(xRange=(first, last), yRange=(0, axis.end), padding=0, disableAutoRange=True)
        rows = np.repeat([tick for tick, _ in up_ticks], 2)
        ends, pen = np.tile([first, last], len(up_ticks)), cosmetic(look.colours.hairline, 1)
        self._grid.setData(ends, rows, pen=pen, connect="pairs")
        for item in (self._areas, self._range):
            item.prepareGeometryChange()
            item.sheet, item.look, item.ratio = sheet, look, ratio
        self._areas.pointed = pointed
        self._draw_pinned(look, sheet, swept.pinned)
        self._draw_lines(look, sheet, swept)
        self._view.setBackground(look.colours.base)
        # A widget out of sight learns of its size when it is grabbed; only then do the axes have places.
        painter.drawPixmap(0, 0, self._view.grab())

    def _draw_pinned(self, look: Look, sheet: Sheet, pinned: Sequence[Point]) -> None:
        known = [one for one in pinned if one.issue is None]
        pen = cosmetic(look.colours.text, 2, Qt.PenStyle.DotLine)
        xs = np.array([sheet.across.at(float(one.value)) for one in known])
        self._pinned.setData(xs, np.array([float(one.peak_bytes) for one in known]), pen=pen, antialias=True)

    def _draw_lines(self, look: Look, sheet: Sheet, swept: Swept) -> None:
        for line in self._lines:
            self._box.removeItem(line)
        self._lines = []
        for line in sheet.lines:
            chosen = line is swept.lines[0]
            for colour, width in ((look.colours.base, 4), (look.colours.text, 2 if chosen else 1.5)):
                style = Qt.PenStyle.SolidLine if chosen else Qt.PenStyle.DashLine
                if colour is look.colours.base and not chosen:
                    continue
                pen = cosmetic(colour, width, style)
                made = pg.InfiniteLine(line.capacity_bytes, angle=0, pen=pen)
                made.setZValue(10)
                self._box.addItem(made, ignoreBounds=True)
                self._lines.append(made)
