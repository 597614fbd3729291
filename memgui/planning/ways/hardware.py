"""Which other hardware is enough: a larger device, or as few more of the present one as will do."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memgui.planning.ask import surely_fits
from memgui.planning.changes import Change, change
from memgui.planning.devices import MACHINE, moved, smallest_device
from memgui.planning.layout import COUNT, DEGREES, taking
from memgui.planning.ways.means import Means, Proposal
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Scenario, get
from memgui.spec.fields import BY_PATH

TENSOR, STAGES, REPLICAS = "parallelism.tensor", "parallelism.pipeline", "parallelism.data"
SHARDING = "parallelism.sharding"

_MACHINES = (*range(MACHINE, 32 * MACHINE, MACHINE), *(MACHINE << power for power in range(5, 8)))

COUNTS = (2, 4, *_MACHINES)
"""So many devices are to be had: parts of a machine, and machines."""

IN_TURN = (*range(2, MACHINE), *_MACHINES)
"""So many where each has some layers: any number that a machine holds."""

BEYOND = 4
"""Stages are tried on so many times as many devices as hold the model's bytes; with more they do not help."""


def larger_share(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """More of the device for the engine."""
    for path in ("inference.gpu_memory_utilization", "inference.mem_fraction_static"):
        if not BY_PATH[path].applies(scenario):
            continue
        present: float | None = get(scenario, path)
        larger = [(change(scenario, path, share),) for share in _SHARES if present is None or present < share]
        for changes in larger:
            if changes is larger[-1] or means.is_enough(scenario, changes):
                yield Proposal(changes)
                break


_SHARES = (0.95, 0.98)


def larger_device(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """The smallest larger device that is enough: one of the present kind, and one of any.

    Of several that are sold with as much memory the best known is meant.
    """
    larger = [one for one in means.devices if one.memory_bytes > scenario.device.memory_bytes]
    kind = next((one.kind for one in means.devices if one.name == scenario.device.name), "")
    most = max(larger, key=lambda one: one.memory_bytes, default=None)
    if most is None or not means.is_enough(scenario, moved(scenario, most.device())):
        return
    proposed: set[str] = set()
    for offered in ([one for one in larger if one.kind == kind], larger):
        found = smallest_device(scenario, [one.device() for one in offered], means.ask, surely_fits)
        if found is None:
            continue
        sold = next(one.marketed_gb for one in offered if one.name == found.device.name)
        alike = [
            one
            for one in offered
            if one.marketed_gb == sold and one.memory_bytes >= found.device.memory_bytes
        ]
        entry = min(alike, key=lambda one: (one.known != "seen", -one.bandwidth_gb_s))
        if entry.name not in proposed:
            proposed.add(entry.name)
            title = Said("{device}", words={"device": entry.name}, context="ways")
            yield Proposal(moved(scenario, entry.device()), title)


class Layout(NamedTuple):
    """A way to share out: which degree takes the devices, what is changed beside it, what it is called."""

    path: str
    template: str
    beside: tuple[Change, ...] = ()
    counts: Sequence[int] = COUNTS
    within: int = 0
    """the degree at most, where there is a limit"""


class Row(NamedTuple):
    """A layout of ``scenario`` with more and more devices, of which ``others`` are there for each degree."""

    scenario: Scenario
    layout: Layout
    counts: tuple[int, ...]
    others: int
    start: int
    """before this one none has room for what lies still"""

    def changes(self, at: int) -> tuple[Change, ...]:
        """What is changed for the count that stands there."""
        count, layout = self.counts[at], self.layout
        made = (
            change(self.scenario, COUNT, count),
            change(self.scenario, layout.path, count // self.others),
            *layout.beside,
        )
        return tuple([one for one in made if one.new != one.old])

    def cut(self, end: int) -> Row:
        """The counts before ``end``."""
        return self._replace(counts=self.counts[:end])


def more_devices(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """As few further devices as are enough, by each way to share out; a few where no number is.

    What shares out within layers and between them at once is looked at where nothing simpler is enough
    on one machine, or twice as many as are enough.  A way that takes more than twice as many devices as
    another one is none.
    """
    found: list[tuple[int, Proposal]] = []
    for layout in _layouts(scenario):
        row = _row(scenario, layout, means)
        if not row.counts:
            continue
        least = _fewest(scenario, row, means)
        if least is None:
            yield _proposal(row, 0)
        else:
            found.append((row.counts[least], _proposal(row, least)))
    fewest = min([count for count, _ in found], default=means.most + 1)
    single = means.together is None or scenario.task == "inference"  # stages take long to look at
    if single and fewest > max(MACHINE, 2 * scenario.device.count):
        found += _of_machines(scenario, means, fewest // 2)
        fewest = min([count for count, _ in found], default=0)
    yield from (proposal for count, proposal in found if count <= 2 * fewest)


def _layouts(scenario: Scenario) -> Iterator[Layout]:
    """The ways to share out by one degree."""
    if scenario.task == "training":
        for sharding, template in _SHARDED:
            yield Layout(REPLICAS, template, (change(scenario, SHARDING, sharding),))
    elif taking(scenario) == STAGES:
        yield Layout(STAGES, QT_TRANSLATE_NOOP("ways", "{count} GPUs, layers in turn"), (), IN_TURN)
    yield Layout(TENSOR, QT_TRANSLATE_NOOP("ways", "{count} GPUs, tensor parallel"), (), COUNTS, MACHINE)


_SHARDED = (
    ("zero1", QT_TRANSLATE_NOOP("ways", "{count} GPUs, ZeRO-1")),
    ("zero2", QT_TRANSLATE_NOOP("ways", "{count} GPUs, ZeRO-2")),
    ("zero3", QT_TRANSLATE_NOOP("ways", "{count} GPUs, FSDP")),
)


def _of_machines(scenario: Scenario, means: Means, most: int) -> Iterator[tuple[int, Proposal]]:
    """Machines that share each layer among their devices, and weights or stages among themselves."""
    layouts = [Layout(STAGES, QT_TRANSLATE_NOOP("ways", "{count} GPUs, TP {tensor} × PP {degree}"))]
    if scenario.task == "training":
        sharded = (change(scenario, SHARDING, "zero3"),)
        fsdp = QT_TRANSLATE_NOOP("ways", "{count} GPUs, FSDP {degree} × TP {tensor}")
        layouts.insert(0, Layout(REPLICAS, fsdp, sharded))
    for layout in layouts:
        for tensor in (8, 4, 2):
            if tensor < get(scenario, TENSOR):
                break
            beside = (*layout.beside, change(scenario, TENSOR, tensor))
            row = _row(scenario, layout._replace(beside=beside), means, least=MACHINE + 1, most=most)
            if not row.counts:
                continue
            least = _fewest(scenario, row, means)
            if least is not None:
                most = min(most, row.counts[least])
                yield row.counts[least], _proposal(row, least, tensor=tensor)
            break


def _row(scenario: Scenario, layout: Layout, means: Means, least: int = 0, most: int | None = None) -> Row:
    """The counts that a layout can be asked about; those at the end that cannot be computed are left out.

    The bytes that lie still have to be held by all together, so no fewer devices need be asked about.
    Devices that stand there and share nothing yet come first: they are taken before others are asked for.
    """
    most = means.most if most is None else min(most, means.most)
    there, used, degree = scenario.device.count, scenario.parallelism.devices, get(scenario, layout.path)
    others = math.prod(
        next((one.new for one in layout.beside if one.path == path), get(scenario, path))
        for path in DEGREES
        if path != layout.path
    )
    held = _least_count(scenario, means)
    end = BEYOND * max(held, MACHINE) if layout.path == STAGES and scenario.task == "training" else most
    tried = sorted({*layout.counts, *((there,) if there > used else ())})
    counts = [
        count
        for count in tried
        if max(there, used + 1, least) <= count <= min(most, end)
        and count % others == 0
        and degree < count // others <= (layout.within or count)
    ]
    row = Row(scenario, layout, tuple(counts), others, bisect_left(counts, held))
    stages = layout.path == STAGES  # many take long to look at
    refusal = means.prohibition if stages else means.refusal
    found = refusal(scenario, row.changes(-1)) if counts else None
    if found is not None and _same_reason(found, refusal(scenario, row.changes(0))):
        return row.cut(0)  # what forbids the most and the fewest for one reason forbids all between
    while found is not None:
        row = row.cut(-1)
        found = refusal(scenario, row.changes(-1)) if row.counts else None
    return row


def _same_reason(one: Issue, other: Issue | None) -> bool:
    """Whether two issues say the same of the same fields, be it with other numbers."""
    return other is not None and (one.code, one.paths) == (other.code, other.paths)


def _least_count(scenario: Scenario, means: Means) -> int:
    """Devices that have room for the bytes of ``scenario`` that lie on one device now."""
    moments = means.ask.floors(scenario)
    if not moments:
        return 0
    held = sum([moments[0].get(component, 0) for component in ("weights", "gradients", "optimizer_states")])
    return -(-held // max(scenario.device.memory_bytes, 1))


def _fewest(scenario: Scenario, row: Row, means: Means) -> int | None:
    """Where in a row the first is that is enough; ``None`` where none is.

    More devices that share need no more each: what the most are not enough for is not asked of fewer.
    The more stages, the longer each takes to look at: of them the fewest are asked about first.
    """
    last = len(row.counts) - 1
    low, high, step = row.start, last, 1
    if row.layout.path == STAGES:
        high = low
        while high <= last and not means.is_enough(scenario, row.changes(high)):
            low, high, step = high + 1, last if high < last < high + step else high + step, step * 2
    elif low <= last and not means.is_enough(scenario, row.changes(last)):
        return None
    while low < high <= last:
        middle = (low + high) // 2
        if means.is_enough(scenario, row.changes(middle)):
            high = middle
        else:
            low = middle + 1
    return high if low <= high <= last else None


def _proposal(row: Row, at: int, **counts: int) -> Proposal:
    changes = row.changes(at)
    degree = next((one.new for one in changes if one.path == row.layout.path), 1)
    counts |= {"count": row.counts[at], "degree": degree}
    return Proposal(changes, Said(row.layout.template, counts=counts, context="ways"))
