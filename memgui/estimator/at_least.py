"""What a scenario needs at the least, known before its peak is looked for."""

from __future__ import annotations

from memgui.estimator.coverage import NotCovered, require_covered_run
from memgui.estimator.engines import account_of
from memgui.estimator.estimate import run_of
from memgui.estimator.options import capability
from memgui.estimator.overhead import context, cublas_workspace
from memgui.estimator.run import Floor, Run
from memgui.estimator.stages import is_spread
from memgui.estimator.training_ranks import is_split, stage_runs
from memgui.spec.scenario import Scenario


def at_least(scenario: Scenario) -> int:
    """No more than ``estimate(scenario).low_bytes``: what lies still and the optimizer's step, mostly.

    With a device of so many bytes the verdict is ``does_not_fit``.  0 where nothing is known that soon, or
    nothing can be computed.
    """
    return max((sum(floor.values()) for floor in floors(scenario)), default=0)


def floors(scenario: Scenario) -> tuple[Floor, ...]:
    """The same for some moments of the scenario, by component; nothing where nothing is known that soon.

    Of a training step: as the optimizer steps, and as the backward pass begins.
    """
    serving = scenario.task == "inference"
    if scenario.method != "detailed" or (serving and account_of(scenario.inference.engine)):
        return ()
    if is_spread(scenario):
        return ()
    try:
        found = [run.floors() for run in _runs(scenario)]
    except NotCovered:
        return ()
    chip = capability(scenario.device.compute_capability)
    beside = cublas_workspace(chip, training=not serving) + context(chip).low
    least = min(found, key=lambda moments: max(sum(one.values()) for one in moments))
    return tuple({**moment, "overhead": beside} for moment in least)


def _runs(scenario: Scenario) -> list[Run]:
    if is_split(scenario):
        require_covered_run(scenario)
        return [run for _, run in stage_runs(scenario)]
    return [run_of(scenario)]
