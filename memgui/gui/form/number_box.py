"""The exact box: a number of any size, typed or pasted as a person writes it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPaintEvent, QPalette, QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QWidget

from memgui.gui.controls.fields import SpinBox
from memgui.gui.form.leave_undo import LeaveUndo
from memgui.gui.texts import field_text
from memgui.gui.theme import Look
from memgui.spec import Issue, ScenarioError
from memgui.spec.fields import Field, Kind
from memgui.spec.values import read

_LONGEST = 60
_ALWAYS_FITS = 6
"""So many characters have room in every box; of longer ones the first digits might be cut."""
_BESIDE = 30
"""Width of what stands beside the figures: the frame, the chevrons, the cursor's place."""
_WIDEST = 136
"""Width that a long number makes its box at most, at a 13 px body."""


def number_text(field: Field, value: int | float) -> str:
    """The number as the box writes it; read back it is the same number."""
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if field.kind is Kind.BYTES:
        for name, size in (("TiB", 2**40), ("GiB", 2**30), ("GB", 10**9)):
            if value >= size and value % size == 0:
                return f"{value // size:,} {name}"
    return f"{value:,}"


_OFF_THE_ARROWS = "\N{EN SPACE}"
"""Qt gives a figure a margin that it does not give the words in its place."""


class NumberBox(SpinBox):
    """Shows and takes the number of one field.

    The box is the authority beside its slider: it holds any Python int, out of range or not, and
    leaves the judging to validation.  Text that is no number is kept, marked and told by ``failed``.
    """

    edited = Signal(object, bool)
    """A number was typed or stepped: the value (``None`` in an emptied optional field), not held."""
    failed = Signal(object)
    """What is wrong with the text: an :class:`Issue`, or ``None`` when it can be read again."""
    finished = Signal()

    def __init__(self, field: Field, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._field = field
        self._value: int | float | None = None
        self._issue: Issue | None = None
        self._painted_ends = (False, False)
        self._wanted = 0
        self.setAccelerated(True)
        line = self.lineEdit()
        line.setMaxLength(_LONGEST)
        line.setPlaceholderText(field_text(field.empty_label) + _OFF_THE_ARROWS)
        clear = line.palette()
        clear.setColor(QPalette.ColorRole.Base, QColor(0, 0, 0, 0))
        line.setPalette(clear)
        line.textEdited.connect(self._typed)
        leave_undo = LeaveUndo(self, lambda: self._issue is not None)
        line.installEventFilter(leave_undo)
        self.installEventFilter(leave_undo)  # it hands keys to the line without asking its filters
        self.editingFinished.connect(self._finish)

    @property
    def field(self) -> Field:
        """Whose number it is."""
        return self._field

    def value(self) -> int | float | None:
        """The last number that could be read."""
        return self._value

    def set_value(self, value: int | float | None) -> None:
        """Show a value that came from outside; what is being typed for that very value stays."""
        if value == self._value and (self._issue is None or self.hasFocus()):
            return
        self._value = value
        self._tell(None)
        self._show()

    def _show(self) -> None:
        text = "" if self._value is None else number_text(self._field, self._value)
        line = self.lineEdit()
        if line.text() != text:
            line.setText(text)
            self._fit(text)
        if self._ends() != self._painted_ends:
            self.update()  # the chevrons: Qt only knows of the line

    def _fit(self, text: str) -> None:
        """Ask for as much room as a long number needs."""
        wanted = 0
        if len(text) > _ALWAYS_FITS:
            look = Look.of(self)
            step = look.px(8)  # the row is not laid out anew for each digit
            needed = -(-(round(look.width(text)) + look.px(_BESIDE)) // step) * step
            wanted = min(look.px(_WIDEST), needed)
            wanted = wanted if wanted > super().sizeHint().width() else 0
        if wanted != self._wanted:
            self._wanted = wanted
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        usual = super().sizeHint()
        return QSize(max(usual.width(), self._wanted), usual.height())

    def _typed(self, text: str) -> None:
        self._fit(text)
        try:
            value = read(self._field.path, text)
        except ScenarioError as error:
            self._tell(error.issue)
            return
        self._tell(None)
        if value != self._value:
            self._value = value
            self.edited.emit(value, False)
        if value is not None and (text.rstrip()[-1:].isalpha() or text.rstrip().endswith("%")):
            self._show()  # the unit is complete: say at once what it comes to

    def _tell(self, issue: Issue | None) -> None:
        if issue != self._issue:
            self._issue = issue
            self.failed.emit(issue)

    def _finish(self) -> None:
        if self._issue is None:
            self._show()
        self.finished.emit()

    def stepBy(self, steps: int) -> None:
        value = self._value if self._value is not None else self._field.minimum or 0
        if isinstance(value, float) or self._field.kind is Kind.RATIO:
            new: int | float = round(value + 0.01 * steps, 4)
        else:
            step = self._step(value)
            new = (value // step + steps) * step if steps > 0 else -((-value // step + -steps) * step)
        low, high = self._field.minimum, self._field.maximum
        if low is not None and new < low:
            new = low  # a step stops at the end, as it does everywhere; typing is never clamped
        if high is not None and new > high:
            new = high
        if new != self._value:
            self._value = new
            self._tell(None)
            self._show()
            self.edited.emit(new, False)

    def _step(self, value: int) -> int:
        match self._field.kind:
            case Kind.BYTES:
                return 1 << 30
            case Kind.TOKENS if value > 16:
                return 1 << max(0, value.bit_length() - 4)
            case _:
                return 1

    def _ends(self) -> tuple[bool, bool]:
        """Whether the value stands at the low or the high end of what a step may reach, or beyond."""
        value, low, high = self._value, self._field.minimum, self._field.maximum
        if value is None:
            return False, False
        return low is not None and value <= low, high is not None and value >= high

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        at_low, at_high = self._ends()
        flags = QAbstractSpinBox.StepEnabledFlag.StepNone
        if not at_low:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        if not at_high:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepUpEnabled
        return flags

    def paintEvent(self, event: QPaintEvent) -> None:
        self._painted_ends = self._ends()
        super().paintEvent(event)

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        return QValidator.State.Acceptable, text, position  # said beside the field, not by swallowing keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        unread = self._issue is not None
        escaped = event.key() == Qt.Key.Key_Escape and (unread or self.lineEdit().isModified())
        if escaped or (unread and event.matches(QKeySequence.StandardKey.Undo)):
            self._tell(None)
            self._show()
            self.selectAll()
            return
        super().keyPressEvent(event)
