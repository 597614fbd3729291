"""How the donut is drawn, on a widget, a picture or a page of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from memgui.document.selection import ComponentPath
from memgui.gui.donut import geometry
from memgui.gui.donut.geometry import Box, Need, Slice
from memgui.gui.metrics import LEFT, MIDDLE, RIGHT
from memgui.gui.palette import Paint, Palette, hatch_brush
from memgui.gui.theme import Look, Role

GAP = 2.0


class Texts(msgspec.Struct, frozen=True):
    """What is written: in the hole, in the rings, outside.  Shares are of the need, as in the legend."""

    total: str
    unit: str
    limit: str
    percent: str
    names: Mapping[str, str]
    figures: Mapping[str, str]
    shares: Mapping[str, str]


class Scene(msgspec.Struct, frozen=True):
    """One picture of a need."""

    need: Need
    slices: Sequence[Slice]
    part_index: Mapping[ComponentPath, int]
    pinned: Mapping[str, float]
    texts: Texts
    kind: str
    selected: ComponentPath
    hovered: ComponentPath
    focused: bool


def sector(
    centre: QPointF, inner: float, outer: float, start: float, sweep: float, gap: float = GAP
) -> QPainterPath:
    """A piece of a ring, half the gap left out at both ends so that its sides are parallel."""
    path = QPainterPath()
    x, y = centre.x(), centre.y()
    wide = QRectF(x - outer, y - outer, 2 * outer, 2 * outer)
    small = QRectF(x - inner, y - inner, 2 * inner, 2 * inner)
    if sweep >= 359.95:
        path.addEllipse(wide)
        path.addEllipse(small)
        return path
    most = 0.35 * sweep
    cut = min(_DEGREES * gap / 2 / max(outer, 1.0), most)
    path.arcMoveTo(wide, 90 - start - cut)
    path.arcTo(wide, 90 - start - cut, 2 * cut - sweep)
    cut = min(_DEGREES * gap / 2 / max(inner, 1.0), most)
    path.arcTo(small, 90 - start - sweep + cut, sweep - 2 * cut)
    path.closeSubpath()
    return path


_DEGREES = 180 / math.pi


def paint_rings(painter: QPainter, look: Look, scene: Scene, centre: QPointF, radius: float) -> None:
    """Both rings, the limit, the ghost."""
    colours = look.colours
    marked: list[tuple[QPainterPath, QColor]] = []
    least = _DEGREES * 0.4 / max(radius, 1.0)  # less than half a px wide: nothing to see
    for piece in scene.slices:
        if piece.sweep < least:
            continue
        inner, outer = piece.ring[0] * radius, piece.ring[1] * radius
        path = sector(centre, inner, outer, piece.start, piece.sweep)
        if piece.path == (geometry.FREE,):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colours.border, 1))
            painter.drawPath(path)
            continue
        chosen, pointed = piece.path == scene.selected, piece.path == scene.hovered
        whole = len(piece.path) == 1 or chosen
        paint = (
            colours.component(piece.path[0])
            if whole
            else colours.part(piece.path[0], scene.part_index.get(piece.path, 0))
        )
        _fill(painter, path, paint)
        if chosen or pointed:
            marked.append((path, colours.text))
    # Edges of what is pointed at lie over their neighbours.
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for path, colour in marked:
        painter.setPen(QPen(colour, 2))
        painter.drawPath(path)
    if scene.need.over:
        _paint_limit(painter, colours, scene.need, centre, radius)
    for piece in geometry.ghost(scene.pinned, scene.need.circle):
        path = sector(centre, piece.ring[0] * radius, piece.ring[1] * radius, piece.start, piece.sweep)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.component(piece.path[0]).fill)
        painter.drawPath(path)
    if scene.focused:
        _paint_focus(painter, colours, scene, centre, radius)


def _fill(painter: QPainter, path: QPainterPath, paint: Paint) -> None:
    painter.setPen(QPen(paint.edge, 1))
    painter.setBrush(paint.fill)
    painter.drawPath(path)
    if paint.hatch is not None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(hatch_brush(paint.hatch, painter.device().devicePixelRatioF()))
        painter.drawPath(path)


def _paint_limit(painter: QPainter, colours: Palette, need: Need, centre: QPointF, radius: float) -> None:
    """Grey up to the limit, red beyond it."""
    at = geometry.limit_angle(need)
    middle = (geometry.LIMIT[0] + geometry.LIMIT[1]) / 2 * radius
    box = QRectF(centre.x() - middle, centre.y() - middle, 2 * middle, 2 * middle)
    width = max(2.0, (geometry.LIMIT[1] - geometry.LIMIT[0]) * radius)
    grey = colours.border if colours.dark else colours.disabled
    for start, sweep, colour, thick in ((0.0, at, grey, width), (at, 360.0 - at, colours.bad, width + 1.5)):
        pen = QPen(colour, thick)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        cut = min(0.6, sweep / 4)
        painter.drawArc(box, round((90 - start - cut) * 16), round(-(sweep - 2 * cut) * 16))


def _paint_focus(painter: QPainter, colours: Palette, scene: Scene, centre: QPointF, radius: float) -> None:
    """The keyboard's ring, 3 px outside the slice it is on, or round the whole."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colours.accent, 2))
    for piece in scene.slices:
        if piece.path == scene.selected:
            out = 3.0
            turn = math.degrees(out / max(piece.ring[1] * radius, 1.0))
            inner, outer = piece.ring[0] * radius - out, piece.ring[1] * radius + out
            path = sector(centre, inner, outer, piece.start - turn, piece.sweep + 2 * turn, 0.0)
            painter.drawPath(path)
            return
    painter.drawEllipse(centre, radius + 3, radius + 3)


def paint_hole(painter: QPainter, look: Look, scene: Scene, centre: QPointF, radius: float) -> None:
    """The total, of what, and the per cent of the limit in the verdict's colour."""
    colours = look.colours
    texts = scene.texts
    big = round(radius * 0.25)
    limit = radius * 2 * (geometry.GHOST[0] if scene.pinned else geometry.HOLE) * 0.9 - look.px(8)
    while big > 8 and look.width(texts.total, big / look.body_px, 600) > limit:
        big -= 1
    small = look.metrics(Role.SMALL)
    line = small.height()
    under = [(texts.unit, colours.secondary, 400)]
    if radius >= look.px(95):
        under = [(texts.limit, colours.secondary, 400), (texts.percent, colours.verdict(scene.kind), 600)]
        if small.horizontalAdvance(texts.limit) > limit:
            under = [(texts.unit, colours.secondary, 400), under[1]]
        if look.width(texts.percent, Role.SMALL, 600) > limit:
            under.pop()
    height = big + look.px(2) + line * len(under)
    top = centre.y() - height / 2
    painter.setPen(colours.text)
    row = QRectF(centre.x() - radius, top - big * 0.1, 2 * radius, big * 1.2)
    look.metrics(big / look.body_px, 600).write(painter, row, texts.total, MIDDLE)
    top += big + look.px(2)
    for text, colour, weight in under:
        painter.setPen(colour)
        row = QRectF(centre.x() - radius, top, 2 * radius, line)
        look.metrics(Role.SMALL, weight).write(painter, row, text, MIDDLE)
        top += line


def paint_shares(painter: QPainter, look: Look, scene: Scene, centre: QPointF, radius: float) -> None:
    """Shares in the inner ring, where a slice and the ring are wide enough."""
    ring = (geometry.COMPONENTS[1] - geometry.COMPONENTS[0]) * radius
    middle = (geometry.COMPONENTS[1] + geometry.COMPONENTS[0]) / 2 * radius
    metrics = look.metrics(Role.CAPTION, 600)
    for piece in scene.slices:
        if len(piece.path) > 1 or piece.sweep < geometry.SHARE_FROM or piece.path[0] == geometry.FREE:
            continue
        paint = look.colours.component(piece.path[0])
        text = scene.texts.shares.get(piece.path[0], "")
        if paint.hatch is not None or metrics.horizontalAdvance(text) > ring:
            continue
        angle = math.radians(piece.middle)
        at = QPointF(centre.x() + middle * math.sin(angle), centre.y() - middle * math.cos(angle))
        painter.setPen(paint.ink)
        metrics.write(painter, QRectF(at.x() - ring, at.y() - ring / 2, 2 * ring, ring), text, MIDDLE)


def label_size(look: Look, name: str, figure: str) -> tuple[float, float]:
    """Width and height of an outside label."""
    bold, plain = look.metrics(Role.SMALL, 600), look.metrics(Role.SMALL)
    width = max(bold.horizontalAdvance(name), plain.horizontalAdvance(figure))
    return width + 1, plain.height() * 2


_SIDES = {-1: RIGHT, 0: MIDDLE, 1: LEFT}


def paint_labels(
    painter: QPainter, look: Look, scene: Scene, centre: QPointF, boxes: Mapping[ComponentPath, Box]
) -> None:
    """Names and figures around the donut."""
    angles = {piece.path: piece.middle for piece in scene.slices}
    bold, plain = look.metrics(Role.SMALL, 600), look.metrics(Role.SMALL)
    for path, box in boxes.items():
        side = _SIDES[geometry.side_of(angles[path])]
        rect = QRectF(centre.x() + box.left, centre.y() + box.top, box.width, box.height / 2)
        painter.setPen(look.colours.text)
        bold.write(painter, rect, scene.texts.names[path[0]], side)
        painter.setPen(look.colours.secondary)
        rect.translate(0, box.height / 2)
        plain.write(painter, rect, scene.texts.figures[path[0]], side)


def wanted_labels(look: Look, scene: Scene) -> list[tuple[Slice, float, float]]:
    """The slices that are large enough for a label, with its size."""
    found = []
    for piece in scene.slices:
        if len(piece.path) == 1 and piece.sweep >= 360.0 * geometry.LABEL_FROM:
            name, figure = scene.texts.names[piece.path[0]], scene.texts.figures[piece.path[0]]
            found.append((piece, *label_size(look, name, figure)))
    return found


def paint_donut(painter: QPainter, look: Look, scene: Scene, area: QRectF) -> tuple[QPointF, float]:
    """Paint the whole into ``area``; the centre and the radius are returned, for hits."""
    wanted = wanted_labels(look, scene)
    width = max((entry[1] for entry in wanted), default=0.0)
    height = max((entry[2] for entry in wanted), default=0.0)
    away = float(look.px(9))
    radius, labelled = geometry.radius_for(area.width(), area.height(), width, height, away)
    centre = area.center()
    if radius < 8:
        return centre, radius
    paint_rings(painter, look, scene, centre, radius)
    paint_shares(painter, look, scene, centre, radius)
    paint_hole(painter, look, scene, centre, radius)
    if labelled:
        boxes = geometry.place_labels(wanted, radius, away, area.width() / 2, area.height() / 2)
        paint_labels(painter, look, scene, centre, boxes)
    return centre, radius
