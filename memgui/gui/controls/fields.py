"""Boxes to fill in: a line of text, an exact number, a choice with a small second word."""

from __future__ import annotations

import sys

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionSpinBox,
    QStyleOptionViewItem,
    QWidget,
)

from memgui.gui.controls.frames import paint_field
from memgui.gui.icons import paint_icon
from memgui.gui.theme import Look, Role

NOTE_ROLE = Qt.ItemDataRole.UserRole + 1
"""Item data of a :class:`ComboBox`: the small second word beside the item's text."""

FIELD_HEIGHT = 28
_CHEVRON = 16


def clear_base(line: QLineEdit) -> None:
    """Keep Qt from filling the line: the frame beneath it is ours.  Its other colours follow the theme."""
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Base, QColor(0, 0, 0, 0))
    line.setPalette(palette)


class LineEdit(QLineEdit):
    """A line of text in a field's frame, with an icon at its left if it is given one."""

    def __init__(self, icon_name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = icon_name
        self._invalid = False
        self.setFrame(False)
        clear_base(self)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        look = Look.of(self)
        self.setTextMargins(look.px(28 if icon_name else 6), 0, look.px(6), 0)

    def set_invalid(self, invalid: bool) -> None:
        """Show that what stands here cannot be used."""
        if invalid != self._invalid:
            self._invalid = invalid
            self.update()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Text may be dropped here; a file is the window's to open, not an address to write in."""
        if event.mimeData().hasUrls():
            event.ignore()
        else:
            super().dragEnterEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), Look.of(self).px(FIELD_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), Look.of(self).px(FIELD_HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_field(painter, self, look, self._invalid)
        if self._icon:
            colour = look.colours.secondary if self.isEnabled() else look.colours.disabled
            paint_icon(painter, self._icon, QPointF(look.px(17), self.height() / 2), look.px(18), colour)
        painter.end()
        super().paintEvent(event)


class SpinBox(QAbstractSpinBox):
    """The frame, chevrons and manners of a number's box; what a number is, a subclass says.

    The wheel turns it only while it has the focus, so that scrolling a form edits nothing.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._invalid = False
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        clear_base(self.lineEdit())

    def set_invalid(self, invalid: bool) -> None:
        """Show that what stands here cannot be used."""
        if invalid != self._invalid:
            self._invalid = invalid
            self.update()

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(76), look.px(FIELD_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        look = Look.of(self)
        right = min(self._buttons().left(), round(self._chevrons(look)) - look.px(6))
        self.lineEdit().setGeometry(look.px(4), look.px(2), right - look.px(4), self.height() - look.px(4))

    def _buttons(self) -> QRect:
        """Where the two chevrons are, as the style answers a click."""
        option = QStyleOptionSpinBox()
        self.initStyleOption(option)
        control = QStyle.ComplexControl.CC_SpinBox
        up = self.style().subControlRect(control, option, QStyle.SubControl.SC_SpinBoxUp, self)
        down = self.style().subControlRect(control, option, QStyle.SubControl.SC_SpinBoxDown, self)
        return up.united(down)

    def _chevrons(self, look: Look) -> float:
        """The middle of the chevrons; they grow with the font, the style's place for them does not."""
        return QRectF(self._buttons()).center().x() - look.px(2)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_field(painter, self, look, self._invalid)
        if self.buttonSymbols() is QAbstractSpinBox.ButtonSymbols.NoButtons:
            return
        enabled = self.stepEnabled() if self.isEnabled() else QAbstractSpinBox.StepEnabledFlag.StepNone
        across, middle = self._chevrons(look), self.height() / 2
        for name, flag, shift in (
            ("spin-up", QAbstractSpinBox.StepEnabledFlag.StepUpEnabled, -4.5),
            ("spin-down", QAbstractSpinBox.StepEnabledFlag.StepDownEnabled, 4.5),
        ):
            colour = look.colours.secondary if enabled & flag else look.colours.disabled
            centre = QPointF(across, middle + shift * look.scale)
            paint_icon(painter, name, centre, look.px(14), colour)


class ComboBox(QComboBox):
    """A choice; an item's :data:`NOTE_ROLE` stands small beside its text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._invalid = False
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)
        view = QListView(self)
        view.setMouseTracking(True)
        self.setView(view)
        self.setItemDelegate(_ChoiceDelegate(self))
        self.setMaxVisibleItems(16)

    def setAccessibleDescription(self, text: str) -> None:
        """Begin with the name where Qt would never say it: there it calls a box by what is chosen in it."""
        name = self.accessibleName()
        if name and sys.platform not in ("win32", "darwin"):
            text = self.tr("{name}: {description}").format(name=name, description=text) if text else name
        super().setAccessibleDescription(text)

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        if not self.accessibleDescription():
            self.setAccessibleDescription("")

    def set_invalid(self, invalid: bool) -> None:
        """Show that this choice cannot be used."""
        if invalid != self._invalid:
            self._invalid = invalid
            self.update()

    def add_choice(self, value: object, text: str, note: str = "", tip: str = "") -> None:
        """Append an item whose data is ``value``."""
        self.addItem(text, value)
        index = self.count() - 1
        self.setItemData(index, note, NOTE_ROLE)
        if tip:
            self.setItemData(index, tip, Qt.ItemDataRole.ToolTipRole)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), Look.of(self).px(FIELD_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(72), look.px(FIELD_HEIGHT))

    def showPopup(self) -> None:
        look = Look.of(self)
        wide = max(
            (
                look.width(self.itemText(row))
                + look.metrics(Role.SMALL).horizontalAdvance(str(self.itemData(row, NOTE_ROLE) or ""))
                for row in range(self.count())
            ),
            default=0.0,
        )
        self.view().setMinimumWidth(max(self.width(), round(wide) + look.px(44)))
        super().showPopup()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_field(painter, self, look, self._invalid)
        enabled = self.isEnabled()
        right = self.width() - look.px(8)
        centre = QPointF(right - _CHEVRON / 2, self.height() / 2)
        colour = look.colours.secondary if enabled else look.colours.disabled
        paint_icon(painter, "chevron-down", centre, look.px(_CHEVRON), colour)
        room = QRectF(look.px(8), 0, right - look.px(_CHEVRON + 12), self.height())
        note = self.currentData(NOTE_ROLE) or ""
        text_colour = look.colours.text if enabled else look.colours.disabled
        note_colour = look.colours.tertiary if enabled else look.colours.disabled
        paint_choice(painter, room, self.currentText(), str(note), look, text_colour, note_colour)


class _ChoiceDelegate(QStyledItemDelegate):
    """Rows of a choice's list: text, small note, a check at the chosen one."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        view = option.widget
        look = Look.of(view)
        rect = QRectF(option.rect)
        state = option.state
        enabled = bool(state & QStyle.StateFlag.State_Enabled)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & QStyle.StateFlag.State_Selected and enabled:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.colours.selected)
            painter.drawRoundedRect(rect.adjusted(2, 1, -2, -1), look.px(4), look.px(4))
        text = str(index.data(Qt.ItemDataRole.DisplayRole) or "")
        note = str(index.data(NOTE_ROLE) or "")
        colour = look.colours.text if enabled else look.colours.disabled
        note_colour = look.colours.tertiary if enabled else look.colours.disabled
        paint_choice(
            painter, rect.adjusted(look.px(8), 0, -look.px(8), 0), text, note, look, colour, note_colour
        )
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        look = Look.of(option.widget)
        return QSize(look.px(72), look.px(FIELD_HEIGHT))


def paint_choice(
    painter: QPainter, room: QRectF, text: str, note: str, look: Look, colour: QColor, note_colour: QColor
) -> None:
    """A text and, if it fits behind it, a small note; the text is cut where even it does not fit."""
    metrics = look.metrics()
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
    middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
    painter.setFont(look.font())
    painter.setPen(colour)
    painter.drawText(room, middle, shown)
    left = metrics.horizontalAdvance(shown) + look.px(8)
    if note and left + look.width(note, Role.SMALL) <= room.width():
        painter.setFont(look.font(Role.SMALL))
        painter.setPen(note_colour)
        painter.drawText(room.adjusted(left, 0, 0, 0), middle, note)
