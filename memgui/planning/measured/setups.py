"""Other set-ups that would use what was measured: put to the estimator, what people most often mean first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from memgui.estimator.result import Estimate
from memgui.estimator.targets import TARGETS
from memgui.planning.ask import Asker
from memgui.planning.changes import Change, apply, change
from memgui.planning.ladder import length_path
from memgui.planning.layout import COUNT, taking, together
from memgui.planning.measured.beside import Beside, against, expected_of
from memgui.planning.measured.records import MOST_BYTES
from memgui.planning.measured.saying import Explanation, change_words, near, sentence
from memgui.planning.solve import solve
from memgui.planning.ways.means import Means
from memgui.planning.ways.rules import choices, no_dropout, other_choices
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP, Scenario, get
from memgui.spec.fields import BY_PATH, Field

MOST_SET_UPS = 4
MOST_OF_A_FIELD = 2
"""More values than this of one field are not named: the first ones are as good."""

_SHARES = ("inference.gpu_memory_utilization", "inference.mem_fraction_static")
_USUAL_SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.97, 0.98)
_GPUS = (2, 4, 8)
_BASES = ("nf4_dq", "nf4")

Changes = tuple[Change, ...]


def other_set_ups(row: Beside, estimate: Estimate, ask: Asker) -> Iterator[Explanation]:
    """Set-ups with which the estimate comes to what was measured, the nearest first.

    What lies within the printed digits is equally near: there the order is that of how often it is meant.
    """
    scenario = estimate.scenario
    found: list[tuple[int, Changes, int, int]] = []
    tried = chain(
        _meant(scenario),
        _batches(row, scenario, ask),
        _shared(scenario) if row.gap < 0 else (),
        _switches(row, scenario, ask),
    )
    for changes in tried:
        other = ask(apply(scenario, changes)).estimate
        there = None if other is None else against(row.figure, other)
        if there is not None and _comes_to_it(there):
            remains = abs(there.gap)
            if remains * 2 <= abs(row.gap):
                found.append((max(remains - row.tolerance, 0), changes, there.expected, remains))
    found.sort(key=lambda one: one[0])
    named: dict[str, int] = {}
    for _, changes, expected, remains in found:
        path = changes[0].path
        named[path] = named.get(path, 0) + 1
        if named[path] <= MOST_OF_A_FIELD and sum(named.values()) <= MOST_SET_UPS:
            yield Explanation(_perhaps(changes, expected), remains, changes)


def _comes_to_it(there: Beside) -> bool:
    """Whether the figure is as expected, or in the range of what lies beside tensors."""
    return near(there.expected, there) or (there.within and not there.figure.at_least)


def _perhaps(changes: Changes, expected: int) -> Said:
    first, *more = [one for one in changes if one.path != TARGETS]
    if first.path == COUNT:
        return sentence(
            QT_TRANSLATE_NOOP(
                "measured",
                "Perhaps it ran on {gpus_count} GPUs with “{field}: {value}”: then {expected} is expected "
                "on each.",
            ),
            change_words(more[-1]),
            expected=expected,
            gpus_count=first.new,
        )
    if not more:
        return sentence(
            QT_TRANSLATE_NOOP(
                "measured", "Perhaps the run had “{field}: {value}”: then {expected} is expected."
            ),
            change_words(first),
            expected=expected,
        )
    beside = {f"other_{name}": word for name, word in change_words(more[0]).items()}
    return sentence(
        QT_TRANSLATE_NOOP(
            "measured",
            "Perhaps the run had “{field}: {value}” and “{other_field}: {other_value}”: then {expected} is "
            "expected.",
        ),
        change_words(first) | beside,
        expected=expected,
    )


def _meant(scenario: Scenario) -> Iterator[Changes]:
    """What is trained, on a base of how many bits; where the states lie; whether gradients pile up."""
    path = "training.method"
    if BY_PATH[path].applies(scenario):
        base = BY_PATH["training.base_format"]
        for method in other_choices(scenario, BY_PATH[path]):
            whole = together(scenario, path, method.new)
            changes = tuple(change(scenario, one, value) for one, value in whole.items())
            yield changes
            if method.new == "lora" and base.applies(apply(scenario, changes)):
                yield from ((*changes, change(scenario, base.path, narrow)) for narrow in _BASES)
    for one in _applying(scenario, ("training.offload_optimizer",)):
        for share in (one.maximum, one.minimum):
            if share != get(scenario, one.path):
                yield (change(scenario, one.path, share),)
    for one in _applying(scenario, ("training.gradient_accumulation_steps",)):
        yield (change(scenario, one.path, 2 if get(scenario, one.path) == 1 else 1),)


def _shared(scenario: Scenario) -> Iterator[Changes]:
    """A few GPUs that share what one alone has now: what is measured is measured on each."""
    if scenario.parallelism.devices > 1 or scenario.device.count > 1:
        return
    for count in _GPUS:
        there = change(scenario, COUNT, count)
        if scenario.task == "training":
            replicas = change(scenario, "parallelism.data", count)
            for sharding in ("zero3", "zero2", "zero1"):
                yield there, replicas, change(scenario, "parallelism.sharding", sharding)
        else:
            for path in dict.fromkeys((taking(scenario), "parallelism.tensor")):
                yield there, change(scenario, path, count)


def _switches(row: Beside, scenario: Scenario, ask: Asker) -> Iterator[Changes]:
    """Every other value of every choice and switch, and the usual shares of the device."""
    means = Means(ask)
    yield from (proposal.changes for proposal in choices(scenario, means))
    yield from (proposal.changes for proposal in no_dropout(scenario, means))
    yield from other_shares(scenario)
    for one in _applying(scenario, _SHARES):  # a process grows as its share does
        present = get(scenario, one.path)
        share = round(present + row.gap / scenario.device.memory_bytes, 2) if present else 0
        if share not in _USUAL_SHARES and share != present and (one.minimum or 0) <= share <= 1:
            yield (change(scenario, one.path, share),)


def other_shares(scenario: Scenario) -> Iterator[Changes]:
    """The shares of the device that engines are usually given."""
    for one in _applying(scenario, _SHARES):
        for share in _USUAL_SHARES:
            if share != get(scenario, one.path):
                yield (change(scenario, one.path, share),)


def _batches(row: Beside, scenario: Scenario, ask: Asker) -> Iterator[Changes]:
    """The number of sequences at once with which the estimate comes nearest, from either side."""
    path = "training.micro_batch_size" if scenario.task == "training" else "inference.batch_size"
    away = {size: _away(row, scenario, path, size, ask) for size in _values(row, scenario, path, ask)}
    nearest = min(away, key=lambda size: away[size], default=get(scenario, path))
    if nearest != get(scenario, path):
        yield (change(scenario, path, nearest),)


def _away(row: Beside, scenario: Scenario, path: str, value: int, ask: Asker) -> int:
    """How far from the figure the estimate is with another value; what cannot be computed is furthest."""
    found = ask(apply(scenario, (change(scenario, path, value),))).estimate
    return MOST_BYTES if found is None else abs(row.figure.bytes - expected_of(row.figure.counter, found))


def other_length(row: Beside, estimate: Estimate, ask: Asker) -> Iterator[Explanation]:
    """The length with which the estimate comes to what was measured: the roundest, to the printed digits.

    Nearly any gap can be bridged by some length, so this says less than a set-up does.
    """
    scenario = estimate.scenario
    path = length_path(scenario)
    if near(row.expected, row):
        return
    longest = next(iter(_values(row, scenario, path, ask)), None)
    if longest is None or longest == get(scenario, path):
        return
    length = _roundest(row, scenario, path, longest, ask)
    found = ask(apply(scenario, (change(scenario, path, length),))).estimate
    expected = 0 if found is None else expected_of(row.figure.counter, found)
    if not near(expected, row):
        return
    shorter = QT_TRANSLATE_NOOP(
        "measured",
        "Perhaps the sequences were shorter than stated: with {tokens_count} tokens {expected} is expected.",
    )
    longer = QT_TRANSLATE_NOOP(
        "measured",
        "Perhaps the sequences were longer than stated: with {tokens_count} tokens {expected} is expected.",
    )
    more = length > get(scenario, path)
    generated = 0 if scenario.task == "training" else scenario.inference.generated_tokens
    yield Explanation(
        sentence(longer if more else shorter, expected=expected, tokens_count=length + generated),
        abs(row.figure.bytes - expected),
        (change(scenario, path, length),),
    )


def _roundest(row: Beside, scenario: Scenario, path: str, longest: int, ask: Asker) -> int:
    """The roundest length that gives the figure to its printed digits; ``longest`` where there is none."""
    for power in range(longest.bit_length() - 2, 3, -1):
        step = 1 << power
        length = (longest + step // 2) // step * step
        near_by = 64 * abs(length - longest) <= longest
        if near_by and _away(row, scenario, path, length, ask) <= row.tolerance:
            return length
    return longest


def _values(row: Beside, scenario: Scenario, path: str, ask: Asker) -> Iterator[int]:
    """The largest value with which no more is expected than was measured, and the next one."""
    field, counter = BY_PATH[path], row.figure.counter
    present = get(scenario, path)
    doubled = ask(apply(scenario, (change(scenario, path, present * 2),))).estimate
    if not field.applies(scenario) or (doubled is not None and expected_of(counter, doubled) == row.expected):
        return  # what does not hang on it would be looked for to its end
    most = row.figure.bytes + row.tolerance
    found = solve(scenario, path, ask, lambda one: expected_of(counter, one) <= most, beyond=0)
    yield from (value for value in (found.largest, found.next) if value is not None)


def _applying(scenario: Scenario, paths: tuple[str, ...]) -> Iterator[Field]:
    return (BY_PATH[path] for path in paths if BY_PATH[path].applies(scenario))
