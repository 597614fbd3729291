"""Slices and bars ease to their new sizes in 120 ms; figures change at once.

While a slider is dragged they follow the hand: what changes again before it has arrived is there at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QObject
from PySide6.QtWidgets import QWidget

from memgui.document.view_settings import ViewSettings

if TYPE_CHECKING:
    from PySide6.QtCore import QVariantAnimation

DURATION_MS = 120


class Eased(QObject):
    """Named lengths on their way from what a widget showed to what it is to show.

    A name that is new grows from 0, one that is gone shrinks to it.  Without motion (the person's
    choice, the desktop's, a widget that nobody sees, or one change close upon another) the new
    lengths stand at once.
    """

    def __init__(self, widget: QWidget, view: ViewSettings) -> None:
        super().__init__(widget)
        self._widget = widget
        self._view = view
        self._from: dict[str, float] = {}
        self._to: dict[str, float] = {}
        self._now: dict[str, float] = {}
        self._rest = QElapsedTimer()
        self._run: QVariantAnimation | None = None

    @property
    def now(self) -> Mapping[str, float]:
        """The lengths to paint."""
        return self._now

    def go(self, lengths: Mapping[str, float]) -> None:
        """Set out for new lengths."""
        self._halt()
        first = not self._to
        in_a_row = self._rest.isValid() and self._rest.elapsed() < DURATION_MS
        self._rest.start()
        self._from, self._to = dict(self._now), dict(lengths)
        if first or in_a_row or self._still():
            self._now = self._to
        else:
            self._start()
        self._widget.update()

    def stop(self) -> None:
        """Be there at once."""
        self._halt()
        self._now = self._to

    def _halt(self) -> None:
        if self._run is not None:
            self._run.stop()

    def _start(self) -> None:
        if self._run is None:
            from PySide6.QtCore import QEasingCurve, QVariantAnimation  # not before something moves

            self._run = QVariantAnimation(self)
            self._run.setDuration(DURATION_MS)
            self._run.setStartValue(0.0)
            self._run.setEndValue(1.0)
            self._run.setEasingCurve(QEasingCurve.Type.OutCubic)
            self._run.valueChanged.connect(self._step)
        self._run.start()

    def _still(self) -> bool:
        from PySide6.QtWidgets import QStyle  # its enums are many

        hint = QStyle.StyleHint.SH_Widget_Animation_Duration
        widget = self._widget
        return (
            self._view.view.reduced_motion
            or not widget.isVisible()
            or widget.style().styleHint(hint, None, widget) == 0
        )

    def _step(self, done: float) -> None:
        names = self._to if done >= 1.0 else {**self._from, **self._to}
        self._now = {
            name: self._from.get(name, 0.0) * (1.0 - done) + self._to.get(name, 0.0) * done for name in names
        }
        self._widget.update()
