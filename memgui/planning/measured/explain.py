"""What could account for the difference between a measurement and an estimate.

Each explanation is tried on the figures: it is said only where it brings the two together, and says
by how much.  Other set-ups are put to the estimator, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

from memgui.estimator.result import Estimate
from memgui.planning.ask import Asker
from memgui.planning.changes import apply, change
from memgui.planning.ladder import length_path
from memgui.planning.measured.beside import Beside, beside, expected_of
from memgui.planning.measured.parts import part_reasons
from memgui.planning.measured.records import COUNTERS, Counter, Figure, Measurement
from memgui.planning.measured.saying import NEAR, Explanation, change_words, near, sentence
from memgui.planning.solve import solve
from memgui.planning.tensors import tensors
from memgui.planning.ways.means import Means, Proposal
from memgui.planning.ways.rules import choices, no_dropout
from memgui.spec import QT_TRANSLATE_NOOP, get
from memgui.spec.fields import BY_PATH

MOST_SET_UPS = 3
SEGMENT = 2 * 2**20
"""PyTorch asks the driver for whole steps of this size (bytes); messages print what was asked for."""


def explain(
    measurement: Measurement, estimate: Estimate, ask: Asker | None = None
) -> tuple[Explanation, ...]:
    """What the log itself shows, then what could explain the gap, the best first."""
    ask = Asker() if ask is None else ask
    rows = beside(measurement, estimate)
    whole = [row for row in rows if not row.figure.components and row.figure.counter in _EXPLAINED]
    shown = [
        *_failed_request(measurement, estimate),
        *_other_processes(measurement),
        *_outside_pytorch(whole),
        *_fragmentation(whole),
    ]
    off = next((row for row in whole if not row.within), None)
    if off is None:
        return (*shown, *part_reasons(measurement, estimate, ask))
    reasons = chain(
        _other_counter(off, estimate),
        _other_unit(off),
        _first_step(off, estimate),
        _other_set_ups(off, estimate, ask),
        _shorter(off, estimate, ask),
    )
    better = [one for one in reasons if one.remains is None or one.remains * 2 <= abs(off.gap)]
    better.sort(key=lambda one: one.remains or 0)
    return (*shown, *better, *_beyond_the_range(off), *part_reasons(measurement, estimate, ask))


_EXPLAINED = (Counter.ALLOCATED, Counter.REQUESTED, Counter.RESERVED, Counter.PROCESS)


# -- what the log shows -----------------------------------------------------------------------------


def _figure(measurement: Measurement, counter: Counter) -> Figure | None:
    return next((one for one in measurement.figures if one.counter is counter and not one.components), None)


def _failed_request(measurement: Measurement, estimate: Estimate) -> Iterator[Explanation]:
    """The tensor that did not fit, and what the run would have needed at least."""
    wanted = _figure(measurement, Counter.WANTED)
    if wanted is None:
        return
    allocated = _figure(measurement, Counter.ALLOCATED)
    if allocated is not None:
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "It failed on a request of {wanted} with {allocated} allocated, so it needs {least} "
                    "at least; the estimate is {expected}.",
                ),
                wanted=wanted.bytes,
                allocated=allocated.bytes,
                least=wanted.bytes + allocated.bytes,
                expected=estimate.allocated_bytes,
            )
        )
    slack = wanted.step + (SEGMENT if wanted.bytes >= SEGMENT else 0)
    near = [entry for entry in tensors(estimate) if -wanted.step <= wanted.bytes - entry.bytes <= slack]
    if near:
        entry = min(near, key=lambda one: abs(wanted.bytes - one.bytes))
        words: dict[str, str | tuple[str, str]] = {
            "tensor": entry.name,
            "shape": " × ".join((*map(str, entry.shape), str(entry.width))),
        }
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP("measured", "{wanted} is what one {tensor} takes: {shape} bytes."),
                words,
                wanted=entry.bytes,
            )
        )


def _other_processes(measurement: Measurement) -> Iterator[Explanation]:
    others = _figure(measurement, Counter.OTHERS)
    if others is not None:
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP("measured", "Other processes held {size} of the GPU."), size=others.bytes
            )
        )


def _pair(rows: list[Beside], more: Counter, less: Counter) -> tuple[Beside, Beside] | None:
    first = next((row for row in rows if row.figure.counter is more), None)
    second = next((row for row in rows if row.figure.counter is less), None)
    return None if first is None or second is None else (first, second)


def _outside_pytorch(rows: list[Beside]) -> Iterator[Explanation]:
    found = _pair(rows, Counter.PROCESS, Counter.RESERVED)
    if found is not None and found[0].figure.bytes >= found[1].figure.bytes:
        process, reserved = found
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "Outside PyTorch lie {size} (CUDA context, libraries); the estimate takes {expected}.",
                ),
                size=process.figure.bytes - reserved.figure.bytes,
                expected=process.expected - reserved.expected,
            )
        )


def _fragmentation(rows: list[Beside]) -> Iterator[Explanation]:
    found = _pair(rows, Counter.RESERVED, Counter.ALLOCATED)
    if found is None:
        return
    reserved, allocated = found
    size = reserved.figure.bytes - allocated.figure.bytes
    expected = reserved.expected - allocated.expected
    if size > expected + reserved.tolerance + allocated.tolerance:
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "PyTorch reserved {size} more than it allocated, where {expected} is usual: the memory "
                    "is fragmented. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps.",
                ),
                size=max(size, 0),
                expected=expected,
            )
        )


# -- what could explain the gap -----------------------------------------------------------------------


def _other_counter(row: Beside, estimate: Estimate) -> Iterator[Explanation]:
    for counter in _EXPLAINED:
        if counter is row.figure.counter:
            continue
        expected = expected_of(counter, estimate)
        if near(expected, row):
            words: dict[str, str | tuple[str, str]] = {"counter": ("measured", COUNTERS[counter])}
            yield Explanation(
                sentence(
                    QT_TRANSLATE_NOOP(
                        "measured", "Perhaps another counter was read: of “{counter}” {expected} is expected."
                    ),
                    words,
                    expected=expected,
                ),
                abs(row.figure.bytes - expected),
            )


def _other_unit(row: Beside) -> Iterator[Explanation]:
    if row.tolerance == 1:
        return
    for binary, decimal in ((2**30, 10**9), (2**20, 10**6)):
        for factor in (Fraction(binary, decimal), Fraction(decimal, binary)):
            other = int(row.figure.bytes * factor)
            if abs(other - row.expected) <= other * NEAR:
                yield Explanation(
                    sentence(
                        QT_TRANSLATE_NOOP(
                            "measured",
                            "Perhaps GiB and GB were mixed up: read the other way it is {size}, and "
                            "{expected} is expected.",
                        ),
                        size=other,
                        expected=row.expected,
                    ),
                    abs(other - row.expected),
                )
                return


def _first_step(row: Beside, estimate: Estimate) -> Iterator[Explanation]:
    """Before the first optimizer step there are no states."""
    first = [moment.bytes for moment in estimate.timeline if moment.key.startswith("step1.")]
    if not first:
        return
    expected = row.expected - (estimate.peak_bytes - max(first))
    if near(expected, row):
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "Perhaps it was read in the first step, before the optimizer keeps anything: {expected} "
                    "is expected there.",
                ),
                expected=expected,
            ),
            abs(row.figure.bytes - expected),
        )


def _other_set_ups(row: Beside, estimate: Estimate, ask: Asker) -> Iterator[Explanation]:
    """Single switches and choices with which the estimate comes nearest."""
    scenario = estimate.scenario
    means = Means(ask)
    found: list[tuple[int, Proposal, int]] = []
    for proposal in chain(choices(scenario, means), no_dropout(scenario, means)):
        other = ask(apply(scenario, proposal.changes)).estimate
        if other is not None:
            expected = expected_of(row.figure.counter, other)
            if near(expected, row):
                found.append((abs(row.figure.bytes - expected), proposal, expected))
    found.sort(key=lambda one: one[0])
    for remains, proposal, expected in found[:MOST_SET_UPS]:
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured", "Perhaps the run had “{field}: {value}”: then {expected} is expected."
                ),
                change_words(proposal.changes[0]),
                expected=expected,
            ),
            remains,
            proposal.changes,
        )


def _shorter(row: Beside, estimate: Estimate, ask: Asker) -> Iterator[Explanation]:
    """The length at which the estimate gives the measured figure, where that is less."""
    if row.gap >= 0:
        return
    path, counter = length_path(estimate.scenario), row.figure.counter
    if not BY_PATH[path].applies(estimate.scenario):
        return
    most = row.figure.bytes + row.tolerance
    solution = solve(estimate.scenario, path, ask, lambda one: expected_of(counter, one) <= most)
    if (
        solution.largest is None
        or solution.estimate is None
        or solution.largest >= get(estimate.scenario, path)
    ):
        return
    expected = expected_of(counter, solution.estimate)
    if near(expected, row):
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "Perhaps the sequences were shorter than stated: with {tokens_count} tokens {expected} "
                    "is expected.",
                ),
                expected=expected,
                tokens_count=solution.largest,
            ),
            abs(row.figure.bytes - expected),
            (change(estimate.scenario, path, solution.largest),),
        )


def _beyond_the_range(row: Beside) -> Iterator[Explanation]:
    over = row.figure.bytes - row.high
    if row.figure.counter is Counter.PROCESS and over > 0:
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "Other libraries in the process, or another process on the GPU, may hold the {size} "
                    "above the range.",
                ),
                size=over,
            )
        )
