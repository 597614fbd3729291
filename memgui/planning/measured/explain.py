"""What could account for the difference between a measurement and an estimate.

Each explanation is tried on the figures: it is said only where it brings the two together, and says
by how much.  Other set-ups are put to the estimator, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain

from memgui.catalog import DeviceEntry
from memgui.estimator.result import Estimate
from memgui.planning.ask import Asker
from memgui.planning.measured.beside import Beside, beside, expected_of
from memgui.planning.measured.gpus import other_device
from memgui.planning.measured.parts import part_reasons
from memgui.planning.measured.records import COUNTERS, Counter, Figure, Measurement
from memgui.planning.measured.saying import NEAR, Explanation, near, sentence
from memgui.planning.measured.setups import other_length, other_set_ups
from memgui.planning.tensors import tensors
from memgui.spec import QT_TRANSLATE_NOOP

SEGMENT = 2 * 2**20
"""PyTorch asks the driver for whole steps of this size (bytes); messages print what was asked for."""
SHARED = 20 * 2**20
"""A request up to this (bytes) is for a segment that small tensors share: it tells of none of them."""


def explain(
    measurement: Measurement,
    estimate: Estimate,
    ask: Asker | None = None,
    devices: Sequence[DeviceEntry] = (),
) -> tuple[Explanation, ...]:
    """What the log itself shows, then what could explain the gap, the best first.

    ``devices`` are those that the run may have been on.
    """
    ask = Asker() if ask is None else ask
    rows = beside(measurement, estimate)
    whole = [row for row in rows if not row.figure.components and row.figure.counter in _EXPLAINED]
    shown = [
        *_failed_request(measurement, estimate),
        *_other_processes(measurement),
        *other_device(rows, estimate, devices),
        *_outside_pytorch(whole),
        *_fragmentation(measurement, whole),
    ]
    off = next((row for row in whole if not row.within), None)
    if off is None:
        return (*shown, *part_reasons(measurement, estimate, ask))
    reasons = chain(
        _other_counter(off, estimate),
        _other_unit(off),
        _first_step(off, estimate),
        other_set_ups(off, estimate, ask),
    )
    better = [one for one in reasons if one.remains is None or one.remains * 2 <= abs(off.gap)]
    better.sort(key=lambda one: max((one.remains or 0) - off.tolerance, 0))
    better += other_length(off, estimate, ask)
    better += _beyond_the_range(off)
    return (*shown, *(better or _nothing(off, estimate)), *part_reasons(measurement, estimate, ask))


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
    if wanted.bytes <= SHARED:
        return
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
                QT_TRANSLATE_NOOP(
                    "measured", "{wanted} is the size of the tensor “{tensor}”: {shape} bytes."
                ),
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


def _fragmentation(measurement: Measurement, rows: list[Beside]) -> Iterator[Explanation]:
    """More than the likely range has, or enough for the very request that failed."""
    found = _pair(rows, Counter.RESERVED, Counter.ALLOCATED)
    if found is None:
        return
    reserved, allocated = found
    size = reserved.figure.bytes - allocated.figure.bytes
    expected = reserved.expected - allocated.expected
    wanted = _figure(measurement, Counter.WANTED)
    had_room = wanted is not None and wanted.bytes <= size
    if had_room or size > reserved.high - allocated.expected + reserved.tolerance + allocated.tolerance:
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


def _nothing(row: Beside, estimate: Estimate) -> Iterator[Explanation]:
    """A gap that is not worth a reason, or that has none here: then what a person could look at."""
    if near(row.expected, row):
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "The difference is under a hundredth: kernels and versions of libraries make as much.",
                )
            )
        )
        return
    template = _LOOK_AT[estimate.scenario.task == "training", row.gap > 0]
    yield Explanation(sentence(template, size=abs(row.gap)))


_LOOK_AT = {
    (True, True): QT_TRANSLATE_NOOP(
        "measured",
        "Nothing that was tried accounts for {size} more. Worth a look: the model itself, batch and length "
        "together, how many GPUs share it, and what else the script keeps on the GPU (a second model, "
        "outputs of earlier steps, evaluation).",
    ),
    (True, False): QT_TRANSLATE_NOOP(
        "measured",
        "Nothing that was tried accounts for {size} less. Worth a look: the model itself, whether this is "
        "the peak of the fullest GPU, batch and length together, frozen layers, how many GPUs share it.",
    ),
    (False, True): QT_TRANSLATE_NOOP(
        "measured",
        "Nothing that was tried accounts for {size} more. Worth a look: the model and its format, batch and "
        "context together, a draft model or adapters, and what else runs on the GPU.",
    ),
    (False, False): QT_TRANSLATE_NOOP(
        "measured",
        "Nothing that was tried accounts for {size} less. Worth a look: the model and its format, whether "
        "this is the peak of the fullest GPU, batch and context together, layers on the host, how many GPUs "
        "share it.",
    ),
}
