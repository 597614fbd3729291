"""What could explain the parts that an engine's log names: other set-ups, put to the estimator one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from memgui.estimator.result import Estimate
from memgui.planning.ask import Asker
from memgui.planning.changes import apply, change
from memgui.planning.ladder import length_path
from memgui.planning.measured.beside import Beside, beside
from memgui.planning.measured.records import Counter, Measurement, named_part
from memgui.planning.measured.saying import Explanation, change_words, near, sentence
from memgui.planning.measured.setups import Changes, other_shares
from memgui.planning.solve import solve
from memgui.planning.ways.means import Means
from memgui.planning.ways.rules import choices
from memgui.spec import QT_TRANSLATE_NOOP, Message, Scenario, get
from memgui.spec.fields import BY_PATH, Field
from memgui.spec.messages import listed

MOST_OF_A_PART = 2
"""More set-ups than this are not named for one part."""
POOL = "kv_pool_bytes"
_PROGRAMS: Mapping[str, tuple[str, ...]] = {"vllm": ("vllm",), "llama.cpp": ("llama.cpp", "ollama")}
"""The engines that write a log of each source."""
_BATCHES = ("inference.n_ubatch", "inference.max_num_batched_tokens", "inference.max_num_seqs")


def part_reasons(measurement: Measurement, estimate: Estimate, ask: Asker) -> Iterator[Explanation]:
    """Single changes with which a part that is off comes out as measured, and no other gets worse by it."""
    programs = _PROGRAMS.get(measurement.source)
    scenario = estimate.scenario
    if programs and (scenario.task == "training" or scenario.inference.engine not in programs):
        yield _of_another_program(programs[0], scenario)
        return
    every = beside(measurement, estimate)
    rows = [row for row in every if row.figure.components]
    off = [row for row in rows if not row.within]
    if not off:
        return
    before = sum(abs(row.gap) for row in rows)
    found: list[tuple[int, Beside, Beside, Changes]] = []
    for changes in _candidates(measurement, off, estimate, ask):
        other = ask(apply(estimate.scenario, changes)).estimate
        if other is None:
            continue
        now = {row.figure.part: row for row in beside(measurement, other)}
        after = [now[row.figure.part] for row in rows if row.figure.part in now]
        remains = sum(abs(row.gap) for row in after)
        if len(after) == len(rows) and remains < before:
            found += [
                (remains, row, now[row.figure.part], changes)
                for row in off
                if _explains(now[row.figure.part], row)
            ]
    found.sort(key=lambda one: one[0])
    unexplained: list[Message] = []
    for row in off:
        of_it = [one for one in found if one[1] is row][:MOST_OF_A_PART]
        yield from (_perhaps(estimate.scenario, changes, at, remains) for remains, _, at, changes in of_it)
        if not of_it and row.figure.extra == POOL:
            yield _pool_is_the_rest(row, every)
        elif not of_it and abs(row.gap) * 50 > estimate.peak_bytes:
            quoted = QT_TRANSLATE_NOOP("messages", "“{part}”")
            unexplained.append(Message(quoted, {"part": named_part(row.figure.part)}))
    if unexplained:
        yield Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "Nothing that was tried accounts for {parts}. Worth a look: the model and its format, "
                    "how many GPUs share it, and what the program loads beside it.",
                ),
                messages={"parts": Message("{parts}", {"parts": listed(unexplained)})},
            )
        )


def _of_another_program(engine: str, scenario: Scenario) -> Explanation:
    """That there is nothing to compare: each program cuts its memory into other parts."""
    field = BY_PATH["inference.engine"]
    words: dict[str, str | tuple[str, str]] = {"program": _label(field, engine)}
    if scenario.task == "training":
        trains = QT_TRANSLATE_NOOP(
            "measured", "The log is of {program}, which serves models; what is open here is a training."
        )
        return Explanation(sentence(trains, words))
    serves = QT_TRANSLATE_NOOP(
        "measured", "The log is of {program}; what is open here is served by {engine}."
    )
    return Explanation(sentence(serves, words | {"engine": _label(field, scenario.inference.engine)}))


def _label(field: Field, value: str) -> str | tuple[str, str]:
    choice = field.choice(value)
    return value if choice is None else ("fields", choice.label)


def _explains(now: Beside, row: Beside) -> bool:
    """Whether ``row`` comes out as measured: near it, and of a pool, which bears all that is off, nearly."""
    if abs(now.gap) * 2 > abs(row.gap):
        return False
    return near(now.expected, row) or (row.figure.extra == POOL and abs(now.gap) * 5 <= abs(row.gap))


def _pool_is_the_rest(pool: Beside, rows: Sequence[Beside]) -> Explanation:
    """Why a pool differs that no set-up explains: by other parts, by the budget, or by what is not logged."""
    counted: set[str] = set()
    unexplained = pool.gap
    for row in sorted(rows, key=lambda one: -len(one.figure.components)):
        parts = row.figure.components
        # a peak holds the weights, which are logged as well; what has an exact figure lies outside the budget
        if parts and not row.figure.extra and counted.isdisjoint(parts):
            counted.update(parts)
            unexplained += row.gap
    if abs(unexplained) * 5 <= abs(pool.gap):
        return Explanation(
            sentence(
                QT_TRANSLATE_NOOP(
                    "measured",
                    "The cache pool is what the program leaves of its budget: it differs by what the other "
                    "parts differ.",
                )
            )
        )
    capacities = [row for row in rows if row.figure.counter is Counter.CAPACITY and not row.within]
    for row in sorted(capacities, key=lambda one: bool(one.figure.extra)):
        memory = QT_TRANSLATE_NOOP(
            "measured",
            "The cache pool is what the program leaves of its budget, and the GPU of the log has another "
            "memory: {size}, here {expected}.",
        )
        share = QT_TRANSLATE_NOOP(
            "measured",
            "The cache pool is what the program leaves of its budget, and that was another: {size}, here "
            "{expected}.",
        )
        template = share if row.figure.extra else memory
        return Explanation(sentence(template, size=row.figure.bytes, expected=row.expected))
    return Explanation(
        sentence(
            QT_TRANSLATE_NOOP(
                "measured",
                "The cache pool is what the program leaves of its budget: it differs by more than the other "
                "parts of the log do, so its share of the GPU, the GPU or a part not logged was another.",
            )
        )
    )


def _perhaps(scenario: Scenario, changes: Changes, row: Beside, remains: int) -> Explanation:
    one = changes[0]
    part = {"part": named_part(row.figure.part)}
    if one.path == length_path(scenario):
        said = sentence(
            QT_TRANSLATE_NOOP(
                "measured",
                "Perhaps its context had {tokens_count} tokens: then “{part}” should take {expected}.",
            ),
            messages=part,
            expected=row.expected,
            tokens_count=int(one.new) + scenario.inference.generated_tokens,
        )
    else:
        said = sentence(
            QT_TRANSLATE_NOOP(
                "measured",
                "Perhaps the run had “{field}: {value}”: then “{part}” should take {expected}.",
            ),
            change_words(one),
            part,
            expected=row.expected,
        )
    return Explanation(said, remains, changes)


def _candidates(
    measurement: Measurement, off: list[Beside], estimate: Estimate, ask: Asker
) -> Iterable[Changes]:
    scenario = estimate.scenario
    return chain(
        (proposal.changes for proposal in choices(scenario, Means(ask))),
        _other_batches(scenario),
        other_shares(scenario) if any(row.figure.extra for row in off) else (),
        _other_lengths(measurement, off, scenario, ask),
    )


def _other_batches(scenario: Scenario) -> Iterator[Changes]:
    """Half and twice, a quarter and four times as much at once, and the like."""
    for path in _BATCHES:
        field = BY_PATH[path]
        present = get(scenario, path)
        if present and field.applies(scenario):
            for power in (-3, -2, -1, 1, 2, 3):
                other = present << power if power > 0 else present >> -power
                if other and (field.maximum is None or other <= field.maximum):
                    yield (change(scenario, path, other),)


def _other_lengths(
    measurement: Measurement, off: list[Beside], scenario: Scenario, ask: Asker
) -> Iterator[Changes]:
    """The length that the log states, else the one with which the cache is as large as measured."""
    path = length_path(scenario)
    row = next((row for row in off if row.figure.components == ("kv_cache",)), None)
    if row is None or row.figure.extra or scenario.task == "training":
        return
    stated = measurement.facts.get("n_ctx", 0) // scenario.inference.batch_size
    length: int | None = stated - scenario.inference.generated_tokens
    if not stated:
        most = row.figure.bytes + row.tolerance
        length = solve(
            scenario, path, ask, lambda one: one.component("kv_cache").bytes <= most, beyond=0
        ).largest
    if length is not None and length > 0 and length != get(scenario, path):
        yield (change(scenario, path, length),)
