"""How a row of the legend is drawn: columns, swatches, chevrons."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap, QPolygonF

from memgui.gui.icons import paint_icon
from memgui.gui.metrics import RIGHT
from memgui.gui.palette import Paint, hatch_brush
from memgui.gui.theme import Look, Role

ROW, INDENT = 24, 20
_EDGE = 16
_WIDEST = 560
"""Beyond this width a figure is no longer read beside its name."""


class Columns(msgspec.Struct, frozen=True):
    """Right edges of size, share and last column (``None`` where there is no room), and the name's end."""

    size: float
    share: float | None
    last: float | None
    name_end: float

    figures: int
    """Left of all figures: what an edit changes in most rows stands behind it."""


def columns_for(look: Look, width: float, texts: Sequence[Sequence[str]], name: float) -> Columns:
    """Lay the columns out; ``texts`` are the widest texts of size, share and last, ``name`` the widest name.

    Where the names would be cut, the last column gives way first, then the share.  In a wide legend they stay
    near the names.
    """
    bold = look.metrics(Role.BODY, 600)
    wide = [max((bold.horizontalAdvance(text) for text in column), default=0.0) for column in texts]
    gap = look.px(12)
    start = look.px(46) + name + gap
    right = min(width, look.px(_WIDEST)) - look.px(_EDGE)
    share: float | None
    last: float | None
    for shown in (3, 2, 1):
        edges = []
        edge = right
        for column in range(shown - 1, -1, -1):
            edges.append(edge)
            edge -= wide[column] + gap
        if edge + gap >= start or shown == 1:
            break
    size = edges[-1]
    share = edges[-2] if shown >= 2 else None
    last = edges[0] if shown == 3 else None
    name_end = size - wide[0] - gap
    return Columns(size, share, last, name_end, int(name_end + look.px(10)))


def paint_swatch(painter: QPainter, look: Look, left: float, middle: float, paint: Paint | None) -> None:
    """12 px of a colour; without a paint an empty box, for what is free."""
    side = look.px(12)
    fill = paint.fill if paint is not None else look.colours.base
    edge = paint.edge if paint is not None else look.colours.border
    hatch = paint.hatch.rgba() if paint is not None and paint.hatch is not None else 0
    ratio = painter.device().devicePixelRatioF()
    picture = _swatch(side, look.px(2), ratio, fill.rgba(), edge.rgba(), hatch)
    painter.drawPixmap(QPoint(round(left), round(middle - side / 2)), picture)


@lru_cache(maxsize=256)
def _swatch(side: int, radius: int, ratio: float, fill: int, edge: int, hatch: int) -> QPixmap:
    picture = QPixmap(round(side * ratio), round(side * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    try:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(0.5, 0.5, side - 1, side - 1)
        painter.setPen(QPen(QColor.fromRgba(edge), 1))
        painter.setBrush(QColor.fromRgba(fill))
        painter.drawRoundedRect(rect, radius, radius)
        if hatch:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(hatch_brush(QColor.fromRgba(hatch), ratio, 4))
            painter.drawRoundedRect(rect, radius, radius)
    finally:
        painter.end()
    return picture


def paint_chevron(painter: QPainter, look: Look, middle: float, opened: bool) -> None:
    """Where a row can be opened."""
    name = "chevron-down" if opened else "chevron-right"
    paint_icon(painter, name, QPointF(look.px(14), middle), look.px(16), look.colours.secondary)


class Cells(msgspec.Struct, frozen=True):
    """The texts of a row; ``rise`` is the sign of a change, 0 where there is none to show."""

    name: str
    size: str
    share: str
    last: str
    rise: int = 0


def paint_cells(
    painter: QPainter,
    look: Look,
    rect: QRectF,
    columns: Columns,
    cells: Cells,
    indent: float,
    weights: tuple[int, int, int, int],
    inks: tuple[QColor, QColor, QColor, QColor],
    role: float = Role.BODY,
    *,
    named: bool = True,
) -> None:
    """Write a row; ``weights`` and ``inks`` by column; without its name where that stands there already."""
    top, high = rect.top(), rect.height()
    if named:
        left = look.px(46) + indent
        room = columns.name_end - left + look.px(8)
        metrics = look.metrics(role, weights[0])
        painter.setPen(inks[0])
        metrics.write(painter, QRectF(left, top, room + 2, high), metrics.cut(cells.name, room))
    for text, edge, weight, ink in (
        (cells.size, columns.size, weights[1], inks[1]),
        (cells.share, columns.share, weights[2], inks[2]),
        (cells.last, columns.last, weights[3], inks[3]),
    ):
        if edge is not None and text:
            painter.setPen(ink)
            look.metrics(role, weight).write(painter, QRectF(0, top, edge, high), text, RIGHT)
    if cells.rise and columns.last is not None:
        wide = look.width(cells.last, role, weights[3])
        paint_triangle(
            painter, look, columns.last - wide - look.px(9), rect.center().y(), cells.rise, inks[3]
        )


def paint_triangle(painter: QPainter, look: Look, x: float, y: float, rise: int, ink: QColor) -> None:
    """The sign of a change: up where ``rise`` is positive."""
    half = 3.5 * look.scale
    high = 3.0 * look.scale * (1 if rise > 0 else -1)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink)
    painter.drawPolygon(
        QPolygonF([QPointF(x - half, y + high), QPointF(x + half, y + high), QPointF(x, y - high)])
    )
