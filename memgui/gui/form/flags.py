"""Flags that cannot be turned as things stand are disabled, with the reason; lists say so when they open."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QTimer

from memgui.gui.form.row import Row
from memgui.gui.texts import message_text
from memgui.planning.choices import refused
from memgui.spec import Scenario
from memgui.spec.fields import Kind


class Flags(QObject):
    """Judges the flags in sight after a rest, for to ask of all of them takes longer than an edit may.

    One that is disabled is judged at once when the scenario changes: it may be free again.
    """

    def __init__(self, rows: Callable[[], Iterable[Row]], rest_ms: int, parent: QObject) -> None:
        super().__init__(parent)
        self._rows = rows
        self._scenario: Scenario | None = None
        self._disabled: set[Row] = set()
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(rest_ms)
        self._rest.timeout.connect(self.judge)

    def set_scenario(self, scenario: Scenario) -> None:
        """Follow the form."""
        self._scenario = scenario
        for row in tuple(self._disabled):
            self._judge(row)
        self.look_again()

    def look_again(self) -> None:
        """Rows may have come into sight."""
        self._rest.start()

    def judge(self) -> None:
        """Disable what cannot be turned; never under the hand, for the focus would leave it."""
        for row in self._rows():
            if row.field.kind is Kind.FLAG and row.isVisible() and not row.box.hasFocus():
                self._judge(row)

    def _judge(self, row: Row) -> None:
        if self._scenario is None:
            return
        why = "".join(map(message_text, refused(self._scenario, row.field).values()))
        row.set_refused(why)
        (self._disabled.add if why else self._disabled.discard)(row)
