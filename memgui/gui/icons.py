"""Icons: our own SVG outlines, tinted from the palette when they are painted, at any scale.

A drawing says ``currentColor`` where the tint goes and ``markColor`` where the ground shows through
(the sign inside a verdict's shape).
"""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap, QTransform
from PySide6.QtSvg import QSvgRenderer

from memgui import _resources
from memgui.gui.palette import Palette

VERDICT_ICONS = {
    "fits": "verdict-fits",
    "tight": "verdict-tight",
    "does_not_fit": "verdict-over",
    "unknown": "verdict-unknown",
}
"""The drawing of each verdict: circle, triangle, octagon, dashed circle."""


def names() -> list[str]:
    """Every icon there is."""
    return sorted(path.stem for path in (_resources.root() / "icons").glob("*.svg"))


@lru_cache(maxsize=128)
def _source(name: str) -> str:
    return (_resources.root() / "icons" / f"{name}.svg").read_text("utf-8")


@lru_cache(maxsize=512)
def pixmap(name: str, size: int, ratio: float, colour: int, mark: int = 0, turned: int = 0) -> QPixmap:
    """The icon in px of the screen; ``colour`` and ``mark`` are ``QColor.rgba()``, ``turned`` degrees."""
    text = _source(name).replace("currentColor", QColor.fromRgba(colour).name())
    text = text.replace("markColor", QColor.fromRgba(mark).name())
    renderer = QSvgRenderer(QByteArray(text.encode()))
    side = max(1, round(size * ratio))
    picture = QPixmap(side, side)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    renderer.render(painter, QRectF(0, 0, side, side))
    painter.end()
    if turned:
        picture = picture.transformed(QTransform().rotate(turned))
    picture.setDevicePixelRatio(ratio)
    return picture


def paint_icon(
    painter: QPainter,
    name: str,
    centre: QPointF,
    size: int,
    colour: QColor,
    mark: QColor | None = None,
    turned: int = 0,
) -> None:
    """Paint an icon of ``size`` px around ``centre``, on whole px."""
    ratio = painter.device().devicePixelRatioF()
    ground = mark.rgba() if mark is not None else 0
    picture = pixmap(name, size, ratio, colour.rgba(), ground, turned)
    painter.drawPixmap(QPoint(round(centre.x() - size / 2), round(centre.y() - size / 2)), picture)


def paint_verdict(painter: QPainter, kind: str, centre: QPointF, size: int, colours: Palette) -> None:
    """Paint the shape of a verdict in its colour."""
    name = VERDICT_ICONS.get(kind, VERDICT_ICONS["unknown"])
    paint_icon(painter, name, centre, size, colours.verdict(kind), colours.base)
