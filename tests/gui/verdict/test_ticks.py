"""The scale under the bar is painted once, and looks as if it were painted each time."""

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from memgui.document.view_settings import View
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DARK, LIGHT, Palette
from memgui.gui.theme import Look, Role
from memgui.gui.verdict import ticks
from memgui.gui.verdict.bar_geometry import Label, Scale, all_ticks, clear_labels

GIB = 2**30
TEXT = "77.2 – 81.7"


def painted(ratio: float, paint: object) -> QImage:
    image = QImage(round(800 * ratio), round(60 * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill("#ffffff")
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint(painter)  # type: ignore[operator]
    painter.end()
    return image


@pytest.mark.parametrize("ratio", [1.0, 1.25, 2.0])
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_what_is_kept_looks_as_if_painted_anew(qapp: QApplication, colours: Palette, ratio: float) -> None:
    look, numbers, kept = Look(colours, qapp.font()), Numbers.of(View()), ticks.Ticks()
    strip, gap = QRectF(0, 9, 800, 21), look.px(8)
    measure = look.metrics(Role.CAPTION).horizontalAdvance
    for scale in (Scale(100 * GIB, 10 * GIB, 800), Scale(1000 * GIB, 50 * GIB, 800)):
        for at in (0.0, 300.0, 352.5, 700.0, None):
            taken = [] if at is None else [Label(at, 70, TEXT)]
            labels = clear_labels(
                all_ticks(scale, numbers.unit_bytes, numbers.unit, numbers.axis, measure), taken, gap
            )

            def direct(painter: QPainter, labels: list[Label] = labels) -> None:
                painter.fillRect(strip, colours.base)
                ticks._paint(painter, look, strip.top(), labels, strip.width())

            def through(painter: QPainter, taken: list[Label] = taken, scale: Scale = scale) -> None:
                kept.paint(painter, look, strip, scale, numbers, taken)

            painted(ratio, direct)  # texts are laid out the second time
            assert painted(ratio, through) == painted(ratio, direct), (scale, at)
