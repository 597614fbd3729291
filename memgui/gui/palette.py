"""The colours: one table for light, one for dark, and which of them a widget stands in.

Painters ask :func:`palette_of`; nothing is passed around and nothing has to be told of a change
of theme, because the answer follows the widget's own ``QPalette``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPalette, QPixmap, QTransform
from PySide6.QtWidgets import QWidget

DISPLAY_ORDER = (
    "weights",
    "optimizer_states",
    "gradients",
    "activations",
    "loss",
    "kv_cache",
    "temporary",
    "overhead",
)
"""Components as they are stacked: what stays first, what comes and goes on top."""

_TINTS = (0.70, 0.50, 0.30)
"""How much of its component's hue a part keeps over the base, part by part."""


class Paint(msgspec.Struct, frozen=True):
    """How a component is filled: its colour, the 1 px edge that gives 3:1, and the ink written on it."""

    fill: QColor
    edge: QColor
    ink: QColor
    hatch: QColor | None = None
    """Colour of the 45° lines over the fill, where the bytes are uncertain."""


class Palette(msgspec.Struct, frozen=True):
    """Every colour by its role."""

    dark: bool
    window: QColor
    base: QColor
    raised: QColor
    hairline: QColor
    border: QColor
    text: QColor
    secondary: QColor
    tertiary: QColor
    disabled: QColor
    accent: QColor
    on_accent: QColor
    selected: QColor
    tint: QColor
    hover: QColor
    track: QColor
    bad: QColor
    warn: QColor
    good: QColor
    tip: QColor
    tip_text: QColor
    components: Mapping[str, Paint]
    parts: Mapping[str, tuple[Paint, ...]] = {}
    """For each component the paints of its parts, in turn."""

    def __post_init__(self) -> None:
        if not self.parts:
            msgspec.structs.force_setattr(self, "parts", _parts(self))

    def verdict(self, kind: str) -> QColor:
        """The colour of a verdict: ``fits``, ``tight``, ``does_not_fit`` or ``unknown``."""
        kinds = {"fits": self.good, "tight": self.warn, "does_not_fit": self.bad}
        return kinds.get(kind, self.tertiary)

    def component(self, key: str) -> Paint:
        """The paint of a top-level component."""
        return self.components[key]

    def part(self, key: str, index: int) -> Paint:
        """The paint of a component's ``index``-th part: the same hue, mixed into the base."""
        tints = self.parts[key]
        return tints[index % len(tints)]

    def qpalette(self) -> QPalette:
        """What the plain Qt widgets need of it."""
        roles = QPalette.ColorRole
        made = QPalette()
        for role, colour in {
            roles.Window: self.window,
            roles.WindowText: self.text,
            roles.Base: self.base,
            roles.AlternateBase: self.window,
            roles.Text: self.text,
            roles.Button: self.raised,
            roles.ButtonText: self.text,
            roles.BrightText: self.bad,
            roles.Highlight: self.selected,
            roles.HighlightedText: self.text,
            roles.Accent: self.accent,
            roles.Link: self.accent,
            roles.LinkVisited: self.accent,
            roles.PlaceholderText: self.tertiary,
            roles.ToolTipBase: self.tip,
            roles.ToolTipText: self.tip_text,
            roles.Light: self.raised,
            roles.Midlight: self.hairline,
            roles.Mid: self.hairline,
            roles.Dark: self.border,
            roles.Shadow: self.hairline,
        }.items():
            made.setColor(role, colour)
        written = roles.WindowText, roles.Text, roles.ButtonText, roles.HighlightedText, roles.PlaceholderText
        for role in written:
            made.setColor(QPalette.ColorGroup.Disabled, role, self.disabled)
        made.setColor(QPalette.ColorGroup.Disabled, roles.Base, self.window)
        return made


def mixed(colour: QColor, ground: QColor, share: float) -> QColor:
    """``share`` of ``colour`` over ``ground``, opaque."""
    rest = 1.0 - share
    return QColor.fromRgbF(
        colour.redF() * share + ground.redF() * rest,
        colour.greenF() * share + ground.greenF() * rest,
        colour.blueF() * share + ground.blueF() * rest,
    )


def luminance(colour: QColor) -> float:
    """Relative luminance as WCAG 2 defines it, from 0 (black) to 1 (white)."""
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (colour.redF(), colour.greenF(), colour.blueF())
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: QColor, second: QColor) -> float:
    """Contrast of two opaque colours as WCAG 2 defines it, from 1 to 21."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _parts(colours: Palette) -> dict[str, tuple[Paint, ...]]:
    """Each component's hue mixed into the base; what is hatched stays as it is."""
    return {
        key: (whole,)
        if whole.hatch is not None
        else tuple(
            Paint(mixed(whole.fill, colours.base, share), whole.edge, colours.text) for share in _TINTS
        )
        for key, whole in colours.components.items()
    }


def _components(rows: Mapping[str, tuple[str, str, str]], hatch: str) -> dict[str, Paint]:
    made = {key: Paint(QColor(fill), QColor(edge), QColor(ink)) for key, (fill, edge, ink) in rows.items()}
    fill, edge = made["overhead"].fill, made["overhead"].edge
    made["overhead"] = Paint(fill, edge, made["overhead"].ink, QColor(hatch))
    return made


_DARK_INK = "#16181C"

LIGHT = Palette(
    dark=False,
    window=QColor("#F5F6F8"),
    base=QColor("#FFFFFF"),
    raised=QColor("#FFFFFF"),
    hairline=QColor("#DDE0E6"),
    border=QColor("#828A98"),
    text=QColor("#1B1F26"),
    secondary=QColor("#4F5765"),
    tertiary=QColor("#606876"),
    disabled=QColor("#9AA1AD"),
    accent=QColor("#4549C6"),
    on_accent=QColor("#FFFFFF"),
    selected=QColor("#E7E8FA"),
    tint=QColor("#ECEDFB"),
    hover=QColor("#EDEFF3"),
    track=QColor("#E4E7EC"),
    bad=QColor("#B3261E"),
    warn=QColor("#8A5800"),
    good=QColor("#17693A"),
    tip=QColor("#23272F"),
    tip_text=QColor("#FFFFFF"),
    components=_components(
        {
            "weights": ("#0072B2", "#00537F", "#FFFFFF"),
            "optimizer_states": ("#009E73", "#00704F", _DARK_INK),
            "gradients": ("#D55E00", "#9C4400", _DARK_INK),
            "activations": ("#E69F00", "#946200", _DARK_INK),
            "loss": ("#CC79A7", "#96497A", _DARK_INK),
            "kv_cache": ("#56B4E9", "#1B74A8", _DARK_INK),
            "temporary": ("#3E4654", "#23282F", "#FFFFFF"),
            "overhead": ("#C8CDD5", "#6B7380", "#1B1F26"),
        },
        hatch="#6B7380",
    ),
)

DARK = Palette(
    dark=True,
    window=QColor("#191B1F"),
    base=QColor("#1F2226"),
    raised=QColor("#2A2E34"),
    hairline=QColor("#363B43"),
    border=QColor("#767E8B"),
    text=QColor("#E9EBEE"),
    secondary=QColor("#B9C0CB"),
    tertiary=QColor("#9BA3B0"),
    disabled=QColor("#6B7380"),
    accent=QColor("#A8ABFF"),
    on_accent=QColor("#16181C"),
    selected=QColor("#33365A"),
    tint=QColor("#2D2F4A"),
    hover=QColor("#2C3037"),
    track=QColor("#343941"),
    bad=QColor("#FF8F85"),
    warn=QColor("#F4BE4F"),
    good=QColor("#6FD69B"),
    tip=QColor("#E9EBEE"),
    tip_text=QColor("#16181C"),
    components=_components(
        {
            "weights": ("#2A8ACB", "#7FC0EE", _DARK_INK),
            "optimizer_states": ("#0FA67B", "#5FD3B0", _DARK_INK),
            "gradients": ("#E2691A", "#FFA366", _DARK_INK),
            "activations": ("#EBA61F", "#FFD27A", _DARK_INK),
            "loss": ("#D48BB5", "#F0B9D7", _DARK_INK),
            "kv_cache": ("#6CC3F0", "#B4E2FA", _DARK_INK),
            "temporary": ("#3D4553", "#AEB6C3", "#FFFFFF"),
            "overhead": ("#565D69", "#9AA3B1", "#E9EBEE"),
        },
        hatch="#9AA3B1",
    ),
)


def palette_of(widget: QWidget) -> Palette:
    """The table that fits the widget's own ``QPalette``: dark where its window colour is dark."""
    return DARK if is_dark(widget.palette()) else LIGHT


def is_dark(palette: QPalette) -> bool:
    """Whether a ``QPalette`` has a dark window."""
    key = palette.cacheKey()
    known = _DARK.get(key)
    if known is None:
        if len(_DARK) >= _MOST_PALETTES:
            _DARK.clear()
        known = _DARK[key] = palette.color(QPalette.ColorRole.Window).lightness() < 128
    return known


_MOST_PALETTES = 256
_DARK: dict[int, bool] = {}
"""By palette: it is asked of the same few at each painting."""


@lru_cache(maxsize=64)
def _hatch_tile(colour: int, pitch: int, ratio: float) -> QPixmap:
    """One tile of 45° lines, 1 px thick; each px gets what the line covers of it, so tiles meet unseen."""
    side = round(pitch * ratio)
    tile = QPixmap(side, side)
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    for x in range(side):
        for y in range(side):
            away = (x + y + 1) % side
            distance = min(away, side - away) / math.sqrt(2)
            shade = QColor.fromRgba(colour)
            shade.setAlphaF(min(1.0, max(0.0, 0.5 + ratio / 2 - distance)))
            painter.setPen(shade)
            painter.drawPoint(x, y)
    painter.end()
    return tile


def hatch_brush(colour: QColor, ratio: float, pitch: int = 5) -> QBrush:
    """45° lines in ``colour``, ``pitch`` px apart, on nothing; ``ratio`` is the device pixel ratio.

    The tile itself has none: behind a brush that has one, Qt's painter draws glyphs in the wrong places.
    """
    brush = QBrush()
    brush.setTexture(_hatch_tile(colour.rgba(), pitch, ratio))
    brush.setTransform(QTransform.fromScale(1 / ratio, 1 / ratio))
    return brush
