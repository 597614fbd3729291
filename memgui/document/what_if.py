"""What if: one field swept over a range, two against each other, the largest that fits on each device.

The answers follow the document in the background while somebody looks; nothing waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from memgui.catalog import Catalog
from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.pins import Pins
from memgui.document.questions import REST_MS, Question
from memgui.planning.ask import Asker
from memgui.planning.changes import apply
from memgui.planning.devices import moved, of_a_sort
from memgui.planning.grid import Grid, heat_map
from memgui.planning.ladder import length_path
from memgui.planning.reach import batch_path
from memgui.planning.round_values import round_values
from memgui.planning.solve import WHOLE
from memgui.planning.sweep import Crossing, Point, Scale, crossings, points, spread, sweepable, usual_range
from memgui.spec import Device, Scenario, ScenarioError, get
from memgui.spec.fields import BY_PATH, Kind

if TYPE_CHECKING:
    from memgui.spec.fields import Field

POINTS = 200
KINDS = ("sweep", "largest", "heat_map")
"""The jobs, the quickest first."""
USUAL_DEVICES = (
    "GeForce RTX 4090",
    "RTX 6000 Ada Generation",
    "H100 SXM5 80GB",
    "H200 SXM 141GB",
)
ALIKE = 0.1
"""Devices whose memory differs by less than this share are not drawn beside each other unasked."""
MOST_DEVICES = 6


class Plan(msgspec.Struct, frozen=True):
    """What is asked: ``path`` from ``low`` to ``high``, the heat map against ``against``."""

    path: str
    low: int | float
    high: int | float
    scale: Scale
    against: str
    columns: int = 8
    rows: int = 8


class Line(msgspec.Struct, frozen=True):
    """What a device may hold (bytes)."""

    device: Device
    capacity_bytes: int


class Swept(msgspec.Struct, frozen=True):
    """The sweep: ``lines`` has the chosen device first, ``pinned`` the baseline's points if there is one."""

    plan: Plan
    points: tuple[Point, ...]
    lines: tuple[Line, ...]
    pinned: tuple[Point, ...] = ()
    pinned_name: str = ""

    @property
    def known(self) -> tuple[Point, ...]:
        """The points that could be computed."""
        return tuple(one for one in self.points if one.issue is None)


class WhatIf(QObject):
    """Keeps the plan fit for the open scenario and asks the three questions."""

    planned = Signal()
    """The plan is another one."""

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        catalog: Catalog,
        pins: Pins,
        rest_ms: int = REST_MS,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._catalog = catalog
        self._pins = pins
        self._devices: tuple[str, ...] | None = None
        self._chosen_range = False
        self._decided_by: object = None
        self._fields: tuple[Field, ...] = ()
        self._plan = self._first_plan(document.scenario)
        works = (self._sweep, self._largest, self._heat_map)
        self.sweep, self.largest, self.heat_map = (
            Question(kind, work, document, jobs, rest_ms, self)
            for kind, work in zip(KINDS, works, strict=True)
        )
        document.result.connect(self._follow)
        pins.changed.connect(self.sweep.ask_again)

    @property
    def plan(self) -> Plan:
        """What is asked now."""
        return self._plan

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices drawn beside the chosen one."""
        return self._beside(self._document.scenario)

    def offered(self) -> tuple[Device, ...]:
        """The devices that can be drawn, by memory."""
        entries = of_a_sort(self._catalog.devices, self._document.scenario)
        return tuple(sorted((one.device() for one in entries), key=lambda one: (one.memory_bytes, one.name)))

    def fields(self) -> tuple[Field, ...]:
        """Every field that can be swept here; asked again with other lengths, it answers what it did."""
        scenario = self._document.scenario
        applying = [field.path for field in BY_PATH.values() if field.applies(scenario)]
        decided_by = (scenario.model, scenario.parallelism, scenario.device, applying)
        if decided_by != self._decided_by:
            self._decided_by, self._fields = decided_by, sweepable(scenario)
        return self._fields

    def want(self, on: bool) -> None:
        """Have the questions followed, or no longer."""
        for question in (self.sweep, self.largest, self.heat_map):
            question.want("what if", on)

    def sweep_field(self, path: str) -> None:
        """Sweep another field, over its usual range."""
        self._chosen_range = False
        against = self._plan.against
        if against == path:
            against = self._plan.path
        low, high = _range(self._document.scenario, path)
        scale = Scale.LINEAR if BY_PATH[path].kind not in WHOLE else self._plan.scale
        self._set(
            msgspec.structs.replace(self._plan, path=path, low=low, high=high, scale=scale, against=against)
        )

    def set_range(self, low: int | float, high: int | float) -> None:
        """Sweep from ``low`` to ``high``; raises :class:`ScenarioError` where that is no range."""
        spread(self._plan.path, low, high, 2)
        self._chosen_range = True
        self._set(msgspec.structs.replace(self._plan, low=low, high=high))

    def set_scale(self, scale: Scale) -> None:
        """Spread the values otherwise."""
        self._set(msgspec.structs.replace(self._plan, scale=scale))

    def set_against(self, path: str) -> None:
        """Another second field for the heat map."""
        self._set(msgspec.structs.replace(self._plan, against=path))

    def set_cells(self, columns: int, rows: int) -> None:
        """How many cells there is room for."""
        self._set(msgspec.structs.replace(self._plan, columns=columns, rows=rows))

    def show_device(self, device: Device, on: bool) -> None:
        """Draw a device's limit, or no longer."""
        names = [one.name for one in self.devices]
        if on and device.name not in names:
            names.append(device.name)
        elif not on:
            names = [name for name in names if name != device.name]
        self._devices = tuple(names[-MOST_DEVICES:])
        self.planned.emit()
        self.sweep.ask_again()
        self.largest.ask_again()

    def apply(self, values: dict[str, int | float], text: str) -> None:
        """Give fields these values: one undo step."""
        self._document.step(values, text)

    # the plan

    def _first_plan(self, scenario: Scenario) -> Plan:
        path = length_path(scenario)
        low, high = _range(scenario, path)
        return Plan(path, low, high, Scale.LOG, batch_path(scenario))

    def _follow(self) -> None:
        scenario, plan = self._document.scenario, self._plan
        if not BY_PATH[plan.path].applies(scenario) or not BY_PATH[plan.against].applies(scenario):
            self._start_over()
        elif not self._chosen_range and not self._holds(scenario, plan):
            low, high = _range(scenario, plan.path)
            self._set(msgspec.structs.replace(plan, low=low, high=high))

    def keep_to_offered(self) -> None:
        """Begin again where the plan is about a field that :meth:`fields` does not have (any more)."""
        if not {self._plan.path, self._plan.against} <= {field.path for field in self.fields()}:
            self._start_over()

    def _start_over(self) -> None:
        plan, first = self._plan, self._first_plan(self._document.scenario)
        self._chosen_range = False
        self._set(msgspec.structs.replace(first, columns=plan.columns, rows=plan.rows))

    def _holds(self, scenario: Scenario, plan: Plan) -> bool:
        value = get(scenario, plan.path)
        return value is None or plan.low <= value <= plan.high

    def _set(self, plan: Plan) -> None:
        old, self._plan = self._plan, plan
        if plan == old:
            return
        self.planned.emit()
        same = (old.path, old.low, old.high, old.scale) == (plan.path, plan.low, plan.high, plan.scale)
        if not same:
            self.sweep.ask_again()
        if old.path != plan.path:
            self.largest.ask_again()
        self.heat_map.ask_again()

    def _beside(self, scenario: Scenario) -> tuple[Device, ...]:
        known = {one.name: one for one in self.offered()}
        if self._devices is not None:
            return tuple(
                known[name] for name in self._devices if name in known and name != scenario.device.name
            )
        wanted = [known[name] for name in USUAL_DEVICES if name in known] or _apart(list(known.values()))
        size = scenario.device.memory_bytes
        return tuple(one for one in wanted if abs(one.memory_bytes - size) > ALIKE * size)

    # the questions; these run in another thread

    def _sweep(self, scenario: Scenario, ask: Asker) -> Swept:
        plan, baseline = self._plan, self._pins.baseline
        values = spread(plan.path, plan.low, plan.high, POINTS, plan.scale)
        found = tuple(points(scenario, plan.path, values, ask))
        pinned: tuple[Point, ...] = ()
        if (
            baseline is not None
            and baseline.scenario != scenario
            and BY_PATH[plan.path].applies(baseline.scenario)
        ):
            pinned = tuple(points(baseline.scenario, plan.path, values, ask))
        devices = (scenario.device, *(self._beside(scenario) if _limits_stay(plan.path) else ()))
        lines = (_line(scenario, device, ask) for device in devices)
        name = baseline.name if baseline is not None and pinned else ""
        return Swept(plan, found, tuple(line for line in lines if line is not None), pinned, name)

    def _largest(self, scenario: Scenario, ask: Asker) -> tuple[Crossing, ...]:
        path = self._plan.path
        if BY_PATH[path].kind not in (Kind.COUNT, Kind.TOKENS) or not _limits_stay(path):
            return ()
        try:
            return tuple(crossings(scenario, path, (scenario.device, *self._beside(scenario)), ask))
        except ScenarioError:
            return ()

    def _heat_map(self, scenario: Scenario, ask: Asker) -> Grid:
        plan = self._plan
        xs = _cells(scenario, plan.path, plan.low, plan.high, plan.columns, plan.scale)
        field = BY_PATH[plan.against]
        low, high = _range(scenario, plan.against)
        whole = field.kind in WHOLE
        if field.kind is Kind.COUNT:  # room for more than is usual shows more
            high = min(max(high, low + plan.rows - 1), high if field.maximum is None else field.maximum)
        ys = _cells(scenario, plan.against, low, high, plan.rows, Scale.LOG if whole else Scale.LINEAR)
        return heat_map(scenario, plan.path, xs, plan.against, ys, ask)


def _limits_stay(path: str) -> bool:
    """Whether a device's limit is one line: it is not where the field is the device's own."""
    return not path.startswith("device.") and path != "inference.gpu_memory_utilization"


def _line(scenario: Scenario, device: Device, ask: Asker) -> Line | None:
    found = ask(apply(scenario, moved(scenario, device))).estimate
    return None if found is None else Line(device, found.verdict.capacity_bytes)


def _apart(devices: list[Device]) -> list[Device]:
    """A few devices, each with clearly more memory than the one before."""
    kept: list[Device] = []
    for device in devices:
        if not kept or device.memory_bytes > 1.6 * kept[-1].memory_bytes:
            kept.append(device)
    return kept[-4:]


def _range(scenario: Scenario, path: str) -> tuple[int | float, int | float]:
    """The usual range, out to powers of two where it counts tokens."""
    low, high = usual_range(scenario, path)
    field = BY_PATH[path]
    if field.kind is not Kind.TOKENS:
        return low, high
    first, last = int(low), int(high)
    first = max(int(field.minimum or 0), 1 << max(first, 1).bit_length() - 1)
    longest = scenario.model.max_position_embeddings
    if last != longest:
        last = 1 << (last - 1).bit_length()
    return first, max(last, first + 1)


def _cells(
    scenario: Scenario, path: str, low: int | float, high: int | float, most: int, scale: Scale
) -> tuple[int | float, ...]:
    """Round values with the present one among them."""
    value = get(scenario, path)
    inside = value is not None and low <= value <= high
    found = round_values(path, low, high, most, scale) or (low, high)
    if inside and value not in found:
        found = round_values(path, low, high, max(most - 1, 1), scale)
        return tuple(sorted({*found, value}))
    return found
