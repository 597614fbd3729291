"""Light and dark, sizes and fonts by role.

:class:`Look` is what a painter asks for: the colours of the widget's own palette, lengths scaled by
the body font, fonts by role.  ``Look.of(widget)`` costs a microsecond; it is asked for at each paint,
so that nothing has to be told of a change of theme or font.
"""

from __future__ import annotations

from string import Template
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontDatabase, QFontInfo
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from memgui.gui.metrics import Metrics
from memgui.gui.palette import DARK, LIGHT, Palette, is_dark

STYLE: Final = "Fusion"
"""Qt's style that everything is painted on; the application is started in it."""

BODY_PX = 13
"""Height of the body font for which STYLE's lengths are written down."""

_FIGURES = QFont.Tag("tnum")


class Role:
    """What a text is: its size relative to the body.  Plain floats, for they are asked for at every text."""

    CAPTION: Final = 0.85
    SMALL: Final = 0.92
    BODY: Final = 1.0
    TITLE: Final = 1.08
    FORMULA: Final = 1.15
    VERDICT: Final = 1.55


class Look:
    """Colours, lengths and fonts for painting.  Lengths are device-independent px."""

    __slots__ = ("_base", "_fonts", "_lengths", "_metrics", "_sizes", "body_px", "colours", "scale")

    def __init__(self, colours: Palette, base: QFont) -> None:
        self.colours = colours
        self.body_px = QFontInfo(base).pixelSize()
        self.scale = self.body_px / BODY_PX
        self._base = base
        # Asked for hundreds of times in each repaint: what was worked out once is looked up.
        self._lengths: dict[float, int] = {0: 0}
        self._sizes: dict[tuple[float, float], QSize] = {}
        self._fonts: dict[tuple[float, int, bool], QFont] = {}
        self._metrics: dict[tuple[float, int, bool], Metrics] = {}

    @staticmethod
    def of(widget: QWidget) -> Look:
        """The look of a widget: the theme of its palette, the sizes of the application's font."""
        font = QApplication.font()
        looks = _LOOKS.get("now")
        if looks is None or looks[0] != font:
            looks = _LOOKS["now"] = (QFont(font), Look(LIGHT, font), Look(DARK, font))
        return looks[2] if is_dark(widget.palette()) else looks[1]

    def px(self, length: float) -> int:
        """``length`` px beside a 13 px body, in whole px beside the present one; never 0 for more than 0."""
        known = self._lengths.get(length)
        if known is None:
            known = self._lengths[length] = max(1, round(length * self.scale)) if length > 0 else 0
        return known

    def size(self, width: float, height: float) -> QSize:
        """A size in such lengths; layouts ask their widgets for theirs hundreds of times."""
        known = self._sizes.get((width, height))
        if known is None:
            known = self._sizes[width, height] = QSize(self.px(width), self.px(height))
        return known

    def font(self, role: float = Role.BODY, weight: int = 400, italic: bool = False) -> QFont:
        """The font of a role, with tabular figures.  Italic is for symbols in formulas only."""
        key = (role, weight, italic)
        font = self._fonts.get(key)
        if font is None:
            font = self._fonts[key] = self.sized(self.body_px * role, weight, italic)
        return font

    def metrics(self, role: float = Role.BODY, weight: int = 400, italic: bool = False) -> Metrics:
        """The metrics of :meth:`font`."""
        key = (role, weight, italic)
        metrics = self._metrics.get(key)
        if metrics is None:
            metrics = self._metrics[key] = Metrics(self.font(role, weight, italic))
        return metrics

    def width(self, text: str, role: float = Role.BODY, weight: int = 400, italic: bool = False) -> float:
        """How wide a text is in the font of a role."""
        return self.metrics(role, weight, italic).horizontalAdvance(text)

    def cut(self, text: str, room: float, role: float = Role.BODY, weight: int = 400) -> str:
        """A text, its end given way to an ellipsis where it is wider than ``room``."""
        return self.metrics(role, weight).cut(text, room)

    def sized(self, height: float, weight: int = 400, italic: bool = False) -> QFont:
        """The font at ``height`` px, for what scales with a drawing."""
        font = QFont(self._base)
        font.setPixelSize(max(1, round(height)))
        font.setWeight(QFont.Weight(weight))
        font.setItalic(italic)
        font.setFeature(_FIGURES, 1)
        return font


_LOOKS: dict[str, tuple[QFont, Look, Look]] = {}
"""The two looks of the present font; comparing fonts is a tenth of what writing one down as a key costs."""


class Theme(QObject):
    """Gives the application its font and palette, and follows the desktop where told to.

    Where the platform does not follow ``setColorScheme`` (offscreen, bare X11), the palette alone
    makes the theme: it is always ours.
    """

    changed = Signal()
    """The palette has changed; painters need not listen, for Qt tells every widget."""

    def __init__(self, app: QApplication, mode: str = "system") -> None:
        super().__init__(app)
        self._app = app
        self._mode = mode
        self._desktop_dark = is_dark(app.palette())
        app.setFont(body_font(app.font()))
        app.styleHints().colorSchemeChanged.connect(self._follow)
        self._apply()

    @property
    def mode(self) -> str:
        """``system``, ``light`` or ``dark``."""
        return self._mode

    @property
    def dark(self) -> bool:
        """Whether the window is dark now."""
        if self._mode != "system":
            return self._mode == "dark"
        scheme = self._app.styleHints().colorScheme()
        return scheme is Qt.ColorScheme.Dark or (scheme is Qt.ColorScheme.Unknown and self._desktop_dark)

    def set_mode(self, mode: str) -> None:
        """Change to ``system``, ``light`` or ``dark``."""
        if mode != self._mode:
            self._mode = mode
            self._apply()

    def _apply(self) -> None:
        schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        # For what the platform draws itself (title bar, file dialog); Unknown gives it back to the desktop.
        self._app.styleHints().setColorScheme(schemes.get(self._mode, Qt.ColorScheme.Unknown))
        self._paint_all()

    def _follow(self) -> None:
        if self._mode == "system":
            self._paint_all()

    def _paint_all(self) -> None:
        colours = DARK if self.dark else LIGHT
        palette = colours.qpalette()
        self._app.setPalette(palette)
        QToolTip.setPalette(palette)
        self.changed.emit()


def body_font(desktop: QFont) -> QFont:
    """The interface's font: Inter where it is installed, else the desktop's own; always its size."""
    font = QFont(desktop)
    if QFontDatabase.hasFamily("Inter"):
        font.setFamilies(["Inter", *desktop.families(), *_CHINESE])
    font.setFeature(_FIGURES, 1)
    return font


_CHINESE = ("Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC")

THEME_EVENTS = (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.StyleChange)
"""What a widget that keeps layouts or pictures of itself must throw them away for."""

_MENUS = Template("""
QMenuBar { background: $window; color: $text; border: none; padding: ${p2}px ${p8}px; }
QMenuBar::item { background: transparent; padding: ${p4}px ${p10}px; border-radius: ${p4}px; }
QMenuBar::item:selected, QMenuBar::item:pressed { background: $track; }
QMenu { background: $raised; color: $text; border: 1px solid $edge; padding: ${p4}px; }
QMenu::item { padding: ${p5}px ${p24}px ${p5}px ${p10}px; border-radius: ${p4}px; }
QMenu::item:selected { background: $selected; }
QMenu::item:disabled { color: $disabled; }
QMenu::separator { height: 1px; background: $hairline; margin: ${p4}px ${p8}px; }
""")


def menu_sheet(look: Look) -> str:
    """The stylesheet of a menu bar or a menu, set on that widget alone and again when the theme changes.

    There is none for the whole application: with one, Qt gives widgets their palettes back at will.
    """
    colours = look.colours
    names = ("window", "text", "track", "raised", "selected", "disabled", "hairline")
    values = {name: getattr(colours, name).name() for name in names}
    values["edge"] = (colours.border if colours.dark else colours.hairline).name()
    values |= {f"p{length}": str(look.px(length)) for length in (2, 4, 5, 8, 10, 24)}
    return _MENUS.substitute(values)
