"""Devices as the rows of a search."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication

from memgui.catalog import Catalog, DeviceEntry
from memgui.document.nearby import Nearby
from memgui.gui.numbers import Numbers
from memgui.gui.search_item import Item
from memgui.gui.texts import message_text
from memgui.presets.hardware import Gpu
from memgui.spec import Device

translate = QCoreApplication.translate


def device_search(
    catalog: Catalog, nearby: Nearby, numbers: Callable[[], Numbers]
) -> Callable[[str], list[Item]]:
    """A search over this machine's GPUs and the catalog's devices, for a ``DeviceBox``."""

    def search(text: str) -> list[Item]:
        nearby.look_at_machine()
        words = text.casefold().split()
        alike: dict[tuple[str, int], list[Gpu]] = {}
        for gpu in nearby.gpus:
            alike.setdefault((gpu.name, gpu.total_bytes), []).append(gpu)
        own = [_own(gpus, numbers()) for gpus in alike.values()]
        found = catalog.search_devices(text, limit=500)
        return [
            *(item for item in own if all(word in item.title.casefold() for word in words)),
            *(_item(entry, numbers()) for entry in found),
        ]

    return search


def _own(gpus: list[Gpu], numbers: Numbers) -> Item:
    """One row for GPUs that are alike; what each uses is beside it."""
    gpu = gpus[0]
    used = translate("Devices", "Used now: {size}")
    facts = [
        gpu.name if len(gpus) == 1 else f"{len(gpus)} x {gpu.name}",
        "",
        translate("Devices", "A process gets {size}").format(size=numbers.exact(gpu.total_bytes)),
        *(used.format(size=numbers.exact(one.used_bytes)) for one in gpus),
        "",
        translate("Devices", "As the NVIDIA driver says."),
    ]
    title = translate("Devices", "This machine: {name}").format(name=gpu.name)
    device = Device(name=gpu.name, memory_bytes=gpu.total_bytes, compute_capability=gpu.compute_capability)
    return Item(title, numbers.tip(gpu.total_bytes), "\n".join(facts), device)


def _item(entry: DeviceEntry, numbers: Numbers) -> Item:
    from memgui.catalog.words import how_known  # when devices are searched, not at each start

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
    facts += [message_text(how_known(entry.how)), "", translate("catalog", entry.note) if entry.note else ""]
    return Item(entry.name, numbers.tip(entry.memory_bytes), "\n".join(facts).strip(), entry.device())
