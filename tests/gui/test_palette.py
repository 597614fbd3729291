import itertools

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPalette
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from memgui.estimator.result import COMPONENTS
from memgui.gui.metrics import Metrics
from memgui.gui.palette import (
    DARK,
    DISPLAY_ORDER,
    LIGHT,
    Palette,
    contrast,
    hatch_brush,
    is_dark,
    luminance,
    mixed,
    palette_of,
)

SURFACES = ("window", "base", "raised", "selected", "hover", "track")
BOTH = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


def test_contrast_is_wcags() -> None:
    assert contrast(QColor("#000000"), QColor("#FFFFFF")) == pytest.approx(21.0)
    assert contrast(QColor("#777777"), QColor("#FFFFFF")) == pytest.approx(4.48, abs=0.01)
    assert luminance(QColor("#FF0000")) == pytest.approx(0.2126)


@BOTH
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("ink", ["text", "secondary", "accent", "bad", "warn", "good"])
def test_text_is_readable_on_every_surface(colours: Palette, ink: str, surface: str) -> None:
    assert contrast(getattr(colours, ink), getattr(colours, surface)) >= 4.5


@BOTH
@pytest.mark.parametrize("surface", ["window", "base", "raised", "selected", "hover"])
def test_tertiary_text_is_readable_where_it_stands(colours: Palette, surface: str) -> None:
    assert contrast(colours.tertiary, getattr(colours, surface)) >= 4.5


@BOTH
def test_text_on_its_own_ground_is_readable(colours: Palette) -> None:
    assert contrast(colours.on_accent, colours.accent) >= 4.5
    assert contrast(colours.accent, colours.tint) >= 4.5
    assert contrast(colours.tip_text, colours.tip) >= 4.5


@BOTH
@pytest.mark.parametrize("surface", ["window", "base"])
def test_borders_and_marks_stand_out(colours: Palette, surface: str) -> None:
    for role in ("border", "accent", "bad", "warn", "good", "tertiary"):
        assert contrast(getattr(colours, role), getattr(colours, surface)) >= 3, role


@BOTH
@pytest.mark.parametrize("key", DISPLAY_ORDER)
def test_components_edge_and_ink_stand_out(colours: Palette, key: str) -> None:
    paint = colours.component(key)
    assert contrast(paint.edge, colours.base) >= 3
    assert contrast(paint.edge, colours.window) >= 3
    if paint.hatch is None:
        assert contrast(paint.ink, paint.fill) >= 4.5


@BOTH
@pytest.mark.parametrize("key", DISPLAY_ORDER)
def test_parts_are_their_components_hue_mixed_into_the_base(colours: Palette, key: str) -> None:
    if key == "overhead":
        assert colours.part(key, 0).hatch is not None
        return
    shades = [colours.part(key, index).fill for index in range(4)]
    assert shades[3] == shades[0]
    for first, second in itertools.combinations(shades[:3], 2):
        assert first != second
    assert shades[0] == mixed(colours.component(key).fill, colours.base, 0.7)
    assert contrast(colours.part(key, 2).edge, colours.base) >= 3


def test_every_component_has_a_place_and_a_colour() -> None:
    assert sorted(DISPLAY_ORDER) == sorted(COMPONENTS)
    for colours in (LIGHT, DARK):
        assert sorted(colours.components) == sorted(COMPONENTS)


def test_neighbours_differ(qtbot: QtBot) -> None:
    for colours in (LIGHT, DARK):
        fills = [colours.component(key).fill.name() for key in DISPLAY_ORDER]
        assert len(set(fills)) == len(fills)


def test_a_widget_stands_in_the_theme_of_its_palette(qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.setPalette(DARK.qpalette())
    assert palette_of(widget) is DARK
    widget.setPalette(LIGHT.qpalette())
    assert palette_of(widget) is LIGHT


def test_qpalette_carries_the_roles() -> None:
    for colours in (LIGHT, DARK):
        made = colours.qpalette()
        assert is_dark(made) is colours.dark
        assert made.color(QPalette.ColorRole.Link) == colours.accent
        assert made.color(QPalette.ColorRole.PlaceholderText) == colours.tertiary
        for role in (QPalette.ColorRole.Text, QPalette.ColorRole.PlaceholderText):
            assert made.color(QPalette.ColorGroup.Disabled, role) == colours.disabled


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_hatch_keeps_its_pitch_at_every_scale(qtbot: QtBot, ratio: float) -> None:
    brush = hatch_brush(QColor("red"), ratio)
    tile = brush.texture()
    assert tile.width() == round(5 * ratio)
    assert tile.toImage().pixelColor(0, tile.height() - 1).alpha() > 128
    assert brush.transform().m11() == pytest.approx(1 / ratio)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_figures_behind_a_hatch_stand_where_they_belong(qapp: QApplication, ratio: float) -> None:
    metrics = Metrics(qapp.font())
    pictures = []
    for brush in (QBrush(), hatch_brush(QColor("red"), ratio)):
        picture = QImage(round(120 * ratio), round(30 * ratio), QImage.Format.Format_RGB32)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.white)
        painter = QPainter(picture)
        painter.setBrush(brush)
        painter.setPen(QColor("black"))
        for _ in range(3):  # from the second time on a text is laid out and drawn as glyphs
            painter.fillRect(0, 0, 120, 30, Qt.GlobalColor.white)
            metrics.write(painter, QRectF(10, 5, 100, 20), "79.2 GiB")
        painter.end()
        pictures.append(picture)
    assert pictures[0] == pictures[1]
