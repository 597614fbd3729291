"""What is laid out once is written to the pixel as Qt writes it."""

from random import Random

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QImage, QPainter, QPicture
from PySide6.QtWidgets import QApplication

from memgui.gui.laid import Digits
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
        if ratio != 1.0:  # glyphs are placed to a 64th of a px, which a finer screen would show between
            across, room = LEFT, QRectF(room.toRect())
            room.setHeight(40 + look.metrics(role, weight, italic).height())
        wanted, painter = picture(ratio)
        painter.setFont(look.font(role, weight, italic))
        painter.drawText(room, FLAGS[across], text)
        painter.end()
        for _ in range(3):
            written, painter = picture(ratio)
            look.metrics(role, weight, italic).write(painter, room, text, across)
            painter.end()
            assert written == wanted, (text, role, weight, italic, room, across)


@pytest.mark.parametrize("family", ["Inter", "DejaVu Sans", "DejaVu Serif", "Noto Sans CJK SC"])
def test_other_digits_stand_where_qt_puts_them(qapp: QApplication, family: str) -> None:
    look, chance = Look(LIGHT, QFont(family, 10)), Random(3)
    forms = (
        "00.00",
        "+0.0\u2009%",
        "\u22120,000 bytes",
        "Fits: needs 00.0 GiB of 000.0 GiB",
        "H000 0x",
        "00 模",
        "0",
    )
    room = QRectF(4, 4, 340, 40)
    for _ in range(150):
        text = "".join(chance.choice("0123456789") if sign == "0" else sign for sign in chance.choice(forms))
        role, weight = chance.choice((Role.SMALL, Role.BODY, Role.VERDICT)), chance.choice((400, 600))
        across, metrics = chance.choice((LEFT, RIGHT)), look.metrics(role, weight)
        wanted, painter = picture(1.0)
        painter.setFont(look.font(role, weight))
        painter.drawText(room, FLAGS[across], text)
        painter.end()
        written, painter = picture(1.0)
        metrics.write(painter, room, text, across)
        painter.end()
        assert written == wanted, (text, role, weight)
        exact = QFontMetricsF(look.font(role, weight)).horizontalAdvance(text)
        assert metrics.horizontalAdvance(text) == pytest.approx(exact, abs=1e-6), (text, role, weight)


def test_where_digits_differ_each_figure_is_laid_out_for_itself(qapp: QApplication) -> None:
    font = QFont("Inter", 10)  # a one is narrow, where no tabular figures are asked for
    if QFontInfo(font).family() != "Inter":
        pytest.skip("Inter is not installed")
    metrics, plain = Metrics(font), QFontMetricsF(font)
    for text in ("11.1", "44.4", "11.1", "10.0"):
        assert metrics.horizontalAdvance(text) == plain.horizontalAdvance(text)
    assert Digits(font).wider
    assert not Digits(Look(LIGHT, font).font()).wider


def test_paper_gets_texts_and_the_screen_glyphs(qapp: QApplication) -> None:
    look, drawn = Look(LIGHT, qapp.font()), QPicture()
    for _ in range(3):
        painter = QPainter(drawn)
        look.metrics().write(painter, QRectF(0, 0, 100, 20), "12.34")
        painter.end()
        assert "12.34".encode("utf-16-be") in bytes(drawn.data())  # type: ignore[call-overload]


def test_only_what_comes_again_is_kept(qapp: QApplication) -> None:
    metrics = Metrics(qapp.font())
    image, painter = picture(1.0)
    room = QRectF(0, 0, 300, 40)
    for number in range(3000):
        metrics.write(painter, room, f"n{number}")
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
