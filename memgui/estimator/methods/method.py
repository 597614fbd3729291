"""What every published rule of thumb shares: its letters, its parts, and what it leaves out.

A method is computed exactly as its authors wrote it, so that a reader of theirs finds their figure.
What it does not speak of is 0 under its component, and an :class:`Omission` says so in the method's
own letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

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
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario, get


class Omission(msgspec.Struct, frozen=True):
    """Bytes a method does not count: the component they belong to, and the sentence for a person."""

    component: str
    message: Message


class Answer(msgspec.Struct, frozen=True):
    """What a method computes: nodes by component key (at most one each), and what it says of itself."""

    source: str
    nodes: Mapping[str, Node]
    omissions: tuple[Omission, ...]
    remarks: tuple[Message, ...] = ()
    extra: Mapping[str, int] = {}


def letter(scenario: Scenario, label: str, path: str) -> Symbol:
    """The letter that stands for the field at ``path``."""
    return Symbol(get(scenario, path), label, path)


def leaf(
    key: str,
    label: str,
    formula: str,
    letters: Mapping[str, Symbol],
    size: int,
    source: str,
    text: str,
    assumptions: tuple[Message, ...] = (),
) -> Node:
    """A part whose ``formula``, with ``letters`` put in, gives ``size`` bytes."""
    return Node(key, label, size, (), _explained(formula, letters, source, text, assumptions))


def branch(
    key: str,
    label: str,
    formula: str,
    letters: Mapping[str, Symbol],
    children: tuple[Node, ...],
    source: str,
    text: str,
    assumptions: tuple[Message, ...] = (),
) -> Node:
    """A part that is the sum of ``children`` and has a formula of its own."""
    return Node(key, label, 0, children, _explained(formula, letters, source, text, assumptions))


def _explained(
    formula: str,
    letters: Mapping[str, Symbol],
    source: str,
    text: str,
    assumptions: tuple[Message, ...] = (),
) -> Callable[[Node], Derivation]:
    def derive(_: Node) -> Derivation:
        used = {name: symbol for name, symbol in letters.items() if name in _names(formula)}
        return Derivation(formula, used, source, text, assumptions)

    return derive


def _names(formula: str) -> set[str]:
    spaced = "".join(character if character.isalnum() or character == "_" else " " for character in formula)
    return set(spaced.split())


def assembled(scenario: Scenario, parameters: Parameters, version: str, answer: Answer) -> Estimate:
    """The method's answer as an :class:`Estimate`: one moment, its total, on one device.

    The range is the total itself, since a rule of thumb has none.
    """
    components = tuple(_component(key, answer) for key in COMPONENTS)
    total = sum(node.bytes for node in components)
    moment = Moment(
        key="total",
        label=Message(QT_TRANSLATE_NOOP("messages", "The method's total")),
        phase="total",
        bytes=total,
        components={node.key: node.bytes for node in components},
    )
    return Estimate(
        scenario=scenario,
        method=scenario.method,
        version=version,
        parameters=parameters,
        components=components,
        peak_bytes=total,
        peak_moment=moment,
        low_bytes=total,
        high_bytes=total,
        allocated_bytes=total,
        reserved_bytes=total,
        timeline=(moment,),
        ranks=(Rank("0", total),),
        verdict=_verdict(total, scenario.device.memory_bytes),
        assumptions=(*(omission.message for omission in answer.omissions), *answer.remarks),
        extra=answer.extra,
    )


def _component(key: str, answer: Answer) -> Node:
    node = answer.nodes.get(key)
    if node is not None:
        return node
    said = tuple(omission.message for omission in answer.omissions if omission.component == key)
    text = QT_TRANSLATE_NOOP("estimator", "The method does not count this.")
    return leaf(key, COMPONENTS[key], "0", {}, 0, answer.source, text, said)


def _verdict(total: int, capacity: int) -> Verdict:
    args: dict[str, Any] = {"total": total, "capacity": capacity, "gap": abs(capacity - total)}
    if total <= capacity:
        kind = "fits"
        text = QT_TRANSLATE_NOOP(
            "messages", "By this rule of thumb {total} bytes are needed; {gap} of {capacity} stay free."
        )
    else:
        kind = "does_not_fit"
        text = QT_TRANSLATE_NOOP(
            "messages",
            "By this rule of thumb {total} bytes are needed; {gap} more than the {capacity} there are.",
        )
    return Verdict(kind, capacity, capacity - total, Message(text, args))
