"""Set-ups pinned for comparison; the first of them is the baseline that the picture is held against."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable

import msgspec
from PySide6.QtCore import QObject, Signal

from memgui.document.document import Document
from memgui.document.jobs import Job, Jobs
from memgui.estimator.result import Estimate
from memgui.spec import Scenario

log = logging.getLogger(__name__)

MOST = 50
"""More pins than this are not taken; nobody compares so many."""


class Pin(msgspec.Struct, frozen=True, eq=False):
    """One pinned set-up.  ``estimate`` is ``None`` while it is not known, and where there is none."""

    name: str
    scenario: Scenario
    estimate: Estimate | None = None


class Pins(QObject):
    """Keeps pins in order.  They are no part of a scenario and of no undo step."""

    changed = Signal()

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._pins: tuple[Pin, ...] = ()
        self.destroyed.connect(lambda: jobs.cancel("pins"))

    @property
    def all(self) -> tuple[Pin, ...]:
        """Every pin, the baseline first."""
        return self._pins

    @property
    def baseline(self) -> Pin | None:
        """What the picture is compared with; ``None`` while nothing is pinned."""
        return self._pins[0] if self._pins else None

    @property
    def can_pin(self) -> bool:
        """Whether the open set-up has an estimate to pin, and there is room for it."""
        return self._document.last_result.estimate is not None and len(self._pins) < MOST

    def pin(self, name: str) -> None:
        """Make the open set-up the baseline; one that is pinned already keeps its name."""
        made = self._present(name)
        if made is not None:
            self._keep((made, *(pin for pin in self._pins if pin.scenario != made.scenario)))

    def add(self, name: str) -> None:
        """Pin the open set-up behind the others, unless it is among them."""
        made = self._present(name)
        if made is not None and made not in self._pins:
            self._keep((*self._pins, made))

    def find(self, scenario: Scenario) -> Pin | None:
        """The pin of a set-up."""
        return next((pin for pin in self._pins if pin.scenario == scenario), None)

    def remove(self, pin: Pin) -> None:
        """Pin it no more."""
        self._keep(tuple(one for one in self._pins if one is not pin))

    def put(self, pin: Pin, place: int) -> None:
        """Have ``pin`` at a place (0: the baseline), whether it was pinned before or not."""
        rest = [one for one in self._pins if one is not pin]
        rest.insert(place, pin)
        self._keep(tuple(rest))

    def exchange(self, one: Pin, other: Pin) -> None:
        """Have two pins change places."""
        places = {id(one): other, id(other): one}
        self._keep(tuple(places.get(id(pin), pin) for pin in self._pins))

    def open_for(self, pin: Pin, name: str) -> None:
        """Open a pinned set-up and pin what is open in its place, as ``name``: one undo step."""
        made = self._present(name)
        if made is None or made in self._pins:
            return
        pins = weakref.ref(self)  # the undo stack may outlive the pins

        def turn(there: bool) -> None:
            kept = pins()
            if kept is not None:
                kept._stand_in(pin, made) if there else kept._stand_in(made, pin)

        self._document.use_scenario(pin.scenario, pin.name, turn)

    def _stand_in(self, out: Pin, into: Pin) -> None:
        """Put ``into`` where ``out`` is pinned, if it still is."""
        if self.find(out.scenario) is not None:
            rest = (one for one in self._pins if one.scenario != into.scenario)
            self._keep(tuple(into if one.scenario == out.scenario else one for one in rest))

    def rename(self, pin: Pin, name: str) -> None:
        """Call it otherwise."""
        renamed = msgspec.structs.replace(pin, name=name)
        self._keep(tuple(renamed if one is pin else one for one in self._pins))

    def restore(self, kept: Iterable[tuple[str, Scenario]]) -> None:
        """Pin what was pinned last time; the estimates are worked out aside."""
        self._keep(tuple(Pin(name, scenario) for name, scenario in kept)[:MOST])
        wanted = {pin.scenario for pin in self._pins}
        if wanted:
            self._jobs.run("pins", lambda job: self._work(job, wanted), self._learn)

    def _present(self, name: str) -> Pin | None:
        result = self._document.settle()
        if result.estimate is None:
            return None
        known = self.find(result.scenario)
        return known if known is not None else Pin(name, result.scenario, result.estimate)

    def _work(self, job: Job, scenarios: set[Scenario]) -> dict[Scenario, Estimate]:
        found: dict[Scenario, Estimate] = {}
        for scenario in scenarios:
            job.check()
            try:
                estimate = self._document.estimator(scenario)
            except Exception as error:  # one that cannot be computed any more hides no other
                log.info("a pinned set-up cannot be computed: %s", error)
                continue
            if estimate.verdict.kind != "unknown":
                found[scenario] = estimate
        return found

    def _learn(self, found: dict[Scenario, Estimate]) -> None:
        self._keep(
            tuple(
                msgspec.structs.replace(pin, estimate=found[pin.scenario])
                if pin.estimate is None and pin.scenario in found
                else pin
                for pin in self._pins
            )
        )

    def _keep(self, pins: tuple[Pin, ...]) -> None:
        if [id(pin) for pin in pins] != [id(pin) for pin in self._pins]:
            self._pins = pins
            self.changed.emit()
