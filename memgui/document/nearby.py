"""What is on this machine: models that other programs keep, and its own GPUs.

Both are looked for when someone opens a list that offers them, aside, and never at the start.  Where there
is nothing, nothing is offered.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from memgui.document.jobs import Job, Jobs

if TYPE_CHECKING:
    from memgui.importers.local_models import LocalModel
    from memgui.presets.hardware import Gpu

MOST_MODELS = 500
"""Most models that are offered."""
STAYS_S = 5.0
"""An answer is good for so long; then the next who opens the list has it looked for anew."""


class Nearby(QObject):
    """``models_found`` and ``machine_found``: the answer is another one than before."""

    models_found = Signal()
    machine_found = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._asked: dict[str, float] = {}
        self.models: tuple[LocalModel, ...] = ()
        """In the folders of Hugging Face, Ollama and LM Studio, program by program."""
        self.gpus: tuple[Gpu, ...] = ()
        """As the NVIDIA driver names them."""

    def look_for_models(self) -> None:
        """Go through the programs' folders, aside."""
        if self._is_due("local models"):
            self._jobs.run("local models", _models, self._take_models, _drop)

    def look_at_machine(self) -> None:
        """Ask the driver, aside."""
        if self._is_due("this machine"):
            self._jobs.run("this machine", _gpus, self._take_gpus, _drop)

    def _is_due(self, kind: str) -> bool:
        now = time.monotonic()
        if self._jobs.is_running(kind) or now - self._asked.get(kind, -STAYS_S) < STAYS_S:
            return False
        self._asked[kind] = now
        return True

    def _take_models(self, found: tuple[LocalModel, ...]) -> None:
        if found != self.models:
            self.models = found
            self.models_found.emit()

    def _take_gpus(self, found: tuple[Gpu, ...]) -> None:
        if found != self.gpus:
            self.gpus = found
            self.machine_found.emit()


def _models(job: Job) -> tuple[LocalModel, ...]:
    from memgui.importers.local_models import local_models

    found = []
    for model in islice(local_models(), MOST_MODELS):
        job.check()
        found.append(model)
    return tuple(found)


def _gpus(job: Job) -> tuple[Gpu, ...]:
    from memgui.presets.hardware import this_machine

    return this_machine().gpus


def _drop(error: Exception) -> None:
    """What cannot be listed is not offered; the log says why."""
    import logging

    logging.getLogger(__name__).info("nothing found on this machine: %s", error)
