from collections.abc import Iterator

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon, QPalette
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from memgui.gui import icons, qt_icons
from memgui.gui.palette import DARK, LIGHT
from memgui.gui.theme import Look, Role, Theme, menu_sheet


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    palette, font, style = qapp.palette(), qapp.font(), qapp.style().objectName()
    theme = Theme(qapp, "light")
    yield theme
    theme.deleteLater()
    qapp.setStyle(style)
    qapp.setFont(font)
    qapp.setPalette(palette)


def test_theme_is_ours_where_the_platform_does_not_follow(
    theme: Theme, qapp: QApplication, qtbot: QtBot
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    assert Look.of(widget).colours is LIGHT
    with qtbot.waitSignal(theme.changed):
        theme.set_mode("dark")
    qapp.processEvents()  # Qt tells widgets of a palette by events
    assert theme.dark
    assert Look.of(widget).colours is DARK
    assert widget.palette().color(QPalette.ColorRole.Base) == DARK.base


def test_system_is_what_the_desktop_had(theme: Theme) -> None:
    theme.set_mode("dark")
    theme.set_mode("system")
    assert theme.dark is False


def test_lengths_and_fonts_follow_the_body_font(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    font = qapp.font()
    font.setPixelSize(13)
    qapp.setFont(font)
    look = Look.of(widget)
    assert (look.px(28), look.px(0.2), look.px(0)) == (28, 1, 0)
    assert look.font(Role.VERDICT, 600).pixelSize() == 20
    assert look.font(Role.CAPTION).pixelSize() == 11
    font.setPixelSize(26)
    qapp.setFont(font)
    look = Look.of(widget)
    assert look.px(28) == 56
    assert look.font(Role.VERDICT).pixelSize() == 40
    figures = {look.metrics().horizontalAdvance(digit) for digit in "0123456789"}
    assert len(figures) == 1


def test_menus_sheet_has_every_colour_put_in(theme: Theme, qapp: QApplication) -> None:
    text = menu_sheet(Look(DARK, qapp.font()))
    assert "$" not in text
    assert DARK.raised.name() in text


def test_icons_are_our_own_and_drawn_on_one_grid() -> None:
    assert len(icons.names()) >= 40
    for name in icons.names():
        text = icons._source(name)
        assert 'viewBox="0 0 20 20"' in text
        assert "currentColor" in text
        assert "<image" not in text
        assert "href" not in text
    for name in icons.VERDICT_ICONS.values():
        assert name in icons.names()


@pytest.mark.parametrize("name", icons.names())
def test_icon_draws_something_inside_its_frame(qtbot: QtBot, name: str) -> None:
    image = icons.pixmap(name, 20, 2.0, LIGHT.text.rgba(), LIGHT.base.rgba()).toImage()
    seen = [(x, y) for x in range(40) for y in range(40) if image.pixelColor(x, y).alpha() > 32]
    assert 20 <= len(seen) <= 1400
    # A drawing that touches the frame is cut at its edge.
    assert all(1 <= x <= 38 and 1 <= y <= 38 for x, y in seen)


def test_icon_follows_the_theme(theme: Theme) -> None:
    icon = qt_icons.icon("chevron-down")

    def darkest() -> int:
        image = icon.pixmap(QSize(20, 20), 2.0).toImage()
        assert image.size() == QSize(40, 40)
        return max(
            (image.pixelColor(x, y) for x in range(40) for y in range(40)), key=lambda c: c.alpha()
        ).lightness()

    assert darkest() < 100
    theme.set_mode("dark")
    assert darkest() > 150


def test_verdicts_have_four_shapes_of_their_own(theme: Theme) -> None:
    pictures = [
        qt_icons.verdict_icon(kind).pixmap(QSize(20, 20), 1.0, QIcon.Mode.Normal).toImage()
        for kind in ("fits", "tight", "does_not_fit", "unknown")
    ]
    outlines = [
        tuple(picture.pixelColor(x, y).alpha() > 128 for x in range(20) for y in range(20))
        for picture in pictures
    ]
    assert len(set(outlines)) == 4
