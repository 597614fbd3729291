"""What a scenario needs at the least, known before all of its estimate is made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from memgui.estimator.assembly import Assembly
from memgui.estimator.engines import account_of
from memgui.estimator.estimate import each_stage, estimate, of_stages, run_of, unknown
from memgui.estimator.once import once
from memgui.estimator.options import capability
from memgui.estimator.overhead import context, cublas_workspace
from memgui.estimator.refusals import NotCovered
from memgui.estimator.result import Estimate
from memgui.estimator.run import Floor, Run
from memgui.estimator.stages import is_spread
from memgui.estimator.training_ranks import is_split
from memgui.spec.scenario import Scenario


class Draft:
    """A scenario's estimate, step by step: each says more than the one before it and takes longer.

    Of a pipeline one stage is looked at before others: the first, or the last (``backward``).
    """

    def __init__(self, scenario: Scenario, *, backward: bool = False) -> None:
        self.scenario = scenario
        self._backward = backward
        self._refusal: NotCovered | None = None
        self._known: list[tuple[str, Run]] = []

    @once
    def floors(self) -> tuple[Floor, ...]:
        """Bytes by component at some moments, at the least; nothing where nothing is known that soon.

        Of a training step: as the optimizer steps, and as the backward pass begins.
        """
        for _, run in self._runs():
            return tuple({**moment, "overhead": self._beside} for moment in run.floors())
        return ()

    def walks_as(self, other: Draft) -> bool:
        """Whether a training step does the same on tensors as large, and only what lies beside differs."""
        pairs = zip(self._runs(), other._runs(), strict=False)
        return any(one.walks_as(another) for (_, one), (_, another) in islice(pairs, 1))  # others are alike

    def at_least(self, limit: int | None = None) -> int:
        """No more than the estimate's ``low_bytes``: all but what the allocator adds to tensors.

        No more stages are looked at than show that it reaches ``limit``.  0 where nothing is known that soon.
        """
        found = 0
        for _, run in self._runs():
            found = max(found, run.most() + self._beside)
            if limit is not None and found >= limit:
                break
        return found

    def peaks_at(self, limit: int) -> bool:
        """Whether the estimate's peak is ``limit`` bytes at the least; not told where little is known."""
        return any(Assembly(self.scenario, run).at_least() >= limit for _, run in self._runs())

    @once
    def first_peak(self) -> int:
        """No more than the peak's bytes, from one stage; 0 where little is known."""
        return next((Assembly(self.scenario, run).at_least() for _, run in self._runs()), 0)

    def estimate(self) -> Estimate:
        """The answer."""
        runs = [*self._runs()]
        if self._refusal is not None:
            return unknown(self.scenario, self._refusal.message, self._refusal.issues)
        if not runs:
            return estimate(self.scenario)
        if is_split(self.scenario):
            return of_stages(self.scenario, runs[::-1] if self._backward else runs)
        return Assembly(self.scenario, runs[0][1]).estimate()

    def _runs(self) -> Iterator[tuple[str, Run]]:
        """What each stage runs, made when it is first looked at."""
        at = 0
        while at < len(self._known) or self._goes_on():
            yield self._known[at]
            at += 1

    def _goes_on(self) -> bool:
        """Whether there is one more stage; its run is known then."""
        try:
            self._known.append(next(self._following))
        except StopIteration:
            return False
        except NotCovered as fault:
            self._refusal = fault
            return False
        except Exception:
            self._following = self._stages()  # so that it is met again
            self._known.clear()
            raise
        return True

    @once
    def _following(self) -> Iterator[tuple[str, Run]]:
        """The stages that nobody has looked at."""
        return self._stages()

    def _stages(self) -> Iterator[tuple[str, Run]]:
        """What each stage runs; nothing of what is as soon estimated."""
        scenario = self.scenario
        serving = scenario.task == "inference"
        if scenario.method != "detailed" or (serving and account_of(scenario.inference.engine)):
            return
        if is_spread(scenario):
            return
        if is_split(scenario):
            yield from each_stage(scenario, backward=self._backward)
        else:
            yield "0", run_of(scenario)

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
    return Draft(scenario).at_least()
