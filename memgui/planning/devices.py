"""Which device is enough, and how many of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memgui.catalog import DeviceEntry
from memgui.planning.ask import Answer, Asker, Within, fits
from memgui.planning.changes import Change, apply, change
from memgui.spec import Device, Scenario, get

MOST = 1024
"""How many times as many devices are tried at most; powers of two, as machines and racks come."""

MACHINE = 8
"""Devices that a machine holds at most, as most are sold."""


@dataclass(frozen=True, slots=True)
class OnDevice:
    """What came of asking about a scenario on another device, and the changes that lead there."""

    device: Device
    answer: Answer
    changes: tuple[Change, ...]


def moved(scenario: Scenario, device: Device) -> tuple[Change, ...]:
    """The changes that put ``scenario`` on ``device``; how many there are stays."""
    made = (change(scenario, path, value) for path, value in device.facts.items())
    return tuple(one for one in made if one.new != one.old)


def smallest_device(
    scenario: Scenario, devices: Iterable[Device], ask: Asker | None = None, within: Within = fits
) -> OnDevice | None:
    """The device with the least memory on which ``scenario`` fits; ``None`` where none is enough.

    Devices of one compute capability need the same: among them the least is found by bisection.
    """
    ask = Asker() if ask is None else ask
    alike: dict[str, list[Device]] = {}
    for device in sorted(devices, key=_by_memory):
        alike.setdefault(device.compute_capability, []).append(device)
    best: OnDevice | None = None
    for row in alike.values():
        smaller = row if best is None else [one for one in row if one.memory_bytes < best.device.memory_bytes]
        best = _least_enough(scenario, smaller, ask, within) or best
    return best


def _by_memory(device: Device) -> tuple[int, str]:
    return (device.memory_bytes, device.name)


def _least_enough(
    scenario: Scenario, devices: Sequence[Device], ask: Asker, within: Within
) -> OnDevice | None:
    """The first of ``devices``, which have more and more memory, on which ``scenario`` fits."""

    def on(device: Device) -> OnDevice | None:
        changes = moved(scenario, device)
        changed = apply(scenario, changes)
        if ask.lacks(changed) is not None:
            return None
        answer = ask(changed)
        enough = answer.estimate is not None and within(answer.estimate)
        return OnDevice(device, answer, changes) if enough else None

    found = on(devices[-1]) if devices else None
    low, high = 0, len(devices) - 1
    while found is not None and low < high:
        middle = (low + high) // 2
        earlier = on(devices[middle])
        if earlier is None:
            low = middle + 1
        else:
            found, high = earlier, middle
    return found


def fewest_devices(
    scenario: Scenario, layout: tuple[Change, ...], path: str, ask: Asker | None = None
) -> OnDevice | None:
    """The least number of devices (a power of two above the present one) with which ``scenario`` fits.

    All of the further devices go to the degree of parallelism at ``path``, after ``layout`` has been
    changed (``parallelism.sharding``, …).  ``None`` where no number is allowed or enough.
    """
    ask = Asker() if ask is None else ask
    for changes in more_devices(scenario, layout, path):
        changed = apply(scenario, changes)
        if ask.lacks(changed) is None:
            answer = ask(changed)
            if answer.issue is not None:
                return None
            if answer.fits:
                return OnDevice(changed.device, answer, changes)
    return None


def more_devices(
    scenario: Scenario, layout: tuple[Change, ...], path: str, most: int = MOST
) -> Iterator[tuple[Change, ...]]:
    """The changes that put ``scenario`` on twice as many devices, four times as many, and so on.

    Devices that stand there and share nothing yet come first: they are taken before others are asked for.
    """
    used = scenario.parallelism.devices
    idle = max(scenario.device.count // used, 1)
    for factor in (1 << power for power in range(idle == 1, most.bit_length())):
        made = (
            change(scenario, "device.count", max(scenario.device.count, used * idle * factor)),
            change(scenario, path, get(scenario, path) * idle * factor),
            *layout,
        )
        yield tuple(one for one in made if one.new != one.old)


def of_a_sort(entries: Iterable[DeviceEntry], scenario: Scenario) -> tuple[DeviceEntry, ...]:
    """The devices that are offered beside the present one: of its maker, and no laptop's unless it is one.

    Where the catalog does not know the present device, NVIDIA's are offered.
    """
    known = tuple(entries)
    present = next((one for one in known if one.name == scenario.device.name), None)
    vendor = "NVIDIA" if present is None else present.vendor
    kinds = {"datacentre", "workstation", "consumer"} | ({present.kind} if present is not None else set())
    return tuple(one for one in known if one.vendor == vendor and one.kind in kinds)


def a_few(entries: Iterable[DeviceEntry], scenario: Scenario, most: int = 8) -> tuple[Device, ...]:
    """The present device, then one of each memory size of its sort, those nearest in size, smallest first."""
    present = scenario.device
    by_size: dict[int, DeviceEntry] = {}
    for entry in of_a_sort(entries, scenario):
        known = by_size.get(entry.marketed_gb)
        if known is None or _usual(entry) < _usual(known):
            by_size[entry.marketed_gb] = entry
    away = {
        size: abs(math.log(one.memory_bytes / max(present.memory_bytes, 1))) for size, one in by_size.items()
    }
    others = [size for size in away if away[size] > _ALIKE]
    nearest = sorted(sorted(others, key=away.__getitem__)[: most - 1])
    return (present, *(by_size[size].device(present.count) for size in nearest))


_ALIKE = 0.03
"""Memories nearer than this (logarithm of their ratio) are of one size."""


def _usual(entry: DeviceEntry) -> tuple[bool, int, int]:
    """Of devices alike in size the one that is best known, then the newest, then the fastest."""
    return (entry.known != "seen", -entry.year, -entry.bandwidth_gb_s)
