"""An :class:`~memgui.estimator.result.Estimate` as the object that ``memgui estimate --json`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memgui.estimator.result import Estimate, Moment, Node
from memgui.planning.solve import Solution
from memgui.spec.fields import FIELDS, Field
from memgui.spec.messages import Issue, Message
from memgui.spec.scenario import Scenario, get, to_builtins


def estimate_object(
    estimate: Estimate,
    issues: Sequence[Issue] = (),
    assumptions: Iterable[Message] = (),
) -> dict[str, Any]:
    """The whole answer as plain dicts, lists, numbers and strings; sizes are bytes.

    Args:
        estimate: the answer.
        issues: what was found before the estimate was made (validation), errors first.
        assumptions: what was assumed before it and ignored (by an importer).
    """
    counted = estimate.parameters
    found = [*issues, *(issue for issue in estimate.issues if issue not in issues)]
    return {
        "scenario": to_builtins(estimate.scenario),
        "method": estimate.method,
        "version": estimate.version,
        "parameters": {
            "total": counted.total,
            "trainable": counted.trainable,
            "active": counted.active,
            "by_part": dict(counted.by_part),
        },
        "device": {
            "peak_bytes": estimate.peak_bytes,
            "peak_moment": estimate.peak_moment.label.text,
            "low_bytes": estimate.low_bytes,
            "high_bytes": estimate.high_bytes,
            "allocated_bytes": estimate.allocated_bytes,
            "reserved_bytes": estimate.reserved_bytes,
            "components": [node_object(node) for node in estimate.components],
        },
        "timeline": [moment_object(moment) for moment in estimate.timeline],
        "ranks": [{"rank": rank.rank, "peak_bytes": rank.peak_bytes} for rank in estimate.ranks],
        "verdict": {
            "kind": estimate.verdict.kind,
            "capacity_bytes": estimate.verdict.capacity_bytes,
            "headroom_bytes": estimate.verdict.headroom_bytes,
            "reason": estimate.verdict.reason.text,
        },
        "issues": [issue_object(issue) for issue in found],
        "assumptions": [message.text for message in (*assumptions, *estimate.assumptions)],
    }


def node_object(node: Node) -> dict[str, Any]:
    """A part of the breakdown with its derivation and its own parts."""
    derivation = node.derivation
    return {
        "key": node.key,
        "label": node.label,
        "bytes": node.bytes,
        "formula": derivation.formula,
        "values": {name: symbol.value for name, symbol in derivation.symbols.items()},
        "source": derivation.source,
        "children": [node_object(child) for child in node.children],
    }


def moment_object(moment: Moment) -> dict[str, Any]:
    """What is alive at one moment of the timeline."""
    return {
        "moment": moment.label.text,
        "bytes": moment.bytes,
        "components": dict(moment.components),
    }


def issue_object(issue: Issue) -> dict[str, Any]:
    """Something wrong or unusual, and the fields it is said of."""
    return {"severity": issue.severity, "paths": list(issue.paths), "text": issue.text}


def solution_object(solution: Solution) -> dict[str, Any]:
    """The largest value that fits, and the next (``memgui solve --json``); ``null`` where there is none."""
    return {
        "path": solution.path,
        "largest": solution.largest,
        "peak_bytes": solution.peak_bytes,
        "next": solution.next,
        "next_peak_bytes": solution.next_peak_bytes,
    }


def field_objects(defaults: Scenario) -> list[dict[str, Any]]:
    """Every field of a scenario (``memgui fields --json``); ``defaults`` gives the default values."""
    return [_field_object(field, get(defaults, field.path)) for field in FIELDS]


def _field_object(field: Field, default: Any) -> dict[str, Any]:
    return {
        "path": field.path,
        "type": field.kind.value,
        "label": field.label,
        "unit": field.unit,
        "minimum": field.minimum,
        "maximum": field.maximum,
        "usual_minimum": field.usual_minimum,
        "usual_maximum": field.usual_maximum,
        "choices": [choice.value for choice in field.choices],
        "open_choices": field.open_choices,
        "optional": field.optional,
        "default": list(default) if isinstance(default, tuple) else default,
        "section": field.section,
        "meaning": field.help,
    }
