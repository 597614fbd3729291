"""The questions that the window asks of every scenario, each once, whoever wants the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from memgui.catalog import Catalog
from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.questions import REST_MS, Question
from memgui.spec import Message, Scenario

if TYPE_CHECKING:
    from memgui.planning.ask import Asker
    from memgui.planning.compare import Column
    from memgui.planning.ladder import Rung
    from memgui.planning.reach import Reach
    from memgui.planning.serving import Limits
    from memgui.planning.ways import Ways


class Answers(QObject):
    """What is known of the open scenario beyond its estimate.  The quick questions are put first.

    ``ladder`` answers with its rungs, ``reach`` with how far the set-up goes, ``serving`` with the same of
    one that serves, ``played`` with what the allocator makes of a run, ``ways`` with the ways to fit,
    ``methods`` and ``devices`` with columns to compare, the present one first.
    """

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        catalog: Catalog,
        rest_ms: int = REST_MS,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._catalog = catalog
        self.ladder = Question("ladder", self._ladder, document, jobs, rest_ms, self)
        self.reach = Question("reach", self._reach, document, jobs, rest_ms, self)
        self.serving = Question("serving", self._serving, document, jobs, rest_ms, self)
        self.played = Question("played", self._played, document, jobs, rest_ms, self)
        self.methods = Question("methods", self._methods, document, jobs, rest_ms, self)
        self.devices = Question("devices", self._devices, document, jobs, rest_ms, self)
        self.ways = Question("ways", self._ways, document, jobs, rest_ms, self)

    # These run in another thread; the imports wait for the first question.

    def _ladder(self, scenario: Scenario, ask: Asker) -> tuple[Rung, ...]:
        from memgui.planning.ladder import climbed

        return climbed(scenario, ask)

    def _reach(self, scenario: Scenario, ask: Asker) -> Reach:
        from memgui.planning.devices import of_a_sort
        from memgui.planning.reach import reach

        entries = of_a_sort(self._catalog.devices, scenario)
        return reach(scenario, [entry.device() for entry in entries], ask)

    def _serving(self, scenario: Scenario, ask: Asker) -> Limits | None:
        from memgui.planning.serving import limits

        return limits(scenario, ask)

    def _played(self, scenario: Scenario, ask: Asker) -> Message | None:
        from memgui.planning.played import played

        return played(scenario)

    def _methods(self, scenario: Scenario, ask: Asker) -> tuple[Column, ...]:
        from memgui.planning.compare import by_method

        return by_method(scenario, ask)

    def _devices(self, scenario: Scenario, ask: Asker) -> tuple[Column, ...]:
        from memgui.planning.compare import by_device
        from memgui.planning.devices import a_few

        return by_device(scenario, a_few(self._catalog.devices, scenario), ask)

    def _ways(self, scenario: Scenario, ask: Asker) -> Ways:
        from memgui.planning.devices import of_a_sort
        from memgui.planning.ways import ways_to_fit

        return ways_to_fit(scenario, of_a_sort(self._catalog.devices, scenario), ask)
