"""The donut as a picture of its own: for paper, PNG and SVG, always on white."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, QSize
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.donut.painting import Scene, paint_donut
from memgui.gui.donut.widget import Donut
from memgui.gui.palette import LIGHT
from memgui.gui.theme import Look

SIZE = QSize(480, 360)
"""Of the picture in px; PNG has :data:`SHARP` times as many."""
SHARP = 3


def scene_of(estimate: Estimate, units: str) -> Scene:
    """What the window's donut shows of ``estimate``, with nothing selected and nothing moving."""
    donut = Donut(Selection(), ViewSettings(View(units=units, reduced_motion=True)))
    donut.set_result(Result(estimate.scenario, estimate, generation=1, last_good=estimate))
    scene = donut.scene()
    donut.deleteLater()
    assert scene is not None
    return scene


def paint_picture(painter: QPainter, scene: Scene, area: QRectF) -> None:
    """The donut into ``area``, in the light theme."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint_donut(painter, Look(LIGHT, QApplication.font()), scene, area)


def png(scene: Scene, size: QSize = SIZE, sharp: int = SHARP) -> QImage:
    """The picture in px."""
    image = QImage(size * sharp, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(sharp)
    image.fill(QColor("#FFFFFF"))
    painter = QPainter(image)
    try:
        paint_picture(painter, scene, _inside(size))
    finally:
        painter.end()
    return image


def png_bytes(image: QImage) -> bytes:
    """An image as the bytes of a PNG file."""
    held = QByteArray()
    buffer = QBuffer(held)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # a str, whatever the stub says
    return bytes(held.data())


def svg_bytes(scene: Scene, title: str, size: QSize = SIZE) -> bytes:
    """The picture as the bytes of an SVG file."""
    from PySide6.QtSvg import QSvgGenerator

    held = QByteArray()
    buffer = QBuffer(held)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    painter = QPainter(generator)
    try:
        painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor("#FFFFFF"))
        paint_picture(painter, scene, _inside(size))
    finally:
        painter.end()
    buffer.close()
    return bytes(held.data())


def _inside(size: QSize) -> QRectF:
    return QRectF(0, 0, size.width(), size.height()).adjusted(8, 8, -8, -8)
