"""Which ways to spread a model over devices an engine has."""

from __future__ import annotations

from typing import Final

from memgui.estimator.coverage import NotCovered
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

DEGREES: Final = ("tensor", "pipeline", "context", "expert")


def require_layout(scenario: Scenario, *known: str) -> None:
    """Raise ``NotCovered`` where the scenario spreads its model in a way that is not ``known``."""
    split = scenario.parallelism
    for name in DEGREES:
        if name not in known and getattr(split, name) > 1:
            raise NotCovered(
                Message(
                    QT_TRANSLATE_NOOP("messages", "{path} = {value} is not modelled yet."),
                    {"path": f"parallelism.{name}", "value": str(getattr(split, name))},
                )
            )
