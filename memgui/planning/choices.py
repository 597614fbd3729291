"""Which choices of a field cannot be taken as things stand, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memgui.estimator.coverage import NotCovered, require_covered, require_covered_run
from memgui.spec import Scenario, ScenarioError, get, replace
from memgui.spec.fields import Field
from memgui.spec.messages import Message
from memgui.spec.validate import validate


def refused(scenario: Scenario, field: Field) -> Mapping[object, Message]:
    """The choices of ``field`` that ``scenario`` cannot have, each with the reason.

    Reasons that stand against the scenario as it is are no choice's fault; the present choice is none.
    """
    present = get(scenario, field.path)
    standing = {message.template for message in _reasons(scenario)}
    found: dict[object, Message] = {}
    for choice in field.choices:
        if choice.value == present:
            continue
        try:
            other = replace(scenario, field.path, choice.value)
        except ScenarioError:
            continue
        new = (message for message in _reasons(other) if message.template not in standing)
        reason = next(new, None)
        if reason is not None:
            found[choice.value] = reason
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
