"""A slider on a log scale: coarse steps by hand, exact values from the box beside it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from memgui.gui.controls.slider import Slider
from memgui.gui.theme import Look

_PER_OCTAVE = 64


class LogScale:
    """Whole numbers from ``low`` to ``high`` on a log axis; a ``low`` of 0 stands one octave below 1."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self._first = max(1, low)
        self._zero = _PER_OCTAVE // 2 if low == 0 else 0
        self.length = self._zero + math.ceil(math.log2(high / self._first) * _PER_OCTAVE)
        ticks = {low, high} | {self._first << k for k in range(64) if self._first << k <= high}
        ticks |= {3 << k for k in range(62) if low <= 3 << k <= high}
        ticks |= {1 << k for k in range(62) if low <= 1 << k <= high}
        self.ticks = sorted(ticks)
        """Where the handle rests by itself: powers of two, and one and a half times each."""

    def position(self, value: int) -> int:
        """Place of ``value``, from 0 to :attr:`length`; values outside stand at the ends."""
        if value < self._first:
            return 0
        if value >= self.high:
            return self.length
        return min(self.length, self._zero + round(math.log2(value / self._first) * _PER_OCTAVE))

    def value(self, position: int, *, free: bool = False) -> int:
        """The number at a place: the nearest tick, or with ``free`` whatever stands there."""
        if position <= self._zero // 2:
            return self.low
        exact = self._first * 2 ** ((position - self._zero) / _PER_OCTAVE)
        if free:
            return min(self.high, max(self._first, round(exact)))
        place = bisect_left(self.ticks, exact)
        near = self.ticks[max(0, place - 1) : place + 1]
        return min(near, key=lambda tick: abs(self.position(tick) - position))

    def step(self, value: int, steps: int) -> int:
        """``steps`` ticks up or down from ``value``, which need not be one."""
        if steps > 0:
            place = bisect_right(self.ticks, value) + steps - 1
        else:
            place = bisect_left(self.ticks, value) + steps
        return self.ticks[min(len(self.ticks) - 1, max(0, place))]


class LogSlider(Slider):
    """Turns a whole number on a :class:`LogScale`.  Shift turns freely, a double click resets."""

    edited = Signal(object, bool)
    """The person turned it: the value, and whether the button is still down."""
    finished = Signal()
    reset = Signal()

    def __init__(self, scale: LogScale, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._scale = scale
        self._exact = scale.low
        self._grip = 0.0
        self.setRange(0, scale.length)

    def set_value(self, value: int) -> None:
        """Show a value that came from outside."""
        if value != self._exact:
            self._exact = value
            self.setValue(self._scale.position(value))
            self.update()

    def set_largest(self, largest: int | None) -> None:
        """Tint the groove past the largest value that fits; ``None`` while that is not known.

        A value below the least one says that none fits.
        """
        if largest is not None and largest < self._scale.low:
            self.set_limit(-1)
        else:
            self.set_limit(None if largest is None else self._scale.position(largest))

    def _turn(self, value: int, held: bool) -> None:
        if value != self._exact:
            self.set_value(value)
            self.edited.emit(value, held)

    def _at(self, event: QMouseEvent) -> int:
        free = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        return self._scale.value(self._position(event.position().x() + self._grip), free=free)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            event.ignore()
            return
        # The gesture before ends here and not at its release, so that a double click stays one gesture.
        self.finished.emit()
        self.setSliderDown(True)
        off = self._x(self.value()) - event.position().x()
        self._grip = off if abs(off) <= Look.of(self).px(9) else 0.0
        if not self._grip:
            self._turn(self._at(event), True)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self._turn(self._at(event), True)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.isSliderDown():
            self.setSliderDown(False)
            self.edited.emit(self._exact, False)
            self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.reset.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        keys = Qt.Key
        match event.key():
            case keys.Key_Right | keys.Key_Up:
                value = self._exact + 1 if fine else self._scale.step(self._exact, 1)
            case keys.Key_Left | keys.Key_Down:
                value = self._exact - 1 if fine else self._scale.step(self._exact, -1)
            case keys.Key_PageUp:
                value = self._exact * 2
            case keys.Key_PageDown:
                value = self._exact // 2
            case keys.Key_Home:
                value = self._scale.low
            case keys.Key_End:
                value = self._scale.high
            case _:
                super().keyPressEvent(event)
                return
        self._turn(min(self._scale.high, max(self._scale.low, value)), False)

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y() // 120
        if not self.hasFocus() or not steps:
            event.ignore()
            return
        self._turn(self._scale.step(self._exact, steps), False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.finished.emit()
