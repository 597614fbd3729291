"""The bar over everything: model, files, history, copying, units, theme."""

from __future__ import annotations

from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QWidget

from memgui.document.view_settings import THEMES, UNITS, View, ViewSettings
from memgui.gui.actions import Actions
from memgui.gui.controls.buttons import ToolButton
from memgui.gui.controls.segmented import SegmentedSwitch
from memgui.gui.model_field import ModelField
from memgui.gui.theme import Look

WIDE = 1180
"""From this width on the buttons have their texts, at a 13 px body."""

MODEL = 600
"""The model's field grows no wider than this, at a 13 px body."""


class Toolbar(QWidget):
    """Buttons for the window's actions; below :data:`WIDE` they are icons with tooltips."""

    def __init__(self, actions: Actions, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        look = Look.of(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(look.px(12), look.px(6), look.px(12), look.px(7))
        row.setSpacing(look.px(4))
        self.presets = ToolButton("panel", self.tr("Presets"), self)
        _follow(self.presets, actions.show_presets)
        row.addWidget(self.presets)
        self.model = ModelField(view, self)
        self.model.clicked.connect(actions.find_model.trigger)
        self.model.setMaximumWidth(look.px(MODEL))
        row.addWidget(self.model, 3)
        row.addSpacing(look.px(8))
        self.open = self._button("open", self.tr("Open…"), actions.open)
        self.save = self._button("save", self.tr("Save preset"), actions.save)
        row.addWidget(self.open)
        row.addWidget(self.save)
        row.addWidget(_Rule(self))
        for icon, text, action in (
            ("undo", self.tr("Undo"), actions.undo),
            ("redo", self.tr("Redo"), actions.redo),
        ):
            row.addWidget(self._button(icon, text, action))
        row.addWidget(_Rule(self))
        self.pin = self._button("pin", self.tr("Pin baseline"), actions.pin)
        row.addWidget(self.pin)
        self.copy = ToolButton("copy", self.tr("Copy"), self)
        menu = QMenu(self.copy)
        for action in (
            actions.copy_verdict,
            actions.copy_markdown,
            actions.copy_csv,
            actions.copy_picture,
            actions.copy_share,
        ):
            menu.addAction(action)
        self.copy.setMenu(menu)
        self.copy.setPopupMode(ToolButton.ToolButtonPopupMode.InstantPopup)
        row.addWidget(self.copy)
        row.addStretch(1)
        self.units = SegmentedSwitch(self.tr("Units"), self)
        tips = {"GiB": self.tr("1 GiB = 1,073,741,824 bytes"), "GB": self.tr("1 GB = 1,000,000,000 bytes")}
        for unit in UNITS:
            self.units.add(unit, unit, tip=tips[unit])
        self.units.chosen.connect(lambda unit: view.change(units=unit))
        row.addWidget(self.units)
        self.theme = ToolButton("theme", self.tr("Theme"), self)
        self.theme.setMenu(self._theme_menu())
        self.theme.setPopupMode(ToolButton.ToolButtonPopupMode.InstantPopup)
        row.addWidget(self.theme)
        view.changed.connect(self._show_view)
        self._show_view(view.view)

    def menus(self) -> tuple[QMenu, ...]:
        """The menus that hang from buttons."""
        return tuple(self.findChildren(QMenu))

    def _button(self, icon: str, text: str, action: QAction) -> ToolButton:
        button = ToolButton(icon, text, self)
        _follow(button, action)
        return button

    def _theme_menu(self) -> QMenu:
        menu = QMenu(self)
        texts = {
            "system": self.tr("As the desktop"),
            "light": self.tr("Light"),
            "dark": self.tr("Dark"),
        }
        self.themes: dict[str, QAction] = {}
        for name in THEMES:
            action = menu.addAction(texts[name])
            action.setCheckable(True)
            action.triggered.connect(lambda checked=False, name=name: self._view.change(theme=name))
            self.themes[name] = action
        return menu

    def _show_view(self, view: View) -> None:
        self.units.set_value(view.units)
        for name, action in self.themes.items():
            action.setChecked(name == view.theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= Look.of(self).px(WIDE)
        for button in (self.open, self.save, self.pin, self.copy):
            button.set_wide(wide)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(0, self.height() - 1, self.width(), 1, Look.of(self).colours.hairline)


class _Rule(QWidget):
    """The short line between groups of buttons."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFixedWidth(Look.of(self).px(13))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        middle, half = self.height() // 2, look.px(10)
        painter = QPainter(self)
        painter.fillRect(self.width() // 2, middle - half, 1, 2 * half, look.colours.hairline)


def _follow(button: ToolButton, action: QAction) -> None:
    """Have a button do, enable and check as its action; its tooltip says the key."""

    def changed() -> None:
        button.setEnabled(action.isEnabled())
        button.setCheckable(action.isCheckable())
        button.setChecked(action.isChecked())
        key = action.shortcut().toString()
        text = action.text().replace("&", "").rstrip("…")
        button.setToolTip(f"{text} ({key})" if key else text)

    action.changed.connect(changed)
    button.clicked.connect(lambda: action.trigger())
    changed()
