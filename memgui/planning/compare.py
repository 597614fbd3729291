"""Set-ups side by side: where their bytes differ, which inputs differ, what was paid for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memgui.estimator.result import COMPONENTS, Estimate, Node
from memgui.planning.ask import Asker
from memgui.planning.changes import apply, change, differences, differing
from memgui.planning.devices import moved
from memgui.planning.ways.costs import paid_for
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP, Device, Issue, Scenario, get
from memgui.spec.fields import BY_PATH, FIELDS


@dataclass(frozen=True, slots=True)
class Column:
    """One set-up: what it is called (a name, or a context and a msgid) and its estimate.

    ``estimate`` is ``None`` where it cannot be computed; ``issue`` says why.
    """

    name: str | tuple[str, str]
    scenario: Scenario
    estimate: Estimate | None
    issue: Issue | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A part of the breakdown in every column (bytes; 0 where a set-up has none; ``None`` where unknown).

    Of a part that a column does not divide, as an article's method, what is below is unknown.

    ``path`` are the keys from the component down, ``label`` the msgid of the last (context ``"estimator"``).
    """

    path: tuple[str, ...]
    label: str
    sizes: tuple[int | None, ...]

    def delta(self, column: int, base: int = 0) -> int | None:
        """Bytes more than in the column ``base``; negative where it is less."""
        size, reference = self.sizes[column], self.sizes[base]
        return None if size is None or reference is None else size - reference


@dataclass(frozen=True, slots=True)
class Input:
    """A field that is not the same in every column, and its value in each."""

    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Columns, and what they have in common.  ``rows`` hold components, each followed by its parts.

    ``total`` is the peak, ``spare`` the room left (negative where it does not fit).  ``same`` is the
    number of fields that matter somewhere and are equal everywhere.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: Row
    spare: Row
    inputs: tuple[Input, ...]
    same: int

    def headline(self, column: int, base: int = 0) -> Said | None:
        """How much more or less ``column`` needs; ``None`` where one of them is unknown."""
        gap, reference = self.total.delta(column, base), self.total.sizes[base]
        if gap is None or reference is None:
            return None
        words: dict[str, str | tuple[str, str]] = {
            "name": self.columns[column].name,
            "base": self.columns[base].name,
        }
        if gap == 0:
            template = QT_TRANSLATE_NOOP("compare", "{name} and {base} need the same.")
            return Said(template, words=words, context="compare")
        percent = (200 * abs(gap) + reference) // (2 * reference) if reference else 0
        if not percent:
            template = (
                QT_TRANSLATE_NOOP("compare", "{name} needs {gap} less than {base}.")
                if gap < 0
                else QT_TRANSLATE_NOOP("compare", "{name} needs {gap} more than {base}.")
            )
            return Said(template, sizes={"gap": abs(gap)}, words=words, context="compare")
        if gap < 0:
            template = QT_TRANSLATE_NOOP("compare", "{name} needs {gap} less than {base} (−{percent} %).")
        else:
            template = QT_TRANSLATE_NOOP("compare", "{name} needs {gap} more than {base} (+{percent} %).")
        return Said(
            template, sizes={"gap": abs(gap)}, counts={"percent": percent}, words=words, context="compare"
        )

    def paid(self, column: int, base: int = 0) -> tuple[Said, ...]:
        """What ``column`` costs against ``base``, in plain words."""
        after = self.columns[column].estimate
        if after is None:
            return ()
        said: list[Said] = []
        for one in differences(self.columns[base].scenario, self.columns[column].scenario):
            cost = paid_for(one, after)
            if cost is not None:
                said += [sentence for sentence in cost.sentences if sentence not in said]
        return tuple(said)


def compare(columns: Sequence[Column], depth: int = 2) -> Comparison:
    """The columns side by side; ``depth`` levels of the breakdown (1: components alone)."""
    found = [column.estimate for column in columns]
    rows: list[Row] = []
    for key, label in COMPONENTS.items():
        nodes = [None if estimate is None else estimate.component(key) for estimate in found]
        rows += _rows((key,), label, nodes, depth, [estimate is None for estimate in found])
    peak = QT_TRANSLATE_NOOP("compare", "Total")
    spare = QT_TRANSLATE_NOOP("compare", "Spare")
    inputs, same = _inputs([column.scenario for column in columns])
    return Comparison(
        tuple(columns),
        tuple(rows),
        Row((), peak, tuple(None if one is None else one.peak_bytes for one in found)),
        Row((), spare, tuple(None if one is None else one.verdict.headroom_bytes for one in found)),
        inputs,
        same,
    )


def _rows(
    path: tuple[str, ...], label: str, nodes: Sequence[Node | None], depth: int, unknown: Sequence[bool]
) -> list[Row]:
    """The row of one node, and below it those of its parts: each that some column has."""
    sizes = tuple(
        None if nothing else 0 if node is None else node.bytes
        for node, nothing in zip(nodes, unknown, strict=True)
    )
    rows = [Row(path, label, sizes)]
    if len(path) >= depth:
        return rows
    labels: dict[str, str] = {}
    for node in nodes:
        for child in node.children if node is not None else ():
            labels.setdefault(child.key, child.label)
    undivided = [
        nothing or (node is not None and node.bytes > 0 and not node.children)
        for node, nothing in zip(nodes, unknown, strict=True)
    ]
    for key, name in labels.items():
        below = [_child(node, key) for node in nodes]
        rows += _rows((*path, key), name, below, depth, undivided)
    return rows


def _child(node: Node | None, key: str) -> Node | None:
    return None if node is None else next((one for one in node.children if one.key == key), None)


def _inputs(scenarios: Sequence[Scenario]) -> tuple[tuple[Input, ...], int]:
    paths = frozenset().union(*(differing(scenarios[0], other) for other in scenarios[1:]))
    different: list[Input] = []
    same = 0
    known: dict[object, bool] = {}  # most fields share their predicate with others
    for field in FIELDS:
        applies = known.get(field.applies)
        if applies is None:
            applies = known[field.applies] = any(map(field.applies, scenarios))
        if not applies:
            continue
        if field.path in paths:
            different.append(Input(field.path, tuple(get(scenario, field.path) for scenario in scenarios)))
        else:
            same += 1
    return tuple(different), same


def by_method(scenario: Scenario, ask: Asker | None = None) -> tuple[Column, ...]:
    """The scenario by each estimation method that can describe it, the present one first."""
    ask = Asker() if ask is None else ask
    columns: list[Column] = []
    choices = sorted(BY_PATH["method"].choices, key=lambda choice: choice.value != scenario.method)
    for choice in choices:
        changes = (change(scenario, "method", choice.value), change(scenario, "method_variant", None))
        there = scenario if choice.value == scenario.method else apply(scenario, changes)
        answer = ask(there)
        if answer.estimate is not None or choice.value == scenario.method:
            columns.append(Column(("fields", choice.label), there, answer.estimate, answer.issue))
    return tuple(columns)


def by_device(scenario: Scenario, devices: Iterable[Device], ask: Asker | None = None) -> tuple[Column, ...]:
    """The scenario on each of ``devices``."""
    ask = Asker() if ask is None else ask
    columns: list[Column] = []
    for device in devices:
        answer = ask(apply(scenario, moved(scenario, device)))
        columns.append(Column(device.name, answer.scenario, answer.estimate, answer.issue))
    return tuple(columns)
