"""How far a set-up that fits goes: longer sequences, more of them, a smaller device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memgui.planning.ask import Answer, Asker
from memgui.planning.changes import Change, apply, change
from memgui.planning.devices import OnDevice, smallest_device
from memgui.planning.ladder import length_path
from memgui.planning.solve import solve
from memgui.spec import Device, Scenario
from memgui.spec.fields import BY_PATH


@dataclass(frozen=True, slots=True)
class Furthest:
    """The largest value of a field that fits, and what it needs.

    ``next`` is the value after it, which needs too much; ``None`` where something else is the end:
    ``is_model_limit`` says that it is the longest sequence the model was made for.  ``may_fit`` says
    that the likely range at ``next`` begins below the limit.
    """

    change: Change
    answer: Answer
    next: int | None = None
    is_model_limit: bool = False
    may_fit: bool = False

    @property
    def value(self) -> int:
        """The largest value."""
        found: int = self.change.new
        return found


@dataclass(frozen=True, slots=True)
class Reach:
    """How far length and batch go, all else as it is, and the smallest device that is enough.

    ``None`` where not even the least value fits, or no device.
    """

    length: Furthest | None
    batch: Furthest | None
    device: OnDevice | None


def batch_path(scenario: Scenario) -> str:
    """The field that takes more sequences at once."""
    return "training.micro_batch_size" if scenario.task == "training" else "inference.batch_size"


def reach(scenario: Scenario, devices: Iterable[Device], ask: Asker | None = None) -> Reach:
    """How far ``scenario`` goes; a sequence no further than the model's longest, or the present one."""
    ask = Asker() if ask is None else ask
    return Reach(
        _length(scenario, ask),
        _furthest(scenario, batch_path(scenario), ask),
        smallest_device(scenario, devices, ask),
    )


def _furthest(scenario: Scenario, path: str, ask: Asker) -> Furthest | None:
    if not BY_PATH[path].applies(scenario):
        return None
    found = solve(scenario, path, ask)
    if found.at_largest is None:
        return None
    after = found.next_estimate
    may_fit = after is not None and after.verdict.kind == "tight"
    return Furthest(change(scenario, path, found.largest), found.at_largest, found.next, may_fit=may_fit)


def _length(scenario: Scenario, ask: Asker) -> Furthest | None:
    found = _furthest(scenario, length_path(scenario), ask)
    limit = scenario.model.max_position_embeddings
    if found is None or not limit:
        return found
    most = max(found.change.old, limit - (scenario.inference.generated_tokens if _serves(scenario) else 0))
    if found.value <= most:
        return found
    one = change(scenario, found.change.path, most)
    return Furthest(one, ask(apply(scenario, (one,))), is_model_limit=most != found.change.old)


def _serves(scenario: Scenario) -> bool:
    return scenario.task == "inference"
