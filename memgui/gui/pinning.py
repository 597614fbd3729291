"""Pinning in the window: its actions, and the picture held against the baseline."""

from __future__ import annotations

from PySide6.QtCore import QObject

from memgui.document.notice import Notice
from memgui.document.pins import Pin
from memgui.document.result import Result
from memgui.files.bounded import FileFault
from memgui.gui.actions import Actions
from memgui.gui.context import AppContext
from memgui.gui.files import AskName
from memgui.gui.main_window import MainWindow
from memgui.presets.codec import check_name
from memgui.spec import QT_TRANSLATE_NOOP, Message


class Pinning(QObject):
    """Pins and unpins what is open; donut, legend and verdict show the difference."""

    def __init__(self, context: AppContext, actions: Actions, ask_name: AskName, window: MainWindow) -> None:
        super().__init__(window)
        self._context = context
        self._ask_name = ask_name
        self._actions = actions
        self._window = window
        actions.on(actions.pin, self.toggle)
        actions.on(actions.add_pin, self.add)
        context.pins.changed.connect(self._show)
        context.document.result.connect(self._enable)
        self._show()
        self._enable(context.document.last_result)

    def toggle(self) -> None:
        """Make what is open the baseline, or have the baseline no more."""
        baseline = self._context.pins.baseline
        if baseline is None:
            self._context.pins.pin(self._name())
        else:
            self.remove(baseline)
        self._show()

    def add(self) -> None:
        """Pin what is open behind the others."""
        self._context.pins.add(self._name())

    def open_for(self, pin: Pin) -> None:
        """Open a pinned set-up and pin what is open in its place."""
        self._context.pins.open_for(pin, self._name())

    def remove(self, pin: Pin) -> None:
        """Unpin; where that is not what is open, it can be put back."""
        pins = self._context.pins
        place = pins.all.index(pin)
        pins.remove(pin)
        if pin.scenario != self._context.document.scenario:
            message = Message(
                QT_TRANSLATE_NOOP("messages", "“{name}” is no longer pinned."), {"name": pin.name}
            )
            back = QT_TRANSLATE_NOOP("messages", "Pin it again")
            self._context.library.told.emit(
                Notice(message, action_text=back, action=lambda: pins.put(pin, place))
            )

    def rename(self, pin: Pin) -> None:
        """Ask for another name."""

        def answer(name: str) -> bool:
            try:
                self._context.pins.rename(pin, check_name(name))
            except FileFault as fault:
                self._context.library.told.emit(Notice(fault.message, "error"))
                return False
            return True

        self._ask_name(self.tr("Name of the pinned set-up"), pin.name, answer)

    def _name(self) -> str:
        from memgui.gui.compare.names import pin_name

        return pin_name(self._context.document, self._context.pins)

    def _show(self) -> None:
        baseline = self._context.pins.baseline
        estimate = baseline.estimate if baseline is not None else None
        self._window.donut.set_pinned(estimate)
        self._window.legend.set_pinned(estimate)
        self._window.verdict.set_pinned(estimate, baseline.name if baseline is not None else "")
        self._actions.pin.setChecked(baseline is not None)
        text = self.tr("Pin &baseline") if baseline is None else self.tr("Unpin the &baseline")
        self._actions.pin.setText(text)

    def _enable(self, result: Result) -> None:
        can = self._context.pins.can_pin
        self._actions.pin.setEnabled(can or self._context.pins.baseline is not None)
        self._actions.add_pin.setEnabled(can)
