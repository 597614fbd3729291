"""The form: task switch, field search, and one section after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from memgui.document.document import Document
from memgui.document.limits import Limit
from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.gui.controls.buttons import ToolButton
from memgui.gui.controls.fields import LineEdit
from memgui.gui.controls.scrolling import slim
from memgui.gui.controls.segmented import SegmentedSwitch
from memgui.gui.form.device_box import DeviceBox
from memgui.gui.form.flags import Flags
from memgui.gui.form.row import Row
from memgui.gui.form.section import Section
from memgui.gui.numbers import Numbers
from memgui.gui.search_item import Item
from memgui.gui.texts import field_text, label
from memgui.gui.theme import Look
from memgui.planning.layout import together
from memgui.spec import Device, Issue
from memgui.spec.fields import BY_PATH, FIELDS, SECTIONS, Field, Kind

_SIZES = tuple(field.path for field in FIELDS if field.kind is Kind.BYTES)
AT_ONCE = 4
"""So many rows are made ahead in one turn of the event loop."""
OPEN_AT_FIRST = ("workload", "precision", "engine", "device")
REST_MS = 400
"""What is wrong is said after a rest this long, not while a number is half typed."""


class Form(QWidget):
    """Shows a document's scenario and passes on what the person does to it."""

    section_toggled = Signal(str, bool)

    def __init__(
        self,
        document: Document,
        selection: Selection,
        view: ViewSettings,
        search_devices: Callable[[str], list[Item]],
        parent: QWidget | None = None,
    ) -> None:
        """``search_devices`` gives items whose values are :class:`Device`."""
        super().__init__(parent)
        self._document = document
        self._view = view
        self._search_devices = search_devices
        self._result: Result | None = None
        self._focused: Row | None = None
        self._pointed: Row | None = None
        self._limits: Mapping[str, Limit] = {}
        self._rows: dict[str, Row] = {}
        self._judged = False
        self.sections: dict[str, Section] = {}
        self.setAccessibleName(self.tr("Set-up"))
        self._flags = Flags(self.rows, REST_MS, self)
        self._make_top()
        self._make_sections()
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._show_issues)
        self._ahead = QTimer(self)
        self._ahead.setInterval(0)
        self._ahead.timeout.connect(self._make_some)
        document.result.connect(self.set_result)
        document.restored.connect(self.go_to)
        selection.field_requested.connect(self.go_to)
        selection.field_hovered.connect(self._point_at)
        view.figures_changed.connect(self._show_sizes)
        QApplication.instance().focusChanged.connect(self._focus_moved)  # type: ignore[union-attr]
        if document.last_result.generation:
            self.set_result(document.last_result)

    def _make_top(self) -> None:
        look = Look.of(self)
        self.task = SegmentedSwitch(label("task"), self)
        for choice in BY_PATH["task"].choices:
            self.task.add(choice.value, field_text(choice.label))
        self.task.chosen.connect(lambda value: self._edit_at_once("task", value))
        self.find_button = ToolButton("filter", self.tr("Find a field"), self)
        self.find_button.setToolTip(self.tr("Find a field ( / )"))
        self.find_button.setCheckable(True)
        self.find_button.toggled.connect(self._find_toggled)
        self.find_line = LineEdit("search", self)
        self.find_line.setPlaceholderText(self.tr("Find a field"))
        self.find_line.setAccessibleName(self.tr("Find a field"))
        self.find_line.textChanged.connect(self._find)
        self.find_line.installEventFilter(self)
        self.find_line.hide()
        top = QHBoxLayout()
        top.setContentsMargins(look.px(12), 0, look.px(12), 0)
        top.setSpacing(look.px(8))
        top.addWidget(self.task, 1)
        top.addWidget(self.find_button)
        head = QVBoxLayout()
        head.setContentsMargins(0, look.px(8), 0, look.px(8))
        head.setSpacing(look.px(8))
        head.addLayout(top)
        find = QHBoxLayout()
        find.setContentsMargins(look.px(12), 0, look.px(12), 0)
        find.addWidget(self.find_line)
        head.addLayout(find)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addLayout(head)

    def _make_sections(self) -> None:
        self._scroll = QScrollArea(self)
        self._scroll.setWidgetResizable(True)
        slim(self._scroll)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for key in SECTIONS:
            fields = tuple(field for field in FIELDS if field.section == key)
            if key == "task" or not fields:
                continue
            section = Section(key, fields, self._document, body)
            section.row_made.connect(self._adopt)
            section.toggled.connect(self._toggled)
            section.toggled.connect(self.section_toggled)
            section.more.toggled.connect(lambda on: self._flags.look_again())
            self.sections[key] = section
            column.addWidget(section)
        column.addStretch(1)
        self._scroll.setWidget(body)
        self._column.addWidget(self._scroll, 1)

    def open_section(self, key: str) -> None:
        """Open a section; one that does not exist is ignored (an older memgui's setting)."""
        section = self.sections.get(key)
        if section is not None:
            section.set_open(True)

    def _toggled(self, key: str, on: bool) -> None:
        """Say beside rows that may have just been made what was said of the others with the result."""
        if on:
            self._show_sizes()
            self._show_limits()
            self._flags.look_again()

    def make_ahead(self) -> None:
        """Make the rows of closed sections while the person rests, so that opening one is quick."""
        self._ahead.start()

    def _make_some(self) -> None:
        for section in self.sections.values():
            if section.make_rows(AT_ONCE, advanced=self.find_button.isChecked()):
                return
        self._ahead.stop()
        if self.find_line.text():
            self._find(self.find_line.text())

    def _adopt(self, row: Row) -> None:
        self._rows[row.field.path] = row
        row.edited.connect(self._edited)
        row.finished.connect(self._document.finish_gesture)
        row.reset.connect(self._reset)
        if isinstance(row.box, DeviceBox):
            row.box.search = self._search_devices
            row.box.picked.connect(self._pick_device)

    def refresh_devices(self) -> None:
        """There is more among the devices than before."""
        for row in self.rows():
            if isinstance(row.box, DeviceBox):
                row.box.refresh()

    def rows(self) -> Iterable[Row]:
        """Every row made so far."""
        return (row for section in self.sections.values() for row in section.rows.values())

    def set_result(self, result: Result) -> None:
        """Show what the scenario holds now; nothing is echoed back."""
        self._result = result
        self.task.set_value(result.scenario.task)
        for section in self.sections.values():
            section.refresh(result)
        self._show_sizes()
        if self._limits:
            self._show_limits()
        if self.find_line.text():
            self._find(self.find_line.text())
        self._flags.set_scenario(result.scenario)
        if self._judged:
            self._clear_gone(result.issues)
            self._judged = bool(result.issues)
        if result.issues:
            self._rest.start()
        else:
            self._rest.stop()

    def _show_sizes(self) -> None:
        """Say exact bytes in the chosen unit too."""
        numbers = Numbers.of(self._view.view)
        for path in _SIZES:
            row = self._rows.get(path)
            if row is not None:
                value = row.editor.value()
                row.set_aside(numbers.sentence(value) if isinstance(value, int) else "")

    def _edited(self, path: str, value: Any, held: bool) -> None:
        if path == "device.memory_bytes":
            # Other memory is another device: the name must not go on saying which one it was.
            values = {path: value, "device.name": self.tr("Custom GPU")}
            self._document.edit_many(values, label(path), held=held)
        else:
            values = together(self._document.scenario, path, value)
            self._document.edit_many(values, label(path), held=held)

    def _edit_at_once(self, path: str, value: Any) -> None:
        self._document.finish_gesture()
        self._document.edit(path, value)
        self._document.finish_gesture()

    def _reset(self, path: str) -> None:
        self._edited(path, self._document.default(path), held=False)
        self._document.finish_gesture()

    def _pick_device(self, device: Device) -> None:
        self._document.finish_gesture()
        self._document.edit_many(device.facts, label("device.name"))
        self._document.finish_gesture()

    def _clear_gone(self, issues: tuple[Issue, ...]) -> None:
        named = {path for issue in issues for path in issue.paths}
        for row in self.rows():
            if row.field.path not in named:
                row.set_issue(None)

    def _show_issues(self) -> None:
        """Say each issue once, at the field just touched or else the first in sight; outline them all."""
        if self._result is None:
            return
        issues = self._result.issues
        self._judged = bool(issues)
        self._open_what_is_wrong(issues)
        said: dict[str, Issue] = {}
        outlined: set[str] = set()
        at_hand = self._focused.field.path if self._focused is not None else ""
        seen = [row.field.path for row in self.rows() if not row.isHidden()]
        for issue in issues:
            places = [path for path in issue.paths if path in seen]
            place = at_hand if at_hand in places else next(iter(places), "")
            if place:
                said.setdefault(place, issue)
            if issue.severity == "error":
                outlined.update(places)
        for row in self.rows():
            path = row.field.path
            row.set_issue(said.get(path), outlined=path in outlined)
        if said:
            QTimer.singleShot(0, self, self._keep_in_sight)

    def _open_what_is_wrong(self, issues: Iterable[Issue]) -> None:
        """A fault in a closed section would be said nowhere: open it."""
        for issue in issues:
            seen = [row for row in self.rows() if row.field.path in issue.paths and row.isVisible()]
            if issue.severity == "error" and not seen:
                for path in issue.paths:
                    field = BY_PATH.get(path)
                    if field is not None and path != "task" and self.sections[field.section].row(path):
                        break

    def _keep_in_sight(self) -> None:
        """What was said above the field at hand must not push it away."""
        if self._focused is not None and self._focused.isVisible():
            self._scroll.ensureWidgetVisible(self._focused, 0, Look.of(self).px(8))

    def set_limits(self, limits: Mapping[str, Limit]) -> None:
        """Show how far fields can go: in the groove, and in words where a value is past it."""
        gone = self._limits.keys() - limits.keys()
        self._limits = limits
        for path in gone & self._rows.keys():
            self._rows[path].set_largest(None, "")
        self._show_limits()

    def _show_limits(self) -> None:
        numbers = Numbers.of(self._view.view)
        for path in self._limits.keys() & self._rows.keys():
            row = self._rows[path]
            limit, value = self._limits.get(path), row.editor.value()
            if limit is None or not isinstance(value, int):
                row.set_largest(None, "")
            elif limit.largest is None:
                row.set_largest(-1, self.tr("no value fits"))
            elif value > limit.largest:
                text = self.tr("fits up to {largest}").format(largest=numbers.grouped(limit.largest))
                row.set_largest(limit.largest, text)
            else:
                row.set_largest(limit.largest, "")

    def go_to(self, path: str) -> None:
        """Open the field's section, bring the field into sight, put the focus there."""
        field = BY_PATH.get(path)
        if field is None:
            return
        if path == "task":
            self.task.segment(self.task.value()).setFocus(Qt.FocusReason.OtherFocusReason)
            return
        if self._result is not None and self._result.scenario is not self._document.scenario:
            self._document.settle()  # after undo the field may only now apply
        row = self.sections[field.section].row(path)
        if row is not None:
            self._column.activate()
            row.take_focus()
            self._scroll.ensureWidgetVisible(row, 0, Look.of(self).px(32))

    def choose_device(self) -> None:
        """Go to the device, and search for another."""
        self.go_to("device.name")
        row = self.sections["device"].row("device.name")
        if row is not None and isinstance(row.box, DeviceBox):
            row.box.showPopup()

    def _point_at(self, path: str) -> None:
        if self._pointed is not None:
            self._pointed.point_at(False)
        self._pointed = next((row for row in self.rows() if row.field.path == path), None)
        if self._pointed is not None:
            self._pointed.point_at(True)

    def _focus_moved(self, old: QWidget | None, new: QWidget | None) -> None:
        row: QWidget | None = new
        while row is not None and not isinstance(row, Row):
            row = row.parentWidget()
        if row is not None and not self.isAncestorOf(row):
            row = None
        if row is self._focused:
            return
        if self._focused is not None:
            self._focused.look_at(False)
            self._document.finish_gesture()
        self._focused = row
        if row is not None:
            row.look_at(True)
            if new is not None and new.isVisible():
                self._scroll.ensureWidgetVisible(row, 0, Look.of(self).px(8))

    def find_field(self) -> None:
        """Go to the field search."""
        self.find_button.setChecked(True)
        self.find_line.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.find_line.selectAll()

    def _find_toggled(self, on: bool) -> None:
        self.find_line.setVisible(on)
        if on:
            self._ahead.start()
            self.find_line.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self.find_line.clear()

    def _find(self, text: str) -> None:
        """Show the fields that answer ``text``, as soon as the rows of all are made."""
        words = text.casefold().split()
        if words and self._ahead.isActive():
            return

        def wanted(field: Field) -> bool:
            said = f"{field_text(field.label)} {field_text(field.help)} {field.path}".casefold()
            return all(word in said for word in words)

        for section in self.sections.values():
            section.filter(wanted if words else None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() == Qt.Key.Key_Escape:
                self.find_button.setChecked(False)
                self.task.segment(self.task.value()).setFocus(Qt.FocusReason.OtherFocusReason)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
                return self._go_to_found()
        return False

    def _go_to_found(self) -> bool:
        while self._ahead.isActive():
            self._make_some()
        row = next((row for row in self.rows() if row.isVisible()), None)
        if row is not None:
            row.take_focus()
        return row is not None
