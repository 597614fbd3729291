"""What is asked of each scenario in the background: ways to fit, how far it goes.

A :class:`Question` follows the document.  An edit takes back what is being worked out, a short rest
asks anew, and the answer there was stands until the next one does.  Nobody waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from memgui.document.document import Document
from memgui.document.jobs import Job, Jobs
from memgui.document.result import Result
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Scenario, ScenarioError, fault_issue

if TYPE_CHECKING:
    from memgui.planning.ask import Asker

log = logging.getLogger(__name__)

NO_ANSWER = QT_TRANSLATE_NOOP(
    "messages", "memgui has a fault and cannot show this ({error}); all else holds."
)
REST_MS = 150
"""A question is put after a rest this long: the picture is painted and its motion over by then."""


class Question(QObject):
    """One question, put while somebody wants its answer."""

    answered = Signal()
    """Another answer stands (``None`` where the scenario cannot be computed)."""

    def __init__(
        self,
        kind: str,
        work: Callable[[Scenario, Asker], Any],
        document: Document,
        jobs: Jobs,
        rest_ms: int = REST_MS,
        parent: QObject | None = None,
    ) -> None:
        """``work`` runs in another thread: it is given the scenario and whom to ask."""
        super().__init__(parent)
        self.kind = kind
        self._work = work
        self._document = document
        self._jobs = jobs
        self._wanted: set[str] = set()
        self._asked: Scenario | None = None
        self._scenario: Scenario | None = None
        self._answer: Any = None
        self._fault: Issue | None = None
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(rest_ms)
        self._rest.timeout.connect(self._put)
        document.changed.connect(self._changed)
        document.result.connect(self._follow)
        self.destroyed.connect(lambda: jobs.cancel(kind))

    @property
    def answer(self) -> Any:
        """The newest answer; ``None`` before the first one and where there is none."""
        return self._answer

    @property
    def fault(self) -> Issue | None:
        """Why there is no answer where a fault of ours, or a question that cannot be put, prevented it."""
        return self._fault

    @property
    def scenario(self) -> Scenario | None:
        """The scenario that :attr:`answer` is of."""
        return self._scenario

    @property
    def is_current(self) -> bool:
        """Whether the answer is that of the open scenario."""
        return self._scenario is not None and self._scenario == self._document.scenario

    def want(self, who: str, on: bool = True) -> None:
        """Have the question followed as long as anybody wants it."""
        if on == (who in self._wanted):
            return
        if on:
            self._wanted.add(who)
            self._follow(self._document.last_result)
        else:
            self._wanted.discard(who)
            if not self._wanted:
                self._take_back()

    def ask_again(self) -> None:
        """Something else is asked of the same scenario now."""
        self._scenario = None
        self._take_back()
        self._follow(self._document.last_result)

    def _changed(self) -> None:
        """Take back what is asked of another scenario; that of one which only got a name stands."""
        if self._document.last_result.scenario is not self._document.scenario:
            self._take_back()

    def _take_back(self) -> None:
        self._rest.stop()
        if self._asked is not None:
            self._asked = None
            self._jobs.cancel(self.kind)

    def _follow(self, result: Result) -> None:
        scenario = self._document.scenario
        if not self._wanted or not result.generation or result.scenario is not scenario:
            return
        if scenario not in (self._asked, self._scenario):
            self._rest.start()

    def _put(self) -> None:
        scenario = self._document.scenario
        if self._document.last_result.estimate is None:
            self._learn(scenario, None)
            return
        self._asked = scenario
        estimate, work = self._document.estimator, self._work
        faults: list[Exception] = []

        def run(job: Job) -> Any:
            from memgui.planning.ask import Asker  # here, so that no start waits for it

            return work(scenario, Asker(job.check, estimate, remember=True, fault=faults.append))

        self._jobs.run(self.kind, run, lambda answer: self._answered(scenario, answer, faults), self._failed)

    def _learn(self, scenario: Scenario, answer: Any, fault: Issue | None = None) -> None:
        self._asked, self._fault = None, fault
        self._scenario, self._answer = scenario, answer
        self.answered.emit()

    def _failed(self, error: Exception) -> None:
        log.error("%s: no answer about %s", self.kind, self._asked, exc_info=error)
        fault = error.issue if isinstance(error, ScenarioError) else fault_issue(error, NO_ANSWER)
        self._learn(self._asked or self._document.scenario, None, fault)

    def _answered(self, scenario: Scenario, answer: Any, faults: list[Exception]) -> None:
        """``faults`` are the estimator's: what it fails at hides no other."""
        for error in {f"{type(one).__name__}: {one}": one for one in faults}.values():
            log.error("%s: a set-up asked about cannot be computed", self.kind, exc_info=error)
        self._learn(scenario, answer)
