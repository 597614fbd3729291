"""A measurement beside an estimate: each figure against the bytes of the estimate that it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memgui.estimator.result import Estimate, Node
from memgui.planning.measured.records import HOST, WHOLE_DEVICE, Counter, Figure, Measurement
from memgui.spec import QT_TRANSLATE_NOOP


@dataclass(frozen=True, slots=True)
class Beside:
    """One measured figure and what the estimate says of it; all sizes are bytes.

    ``expected`` lies in ``low``..``high``, which are equal where the estimate is exact.  ``tolerance``
    is what the printed digits leave open.  ``summed`` is the number of logged parts in ``figure``.
    """

    figure: Figure
    expected: int
    low: int
    high: int
    summed: int = 1

    @property
    def gap(self) -> int:
        """Measured less expected; what a run that failed would further have needed is not in it."""
        return self.figure.bytes - self.expected

    @property
    def tolerance(self) -> int:
        return self.figure.step

    @property
    def within(self) -> bool:
        """Whether the measured figure is one that the estimate allows, to the digits that were printed.

        What would be shown as a difference of 0.0 % is none to explain.
        """
        if 2000 * abs(self.gap) <= self.expected:
            return True
        above = self.figure.bytes <= self.high + self.tolerance
        return above and (self.figure.at_least or self.figure.bytes >= self.low - self.tolerance)


def beside(measurement: Measurement, estimate: Estimate) -> tuple[Beside, ...]:
    """The figures that the estimate has an answer to, in the order of the log.

    Figures of the host and of other processes have none, nor has an engine's pool in another program.
    Of several devices the fullest is taken, since the estimate is of the worst rank.  Parts that count
    the same components are added up.
    """
    figures = [one for one in _on_one_device(measurement) if not one.extra or one.extra in estimate.extra]
    rows: list[Beside] = []
    for key in dict.fromkeys(_key(one, estimate) for one in figures):
        same = [one for one in figures if _key(one, estimate) == key]
        figure = same[0] if len(same) == 1 or not key[1] else _added(same)
        expected = _expected(figure, estimate)
        if expected is not None:
            rows.append(Beside(figure, *expected, summed=len(same)))
    return tuple(rows)


def against(figure: Figure, estimate: Estimate) -> Beside | None:
    """One figure beside an estimate; ``None`` where that says nothing of it."""
    expected = _expected(figure, estimate)
    return None if expected is None else Beside(figure, *expected)


def _key(figure: Figure, estimate: Estimate) -> tuple[Counter, tuple[str, ...]]:
    """What a figure is set beside: figures with the same are added up."""
    exact = (figure.extra,) if figure.extra in estimate.extra or not figure.components else ()
    return figure.counter, exact or figure.components


class Count(NamedTuple):
    """A whole number that is no size: what the log says, and the estimate."""

    label: str
    measured: int
    expected: int


_COUNTS: Mapping[str, tuple[str, str]] = {
    "kv_tokens": ("pool_tokens", QT_TRANSLATE_NOOP("measured", "Tokens in the cache pool")),
    "kv_blocks": ("pool_blocks", QT_TRANSLATE_NOOP("measured", "Blocks in the cache pool")),
    "longest": ("longest_sequence", QT_TRANSLATE_NOOP("measured", "Longest sequence, tokens")),
}


def counts_beside(measurement: Measurement, estimate: Estimate) -> tuple[Count, ...]:
    """The log's facts that the estimate has figures for."""
    return tuple(
        Count(label, measurement.facts[fact], estimate.extra[key])
        for fact, (key, label) in _COUNTS.items()
        if fact in measurement.facts and key in estimate.extra
    )


def _on_one_device(measurement: Measurement) -> Iterator[Figure]:
    held: dict[str, int] = {}
    for one in measurement.figures:
        if one.device != HOST and one.counter is not Counter.CAPACITY:
            held[one.device] = held.get(one.device, 0) + one.bytes
    fullest = max(held, key=lambda device: held[device], default="")
    return (one for one in measurement.figures if one.device == fullest)


def _added(figures: list[Figure]) -> Figure:
    first = figures[0]
    return Figure(
        sum(one.bytes for one in figures),
        max(one.step for one in figures),
        first.counter,
        first.components,
        " + ".join(dict.fromkeys(one.part for one in figures))[:120],
        first.device,
        any(one.at_least for one in figures),
    )


def _expected(figure: Figure, estimate: Estimate) -> tuple[int, int, int] | None:
    """What the estimate says, least and most; ``None`` where it says nothing."""
    if figure.extra in estimate.extra:
        return (estimate.extra[figure.extra],) * 3
    if figure.components:
        return _of_components(figure, estimate)
    if figure.counter not in _COUNTED or figure.extra:
        return None
    expected = expected_of(figure.counter, estimate)
    if figure.counter is Counter.CAPACITY:
        return expected, *capacities(figure, expected)
    if figure.counter is Counter.PROCESS:
        shift = expected - estimate.peak_bytes
        return expected, estimate.low_bytes + shift, estimate.high_bytes + shift
    if figure.counter is Counter.RESERVED:
        context = _part(estimate.component("overhead"), "context")
        low, high = max(estimate.low_bytes - context, estimate.allocated_bytes), estimate.high_bytes - context
        return expected, min(low, expected), max(high, expected)
    return expected, expected, expected


def capacities(figure: Figure, memory_bytes: int) -> tuple[int, int]:
    """Between what a device with ``memory_bytes`` is said to have: drivers keep more or less of it.

    nvidia-smi counts what the driver and ECC keep as well, up to a thirtieth of the whole (a T4 has
    15,360 MiB there and 14.56 GiB for a process).
    """
    little = memory_bytes // 200
    return memory_bytes - little, memory_bytes + (
        memory_bytes // 28 if figure.part == WHOLE_DEVICE else little
    )


_COUNTED = (Counter.REQUESTED, Counter.ALLOCATED, Counter.RESERVED, Counter.PROCESS, Counter.CAPACITY)


def expected_of(counter: Counter, estimate: Estimate) -> int:
    """The estimate's usual figure for ``counter`` (bytes); ``KeyError`` for one that it does not know."""
    match counter:
        case Counter.REQUESTED:
            return estimate.peak_bytes - estimate.component("overhead").bytes
        case Counter.ALLOCATED:
            return estimate.allocated_bytes
        case Counter.RESERVED:
            return estimate.reserved_bytes
        case Counter.PROCESS:
            # an engine that fills a pool holds more than its sequences need
            return estimate.extra.get("process_bytes", estimate.peak_bytes)
        case Counter.CAPACITY:
            return estimate.scenario.device.memory_bytes
    raise KeyError(counter)


def _of_components(figure: Figure, estimate: Estimate) -> tuple[int, int, int] | None:
    if figure.counter is Counter.WANTED:
        return None
    expected = sum(estimate.component(key).bytes for key in figure.components)
    if figure.components == ("overhead",):
        # of what an engine calls outside PyTorch, the estimate's range is all in the overhead
        least = expected - (estimate.peak_bytes - estimate.low_bytes)
        return expected, max(least, 0), expected + estimate.high_bytes - estimate.peak_bytes
    return expected, expected, expected


def _part(node: Node, key: str) -> int:
    return next((child.bytes for child in node.children if child.key == key), 0)
