"""Our icons as Qt's own: for menus, lists and whatever else asks for a ``QIcon``."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize
from PySide6.QtGui import QColor, QIcon, QIconEngine, QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication

from memgui.gui.icons import VERDICT_ICONS, paint_icon, pixmap
from memgui.gui.palette import DARK, LIGHT, is_dark


class _TintedEngine(QIconEngine):
    """Draws an icon in the palette's text colour of the moment; verdicts in their own colour."""

    def __init__(self, name: str, verdict: str = "", accent: bool = False) -> None:
        super().__init__()
        self._name = name
        self._verdict = verdict
        self._accent = accent

    def _tint(self, mode: QIcon.Mode) -> tuple[QColor, QColor]:
        palette = QApplication.palette()
        colours = DARK if is_dark(palette) else LIGHT
        if mode is QIcon.Mode.Disabled:
            return colours.disabled, colours.base
        if self._verdict:
            return colours.verdict(self._verdict), colours.base
        if self._accent:
            return colours.accent, colours.base
        return palette.color(QPalette.ColorRole.WindowText), colours.base

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        colour, mark = self._tint(mode)
        size = min(rect.width(), rect.height())
        paint_icon(painter, self._name, QRectF(rect).center(), size, colour, mark)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        # In px of the screen: what Qt makes of a logical size and a scale, it asks for here.
        colour, mark = self._tint(mode)
        return pixmap(self._name, min(size.width(), size.height()), 1.0, colour.rgba(), mark.rgba())

    def clone(self) -> QIconEngine:
        return _TintedEngine(self._name, self._verdict, self._accent)


def icon(name: str, accent: bool = False) -> QIcon:
    """An icon for Qt's own buttons, menus and lists; it follows the theme by itself."""
    return QIcon(_TintedEngine(name, accent=accent))


def verdict_icon(kind: str) -> QIcon:
    """The icon of a verdict, for lists and menus."""
    return QIcon(_TintedEngine(VERDICT_ICONS.get(kind, VERDICT_ICONS["unknown"]), kind))
