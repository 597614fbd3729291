"""Whether a run was on another GPU than the open one, and on which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memgui.catalog import DeviceEntry
from memgui.estimator.result import Estimate
from memgui.planning.changes import change
from memgui.planning.devices import moved
from memgui.planning.measured.beside import Beside, capacities
from memgui.planning.measured.records import Counter
from memgui.planning.measured.saying import Explanation, sentence
from memgui.spec import QT_TRANSLATE_NOOP


def other_device(
    rows: Sequence[Beside], estimate: Estimate, devices: Sequence[DeviceEntry]
) -> Iterator[Explanation]:
    """The device with as much memory as the log says, where the open one has not; else its size alone."""
    row = next((row for row in rows if row.figure.counter is Counter.CAPACITY and not row.figure.extra), None)
    if row is None or row.within:
        return
    open_device = estimate.scenario.device
    words: dict[str, str | tuple[str, str]] = {"present": open_device.name}
    entry = _entry(row, devices)
    if entry is None:
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured", "It ran on a GPU of {size}; here {present} is open, with {expected}."
                ),
                words,
                size=row.figure.bytes,
                expected=row.expected,
            ),
            changes=(change(estimate.scenario, "device.memory_bytes", row.figure.bytes),),
        )
        return
    yield Explanation(
        sentence(
            QT_TRANSLATE_NOOP(
                "measured",
                "It ran on a GPU of {size}, such as {device}; here {present} is open, with {expected}.",
            ),
            words | {"device": entry.name},
            size=row.figure.bytes,
            expected=row.expected,
        ),
        changes=moved(estimate.scenario, entry.device()),
    )


def _entry(row: Beside, devices: Sequence[DeviceEntry]) -> DeviceEntry | None:
    """The one whose memory is nearest; of several alike to the printed digits the best known."""

    def order(one: DeviceEntry) -> tuple[int, bool, int]:
        away = abs(one.memory_bytes - row.figure.bytes)
        return max(away - row.tolerance, 0), one.known != "seen", -one.bandwidth_gb_s

    alike = [
        one
        for one in devices
        for low, high in (capacities(row.figure, one.memory_bytes),)
        if low - row.tolerance <= row.figure.bytes <= high + row.tolerance
    ]
    return min(alike, key=order, default=None)
