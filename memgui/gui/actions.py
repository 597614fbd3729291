"""Every action of the window, once: menus, toolbar and keys share them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence, QUndoStack
from PySide6.QtWidgets import QWidget

Standard = QKeySequence.StandardKey


class Actions(QObject):
    """Made with their texts and keys; the window connects them with :meth:`on`."""

    def __init__(self, window: QWidget, undo_stack: QUndoStack) -> None:
        super().__init__(window)
        self._window = window
        self.find_model = self._add(self.tr("&Choose a model…"), "Ctrl+K")
        self.open = self._add(self.tr("&Open…"), Standard.Open)
        self.save = self._add(self.tr("&Save preset"), Standard.Save)
        self.save_as = self._add(self.tr("Save preset &as…"), "Ctrl+Shift+S")
        self.save_model = self._add(self.tr("Save &model profile…"))
        self.import_presets = self._add(self.tr("&Import presets…"))
        self.export_preset = self._add(self.tr("&Export the open preset…"))
        self.export_presets = self._add(self.tr("Export a&ll presets…"))
        self.export_report = self._add(self.tr("Export &report…"), "Ctrl+Shift+E")
        self.print_report = self._add(self.tr("&Print report…"), Standard.Print)
        self.quit = self._add(self.tr("&Quit"), Standard.Quit)
        self.undo = undo_stack.createUndoAction(window, self.tr("&Undo"))
        self.redo = undo_stack.createRedoAction(window, self.tr("&Redo"))
        self.undo.setShortcuts(QKeySequence.keyBindings(Standard.Undo))
        redo = QKeySequence.keyBindings(Standard.Redo)
        second = QKeySequence("Ctrl+Y")
        self.redo.setShortcuts(redo if second in redo else [*redo, second])
        window.addActions([self.undo, self.redo])
        self.find_field = self._add(self.tr("&Find a field"), "/")
        self.find_device = self._add(self.tr("Choose a &device…"), "Ctrl+L")
        self.pin = self._add(self.tr("Pin &baseline"), "Ctrl+D", checkable=True)
        self.add_pin = self._add(self.tr("Add to the &comparison"), "Ctrl+Shift+D")
        self.copy_verdict = self._add(self.tr("Copy the &verdict"))
        self.copy_markdown = self._add(self.tr("Copy as &Markdown"), "Ctrl+Shift+C")
        self.copy_csv = self._add(self.tr("Copy as &CSV"))
        self.copy_picture = self._add(self.tr("Copy the p&icture"))
        self.copy_share = self._add(self.tr("Copy as &text to share"))
        self.paste = self._add(self.tr("&Paste a preset or path"), "Ctrl+Shift+V")
        self.show_presets = self._add(self.tr("&Presets"), "Ctrl+B", checkable=True)
        self.expand_tabs = self._add(self.tr("&Expand the tabs"), "Ctrl+E", checkable=True)
        self.put_back = self._add(self.tr("Put the &layout back"))
        self.next_pane = self._add(self.tr("&Next pane"), "F6")
        self.shortcuts = self._add(self.tr("&Keyboard shortcuts"), "F1")
        self.diagnostics = self._add(self.tr("&Diagnostics"))
        self.about = self._add(self.tr("&About memgui"))

    def _add(self, text: str, key: str | Standard = "", *, checkable: bool = False) -> QAction:
        action = QAction(text, self._window)
        action.setCheckable(checkable)
        if key:
            action.setShortcut(QKeySequence(key))
        self._window.addAction(action)
        return action

    @staticmethod
    def on(action: QAction, slot: Callable[[], object]) -> None:
        """Have ``slot`` called when the action is triggered."""
        action.triggered.connect(lambda: slot())

    def all(self) -> list[QAction]:
        """Every action, in order."""
        return [action for action in self._window.actions() if action.text()]
