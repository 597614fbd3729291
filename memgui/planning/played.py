"""What PyTorch's allocator makes of a run, in a sentence: tens of milliseconds, so nobody waits for it."""

from __future__ import annotations

from memgui.estimator.settled import simulation
from memgui.spec import Scenario
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message


def played(scenario: Scenario) -> Message | None:
    """What the run of a step allocates and reserves, where one device holds it and it can be played."""
    if scenario.device.count > 1 or scenario.method != "detailed":
        return None
    found = simulation(scenario)
    if found is None:
        return None
    text = QT_TRANSLATE_NOOP(
        "messages",
        "Played tensor by tensor on PyTorch's allocator, the run allocates {allocated} bytes and "
        "reserves {reserved}.",
    )
    return Message(text, {"allocated": found.allocated, "reserved": found.reserved})
