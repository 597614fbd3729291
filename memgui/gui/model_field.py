"""The field in the toolbar that says which model is open, and opens the search for another."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from memgui.document.result import Result
from memgui.document.view_settings import ViewSettings
from memgui.gui.controls.frames import outlined, paint_field
from memgui.gui.icons import paint_icon
from memgui.gui.numbers import Numbers
from memgui.gui.theme import Look, Role


class ModelField(QAbstractButton):
    """Name, then in secondary colour the organisation, size and kind, as far as there is room."""

    def __init__(self, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._name = ""
        self._notes: tuple[str, ...] = ()
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip(self.tr("Choose another model (Ctrl+K)"))

    def set_result(self, result: Result) -> None:
        """Show the model of ``result``."""
        model = result.scenario.model
        numbers = Numbers.of(self._view.view)
        notes = []
        if result.estimate is not None:
            counted = result.estimate.parameters
            notes.append(numbers.parameters(counted.own))
            if model.num_experts:
                notes.append(self.tr("{count} active").format(count=numbers.parameters(counted.own_active)))
        heads, shared = model.num_attention_heads, model.num_key_value_heads
        if model.kv_lora_rank is not None:
            notes.append(self.tr("MLA"))
        elif heads != shared:
            notes.append(self.tr("MQA") if shared == 1 else self.tr("GQA"))
        if model.max_position_embeddings:
            notes.append(
                self.tr("{tokens} context").format(tokens=numbers.tokens(model.max_position_embeddings))
            )
        shown = (model.name or self.tr("Unnamed model"), tuple(notes))
        if shown != (self._name, self._notes):
            self._name, self._notes = shown
            self.setAccessibleName(self.tr("Model: {name}").format(name=self._name))
            self.setAccessibleDescription(" · ".join(self._notes))
            self.update()

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(488), look.px(30))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(240), look.px(30))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_field(painter, self, look, False)
        middle = self.height() / 2
        paint_icon(painter, "search", QPointF(look.px(18), middle), look.px(18), colours.text)
        key = "Ctrl+K"
        key_width = look.metrics(Role.SMALL).horizontalAdvance(key) + look.px(12)
        chip = QRectF(self.width() - key_width - look.px(7), middle - look.px(9), key_width, look.px(18))
        outlined(painter, chip, look.px(4), colours.raised, colours.hairline)
        painter.setPen(colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, key)
        room = QRectF(look.px(34), 0, chip.left() - look.px(34 + 8), self.height())
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        name_metrics, note_metrics = look.metrics(Role.BODY, 600), look.metrics(Role.SMALL)
        name = name_metrics.elidedText(self._name, Qt.TextElideMode.ElideMiddle, room.width())
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(room, flags, name)
        room.setLeft(room.left() + name_metrics.horizontalAdvance(name) + look.px(10))
        notes = list(self._notes)
        while notes and note_metrics.horizontalAdvance(" · ".join(notes)) > room.width():
            notes.pop()
        painter.setPen(colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        painter.drawText(room, flags, " · ".join(notes))
