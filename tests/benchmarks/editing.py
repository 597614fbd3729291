"""From an edit to the repainted window: one running window at 1280x800, every panel in sight."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication

from memgui.document.document import Document
from memgui.spec import get

if TYPE_CHECKING:
    from memgui.app import Program

EDITS = 2000
TAB_EDITS = 100
"""With each tab in front: the slowest of a hundred is none of the worst by chance."""
PATIENCE_S = 2.0
TAB_S = 0.3
JOB_S = 0.2
"""Past the rest after which questions are put, and before they are answered."""


class Clock(QObject):
    """Tells whether the window was painted since the newest result came out.

    It looks at the window's own events alone: everything that changed is painted within one
    UpdateRequest of the window, and a filter on every widget would be measured with it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fresh = False
        self.painted = False

    def reset(self) -> None:
        """Wait for the next result."""
        self.fresh = self.painted = False

    def set_result(self, _: object) -> None:
        """The result is there; what is painted from now on shows it."""
        self.fresh = True

    def arrive(self) -> None:
        """Everything that there is to see was painted."""
        self.painted = True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self.fresh and event.type() == QEvent.Type.UpdateRequest:
            self.painted = True
        return False


def edits() -> Iterator[tuple[str, Any]]:
    """What a person turns: lengths and batches most of the time, now and then a choice."""
    batches = cycle(range(1, 33))
    lengths = cycle(range(512, 8192, 96))
    layers = cycle(range(16, 48))
    choices = cycle(
        (
            ("training.precision", "bf16_mixed"),
            ("training.activation_checkpointing", "full"),
            ("training.optimizer_implementation", "foreach"),
            ("training.precision", "bf16"),
            ("training.activation_checkpointing", "none"),
            ("training.optimizer_implementation", "fused"),
        )
    )
    while True:
        for _ in range(4):
            yield "training.micro_batch_size", next(batches)
            yield "training.sequence_length", next(lengths)
        yield "model.num_hidden_layers", next(layers)
        yield next(choices)


def editing(count: int = EDITS) -> dict[str, float | str]:
    """``edit_to_paint_ms_p50`` and ``edit_to_paint_ms_p99`` over ``count`` edits.

    ``edit_to_paint_tabs_ms_…``: two set-ups are pinned, every tab has been opened, and the one in front
    is that with which it takes longest (``edit_to_paint_slowest_tab``).  ``edit_to_tab_ms_…``: to the
    painted page in front, which gets its turn after the window, with the page that takes longest.
    ``edit_to_paint_jobs_ms_…``: the edits come while the answer about the one before is being worked out.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from memgui.app import Program
    from memgui.document.garbage import Garbage
    from memgui.presets.paths import AppPaths

    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(["memgui"])
    with tempfile.TemporaryDirectory(prefix="memgui-benchmark-") as home:
        program = Program(app, AppPaths.default(Path(home)))
        window = program.window
        window.resize(1280, 800)
        window.show()
        _settle(app, 0.5)
        gc.collect()
        thresholds = gc.get_threshold()
        document = program.context.document
        Garbage(document, program.context.jobs)  # as the program does once everything stands
        clock = Clock()
        window.installEventFilter(clock)
        document.result.connect(clock.set_result)
        turns = ((path, value) for path, value in edits() if get(document.scenario, path) != value)
        timed = [_one(app, document, clock, path, value) for path, value in islice(turns, count)]
        _pin(program)
        interior = program.interior
        assert interior is not None
        page = Clock()
        # What a page has to show before its answer comes is painted before a timer gets its second turn.
        interior.pages.caught_up.connect(
            lambda: QTimer.singleShot(0, lambda: QTimer.singleShot(0, page.arrive))
        )
        by_tab: dict[str, list[float]] = {}
        pages: dict[str, list[float]] = {}
        for key in interior.tabs.keys:
            interior.tabs.show_tab(key)
            _settle(app, TAB_S)
        for key in interior.tabs.keys:  # now all of them are open
            interior.tabs.show_tab(key)
            _settle(app, TAB_S)
            by_tab[key] = sorted(
                _one(app, document, clock, path, value)
                for path, value in islice(turns, max(2, count * TAB_EDITS // EDITS))
            )
            pages[key] = sorted(
                _one(app, document, page, path, value) for path, value in islice(turns, max(2, count // 125))
            )
        slowest = max(by_tab, key=lambda key: _at(by_tab[key], 50))
        interior.tabs.show_tab("ways")
        busy: list[float] = []
        for path, value in islice(turns, max(2, count // 125)):
            _settle(app, JOB_S)
            busy.append(_one(app, document, clock, path, value))
        busy.sort()
        window.removeEventFilter(clock)
        window.close()
        program.close()
        _settle(app, 0.1)
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    timed.sort()
    return {
        "edit_to_paint_ms_p50": _at(timed, 50),
        "edit_to_paint_ms_p99": _at(timed, 99),
        "edit_to_paint_ms_worst": timed[-1],
        "edit_to_paint_slowest_tab": slowest,
        "edit_to_paint_tabs_ms_p50": _at(by_tab[slowest], 50),
        "edit_to_paint_tabs_ms_p99": max(_at(taken, 99) for taken in by_tab.values()),
        "edit_to_tab_ms_p50": max(_at(taken, 50) for taken in pages.values()),
        "edit_to_tab_ms_p99": max(_at(taken, 99) for taken in pages.values()),
        "edit_to_paint_jobs_ms_p50": _at(busy, 50),
        "edit_to_paint_jobs_ms_p99": _at(busy, 99),
    }


def _at(taken: list[float], percent: int) -> float:
    """A percentile of sorted figures."""
    return taken[min(len(taken) - 1, len(taken) * percent // 100)]


def _pin(program: Program) -> None:
    """Pin two set-ups, so that every view has something to compare with."""
    interior = program.interior
    assert interior is not None
    interior.actions.pin.trigger()
    program.document.edit("training.sequence_length", 777)
    interior.actions.add_pin.trigger()


def _one(app: QApplication, document: Document, clock: Clock, path: str, value: Any) -> float:
    """Milliseconds from one edit to the end of the turn in which the new figures were painted."""
    clock.reset()
    limit = time.monotonic() + PATIENCE_S
    start = time.perf_counter_ns()
    document.edit(path, value)
    while not clock.painted:
        app.processEvents()
        if time.monotonic() > limit:
            raise RuntimeError(f"no picture came after {path} = {value!r}")
    return (time.perf_counter_ns() - start) / 1e6


def _settle(app: QApplication, seconds: float) -> None:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        app.processEvents()
