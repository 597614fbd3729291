"""What if: one field over a range of values, and where each device's limit is crossed."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from memgui.estimator.result import COMPONENTS
from memgui.planning.ask import Answer, Asker
from memgui.planning.changes import apply
from memgui.planning.choices import can_be_computed
from memgui.planning.devices import moved
from memgui.planning.solve import WHOLE, Solution, solve
from memgui.spec import QT_TRANSLATE_NOOP, Device, Issue, Message, Scenario, ScenarioError, get, replace
from memgui.spec.fields import BY_PATH, Field, Kind
from memgui.spec.validate import validate
from memgui.spec.values import check

MOST_VALUES = 10_000

ROUND = 64
"""Values of whole numbers are multiples of this where they lie so far apart."""


class Scale(StrEnum):
    """How values are spread over a range."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Point:
    """The need at one value of the field.  All sizes are bytes.

    ``components`` has the eight components in :data:`~memgui.estimator.result.COMPONENTS` order;
    they add up to ``peak_bytes``.  Where nothing can be computed ``kind`` is ``unknown``, ``issue``
    says why, and all sizes are 0.
    """

    value: int | float
    kind: str
    peak_bytes: int = 0
    low_bytes: int = 0
    high_bytes: int = 0
    capacity_bytes: int = 0
    components: tuple[int, ...] = (0,) * len(COMPONENTS)
    issue: Issue | None = None


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the need crosses the limit of ``device``: the last whole value that fits, and the next."""

    device: Device
    solution: Solution


def sweepable(scenario: Scenario) -> tuple[Field, ...]:
    """Every field that holds a number and of which there is a choice in ``scenario``, in table order.

    It has an effect, and there is a value in its usual range, besides the present one, that nothing
    forbids or warns of: an encoder and a decoder that must be of one width have none, nor have experts
    of a model that states no width of theirs.
    """
    kinds = (*WHOLE, Kind.RATIO)
    warned = _warnings(scenario)
    return tuple(
        one
        for one in BY_PATH.values()
        if one.kind in kinds and one.applies(scenario) and _varies(scenario, one, warned)
    )


PROBES = 24
"""Values of its usual range by which it is found whether a field can have another."""


def _warnings(scenario: Scenario) -> set[str]:
    return {issue.code for issue in validate(scenario) if issue.severity == "warning"}


def _varies(scenario: Scenario, field: Field, warned: set[str]) -> bool:
    """Whether another value can be computed: twice or half as much, which mostly can, or any other.

    A value does not count that brings a warning besides those ``warned`` of.
    """
    if not field.path.startswith(("model.", "parallelism.")):
        return True  # of a workload or a device any value can
    low, high = usual_range(scenario, field.path)
    if not low < high:
        return False
    scale = Scale.LOG if field.kind in WHOLE else Scale.LINEAR
    present = get(scenario, field.path)
    near = (2 * present, present // 2) if isinstance(present, int) else ()
    values = dict.fromkeys((*near, *spread(field.path, low, high, PROBES, scale)))
    others = (
        replace(scenario, field.path, value) for value in values if low <= value <= high and value != present
    )
    return any(can_be_computed(other) and _warnings(other) <= warned for other in others)


USUAL_CAP = 100.0
"""How far a number without a bound of its own is swept where a model has none."""


def usual_range(scenario: Scenario, path: str) -> tuple[int | float, int | float]:
    """A range to start with: from a sixteenth to four times the present value, where that is allowed.

    It ends at the model's longest sequence, where the field counts tokens and the present value does
    not lie beyond it.  For a ratio it is all that is allowed.
    """
    field = BY_PATH[path]
    low, high = field.minimum or 0, field.maximum
    value: int | float | None = get(scenario, path)
    if field.kind is Kind.RATIO:
        most = 1.0 if high is None else float(high)
        return float(low), most if most <= 1 else min(most, max(4.0 * (value or 0.0), USUAL_CAP))
    present = int(value if value else max(low, 1))
    first, last = max(int(low), present // 16), max(present * 4, 8)
    longest = scenario.model.max_position_embeddings
    if field.kind is Kind.TOKENS and longest >= present:
        last = min(last, longest)
    return first, last if high is None else min(last, int(high))


def spread(
    path: str, low: int | float, high: int | float, count: int, scale: Scale = Scale.LINEAR
) -> tuple[int | float, ...]:
    """At most ``count`` values from ``low`` to ``high``, both included, without doubles.

    A field of whole numbers gets the nearest multiples of a power of two that the spacing leaves room
    for, :data:`ROUND` at most: kernels need less at them than just before and behind, so that a curve
    through any numbers would jump up and down by chance.  Raises :class:`ScenarioError` where the range is
    empty or not allowed, or ``count`` is not 2 to 10,000.
    """
    field = BY_PATH[path]
    for end in (low, high):
        issue = check(field, end)
        if issue is not None:
            raise ScenarioError(issue)
    if not low < high or not 2 <= count <= MOST_VALUES:
        raise ScenarioError(
            Issue(
                "error",
                "bad_range",
                (path,),
                Message(
                    QT_TRANSLATE_NOOP(
                        "messages", "{path}: {count} values from {low} to {high} cannot be taken."
                    ),
                    {"path": path, "count": count, "low": low, "high": high},
                ),
                Message(
                    QT_TRANSLATE_NOOP(
                        "messages", "Allowed: 2 to {most} values, from the smaller to the larger."
                    ),
                    {"most": MOST_VALUES},
                ),
            )
        )
    steps = count - 1
    if field.kind not in WHOLE:
        return tuple(low + (high - low) * step / steps for step in range(count))
    first, last = int(low), int(high)
    if scale is Scale.LINEAR:
        exact = [first + (last - first) * step / steps for step in range(count)]
    else:
        start = max(first, 1)
        ratio = math.log(last / start)
        exact = [start * math.exp(ratio * step / steps) for step in range(count)]
    inner = [_rounded(value, value - before) for before, value in pairwise(exact[:-1])]
    return (first, *dict.fromkeys(value for value in inner if first < value < last), last)


def _rounded(value: float, spacing: float) -> int:
    """The multiple of a power of two, no more than ``spacing`` and :data:`ROUND`, that is nearest."""
    step = min(1 << max(int(spacing), 1).bit_length() - 1, ROUND)
    return round(value / step) * step


def points(
    scenario: Scenario, path: str, values: Iterable[int | float], ask: Asker | None = None
) -> Iterator[Point]:
    """The need at each value, as it is found.

    Raises ``KeyError`` where there is no such field and :class:`ScenarioError` for a value of
    another type; a value that the set-up does not allow gives an ``unknown`` point.
    """
    ask = Asker() if ask is None else ask
    for value in values:
        yield _point(value, ask(replace(scenario, path, value)))


def _point(value: int | float, answer: Answer) -> Point:
    found = answer.estimate
    if found is None:
        return Point(value, "unknown", issue=answer.issue)
    return Point(
        value,
        found.verdict.kind,
        found.peak_bytes,
        found.low_bytes,
        found.high_bytes,
        found.verdict.capacity_bytes,
        tuple(node.bytes for node in found.components),
    )


def crossings(
    scenario: Scenario, path: str, devices: Iterable[Device], ask: Asker | None = None
) -> Iterator[Crossing]:
    """The largest value of a whole-number field on each device; raises what :func:`solve` raises."""
    ask = Asker() if ask is None else ask
    for device in devices:
        yield Crossing(device, solve(apply(scenario, moved(scenario, device)), path, ask))


def as_csv(path: str, found: Sequence[Point]) -> str:
    """The points as a table: value, bytes of the peak, its range, verdict, bytes of each component."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((path, "peak_bytes", "low_bytes", "high_bytes", "capacity_bytes", "verdict", *COMPONENTS))
    for one in found:
        sizes = (one.peak_bytes, one.low_bytes, one.high_bytes, one.capacity_bytes)
        known = one.issue is None
        writer.writerow(
            (
                one.value,
                *(sizes if known else ("",) * len(sizes)),
                one.kind,
                *(one.components if known else ("",) * len(one.components)),
            )
        )
    return text.getvalue().rstrip("\n")
