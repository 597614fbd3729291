"""How far the fields at hand can go: the largest value that fits, worked out aside when the person rests."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from memgui.document.document import Document
from memgui.document.jobs import Cancelled, Job, Jobs
from memgui.document.result import Result
from memgui.planning.ask import Asker
from memgui.planning.solve import Bound, solve
from memgui.spec import Scenario, ScenarioError, replace
from memgui.spec.fields import BY_PATH

log = logging.getLogger(__name__)

PATHS = (
    "training.micro_batch_size",
    "training.sequence_length",
    "training.lora.rank",
    "training.virtual_tokens",
    "inference.batch_size",
    "inference.prompt_tokens",
    "inference.decoder_prompt_tokens",
    "inference.generated_tokens",
)
REST_MS = 400


class Limit(msgspec.Struct, frozen=True):
    """``largest`` is the largest value that fits: ``None`` where not even the least one does."""

    largest: int | None


class Limits(QObject):
    """Follows the document's results.

    A field's limit does not depend on its own value, so it stays while only that field is turned; all
    others are unknown until they have been worked out again.
    """

    changed = Signal(object)
    """The limits known now: :class:`Limit` by path; a field bound by nothing has none."""

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._estimate = document.estimator
        self._jobs = jobs
        self._known: dict[str, tuple[Scenario, Limit | None]] = {}
        self._shown: Mapping[str, Limit] = {}
        self._result: Result | None = None
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._begin)
        document.result.connect(self.set_result)
        self.destroyed.connect(lambda: jobs.cancel("limits"))
        if document.last_result.generation:
            self.set_result(document.last_result)

    def set_result(self, result: Result) -> None:
        """Keep what still holds, and look for the rest after a rest."""
        self._result = result
        self._jobs.cancel("limits")
        bases = self._bases(result)
        self._known = {path: known for path, known in self._known.items() if known[0] == bases.get(path)}
        self._tell()
        if len(self._known) < len(bases):
            self._rest.start()
        else:
            self._rest.stop()

    def _bases(self, result: Result) -> dict[str, Scenario]:
        """The scenario of each field that applies, without that field's own value."""
        scenario = result.scenario
        if result.estimate is None:
            return {}
        applying = [path for path in PATHS if BY_PATH[path].applies(scenario)]
        return {path: replace(scenario, path, 1) for path in applying}

    def _begin(self) -> None:
        if self._result is None:
            return
        wanted = {path: base for path, base in self._bases(self._result).items() if path not in self._known}
        self._jobs.run("limits", lambda job: self._work(job, wanted), self._learn)

    def _work(self, job: Job, wanted: dict[str, Scenario]) -> dict[str, tuple[Scenario, Limit | None]]:
        found: dict[str, tuple[Scenario, Limit | None]] = {}
        for path, base in wanted.items():
            try:
                solution = solve(base, path, Asker(job.check, self._estimate))
            except ScenarioError as error:
                log.info("no limit of %s: %s", path, error)
                continue
            except Cancelled:
                raise
            except Exception:  # the slider goes without its mark, and all else goes on
                log.exception("no limit of %s", path)
                continue
            bound = solution.bound is Bound.MEMORY
            found[path] = (base, Limit(solution.largest) if bound else None)
        return found

    def _learn(self, found: dict[str, tuple[Scenario, Limit | None]]) -> None:
        self._known |= found
        self._tell()

    def _tell(self) -> None:
        now = {path: limit for path, (_, limit) in self._known.items() if limit is not None}
        if now != self._shown:
            self._shown = now
            self.changed.emit(now)
