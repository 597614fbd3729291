"""A folding group of fields: its rows are made when it is first opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from memgui.document.document import Document
from memgui.document.result import Result
from memgui.estimator.targets import TARGETS, offered
from memgui.gui.controls.buttons import SectionHeader
from memgui.gui.form.choice_box import ChoiceBox
from memgui.gui.form.more import More
from memgui.gui.form.row import MARGIN, Row
from memgui.gui.form.summary import nothing_here, summary
from memgui.gui.form.text_box import TextBox
from memgui.gui.texts import section_title
from memgui.gui.theme import Look, Role
from memgui.planning.choices import refused
from memgui.spec import Scenario
from memgui.spec.fields import Field
from memgui.spec.messages import Message

UNCOUNTED = ("device",)
"""Sections whose values are a choice of one's own each time: "3 changed" would say nothing."""

_OTHER = {"training": "inference.", "inference": "training."}
"""Where the other task's fields are: of those nobody asks why they do not apply."""


class Section(QWidget):
    """Header, rows, and behind "more" the advanced rows."""

    toggled = Signal(str, bool)
    row_made = Signal(object)
    """A :class:`Row` was made: the form connects it."""

    def __init__(self, key: str, fields: tuple[Field, ...], document: Document, parent: QWidget) -> None:
        super().__init__(parent)
        self.key = key
        self.fields = fields
        self.rows: dict[str, Row] = {}
        self._in_order = sorted(fields, key=lambda field: field.advanced)
        self._document = document
        self._wanted: Callable[[Field], bool] | None = None
        self._result: Result | None = None
        self._reads = {field.path: attrgetter(field.path) for field in fields}
        self._applying: list[Field] | None = None
        self._paths: frozenset[str] = frozenset()
        self._advanced: frozenset[str] = frozenset()
        self._arranged: tuple[object, ...] = ()
        self._seen: list[tuple[Row, Callable[[Scenario], Any]]] = []
        self._empty: QLabel | None = None
        self._body: QWidget | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 1)
        self._column.setSpacing(0)
        self.header = SectionHeader(section_title(key), self)
        self.header.setChecked(False)
        self.header.toggled.connect(self._toggled)
        self._column.addWidget(self.header)
        self.more = More(self)
        self.more.hide()
        self.more.toggled.connect(self._show_more)

    @property
    def is_open(self) -> bool:
        """Whether its rows are in sight."""
        return self.header.isChecked()

    def set_open(self, on: bool) -> None:
        """Open or close it."""
        self.header.setChecked(on)

    def refresh(self, result: Result) -> None:
        """Show the values of ``result`` and which fields apply."""
        self._result = result
        scenario = result.scenario
        applying = [field for field in self.fields if field.applies(scenario)]
        if applying != self._applying:
            self._applying = applying
            self._paths = frozenset(field.path for field in applying)
            self._advanced = frozenset(field.path for field in applying if field.advanced)
            self._arranged = ()
        shown = bool(applying) or bool(nothing_here(self.key, scenario))
        if shown is self.isHidden():
            self.setVisible(shown)
        changed = len(self._document.changed_paths() & self._paths)
        pill = ""
        if changed and self.key not in UNCOUNTED:
            pill = self.tr("{count} changed").format(count=changed)
        self.header.set_summary(summary(self.key, result), pill if self.is_open else "")
        if self.is_open:
            self._refresh_rows(scenario)

    def filter(self, wanted: Callable[[Field], bool] | None) -> int:
        """Show only the fields that ``wanted`` takes, advanced or not; the number of them in sight."""
        self._wanted = wanted
        if self._result is None:
            return 0
        if wanted is None:
            self.refresh(self._result)
            return 0
        found = [f for f in self.fields if wanted(f) and f.applies(self._result.scenario)]
        self.setVisible(bool(found))
        if found:
            self.set_open(True)
            self.refresh(self._result)
        return len(found)

    def row(self, path: str) -> Row | None:
        """The row of a field, made and brought into sight if the field applies."""
        field = next((field for field in self.fields if field.path == path), None)
        if field is None or self._result is None or not field.applies(self._result.scenario):
            return None
        self.set_open(True)
        if field.advanced:
            self.more.setChecked(True)
        return self.rows.get(path)

    def _toggled(self, on: bool) -> None:
        if on:
            self._build()
        if self._result is not None:
            self.refresh(self._result)
        if self._body is not None:  # with all its rows at once
            self._body.setVisible(on)
        self.toggled.emit(self.key, on)

    def _show_more(self) -> None:
        self._build()
        if self._result is not None:
            self.refresh(self._result)

    def _build(self) -> None:
        """Make the rows that can now be seen and are not made yet."""
        self.make_rows(len(self.fields), advanced=self.more.isChecked() or self._wanted is not None)

    def make_rows(self, most: int, *, advanced: bool = False) -> int:
        """Make up to so many rows that are not made yet, out of sight, with ``advanced`` ones; how many."""
        if self._body is None:
            self._body = QWidget(self)
            self._body.setVisible(self.is_open)
            column = QVBoxLayout(self._body)
            column.setContentsMargins(0, 0, 0, Look.of(self).px(2))
            column.setSpacing(0)
            column.addWidget(self.more)
            self._column.addWidget(self._body)
        missing = [
            (place, field)
            for place, field in enumerate(self._in_order)
            if field.path not in self.rows and (advanced or not field.advanced)
        ]
        for place, field in missing[:most]:
            row = Row(field, self._body)
            self.rows[field.path] = row
            if isinstance(row.box, ChoiceBox):
                row.box.asks = partial(self._refused, field)
            elif isinstance(row.box, TextBox) and field.path == TARGETS:
                row.box.offers = partial(self._offered, field)
            row.hide()
            # The plain rows stand before "more", the advanced ones after it.
            self._body.layout().insertWidget(place + (1 if field.advanced else 0), row)  # type: ignore[union-attr]
            self.row_made.emit(row)
        return min(most, len(missing))

    def _refused(self, field: Field) -> Mapping[object, Message]:
        return {} if self._result is None else refused(self._result.scenario, field)

    def _offered(self, field: Field) -> Iterable[str]:
        names = tuple(str(choice.value) for choice in field.choices)
        return names if self._result is None else offered(self._result.scenario, names)

    def _refresh_rows(self, scenario: Scenario) -> None:
        if self._wanted is not None:
            self._build()
        arranged = (scenario.task, self._wanted, self.more.isChecked(), len(self.rows))
        if arranged != self._arranged:
            self._arranged = arranged
            self._arrange(scenario)
        for row, read in self._seen:
            row.set_value(read(scenario))
        self.more.count(len(self._advanced), len(self._document.changed_paths() & self._advanced))
        self._say_empty("" if self._paths else nothing_here(self.key, scenario))

    def _arrange(self, scenario: Scenario) -> None:
        """Bring the rows into sight that are to be seen, and no others; they find their places together."""
        assert self._body is not None
        column = self._body.layout()
        assert column is not None
        column.setEnabled(False)
        self._choose_rows(scenario)
        column.setEnabled(True)
        column.activate()

    def _choose_rows(self, scenario: Scenario) -> None:
        self._seen = []
        open_more = self.more.isChecked()
        for path, row in self.rows.items():
            field = row.field
            applies = path in self._paths
            if self._wanted is not None:
                shown = applies and self._wanted(field)
            else:
                # One that does not apply stands, with its reason, only among all of the section's fields.
                said = bool(field.why_not) and not field.path.startswith(_OTHER[scenario.task])
                shown = (applies and not field.advanced) or (open_more and (applies or said))
            if shown:
                row.set_value(self._reads[path](scenario))
                row.set_applies(applies)
                self._seen.append((row, self._reads[path]))
            if shown == row.isHidden():
                row.setVisible(shown)
        self.more.setVisible(bool(self._advanced) and self._wanted is None)

    def _say_empty(self, text: str) -> None:
        if self._empty is None:
            if not text or self._body is None:
                return
            look = Look.of(self)
            self._empty = QLabel(self._body)
            self._empty.setWordWrap(True)
            self._empty.setFont(look.font(Role.SMALL))
            self._empty.setContentsMargins(look.px(MARGIN), look.px(4), look.px(MARGIN), look.px(4))
            self._body.layout().addWidget(self._empty)  # type: ignore[union-attr]
        self._empty.setText(text)
        self._empty.setVisible(bool(text))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.fillRect(0, self.height() - 1, self.width(), 1, Look.of(self).colours.hairline)
