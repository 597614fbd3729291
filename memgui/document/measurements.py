"""What real runs of the open set-up used, and what could explain the difference; kept with its preset."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec
from PySide6.QtCore import QObject, Signal

from memgui.catalog import Catalog
from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.questions import REST_MS, Question
from memgui.planning.ask import Asker
from memgui.planning.measured import (
    Counter,
    Explanation,
    Measurement,
    explain,
    from_plain,
    parse,
    subject,
    to_plain,
    typed,
)
from memgui.spec import Scenario, ScenarioError

log = logging.getLogger(__name__)

MOST = 64
"""More runs than this are not kept; nobody reads them."""


class Measurements(QObject):
    """Each change is one undo step.  ``explained`` is asked for while somebody wants it."""

    changed = Signal()

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        catalog: Catalog,
        rest_ms: int = REST_MS,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._catalog = catalog
        self._plain: object = None
        self._all: tuple[Measurement, ...] = ()
        self.explained = Question("explained", self._explain, document, jobs, rest_ms, self)
        document.changed.connect(self._look)
        self._look()

    @property
    def all(self) -> tuple[Measurement, ...]:
        """Every run, the oldest first."""
        return self._all

    def enter(self, text: str, counter: Counter, step: str) -> None:
        """Keep a typed figure; raises :class:`ScenarioError` where it is none."""
        self._add((typed(text, counter),), step)

    def read(self, text: str, step: str) -> int:
        """Keep what a pasted text holds, and how many runs that were; raises :class:`ScenarioError`."""
        found = parse(text)
        self._add(found, step)
        return len(found)

    def remove(self, index: int, step: str) -> None:
        """Forget a run."""
        self._keep((*self._all[:index], *self._all[index + 1 :]), step)

    def _add(self, runs: Iterable[Measurement], step: str) -> None:
        of = subject(self._document.scenario)
        self._keep((*self._all, *(msgspec.structs.replace(run, of=of) for run in runs)), step)

    def _keep(self, runs: Iterable[Measurement], step: str) -> None:
        kept = tuple(runs)[-MOST:]
        self._document.measure(to_plain(kept) if kept else {}, step)

    def _look(self) -> None:
        plain = self._document.state.measured
        if plain is self._plain:
            return
        self._plain = plain
        try:
            self._all = from_plain(plain)
        except ScenarioError as error:  # a preset may come from a stranger
            log.warning("what was measured is not shown: %s", error)
            self._all = ()
        self.changed.emit()
        self.explained.ask_again()

    def _explain(self, scenario: Scenario, ask: Asker) -> tuple[tuple[Explanation, ...], ...]:
        """For each run what could explain its difference; this runs in another thread."""
        estimate = ask(scenario).estimate
        if estimate is None:
            return ()
        return tuple(explain(run, estimate, ask, self._catalog.devices) for run in self._all)
