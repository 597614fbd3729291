"""Devices as the rows of a search."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication

from memgui.catalog import Catalog, DeviceEntry
from memgui.gui.numbers import Numbers
from memgui.gui.search_item import Item

translate = QCoreApplication.translate


def device_search(catalog: Catalog, numbers: Callable[[], Numbers]) -> Callable[[str], list[Item]]:
    """A search over the catalog's devices for :class:`memgui.gui.form.device_box.DeviceBox`."""

    def search(text: str) -> list[Item]:
        found = catalog.search_devices(text, limit=500)
        return [_item(entry, numbers()) for entry in found]

    return search


def _item(entry: DeviceEntry, numbers: Numbers) -> Item:
    facts = [
        entry.name,
        "",
        translate("Devices", "A process gets {size}").format(size=numbers.exact(entry.memory_bytes)),
    ]
    if entry.low_bytes != entry.high_bytes:
        facts.append(
            translate("Devices", "between {low} and {high}").format(
                low=numbers.tip(entry.low_bytes), high=numbers.tip(entry.high_bytes)
            )
        )
    facts += [entry.how, "", entry.note]
    return Item(entry.name, numbers.tip(entry.memory_bytes), "\n".join(facts).strip(), entry.device())
