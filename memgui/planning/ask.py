"""Questions put to the estimator one scenario at a time.  Every tool of this floor asks through here.

Nothing here or above knows a formula: what fits is what ``memgui.estimator.estimate`` says of a
scenario that ``memgui.spec.validate`` finds no error in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from memgui.estimator import Draft
from memgui.estimator import estimate as _estimate
from memgui.estimator.result import Estimate
from memgui.spec import Issue, Scenario, fault_issue
from memgui.spec.validate import validate

Estimator = Callable[[Scenario], Estimate]
T = TypeVar("T")
Floors = tuple[Mapping[str, int], ...]
"""Bytes by component that are there at some moments, at the least."""
Check = Callable[[], None]
"""Called between estimates; raises whatever its owner likes where the answer is no longer wanted
(``memgui.document.jobs.Job.check`` is one).  The exception passes through every tool here."""


def go_on() -> None:
    """The check of work that nobody takes back."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking about ``scenario``: an estimate, or the issue that forbids one."""

    scenario: Scenario
    estimate: Estimate | None
    issue: Issue | None = None

    @property
    def fits(self) -> bool:
        """See :func:`fits`; false where nothing can be computed."""
        return self.estimate is not None and fits(self.estimate)

    @property
    def kind(self) -> str:
        """Verdict: ``fits``, ``tight``, ``does_not_fit``, ``unknown``."""
        return "unknown" if self.estimate is None else self.estimate.verdict.kind


def fits(estimate: Estimate) -> bool:
    """Whether the expected peak is within the limit: the verdict is ``fits``, or ``tight`` with room left.

    This is the line that "largest that fits", crossings and the heat map's boundary stand on.  The
    usual peak is compared, not the range's high end: ``tight`` on this side of the line still says
    that it may not be enough.
    """
    verdict = estimate.verdict
    return verdict.kind == "fits" or (verdict.kind == "tight" and verdict.headroom_bytes >= 0)


def surely_fits(estimate: Estimate) -> bool:
    """Whether the whole range is within the limit: what a proposed change should reach."""
    return estimate.verdict.kind == "fits"


Within = Callable[[Estimate], bool]
"""Which estimates count as fitting."""


REMEMBERED = 128
"""So many answers are kept: each holds its run, and who asks again asks soon."""


class Asker:
    """Asks the estimator, and keeps the answers where ``remember`` is set.

    Args:
        check: called before each estimate (see :data:`Check`).
        estimate: what is asked.
        remember: whether asking again about an equal scenario gives the kept answer, while it is one of
            the last :data:`REMEMBERED`.
        fault: told of an exception of the estimator; a set-up that it cannot compute then hides no other.
            Without it the exception is raised.
    """

    def __init__(
        self,
        check: Check = go_on,
        estimate: Estimator = _estimate,
        *,
        remember: bool = False,
        fault: Callable[[Exception], None] | None = None,
    ) -> None:
        self.check = check
        self.calls = 0
        self._estimate = estimate
        self._fault = fault
        self._backward = False
        self._draft: Draft | None = None
        self._drafts: dict[Scenario, Draft] = {}
        self._forbidden: dict[Scenario, Issue] = {}
        self._floors: dict[Scenario, Floors] = {}
        self._least: dict[Scenario, tuple[int, bool]] = {}
        self._kept: dict[Scenario, Answer] | None = {} if remember else None

    def __call__(self, scenario: Scenario) -> Answer:
        """The answer about ``scenario``; raises what ``check`` does, and faults that nobody is told of."""
        if self._kept is None:
            return self._ask(scenario)
        kept = self._kept.pop(scenario, None)
        if kept is None:
            kept = self._ask(scenario)
            self._keep_draft(scenario)
        self._kept[scenario] = kept
        if len(self._kept) > REMEMBERED:
            del self._kept[next(iter(self._kept))]
        return kept

    def _keep_draft(self, scenario: Scenario) -> None:
        """Keep how the answer about ``scenario`` begins, for who compares it with others."""
        if self._kept is not None and self._draft is not None and self._draft.scenario == scenario:
            self._drafts[scenario] = self._draft
            if len(self._drafts) > REMEMBERED:
                del self._drafts[next(iter(self._drafts))]

    def lacks(self, scenario: Scenario) -> int | None:
        """Bytes that ``scenario`` lacks for sure, without an estimate; ``None`` where it may fit.

        An estimate of one that lacks something says ``does_not_fit``.
        """
        if self._kept is not None and scenario in self._kept:
            return None
        limit = scenario.device.memory_bytes
        least = self.least(scenario, limit)
        return least - limit if least >= limit else None

    def needs(self, scenario: Scenario, peak: int) -> bool:
        """Whether ``scenario`` does not fit for sure and its peak is ``peak``, told without an estimate."""
        if self._kept is None or scenario in self._kept:
            return False
        limit = scenario.device.memory_bytes
        found = self.least(scenario, limit) >= limit
        draft = self._drafted(scenario) if found else None
        self._keep_draft(scenario)
        return draft is not None and self._known(lambda: draft.peaks_at(peak), False)

    def misses(self, scenario: Scenario) -> int:
        """Bytes that the peak of ``scenario`` is above its limit at the least, as far as is soon known."""
        draft = self._drafted(scenario)
        self._keep_draft(scenario)
        known = 0 if draft is None else self._known(lambda: draft.first_peak, 0)
        return known - scenario.device.memory_bytes

    def least(self, scenario: Scenario, limit: int) -> int:
        """Bytes that ``scenario`` needs for sure, without an estimate: no more than its range begins with.

        It is looked at no further than shows that these are ``limit``.
        """
        least, whole = self._least.get(scenario, (0, False))
        if not least:
            least = max([sum(floor.values()) for floor in self.floors(scenario)], default=0)
            whole = not least
        if least < limit and not whole:
            draft = self._drafted(scenario)
            if draft is not None:
                least = max(least, self._known(lambda: draft.at_least(limit), 0))
            whole = least < limit
        if self._kept is not None:
            self._least[scenario] = least, whole
        return least

    def floors(self, scenario: Scenario) -> Floors:
        """What ``scenario`` needs at the least at some moments; nothing where that is not known."""
        found = self._floors.get(scenario)
        if found is None:
            draft = self._drafted(scenario)
            found = () if draft is None else self._known(lambda: draft.floors, Floors())
            if self._kept is not None:
                self._floors[scenario] = found
        return found

    def begin_with_the_fullest(self, scenario: Scenario) -> None:
        """From now on look first at that end of a pipeline at which ``scenario`` is the fullest."""
        found = self(scenario).estimate
        peaks = [rank.peak_bytes for rank in found.ranks] if found is not None else []
        backward = bool(peaks) and 2 * peaks.index(max(peaks)) >= len(peaks) > 1
        if backward != self._backward:
            self._backward, self._draft = backward, None
            for known in (self._drafts, self._floors, self._least):
                known.clear()

    def peak(self, scenario: Scenario) -> Mapping[str, int] | None:
        """Bytes by component at the peak of ``scenario``, where its answer is kept."""
        kept = None if self._kept is None else self._kept.get(scenario)
        return None if kept is None or kept.estimate is None else kept.estimate.peak_moment.components

    def walks_alike(self, one: Scenario, other: Scenario) -> bool:
        """Whether both compute the same, and only what lies beside differs; known of kept answers."""
        drafts = self._drafts.get(one), self._drafts.get(other)
        return drafts[0] is not None and drafts[1] is not None and drafts[0].walks_as(drafts[1])

    def _known(self, find: Callable[[], T], nothing: T) -> T:
        """What is known before an estimate; ``nothing`` where finding it fails, and somebody is told."""
        try:
            return find()
        except Exception as error:
            if self._fault is None:
                raise
            self._fault(error)
            return nothing

    def _drafted(self, scenario: Scenario) -> Draft | None:
        """What an estimate of ``scenario`` begins with; ``None`` where it is forbidden or asked of a fake."""
        if self._begun(scenario) is None and self._estimate is _estimate and self.forbids(scenario) is None:
            self._draft = Draft(scenario, backward=self._backward)
        return self._draft

    def _begun(self, scenario: Scenario) -> Draft | None:
        """The draft of ``scenario`` where there is one."""
        if self._draft is None or self._draft.scenario != scenario:
            self._draft = self._drafts.get(scenario)
        return self._draft

    def forbids(self, scenario: Scenario) -> Issue | None:
        """The first error that validation finds in ``scenario``, without an estimate."""
        self.check()
        found = self._forbidden.get(scenario)
        if found is None:
            found = next((issue for issue in validate(scenario) if issue.severity == "error"), None)
            if found is not None and self._kept is not None:
                self._forbidden[scenario] = found
        return found

    def _ask(self, scenario: Scenario) -> Answer:
        draft = self._begun(scenario)
        if draft is not None:
            self.check()
        else:
            issue = self.forbids(scenario)
            if issue is not None:
                return Answer(scenario, None, issue)
            real = self._estimate is _estimate
            draft = self._draft = Draft(scenario, backward=self._backward) if real else None
        self.calls += 1
        try:
            found = self._estimate(scenario) if draft is None else draft.estimate()
        except Exception as error:
            if self._fault is None:
                raise
            self._fault(error)
            return Answer(scenario, None, fault_issue(error))
        if found.verdict.kind == "unknown":
            said = next((one for one in found.issues if one.severity == "error"), None)
            return Answer(scenario, None, said or Issue("error", "unknown", (), found.verdict.reason))
        return Answer(scenario, found)
