"""What is laid out once is written to the pixel as Qt writes it."""

from random import Random

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from memgui.gui.metrics import LEFT, MIDDLE, RIGHT, Metrics
from memgui.gui.palette import LIGHT
from memgui.gui.theme import Look, Role

TEXTS = (
    "Weights",
    "1,203.01 GiB",
    "AVA To fi ffi",
    "74.7\u2009%",
    "\u2212 12",
    "模型 weights",
    "a\nb",
    " x",
    "12 שלום",
)
FLAGS = {
    LEFT: Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
    MIDDLE: Qt.AlignmentFlag.AlignCenter,
    RIGHT: Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight,
}


def picture(ratio: float) -> tuple[QImage, QPainter]:
    image = QImage(round(360 * ratio), round(60 * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor("#ffffff"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QColor("#14145a"))
    return image, painter


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_a_text_looks_the_same_however_often_it_is_written(qapp: QApplication, ratio: float) -> None:
    look, chance = Look(LIGHT, qapp.font()), Random(7)
    for _ in range(150):
        text, across = chance.choice(TEXTS), chance.choice((LEFT, MIDDLE, RIGHT))
        role, weight = chance.choice((Role.CAPTION, Role.BODY, Role.VERDICT)), chance.choice((400, 600))
        italic = chance.random() < 0.2
        wide = chance.choice((300.0, chance.uniform(20, 200)))  # the narrow ones cut the text
        room = QRectF(chance.uniform(0, 40), chance.uniform(0, 10), wide, chance.uniform(14, 40))
        wanted, painter = picture(ratio)
        painter.setFont(look.font(role, weight, italic))
        painter.drawText(room, FLAGS[across], text)
        painter.end()
        for _ in range(3):
            written, painter = picture(ratio)
            look.metrics(role, weight, italic).write(painter, room, text, across)
            painter.end()
            assert written == wanted, (text, role, weight, italic, room, across)


def test_only_what_comes_again_is_kept(qapp: QApplication) -> None:
    metrics = Metrics(qapp.font())
    image, painter = picture(1.0)
    room = QRectF(0, 0, 300, 40)
    for number in range(3000):
        metrics.write(painter, room, f"{number}")
        metrics.write(painter, room, "GiB")
    painter.end()
    assert not image.isNull()
    assert list(metrics._laid) == ["GiB"]
    for number in range(3000):
        for _ in range(2):
            metrics.broken(f"{number} GiB", 100)
    assert len(metrics._broken) < 1000


def test_a_text_is_broken_anew_for_another_width(qapp: QApplication) -> None:
    metrics = Metrics(qapp.font())
    text = "What each layer computed on the way forward is needed again on the way back."
    narrow, wide = list(metrics.broken(text, 150)), list(metrics.broken(text, 300))
    assert len(narrow) > len(wide) > 1
    assert metrics.broken(text, 150) == narrow
