"""One field of the form: label, slider, exact box, and a line for what is to be said of it."""

from __future__ import annotations

from html import escape
from typing import Any

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QMenu, QVBoxLayout, QWidget

from memgui.gui.form.device_box import DeviceBox
from memgui.gui.form.editors import Editor, editor_for, slider_for
from memgui.gui.form.note import Note
from memgui.gui.form.number_box import NumberBox
from memgui.gui.texts import field_text, issue_text
from memgui.gui.theme import Look, Role
from memgui.spec import Issue
from memgui.spec.fields import Field

LABEL = 112
"""Width of the labels, at a 13 px body."""
MARGIN = 16
_OTHER = object()
"""In place of a value, where the editor may hold another than was put into it."""


class Row(QWidget):
    """Shows the value of one field and says how the person changes it."""

    edited = Signal(str, object, bool)
    """Path, value, and whether the gesture is still held."""
    finished = Signal()
    reset = Signal(str)
    """Put the field back to its default."""

    def __init__(self, field: Field, parent: QWidget) -> None:
        super().__init__(parent)
        self.field = field
        self._look_at = False
        self._applies: bool | None = None
        self._refused = ""
        self._pointed = False
        self._text_issue: Issue | None = None
        self._issue: Issue | None = None
        self._wrong = False
        self._limit = ""
        self._largest: int | None = None
        self._shown: Any = _OTHER
        self._aside = ""
        self.slider = slider_for(field, self)
        self.editor: Editor
        self.box: QWidget
        self.editor = self.box = (
            DeviceBox(field, self) if field.path == "device.name" else editor_for(field, self)
        )
        self._note: Note | None = None
        self._lay_out()
        self._name()
        self._connect()

    def _lay_out(self) -> None:
        look = Look.of(self)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(look.px(MARGIN), look.px(2), look.px(MARGIN), look.px(2))
        column.setSpacing(0)
        line = QHBoxLayout()
        line.setContentsMargins(look.px(LABEL), 0, 0, 0)
        line.setSpacing(look.px(8))
        if self.slider is not None:
            line.addWidget(self.slider, 1)
        line.addWidget(self.box, 0 if self.slider is not None else 1)
        column.addLayout(line)

    def _name(self) -> None:
        """Names for those who do not see the label, help for everybody."""
        label, unit = field_text(self.field.label), field_text(self.field.unit)
        help_text = field_text(self.field.help)
        name = f"{label}, {unit}" if unit else label
        self.setToolTip(self._tip(help_text))
        for widget in (self.box, self.slider):
            if widget is not None:
                widget.setAccessibleName(name)
                widget.setAccessibleDescription(help_text)
        if isinstance(self.box, QComboBox):
            self.box.view().setAccessibleName(name)
        if self.slider is not None:
            self.slider.setAccessibleName(self.tr("{name}, slider").format(name=name))

    def _connect(self) -> None:
        path = self.field.path
        for part in (self.editor, self.slider):
            if part is not None:
                part.edited.connect(self._edited)
                part.finished.connect(self.finished)
        if self.slider is not None:
            self.slider.reset.connect(lambda: self.reset.emit(path))
        if isinstance(self.box, NumberBox):
            self.box.failed.connect(self._text_failed)

    def _edited(self, value: Any, held: bool) -> None:
        self._shown = _OTHER
        self.edited.emit(self.field.path, value, held)

    def set_value(self, value: Any) -> None:
        """Show the field's value."""
        if value is self._shown:
            return
        self._shown = value
        self.editor.set_value(value)
        if self.slider is not None and isinstance(value, int):
            self.slider.set_value(value)

    def set_aside(self, text: str) -> None:
        """Show a few words after the label, such as a size in the chosen unit."""
        if text != self._aside:
            self._aside = text
            self.update()

    def set_largest(self, largest: int | None, text: str) -> None:
        """Show up to where it fits: the groove, and ``text`` where the value is past it."""
        if (largest, text) == (self._largest, self._limit):
            return
        self._largest = largest
        if self.slider is not None:
            self.slider.set_largest(largest)
        self._limit = text
        self._say()

    def set_issue(self, issue: Issue | None, *, outlined: bool = False) -> None:
        """Say what is wrong; ``outlined`` marks the field where another one says it."""
        wrong = outlined or (issue is not None and issue.severity == "error")
        if (issue, wrong) != (self._issue, self._wrong):
            self._issue, self._wrong = issue, wrong
            self.editor.set_invalid(wrong)
            self._say()

    @property
    def said(self) -> str:
        """What stands under the field."""
        return self._note.text if self._note is not None else ""

    def _text_failed(self, issue: Issue | None) -> None:
        self._text_issue = issue
        self._shown = _OTHER
        self._say()

    def _say(self) -> None:
        issue = self._text_issue or self._issue
        if issue is not None:
            text, severity = issue_text(issue), issue.severity
        else:
            text, severity = self._limit, "limit"
        if self._note is None:
            if not text:
                return
            self._note = Note(self, LABEL)
            self._column.addWidget(self._note)
        self._note.say(text, severity)
        self._describe()

    def set_applies(self, applies: bool) -> None:
        """Disable the field with its reason where it has no effect."""
        if applies is self._applies:
            return
        self._applies = applies
        self._enable()

    def set_refused(self, why: str) -> None:
        """Disable what cannot be changed as things stand, with the reason; an empty one lets it be."""
        if why != self._refused:
            self._refused = why
            self._enable()

    def _enable(self) -> None:
        why = self._refused if self._applies else field_text(self.field.why_not)
        self.setEnabled(bool(self._applies) and not self._refused)
        self.setToolTip(self._tip(why or field_text(self.field.help)))
        self._describe()

    def _describe(self) -> None:
        """Tell who does not see it what stands under the field or in its tip, and what the field means."""
        issue = self._text_issue or self._issue
        said = self._refused if issue is None else issue_text(issue)
        self.box.setAccessibleDescription(f"{said} {field_text(self.field.help)}".strip())

    def _tip(self, text: str) -> str:
        """A tooltip with the label over it, which may be cut short in the row."""
        return f"<p><b>{escape(field_text(self.field.label))}</b><br>{escape(text)}</p>"

    def look_at(self, on: bool) -> None:
        """Tint the row that has the focus."""
        if on != self._look_at:
            self._look_at = on
            self.update()

    def point_at(self, on: bool) -> None:
        """Tint the row whose number is under the mouse elsewhere."""
        if on != self._pointed:
            self._pointed = on
            self.update()

    def take_focus(self) -> None:
        """Put the focus into the exact box."""
        self.box.setFocus(Qt.FocusReason.OtherFocusReason)
        if isinstance(self.box, NumberBox):
            self.box.selectAll()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.take_focus()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Put back to the default"), lambda: self.reset.emit(self.field.path))
        menu.popup(event.globalPos())

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        if self._look_at or self._pointed:
            painter.fillRect(self.rect(), look.colours.tint)
        left = look.px(MARGIN)
        rect = QRect(left, look.px(2), look.px(LABEL) - look.px(8), self.box.height())
        painter.setPen(look.colours.text if self.isEnabled() else look.colours.disabled)
        metrics, middle = look.metrics(), Qt.AlignmentFlag.AlignVCenter
        label = field_text(self.field.label)
        if metrics.horizontalAdvance(label) > rect.width():
            self._paint_long(painter, rect, label)
            return
        painter.setFont(look.font())
        painter.drawText(rect, middle | Qt.AlignmentFlag.AlignLeft, label)
        taken = metrics.horizontalAdvance(label) + look.metrics(Role.CAPTION).horizontalAdvance(self._aside)
        if self._aside and taken + look.px(4) <= rect.width():
            painter.setPen(look.colours.secondary)
            painter.setFont(look.font(Role.CAPTION))
            painter.drawText(rect, middle | Qt.AlignmentFlag.AlignRight, self._aside)

    def _paint_long(self, painter: QPainter, rect: QRect, label: str) -> None:
        """A label too wide for its place, on two small lines; what does not fit there either is cut."""
        look = Look.of(self)
        metrics = look.metrics(Role.SMALL)
        lines, cut = [""], Qt.TextElideMode.ElideRight
        for word in label.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if metrics.horizontalAdvance(longer) <= rect.width() or not lines[-1] or len(lines) == 2:
                lines[-1] = longer
            else:
                lines.append(word)
        text = "\n".join(metrics.elidedText(line, cut, rect.width()) for line in lines)
        painter.setFont(look.font(Role.SMALL))
        room = rect.adjusted(0, -look.px(2), 0, look.px(2))
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
