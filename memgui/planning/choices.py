"""Which choices of a field cannot be taken as things stand, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memgui.estimator.coverage import require_covered
from memgui.estimator.estimate import estimate
from memgui.estimator.refusals import NotCovered
from memgui.estimator.run_coverage import require_covered_run
from memgui.spec import Scenario, ScenarioError, get, replace
from memgui.spec.fields import Field, Kind
from memgui.spec.messages import Message
from memgui.spec.validate import validate

_LAID_OUT = ("training.method", "inference.engine")
"""Whether a method finds anything to train, and an engine the model, only they can say themselves."""


def refused(scenario: Scenario, field: Field) -> Mapping[object, Message]:
    """The choices of ``field`` that ``scenario`` cannot have, each with the reason.

    Reasons that stand against the scenario as it is are no choice's fault; the present choice is none.
    A flag's choices are on and off.
    """
    present = get(scenario, field.path)
    reasons = _all_reasons if field.path in _LAID_OUT else _reasons
    standing = {message.template for message in reasons(scenario)}
    found: dict[object, Message] = {}
    for value in (False, True) if field.kind is Kind.FLAG else (choice.value for choice in field.choices):
        if value == present:
            continue
        try:
            other = replace(scenario, field.path, value)
        except ScenarioError:
            continue
        new = (message for message in reasons(other) if message.template not in standing)
        reason = next(new, None)
        if reason is not None:
            found[value] = reason
    return found


def can_be_computed(scenario: Scenario) -> bool:
    """Whether nothing is known to keep ``scenario`` from being computed, which takes microseconds to say."""
    return next(_reasons(scenario), None) is None


def _reasons(scenario: Scenario) -> Iterator[Message]:
    """What keeps a scenario from being computed: its errors, else what nothing models."""
    errors = [issue.message for issue in validate(scenario) if issue.severity == "error"]
    yield from errors
    if errors or scenario.method != "detailed":
        return
    serves = scenario.task != "training" and scenario.inference.engine not in ("transformers", "gpt-fast")
    try:
        require_covered(scenario.model)
        if not serves:  # engines say themselves what they cannot do, when they are asked
            require_covered_run(scenario)
    except NotCovered as fault:
        yield fault.message


def _all_reasons(scenario: Scenario) -> Iterator[Message]:
    """The same, with what is known only when the model is laid out, which takes some milliseconds."""
    known = list(_reasons(scenario))
    yield from known
    found = estimate(scenario) if not known else None
    if found is not None and found.verdict.kind == "unknown":
        yield found.verdict.reason
