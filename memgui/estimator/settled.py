"""An estimate gone over once more: what PyTorch's allocator makes of the run, played tensor by tensor.

``estimate`` answers at every keystroke and knows blocks from sizes alone and what is reserved beside them as
a range.  ``settled`` plays the run on the allocator (some tens of milliseconds): blocks counted as they
come, and segments as they are reserved, are those of that sequence.
"""

from __future__ import annotations

from typing import Final

import msgspec

from memgui.estimator.assembly import Assembly
from memgui.estimator.estimate import run_of
from memgui.estimator.moments import Amount
from memgui.estimator.options import capability
from memgui.estimator.overhead import Range
from memgui.estimator.result import Estimate
from memgui.estimator.simulation import Simulated, simulated
from memgui.estimator.training import TrainingRun
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

LOW_SHARE: Final = 980
HIGH_SHARE: Final = 1080
"""Thousandths of the simulated segments that the range goes from and to.

The order of what lives for a moment inside an operator is known as far as Python's code shows it.  With
every tensor freed one allocation later the same runs reserve up to a tenth more, seldom less.
"""

MOST_LAYERS: Final = 512
"""Layers of a model that is played: twice what real ones have; a stranger's file may state 100,000."""

SIMULATION_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources",
    "The run played on PyTorch's caching allocator (its rules, and reserved memory measured on a Tesla T4)",
)


def simulation(scenario: Scenario, *, emptied: bool = False) -> Simulated | None:
    """The allocator's counters for a training run on one device; ``None`` where no run is played."""
    run = _run(scenario)
    if run is None:
        return None
    return simulated(run, capability(scenario.device.compute_capability), emptied=emptied)


def settled(estimate: Estimate, *, emptied: bool = False) -> Estimate:
    """The same estimate with the allocator's own figures; itself where no run is played.

    ``emptied``: the loop calls ``torch.cuda.empty_cache()`` before its fullest step.
    """
    if estimate.method != "detailed" or estimate.verdict.kind == "unknown":
        return estimate
    run = _run(estimate.scenario)
    if run is None:
        return estimate
    found = _Settled(estimate.scenario, run, emptied=emptied).estimate()
    return msgspec.structs.replace(found, ranks=estimate.ranks) if len(estimate.ranks) > 1 else found


def _run(scenario: Scenario) -> TrainingRun | None:
    """The fullest rank's run, where all that it holds is in its walk or in its account's plain lists."""
    if scenario.task != "training":
        return None
    if scenario.model.num_hidden_layers + scenario.model.num_encoder_layers > MOST_LAYERS:
        return None
    run = run_of(scenario)
    return run if isinstance(run, TrainingRun) and run.played else None


class _Settled(Assembly):
    """Puts the estimate together with the figures of a simulation."""

    def __init__(self, scenario: Scenario, run: TrainingRun, *, emptied: bool) -> None:
        super().__init__(scenario, run)
        self.simulated = simulated(run, self.chip, emptied=emptied)
        self._moving = max(self.whole.bytes - self.persistent, 1)
        counted = self.simulated.allocated - self.workspace - self.whole.bytes
        self._further = counted - super().excess(self.whole)
        self._unused = self.simulated.reserved - self.simulated.allocated

    def excess(self, amount: Amount) -> int:
        """What the simulation counts beyond sizes at the peak is shared out by what comes and goes."""
        return super().excess(amount) + self._share(self._further, amount)

    def fragmentation(self, amount: Amount) -> Range:
        unused = self._share(self._unused, amount)
        reserved = self._share(self.simulated.reserved, amount)
        low = max(unused - reserved * (1000 - LOW_SHARE) // 1000, 0)
        return Range(low, unused, unused + reserved * (HIGH_SHARE - 1000) // 1000, SIMULATION_SOURCE)

    def least(self, allocated: int, low: int) -> int:
        """Short of memory, PyTorch gives unused segments back and tries again."""
        return allocated + self.context.low

    def _share(self, size: int, amount: Amount) -> int:
        moving = min(max(amount.bytes - self.persistent, 0), self._moving)
        return size * moving // self._moving
