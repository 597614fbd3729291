"""Whether each of the person's presets fits: worked out aside, told when known."""

from __future__ import annotations

import logging

from PySide6.QtCore import QObject, Signal

from memgui.document.document import Document
from memgui.document.jobs import Job, Jobs
from memgui.document.library import Library
from memgui.presets.entries import Entry

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
        entries = {
            (entry.key, entry.digest): entry for entry in self._library.presets() if entry.kind == "scenario"
        }
        self._known = {mark: kind for mark, kind in self._known.items() if mark in entries}
        new = {mark: entry for mark, entry in entries.items() if mark not in self._known}
        if new:
            self._jobs.run("verdicts", lambda job: self._work(job, new), self._learn)
        elif entries:
            self._tell()

    def _work(self, job: Job, entries: dict[tuple[str, str], Entry]) -> dict[tuple[str, str], str]:
        """Read presets and compute them, in another thread: a millisecond each for the reading alone."""
        kinds = {}
        for mark, entry in entries.items():
            job.check()
            scenario = self._library.scenario_of(entry)
            if scenario is None:
                continue
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
