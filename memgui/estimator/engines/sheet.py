"""How an engine's account becomes an estimate: lines by moment, each with its formula and source.

An engine that allocates in pools and buffers is written as a few moments; at each of them lines are
alive, and a line is a node of the picture with, where its size is not known exactly, its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from memgui.estimator.moments import PHASES
from memgui.estimator.overhead import Range
from memgui.estimator.result import (
    COMPONENTS,
    Derivation,
    Estimate,
    Moment,
    Node,
    Parameters,
    Rank,
    Symbol,
    Verdict,
)
from memgui.estimator.verdict import verdict
from memgui.spec.messages import Issue, Message
from memgui.spec.scenario import Scenario


class Factor(NamedTuple):
    """A symbol of a formula with its value, and the field that holds it.

    Where none does, ``told`` says how it comes about, once someone looks.
    """

    name: str
    value: int
    label: str
    path: str | None = None
    told: Callable[[], Derivation] | None = None

    @property
    def symbol(self) -> Symbol:
        """What a formula shows of it."""
        return Symbol(self.value, self.label, self.path, self.told() if self.told is not None else None)


Term = Sequence[Factor | int]
"""A product of symbols and numbers."""


def explained(
    key: str,
    label: str,
    terms: Iterable[Term],
    source: str,
    text: str,
    children: tuple[Node, ...] = (),
    depends: tuple[str, ...] = (),
) -> Node:
    """A node that is a sum of products; it shows them with their symbols.

    ``depends``: paths of the fields that its plain numbers follow from.
    """
    kept = tuple(tuple(term) for term in terms)
    size = sum(_value(term) for term in kept)
    return Node(key, label, size, children, partial(_derived, kept, source, text, depends))


def _value(term: Term) -> int:
    return prod(factor.value if isinstance(factor, Factor) else factor for factor in term)


def _derived(
    terms: tuple[Term, ...], source: str, text: str, depends: tuple[str, ...], _: Node
) -> Derivation:
    symbols: dict[str, Symbol] = {}
    written: list[str] = []
    for term in terms:
        for factor in term:
            if isinstance(factor, Factor):
                symbols[factor.name] = factor.symbol
        written.append("*".join(f.name if isinstance(f, Factor) else str(f) for f in term) or "1")
    return Derivation(" + ".join(written) or "0", symbols, source, text, depends=depends)


class Line(NamedTuple):
    """A node under a component; ``least`` and ``most`` where its size is a range.

    ``outside`` lines are not the engine's own tensors: libraries, contexts.
    """

    component: str
    node: Node
    least: int | None = None
    most: int | None = None
    outside: bool = False

    @property
    def low(self) -> int:
        """The least it can be."""
        return self.node.bytes if self.least is None else self.least

    @property
    def high(self) -> int:
        """The most it can be."""
        return self.node.bytes if self.most is None else self.most


def ranged(component: str, node: Node, known: Range, *, outside: bool = True) -> Line:
    """A line whose node has the usual size of a range."""
    return Line(component, node, known.low, known.high, outside)


class Stage(NamedTuple):
    """A moment: its key, what it is called, and what is alive."""

    key: str
    template: str
    lines: tuple[Line, ...]
    operator: str = ""

    @property
    def bytes(self) -> int:
        """All lines together."""
        return sum(line.node.bytes for line in self.lines)


class Squeezed(NamedTuple):
    """A verdict for a reason other than what is held: never a better one than what is held allows."""

    kind: str
    reason: Message

    def of(self, found: Verdict) -> Verdict:
        """The worse of both."""
        if found.kind == "does_not_fit" or (found.kind == "tight" and self.kind == "tight"):
            return found
        return Verdict(self.kind, found.capacity_bytes, found.headroom_bytes, self.reason)


def estimated(
    scenario: Scenario,
    version: str,
    parameters: Parameters,
    stages: Sequence[Stage],
    capacity: int,
    *,
    extra: Mapping[str, int],
    ranks: tuple[Rank, ...] = (),
    issues: tuple[Issue, ...] = (),
    squeezed: Squeezed | None = None,
    assumptions: tuple[Message, ...] = (),
) -> Estimate:
    """The estimate of stages; the peak is the stage with the most bytes."""
    peak = max(stages, key=lambda stage: stage.bytes)
    low = sum(line.low for line in peak.lines)
    high = sum(line.high for line in peak.lines)
    own = sum(line.node.bytes for line in peak.lines if not line.outside)
    found = verdict(peak.bytes, low, high, capacity)
    return Estimate(
        scenario=scenario,
        method="detailed",
        version=version,
        parameters=parameters,
        components=tuple(_component(key, peak) for key in COMPONENTS),
        peak_bytes=peak.bytes,
        peak_moment=_moment(peak),
        low_bytes=low,
        high_bytes=high,
        allocated_bytes=own,
        reserved_bytes=own,
        timeline=tuple(_moment(stage) for stage in stages),
        ranks=ranks or (Rank("0", peak.bytes),),
        verdict=squeezed.of(found) if squeezed else found,
        issues=issues,
        assumptions=assumptions,
        extra=extra,
    )


def _component(key: str, stage: Stage) -> Node:
    nodes = tuple(line.node for line in stage.lines if line.component == key and line.node.bytes)
    if len(nodes) == 1 and nodes[0].key == key:
        return nodes[0]
    return Node(key, COMPONENTS[key], 0, nodes)


def _moment(stage: Stage) -> Moment:
    components = dict.fromkeys(COMPONENTS, 0)
    for line in stage.lines:
        components[line.component] += line.node.bytes
    return Moment(
        key=stage.key,
        label=Message(stage.template),
        phase=PHASES.get(stage.key, stage.key.partition(".")[0].removeprefix("after_")),
        bytes=stage.bytes,
        components=components,
        operator=stage.operator,
    )
