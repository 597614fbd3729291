"""The menu bar, from the window's actions."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QMenuBar

from memgui.gui.actions import Actions

translate = QCoreApplication.translate


def fill_menus(bar: QMenuBar, actions: Actions) -> None:
    """File, Edit, View, Help; ``None`` in a list is a separator."""
    menus = {
        translate("Menus", "&File"): (
            actions.find_model,
            actions.find_device,
            actions.open,
            None,
            actions.save,
            actions.save_as,
            actions.save_model,
            None,
            actions.import_presets,
            actions.export_preset,
            actions.export_presets,
            None,
            actions.export_report,
            actions.print_report,
            None,
            actions.quit,
        ),
        translate("Menus", "&Edit"): (
            actions.undo,
            actions.redo,
            None,
            actions.pin,
            actions.add_pin,
            None,
            actions.copy_verdict,
            actions.copy_markdown,
            actions.copy_csv,
            actions.copy_picture,
            actions.copy_share,
            actions.paste,
            None,
            actions.find_field,
        ),
        translate("Menus", "&View"): (
            actions.show_presets,
            actions.expand_tabs,
            actions.next_pane,
            None,
            actions.put_back,
        ),
        translate("Menus", "&Help"): (
            actions.shortcuts,
            None,
            actions.diagnostics,
            actions.about,
        ),
    }
    for title, entries in menus.items():
        menu = bar.addMenu(title)
        for entry in entries:
            if entry is None:
                menu.addSeparator()
            else:
                menu.addAction(entry)
