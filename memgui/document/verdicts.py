"""Whether each of the person's presets fits: worked out aside, told when known."""

from __future__ import annotations

import logging

from PySide6.QtCore import QObject, Signal

from memgui.document.document import Document
from memgui.document.jobs import Job, Jobs
from memgui.document.library import Library
from memgui.spec import Scenario

log = logging.getLogger(__name__)


class Verdicts(QObject):
    """Looks again when the list of presets changes; what was known of an unchanged preset is kept."""

    found = Signal(object)
    """Verdict kinds by the key of the preset."""

    def __init__(
        self, document: Document, library: Library, jobs: Jobs, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._estimate = document.estimator
        self._library = library
        self._jobs = jobs
        self._known: dict[tuple[str, str], str] = {}
        library.changed.connect(self.look)

    def look(self) -> None:
        """Work out what is not known yet."""
        scenarios = {
            (entry.key, entry.digest): entry for entry in self._library.presets() if entry.kind == "scenario"
        }
        self._known = {mark: kind for mark, kind in self._known.items() if mark in scenarios}
        new: dict[tuple[str, str], Scenario] = {}
        for mark, entry in scenarios.items():
            scenario = self._library.scenario_of(entry) if mark not in self._known else None
            if scenario is not None:
                new[mark] = scenario
        if new:
            self._jobs.run("verdicts", lambda job: self._work(job, new), self._learn)
        elif scenarios:
            self._tell()

    def _work(self, job: Job, scenarios: dict[tuple[str, str], Scenario]) -> dict[tuple[str, str], str]:
        kinds = {}
        for mark, scenario in scenarios.items():
            job.check()
            try:
                kinds[mark] = self._estimate(scenario).verdict.kind
            except Exception as error:  # one that cannot be computed hides no other
                log.info("the preset %s cannot be computed: %s", mark[0], error)
                kinds[mark] = "unknown"
        return kinds

    def _learn(self, kinds: dict[tuple[str, str], str]) -> None:
        self._known |= kinds
        self._tell()

    def _tell(self) -> None:
        self.found.emit({key: kind for (key, _), kind in self._known.items()})
