"""Work in the background: the newest job of a kind wins, a late answer is dropped."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Qt, QThreadPool, QTimer, Signal

SLICE_S = 0.001
"""A job works this long before it lets the thread of the windows have its turn."""
PAUSE_S = 0.00005
"""Long enough for a waiting thread to take over."""
SWITCH_S = 0.0005
"""So long the windows wait for a job in the middle of a slice, each time they ask; Python's own is 5 ms."""
HOLD_MS = 40
"""How long jobs stand still for the windows: two frames, in which an edit is computed and painted."""


class Cancelled(Exception):
    """Raised inside a job that nobody waits for any more."""


class Job(msgspec.Struct, eq=False):
    """One piece of work.  It is given itself and calls :meth:`check` between steps."""

    kind: str
    generation: int
    work: Callable[[Job], Any]
    done: Callable[[Any], None]
    failed: Callable[[Exception], None] | None = None
    free: threading.Event | None = None
    """Cleared while the windows have the whole machine."""
    _stop: threading.Event = msgspec.field(default_factory=threading.Event)
    _since: float = 0.0

    @property
    def cancelled(self) -> bool:
        """Whether the answer will be dropped."""
        return self._stop.is_set()

    def check(self) -> None:
        """Let the windows have their turn; raise :class:`Cancelled` where the answer will be dropped."""
        held = self.free is not None and not self.free.is_set()
        if held or time.monotonic() - self._since > SLICE_S:
            if self.free is not None and not self.cancelled:
                self.free.wait(HOLD_MS / 1000)  # no longer: edits that stream in would hold it for ever
            time.sleep(PAUSE_S)
            self._since = time.monotonic()
        if self.cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """Ask the work to stop; it may still run to its end, unheard."""
        self._stop.set()


class Jobs(QObject):
    """Runs jobs in a thread pool of its own and delivers their answers in the thread of the windows."""

    busy = Signal(str, bool)
    """A kind of job began or ended."""
    _arrived = Signal(object, object, object)

    def __init__(self, parent: QObject | None = None, threads: int = 1) -> None:
        """One thread by default: jobs are Python and would only take turns."""
        super().__init__(parent)
        sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(threads)
        self._asked = QThreadPool(self)
        self._asked.setMaxThreadCount(1)
        self._current: dict[str, Job] = {}
        self._generation = 0
        self._closed = False
        self._free = threading.Event()
        self._free.set()
        self._held = QTimer(self)
        self._held.setSingleShot(True)
        self._held.setInterval(HOLD_MS)
        self._held.timeout.connect(self._free.set)
        self._arrived.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        kind: str,
        work: Callable[[Job], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        *,
        asked: bool = False,
    ) -> Job:
        """Start ``work``; an earlier job of the same kind is cancelled.

        ``asked`` is work that the person waits for: it does not queue behind what is computed ahead.
        ``done`` is called with what it returns, ``failed`` with what it raises (without it the
        exception goes on to the excepthook), both in this object's thread.
        """
        self.cancel(kind)
        self._generation += 1
        job = Job(kind, self._generation, work, done, failed, self._free)
        if self._closed:
            job.cancel()
            return job
        self._current[kind] = job
        self.busy.emit(kind, True)
        (self._asked if asked else self._pool).start(lambda: self._work(job))
        return job

    def hold(self) -> None:
        """Let jobs stand still for a moment: the person changed something, which is painted first."""
        self._free.clear()
        self._held.start()

    def cancel(self, kind: str) -> None:
        """Drop the running job of that kind, if there is one."""
        job = self._current.pop(kind, None)
        if job is not None:
            job.cancel()
            self.busy.emit(kind, False)

    def is_running(self, kind: str) -> bool:
        """Whether an answer of that kind is awaited."""
        return kind in self._current

    def close(self, wait_ms: int = 2000) -> bool:
        """Cancel everything, begin nothing any more, and wait; false where something still runs."""
        self._closed = True
        for kind in tuple(self._current):
            self.cancel(kind)
        self._held.stop()
        self._free.set()
        return self._pool.waitForDone(wait_ms) and self._asked.waitForDone(wait_ms)

    def _work(self, job: Job) -> None:
        answer: Any = None
        fault: Exception | None = None
        try:
            job.check()
            answer = job.work(job)
        except Cancelled:
            return
        except Exception as error:  # handed over to the thread of the windows
            fault = error
        if not job.cancelled:
            self._arrived.emit(job, answer, fault)

    def _deliver(self, job: Job, answer: Any, fault: Exception | None) -> None:
        if self._current.get(job.kind) is not job:
            return
        del self._current[job.kind]
        self.busy.emit(job.kind, False)
        if fault is None:
            job.done(answer)
        elif job.failed is not None:
            job.failed(fault)
        else:
            raise fault
