"""Which device is enough, and how many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memgui.catalog import DeviceEntry
from memgui.planning.ask import Answer, Asker
from memgui.planning.changes import Change, apply, change
from memgui.spec import Device, Scenario, get

MOST = 1024
"""How many times as many devices are tried at most; powers of two, as machines and racks come."""


@dataclass(frozen=True, slots=True)
class OnDevice:
    """What came of asking about a scenario on another device, and the changes that lead there."""

    device: Device
    answer: Answer
    changes: tuple[Change, ...]


def moved(scenario: Scenario, device: Device) -> tuple[Change, ...]:
    """The changes that put ``scenario`` on ``device``; how many there are stays."""
    facts = {
        "device.name": device.name,
        "device.memory_bytes": device.memory_bytes,
        "device.compute_capability": device.compute_capability,
    }
    made = (change(scenario, path, value) for path, value in facts.items())
    return tuple(one for one in made if one.new != one.old)


def on_devices(scenario: Scenario, devices: Iterable[Device], ask: Asker) -> Iterator[OnDevice]:
    """``scenario`` on each device, smallest memory first."""
    for device in sorted(devices, key=lambda one: (one.memory_bytes, one.name)):
        changes = moved(scenario, device)
        yield OnDevice(device, ask(apply(scenario, changes)), changes)


def smallest_device(
    scenario: Scenario, devices: Iterable[Device], ask: Asker | None = None
) -> OnDevice | None:
    """The device with the least memory on which ``scenario`` fits; ``None`` where none is enough."""
    ask = Asker() if ask is None else ask
    return next((one for one in on_devices(scenario, devices, ask) if one.answer.fits), None)


def fewest_devices(
    scenario: Scenario, layout: tuple[Change, ...], path: str, ask: Asker | None = None
) -> OnDevice | None:
    """The least number of devices (a power of two above the present one) with which ``scenario`` fits.

    All of the further devices go to the degree of parallelism at ``path``, after ``layout`` has been
    changed (``parallelism.sharding``, …).  ``None`` where no number is allowed or enough.
    """
    ask = Asker() if ask is None else ask
    for one in on_more_devices(scenario, layout, path, ask):
        if one.answer.fits:
            return one
    return None


def on_more_devices(
    scenario: Scenario, layout: tuple[Change, ...], path: str, ask: Asker, most: int = MOST
) -> Iterator[OnDevice]:
    """``scenario`` on twice as many devices, four times as many, … while that can be computed."""
    for factor in (1 << power for power in range(1, most.bit_length())):
        count = scenario.device.count * factor
        degree: int = get(scenario, path) * factor
        changes = (
            change(scenario, "device.count", count),
            change(scenario, path, degree),
            *(one for one in layout if one.new != one.old),
        )
        answer = ask(apply(scenario, changes))
        if answer.issue is not None:
            return
        yield OnDevice(answer.scenario.device, answer, changes)


def of_a_sort(entries: Iterable[DeviceEntry], scenario: Scenario) -> tuple[DeviceEntry, ...]:
    """The devices that are offered beside the present one: of its maker, and no laptop's unless it is one.

    Where the catalog does not know the present device, NVIDIA's are offered.
    """
    known = tuple(entries)
    present = next((one for one in known if one.name == scenario.device.name), None)
    vendor = "NVIDIA" if present is None else present.vendor
    kinds = {"datacentre", "workstation", "consumer"} | ({present.kind} if present is not None else set())
    return tuple(one for one in known if one.vendor == vendor and one.kind in kinds)
