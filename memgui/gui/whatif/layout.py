"""Where a sweep's curves, limits and tags stand.  Pure: a sweep in, px out, nothing painted."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memgui.document.what_if import Line, Swept
from memgui.estimator.result import COMPONENTS
from memgui.gui.palette import DISPLAY_ORDER
from memgui.gui.timeline.geometry import FAR, Axis, Layer
from memgui.gui.verdict.bar_geometry import nice_step
from memgui.planning.sweep import Point, Scale

ABOVE = 1.22
"""How far above the highest limit the axis goes, where the need goes further."""

_PLACE = {key: index for index, key in enumerate(COMPONENTS)}


@dataclass(frozen=True, slots=True)
class Across:
    """Values from ``left`` to ``right`` px, evenly or by their logarithm."""

    low: float
    high: float
    scale: Scale
    left: float
    right: float

    def at(self, value: float) -> float:
        """The place of a value on the axis: itself, or its binary logarithm."""
        return math.log2(max(value, 1.0)) if self.scale is Scale.LOG else float(value)

    def x(self, value: float) -> float:
        """Where a value stands."""
        first, last = self.at(self.low), self.at(self.high)
        return self.left + (self.right - self.left) * (self.at(value) - first) / max(last - first, 1e-12)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sweep laid out for one size: its known points, their places, the axes, the areas."""

    points: tuple[Point, ...]
    xs: tuple[float, ...]
    axis: Axis
    across: Across
    layers: tuple[Layer, ...]
    lines: tuple[Line, ...]
    """The limits in sight, the chosen device's first where it is among them."""
    beyond: tuple[Line, ...]
    """Those above the end of the axis."""

    def nearest(self, x: float) -> int:
        """The known point nearest to ``x`` px."""
        at = bisect_left(self.xs, x)
        near = range(max(0, at - 1), min(len(self.xs), at + 1))
        return min(near, key=lambda index: abs(self.xs[index] - x), default=0)

    def index_of(self, value: float) -> int:
        """The known point at or nearest to a value."""
        return self.nearest(self.across.x(value))

    def layer_at(self, index: int, y: float) -> str:
        """The component whose area covers ``y`` px at a point; empty: none."""
        for layer in self.layers:
            if self.axis.y(layer.upper[index]) <= y <= self.axis.y(layer.lower[index]):
                return layer.key
        return ""


def stacked(points: Sequence[Point]) -> tuple[Layer, ...]:
    """The components stacked in display order, those with nothing at any point left out."""
    below = [0] * len(points)
    layers = []
    for key in DISPLAY_ORDER:
        sizes = [point.components[_PLACE[key]] for point in points]
        if any(sizes):
            above = [start + size for start, size in zip(below, sizes, strict=True)]
            layers.append(Layer(key, tuple(below), tuple(above)))
            below = above
    return tuple(layers)


def axis_for(swept: Swept, present: int, unit: int, top: float, bottom: float, spacing: float) -> Axis:
    """An axis up to the highest need, or a little above the limits where the need goes far beyond them."""
    highest = max((one.high_bytes for one in (*swept.known, *swept.pinned)), default=1)
    limits = [one.capacity_bytes for one in swept.lines]
    most = highest * 1.04
    if limits:
        most = min(most, max(ABOVE * max(limits), 1.15 * present))
        near = [limit for limit in limits if most < limit * 1.04 <= FAR * most]
        most = max(most, 1.04 * min(near)) if near and not any(one <= most for one in limits) else most
    most = max(most, 1.0)
    count = max(2.0, math.floor(max(bottom - top, 1.0) / spacing))
    step = nice_step(unit, most / count)
    return Axis(math.ceil(most / step - 1e-9) * step, step, top, bottom)


def lay_out(
    swept: Swept,
    present: int,
    unit: int,
    left: float,
    top: float,
    right: float,
    bottom: float,
    spacing: float,
) -> Sheet:
    """Lay a sweep out between these edges (px); ``present`` is the need now (bytes)."""
    axis = axis_for(swept, present, unit, top, bottom, spacing)
    plan = swept.plan
    across = Across(float(plan.low), float(plan.high), plan.scale, left, right)
    known = swept.known
    return Sheet(
        known,
        tuple(across.x(one.value) for one in known),
        axis,
        across,
        stacked(known),
        tuple(one for one in swept.lines if one.capacity_bytes <= axis.end),
        tuple(one for one in swept.lines if one.capacity_bytes > axis.end),
    )


def name_place(
    layer: Layer, sheet: Sheet, width: float, height: float, taken: Sequence[float]
) -> tuple[float, float] | None:
    """The middle of a name inside an area, where it is highest; ``None`` if it fits nowhere.

    ``taken`` are the y of lines that it must not lie on.
    """
    axis, xs = sheet.axis, sheet.xs
    best: tuple[float, float, float] | None = None
    for index in range(0, len(xs), max(1, len(xs) // 60)):
        x = xs[index]
        first, last = bisect_left(xs, x - width / 2), bisect_left(xs, x + width / 2)
        if x - width / 2 < sheet.across.left or x + width / 2 > sheet.across.right - 4 or last >= len(xs):
            continue
        top = max(axis.y(min(layer.upper[first : last + 1])), axis.top)
        bottom = axis.y(max(layer.lower[first : last + 1]))
        edges = [top, *sorted(y for y in taken if top < y < bottom), bottom]
        for upper, lower in pairwise(edges):
            room = lower - upper
            if room >= height + 4 and (best is None or room > best[0]):
                best = (room, x, (upper + lower) / 2)
    return None if best is None else best[1:]
