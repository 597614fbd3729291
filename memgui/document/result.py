"""What every view is given after a change: one scenario, judged and estimated."""

from __future__ import annotations

import msgspec

from memgui.estimator.result import Estimate
from memgui.spec import NO_REPORT, ImportReport, Issue, Scenario


class Result(msgspec.Struct, frozen=True):
    """The answer for ``scenario``; views keep nothing else.

    ``estimate`` is ``None`` where the scenario cannot be computed; then ``last_good`` is what the
    person still sees, dimmed.  ``issues`` stand errors first and include the estimate's own.
    ``generation`` grows with every result, so that late answers of background jobs can be dropped.
    """

    scenario: Scenario
    estimate: Estimate | None
    issues: tuple[Issue, ...] = ()
    generation: int = 0
    last_good: Estimate | None = None
    """The newest estimate there is: ``estimate`` itself, or the one before it was lost."""
    report: ImportReport = NO_REPORT
    """What became of the file that the model was read from."""

    @property
    def stale(self) -> bool:
        """Whether the picture shows an earlier scenario because this one cannot be computed."""
        return self.estimate is None

    @property
    def shown(self) -> Estimate | None:
        """What to draw (dimmed where :attr:`stale`); ``None`` before anything could be computed."""
        return self.estimate if self.estimate is not None else self.last_good

    @property
    def reason(self) -> Issue | None:
        """Why there is no estimate: the first error, if there is one."""
        return next((issue for issue in self.issues if issue.severity == "error"), None)
