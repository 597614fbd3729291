"""What a scenario needs at the least, known before all of its estimate is made."""

from __future__ import annotations

from collections.abc import Iterable

from memgui.estimator.coverage import NotCovered, require_covered_run
from memgui.estimator.engines import account_of
from memgui.estimator.estimate import Assembly, estimate, of_stages, run_of, unknown
from memgui.estimator.once import once
from memgui.estimator.options import capability
from memgui.estimator.overhead import context, cublas_workspace
from memgui.estimator.result import Estimate
from memgui.estimator.run import Floor, Run
from memgui.estimator.stages import is_spread
from memgui.estimator.training_ranks import is_split, stage_runs
from memgui.spec.messages import Message
from memgui.spec.scenario import Scenario


class Draft:
    """A scenario's estimate, step by step: each says more than the one before it and takes longer."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._refusal: Message | None = None

    @once
    def floors(self) -> tuple[Floor, ...]:
        """Bytes by component at some moments, at the least; nothing where nothing is known that soon.

        Of a training step: as the optimizer steps, and as the backward pass begins.
        """
        found = [run.floors() for run in self._different]
        least = min(found, key=lambda moments: max(sum(one.values()) for one in moments), default=())
        return tuple({**moment, "overhead": self._beside} for moment in least)

    def walks_as(self, other: Draft) -> bool:
        """Whether a training step does the same on tensors as large, and only what lies beside differs."""
        pairs = zip(self._runs, other._runs, strict=False)
        return bool(self._runs) and all(one.walks_as(another) for (_, one), (_, another) in pairs)

    @once
    def at_least(self) -> int:
        """No more than the estimate's ``low_bytes``: all but what the allocator adds to tensors.

        0 where nothing is known that soon.
        """
        return min((run.most() + self._beside for run in self._different), default=0)

    def estimate(self) -> Estimate:
        """The answer."""
        if not self._runs:
            return estimate(self.scenario) if self._refusal is None else unknown(self.scenario, self._refusal)
        if is_split(self.scenario):
            return of_stages(self.scenario, self._runs)
        return Assembly(self.scenario, self._runs[0][1]).estimate()

    @once
    def _runs(self) -> list[tuple[str, Run]]:
        """What each stage runs; nothing of what is as soon estimated, and where nothing can be computed."""
        scenario = self.scenario
        serving = scenario.task == "inference"
        if scenario.method != "detailed" or (serving and account_of(scenario.inference.engine)):
            return []
        if is_spread(scenario):
            return []
        try:
            if not is_split(scenario):
                return [("0", run_of(scenario))]
            require_covered_run(scenario)
            return [*stage_runs(scenario)]
        except NotCovered as fault:
            self._refusal = fault.message
            return []

    @property
    def _different(self) -> Iterable[Run]:
        """The runs; of stages that are alike, one."""
        return dict.fromkeys(run for _, run in self._runs)

    @property
    def _beside(self) -> int:
        """Bytes beside the tensors."""
        chip = capability(self.scenario.device.compute_capability)
        return cublas_workspace(chip, training=self.scenario.task == "training") + context(chip).low


def at_least(scenario: Scenario) -> int:
    """No more than ``estimate(scenario).low_bytes``.

    With a device of so many bytes the verdict is ``does_not_fit``.  0 where nothing is known that soon, or
    nothing can be computed.
    """
    return Draft(scenario).at_least
