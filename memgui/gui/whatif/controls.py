"""What is swept, from where to where, against what, on which devices."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QAction, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QSizePolicy, QWidget

from memgui.document.what_if import MOST_DEVICES, WhatIf
from memgui.gui.controls.buttons import ToolButton
from memgui.gui.controls.fields import ComboBox
from memgui.gui.controls.segmented import SegmentedSwitch
from memgui.gui.form.number_box import NumberBox
from memgui.gui.numbers import Numbers
from memgui.gui.texts import field_text, issue_text
from memgui.gui.theme import Look, menu_sheet
from memgui.planning.solve import WHOLE
from memgui.planning.sweep import Scale
from memgui.spec import Issue, ScenarioError
from memgui.spec.fields import BY_PATH

WIDE, NARROW = 900, 830
"""From these widths on (13 px body) there is room for the button's text, and for the words."""

CHART, TABLE = "chart", "table"
SWEEP, HEAT_MAP = "sweep", "heat_map"


class Controls(QWidget):
    """One row; it changes the plan and shows it again when another one stands."""

    shown = Signal(object)
    """``chart`` or ``table``."""
    copy_asked = Signal(object)
    """``sweep`` or ``heat_map``."""

    def __init__(self, what_if: WhatIf, numbers: Numbers, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._what_if = what_if
        self._numbers = numbers
        self._filling = False
        self._listed: tuple[str, ...] = ()
        look = Look.of(self)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(look.px(16), look.px(8), look.px(12), look.px(8))
        self._row.setSpacing(look.px(8))
        self.field = self._choice(self.tr("Field to sweep"))
        self.low, self.high = (self._box(what_if.plan.path, name) for name in self._ends())
        self.scale = self._choice(self.tr("Spread of the values"), 5)
        self.scale.setMaximumWidth(look.px(80))
        self.scale.add_choice(Scale.LOG, self.tr("log"))
        self.scale.add_choice(Scale.LINEAR, self.tr("linear"))
        self.against = self._choice(self.tr("Second field of the heat map"))
        self.devices = ToolButton("settings", self.tr("Devices"), self)
        self.devices.set_wide(True)
        self.devices.setMenu(QMenu(self.devices))
        self.devices.menu().aboutToShow.connect(self._fill_devices)
        self.devices.setPopupMode(ToolButton.ToolButtonPopupMode.InstantPopup)
        self.switch = SegmentedSwitch(self.tr("Chart or table"), self)
        self.switch.add(CHART, self.tr("Chart"), "chart")
        self.switch.add(TABLE, self.tr("Table"), "table")
        self.switch.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.copy = ToolButton("copy", self.tr("Copy as CSV"), self)
        self.copy.setMenu(self._copy_menu())
        self.copy.setPopupMode(ToolButton.ToolButtonPopupMode.InstantPopup)
        self._lay_out()
        self.field.activated.connect(lambda _: what_if.sweep_field(self.field.currentData()))
        self.against.activated.connect(lambda _: what_if.set_against(self.against.currentData()))
        self.scale.activated.connect(lambda _: what_if.set_scale(Scale(self.scale.currentData())))
        self.switch.chosen.connect(self.shown)
        what_if.planned.connect(self.fill)
        self.fill()

    def _ends(self) -> tuple[str, str]:
        return self.tr("From"), self.tr("To")

    def _choice(self, name: str, letters: int = 9) -> ComboBox:
        made = ComboBox(self)
        made.setAccessibleName(name)
        made.setToolTip(name)
        made.setMinimumContentsLength(letters)
        made.setMaximumWidth(Look.of(self).px(200))
        policy = made.sizePolicy()
        policy.setHorizontalPolicy(QSizePolicy.Policy.Expanding)
        made.setSizePolicy(policy)
        return made

    def _box(self, path: str, name: str) -> NumberBox:
        box = NumberBox(BY_PATH[path], self)
        box.setAccessibleName(name)
        box.setMaximumWidth(Look.of(self).px(92))
        box.edited.connect(lambda value, held: self._range())
        box.failed.connect(lambda issue: self._refuse(box, issue))
        return box

    def _lay_out(self) -> None:
        row = self._row
        self._verb = self._word(self.tr("Sweep"), self.field)
        widgets: tuple[QWidget, ...] = (
            self._verb,
            self.field,
            self._word(self.tr("from"), self.low),
            self.low,
            self._word(self.tr("to"), self.high),
            self.high,
            self.scale,
        )
        for widget in widgets:
            row.addWidget(widget)
        row.addSpacing(Look.of(self).px(8))
        row.addStretch()  # what a wide window has to spare
        row.addWidget(self._word(self.tr("against"), self.against))
        widgets = (self.against, self.devices, self.switch, self.copy)
        for widget in widgets:
            row.addWidget(widget)

    def _word(self, text: str, buddy: QWidget) -> QLabel:
        made = QLabel(text, self)
        made.setBuddy(buddy)
        return made

    def set_narrow(self, width: float) -> None:
        """Drop the device button's text and the first word, then all, where ``width`` is little.

        ``width`` is in pixels at a 13 px body.
        """
        for label in self.findChildren(QLabel):
            label.setVisible(width >= (WIDE if label is self._verb else NARROW))
        self.devices.set_wide(width >= WIDE)

    def _paths(self) -> tuple[str, ...]:
        return tuple(field.path for field in self._what_if.fields())

    def follow(self) -> None:
        """Offer the fields of another set-up, where they are others."""
        if self._paths() != self._listed:
            self._what_if.keep_to_offered()
            self.fill()

    def fill(self) -> None:
        """Show the plan."""
        plan = self._what_if.plan
        fields = self._what_if.fields()
        listed = self._paths()
        arrow = Look.of(self).px(40)
        for box, present in ((self.field, plan.path), (self.against, plan.against)):
            if listed != self._listed:
                box.clear()
                usual = sorted(fields, key=lambda one: (one.advanced, one.section == "model"))
                for field in usual:
                    box.add_choice(field.path, field_text(field.label), tip=field_text(field.help))
            box.setCurrentIndex(box.findData(present))
            # Of what room there is each gets what its name needs.
            self._row.setStretchFactor(box, box.fontMetrics().horizontalAdvance(box.currentText()) + arrow)
        self._listed = listed
        self._fit_boxes(plan.path)
        self._filling = True
        self.low.set_value(plan.low)
        self.high.set_value(plan.high)
        self._filling = False
        whole = BY_PATH[plan.path].kind in WHOLE
        self.scale.setEnabled(whole)
        self.scale.setCurrentIndex(self.scale.findData(plan.scale if whole else Scale.LINEAR))
        count = len(self._what_if.devices)
        self.devices.setToolTip(self.tr("Devices whose limits are drawn: {count}").format(count=1 + count))

    def _fit_boxes(self, path: str) -> None:
        """Boxes belong to their field: another field has its own."""
        if self.low.field is BY_PATH[path]:
            return
        for name, old in zip(("low", "high"), (self.low, self.high), strict=True):
            made = self._box(path, old.accessibleName())
            self._row.replaceWidget(old, made)
            old.hide()
            old.deleteLater()
            setattr(self, name, made)

    def _range(self) -> None:
        low, high = self.low.value(), self.high.value()
        if self._filling or low is None or high is None:
            return
        try:
            self._what_if.set_range(low, high)
        except ScenarioError as error:
            for box in (self.low, self.high):
                self._refuse(box, error.issue)
        else:
            for box in (self.low, self.high):
                self._refuse(box, None)

    def _refuse(self, box: NumberBox, issue: Issue | None) -> None:
        box.set_invalid(issue is not None)
        box.setToolTip(issue_text(issue) if issue is not None else "")

    def _copy_menu(self) -> QMenu:
        menu = QMenu(self.copy)
        texts = {SWEEP: self.tr("Copy the sweep as CSV"), HEAT_MAP: self.tr("Copy the heat map as CSV")}
        for which, text in texts.items():
            menu.addAction(text).triggered.connect(lambda _=False, which=which: self.copy_asked.emit(which))
        menu.aboutToShow.connect(lambda: menu.setStyleSheet(menu_sheet(Look.of(self))))
        return menu

    def _fill_devices(self) -> None:
        menu = self.devices.menu()
        menu.clear()
        menu.setStyleSheet(menu_sheet(Look.of(self)) + "QMenu { menu-scrollable: 1; }")
        drawn = [one.name for one in self._what_if.devices]
        for device in self._what_if.offered():
            action = QAction(f"{device.name}\t{self._numbers.tip(device.memory_bytes)}", menu)
            action.setCheckable(True)
            action.setChecked(device.name in drawn)
            action.setEnabled(device.name in drawn or len(drawn) < MOST_DEVICES)
            action.toggled.connect(lambda on, device=device: self._what_if.show_device(device, on))
            menu.addAction(action)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.PaletteChange:
            for label in self.findChildren(QLabel):
                palette = label.palette()
                palette.setColor(label.foregroundRole(), Look.of(self).colours.secondary)
                label.setPalette(palette)
        super().changeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(0, self.height() - 1, self.width(), 1, Look.of(self).colours.hairline)
