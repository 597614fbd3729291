"""Things to press: buttons, tool buttons, check boxes, the head of a folding section."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QPushButton, QToolButton, QWidget

from memgui.gui.controls.frames import Ringed, outlined, paint_pill, pill_width
from memgui.gui.icons import paint_icon
from memgui.gui.theme import Look, Role

BUTTON_HEIGHT = 28
_ICON = 18


class Button(QPushButton, Ringed):
    """A button with a text, and an icon before it if it is given one; ``primary``: the main action."""

    def __init__(
        self, text: str, icon_name: str = "", primary: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(text, parent)
        self._icon_name = icon_name
        self._primary = primary
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_primary(self, primary: bool) -> None:
        """Fill it, as the one thing to press, or not."""
        if primary != self._primary:
            self._primary = primary
            self.update()

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        text = look.width(self.text().replace("&", ""), Role.BODY, 500)
        icon = look.px(_ICON + 8) if self._icon_name else 0
        return QSize(max(look.px(64), round(text) + icon + look.px(28)), look.px(BUTTON_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.show_ring(self, event, Look.of(self).px(5))
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.drop_ring()
        super().focusOutEvent(event)

    def _colours(self, look: Look) -> tuple[QColor, QColor, QColor]:
        """Fill, edge and ink."""
        colours = look.colours
        if not self.isEnabled():
            return colours.window, colours.hairline, colours.disabled
        if self._primary:
            return colours.accent, colours.text if self.isDown() else colours.accent, colours.on_accent
        if self.isChecked():
            return colours.selected, colours.accent, colours.text
        fill = colours.hover if self.underMouse() or self.isDown() else colours.raised
        edge = colours.accent if self.isDown() else colours.secondary if self.underMouse() else colours.border
        return fill, edge, colours.text

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        fill, edge, ink = self._colours(look)
        rect = QRectF(self.rect())
        outlined(painter, rect, look.px(5), fill, edge)
        painter.setPen(ink)
        painter.setFont(look.font(Role.BODY, 500))
        if self._icon_name:
            text = look.width(self.text().replace("&", ""), Role.BODY, 500)
            left = (self.width() - text - look.px(_ICON + 8)) / 2
            centre = QPointF(left + look.px(_ICON) / 2, self.height() / 2)
            paint_icon(painter, self._icon_name, centre, look.px(_ICON), ink)
            rect = rect.adjusted(look.px(_ICON + 8), 0, 0, 0)
        painter.setPen(ink)
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextShowMnemonic, self.text())


class ToolButton(QToolButton, Ringed):
    """An icon, with its text beside it unless the bar is narrow; flat until it is touched.

    Without its text it needs its name all the same: :attr:`text` is its accessible name, and the
    tooltip unless another one is set.
    """

    def __init__(self, icon_name: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon_name = icon_name
        self._wide = False
        self.setText(text)
        self.setAccessibleName(text.replace("&", ""))
        self.setToolTip(text.replace("&", ""))
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def set_wide(self, wide: bool) -> None:
        """Show the text beside the icon."""
        if wide != self._wide:
            self._wide = wide
            self.updateGeometry()
            self.update()

    def set_icon_name(self, name: str) -> None:
        """Show another icon."""
        if name != self._icon_name:
            self._icon_name = name
            self.update()

    def _has_chevron(self) -> bool:
        return self.menu() is not None and bool(self._wide or self.text())

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        width = look.px(_ICON + 12)
        if self._wide:
            width += round(look.width(self.text().replace("&", ""), Role.BODY, 500)) + look.px(12)
        if self._has_chevron():
            width += look.px(18)
        return QSize(width, look.px(30))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.show_ring(self, event, Look.of(self).px(5))
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.drop_ring()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect())
        enabled = self.isEnabled()
        ink = colours.text if enabled else colours.disabled
        if self.isCheckable() and self.isChecked():
            outlined(painter, rect, look.px(5), colours.selected, colours.accent)
            ink = colours.text if colours.dark else colours.accent
        elif enabled and self.isDown():
            outlined(painter, rect, look.px(5), colours.hover, colours.accent)
        elif enabled and self.underMouse():
            outlined(painter, rect, look.px(5), colours.hover, colours.hairline)
        side = look.px(_ICON)
        middle = self.height() / 2
        left = look.px(6) if not self._wide else look.px(10)
        paint_icon(painter, self._icon_name, QPointF(left + side / 2, middle), side, ink)
        if self._wide:
            painter.setPen(ink)
            painter.setFont(look.font(Role.BODY, 500))
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextShowMnemonic
            painter.drawText(rect.adjusted(left + side + look.px(8), 0, 0, 0), flags, self.text())
        if self._has_chevron():
            grey = colours.secondary if enabled else colours.disabled
            paint_icon(
                painter, "chevron-down", QPointF(self.width() - look.px(13), middle), look.px(16), grey
            )


class CheckBox(QCheckBox, Ringed):
    """A box to tick."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        text = look.width(self.text().replace("&", ""))
        return QSize(look.px(16) + (round(text) + look.px(8) if text else 0), look.px(BUTTON_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, at: object) -> bool:
        return self.rect().contains(at)  # type: ignore[call-overload, no-any-return]

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.update()
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = look.px(16)
        box = QRectF(0, (self.height() - side) / 2, side, side)
        enabled = self.isEnabled()
        on = self.checkState() is not Qt.CheckState.Unchecked
        fill = colours.raised if enabled else colours.window
        edge = colours.border if enabled else colours.hairline
        if enabled and self.underMouse():
            edge = colours.secondary
        if on:
            fill = edge = colours.accent if enabled else colours.disabled
        outlined(painter, box, look.px(4), fill, edge)
        if on:
            paint_icon(painter, "check", box.center(), look.px(14), colours.on_accent)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            ring = box.adjusted(1, 1, -1, -1) if not on else box
            outlined(painter, ring.adjusted(-1, -1, 1, 1), look.px(4), QColor(0, 0, 0, 0), colours.accent, 2)
            if on:
                outlined(
                    painter, box.adjusted(2, 2, -2, -2), look.px(2), QColor(0, 0, 0, 0), colours.on_accent
                )
        painter.setPen(colours.text if enabled else colours.disabled)
        painter.setFont(look.font())
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextShowMnemonic
        painter.drawText(QRectF(self.rect()).adjusted(side + look.px(8), 0, 0, 0), flags, self.text())


class SectionHeader(QAbstractButton):
    """The head of a section that folds: chevron, title, and at the right a summary or a pill."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._summary = ""
        self._pill = ""
        self.setText(title)
        self.setAccessibleName(title)
        self.setCheckable(True)
        self.setChecked(True)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def set_summary(self, summary: str, pill: str = "") -> None:
        """What stands at the right: the summary while closed, the pill (it wins) in both states."""
        if (summary, pill) != (self._summary, self._pill):
            seen = self._seen
            self._summary, self._pill = summary, pill
            self.setAccessibleDescription(pill or summary)
            if seen != self._seen:
                self.update()

    @property
    def _seen(self) -> str:
        """What stands at the right now."""
        return self._pill or ("" if self.isChecked() else self._summary)

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(160), look.px(32))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect())
        if self.underMouse() or self.isDown():
            painter.fillRect(rect, colours.hover)
        middle = self.height() / 2
        name = "chevron-down" if self.isChecked() else "chevron-right"
        paint_icon(painter, name, QPointF(look.px(18), middle), look.px(16), colours.secondary)
        left = look.px(32)
        side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(rect.adjusted(left, 0, 0, 0), side, self.text())
        room = rect.adjusted(
            left + look.width(self.text(), Role.BODY, 600) + look.px(12),
            0,
            -look.px(16),
            0,
        )
        if self._pill:
            wide = pill_width(self._pill, look)
            high = look.px(20)
            paint_pill(painter, QRectF(room.right() - wide, middle - high / 2, wide, high), self._pill, look)
        elif self._summary and not self.isChecked():
            painter.setPen(colours.tertiary)
            painter.setFont(look.font(Role.SMALL))
            shown = look.cut(self._summary, room.width(), Role.SMALL)
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, shown)
        if self.hasFocus():
            outlined(painter, rect.adjusted(2, 2, -2, -2), look.px(4), QColor(0, 0, 0, 0), colours.accent, 2)
