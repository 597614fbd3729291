"""Where the timeline's areas, labels and marks stand.  Pure: bytes in, px out, nothing painted."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from memgui.estimator.result import Moment
from memgui.gui.palette import DISPLAY_ORDER
from memgui.gui.verdict.bar_geometry import nice_step


@dataclass(frozen=True, slots=True)
class Axis:
    """Bytes from 0 at ``bottom`` px to ``end`` at ``top`` px; a grid line every ``step`` bytes."""

    end: float
    step: float
    top: float
    bottom: float

    def y(self, size: float) -> float:
        """Where a size stands."""
        return self.bottom - (self.bottom - self.top) * size / self.end

    def grid(self) -> list[float]:
        """The sizes with a grid line."""
        return [index * self.step for index in range(round(self.end / self.step) + 1)]


Points = list[tuple[float, float]]

FAR = 2.5
"""A limit beyond so many times the highest moment would press the areas flat: it is told, not drawn."""


def axis_for(highest: float, limit: float, unit: int, top: float, bottom: float, spacing: float) -> Axis:
    """An axis with room for the highest moment and, if it is not far off, the limit."""
    most = max(highest * 1.06, limit * 1.04 if limit <= FAR * highest else 0.0, 1.0)
    lines = max(2.0, math.floor(max(bottom - top, 1.0) / spacing))
    step = nice_step(unit, most / lines)
    return Axis(math.ceil(most / step - 1e-9) * step, step, top, bottom)


@dataclass(frozen=True, slots=True)
class Across:
    """Moments from left to right, each in a column of its own; ``edges`` has one more entry than moments."""

    edges: tuple[float, ...]
    middles: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        middles = tuple([(left + right) / 2 for left, right in pairwise(self.edges)])
        object.__setattr__(self, "middles", middles)

    @property
    def left(self) -> float:
        """Where the first column begins."""
        return self.edges[0]

    @property
    def right(self) -> float:
        """Where the last column ends."""
        return self.edges[-1]

    def x(self, index: int) -> float:
        """The middle of a moment's column."""
        return self.middles[index]

    def at(self, x: float) -> int:
        """The moment under ``x``; the nearest one where it is outside."""
        return min(max(bisect_right(self.edges, x) - 1, 0), len(self.edges) - 2)


def across_for(timeline: Sequence[Moment], left: float, right: float) -> Across:
    """Columns for a timeline.

    Layers share their columns' width evenly.  What happens once, such as the loss, gets the width of
    an eighth of the layers, so that it can be seen and read beside a hundred of them.
    """
    layers = max((run for run in _layer_runs(timeline)), default=0)
    once = max(1.0, layers / 8)
    weights = [1.0 if ".layer." in moment.key else once for moment in timeline] or [1.0]
    whole = sum(weights)
    edges = [left]
    done = 0.0
    for weight in weights:
        done += weight
        edges.append(left + (right - left) * done / whole)
    return Across(tuple(edges))


def _layer_runs(timeline: Sequence[Moment]) -> Iterator[int]:
    """How many layers there are in each pass through them."""
    run = 0
    for moment in timeline:
        if ".layer." in moment.key:
            run += 1
        else:
            yield run
            run = 0
    yield run


@dataclass(frozen=True, slots=True)
class Layer:
    """One component's area: its lower and upper edge at each moment, in bytes."""

    key: str
    lower: tuple[int, ...]
    upper: tuple[int, ...]


def stacked(timeline: Sequence[Moment]) -> list[Layer]:
    """The components stacked in display order, those with nothing at any moment left out."""
    below = [0] * len(timeline)
    layers = []
    for key in DISPLAY_ORDER:
        sizes = [moment.components.get(key, 0) for moment in timeline]
        if not any(sizes):
            continue
        above = [start + size for start, size in zip(below, sizes, strict=True)]
        layers.append(Layer(key, tuple(below), tuple(above)))
        below = above
    return layers


def kinks(layers: Sequence[Layer], timeline: Sequence[Moment]) -> list[int]:
    """The moments at which any edge bends: between them all areas are straight, and nothing need be drawn."""
    inside = [".layer." in moment.key for moment in timeline]
    edges = [layer.upper for layer in layers]
    kept = []
    for index, here in enumerate(inside):
        before, after = index - 1, index + 1
        if not (here and before >= 0 and inside[before] and after < len(inside) and inside[after]):
            kept.append(index)
            continue
        for edge in edges:
            if edge[before] + edge[after] != 2 * edge[index]:
                kept.append(index)
                break
    return kept


def outline(sizes: Sequence[int], axis: Axis, across: Across, kept: Sequence[int]) -> Points:
    """An edge from left to right, out to the columns' sides."""
    scale = (axis.bottom - axis.top) / axis.end
    middles, bottom = across.middles, axis.bottom
    edge = [(middles[index], bottom - scale * sizes[index]) for index in kept]
    return [(across.left, edge[0][1]), *edge, (across.right, edge[-1][1])]


def name_place(
    layer: Layer,
    axis: Axis,
    across: Across,
    width: float,
    height: float,
    line: float,
    uprights: Sequence[float] = (),
) -> tuple[float, float] | None:
    """The middle of a name of that size inside an area, where the area is highest; ``None`` if nowhere.

    ``line`` is the y of a line that the name must not lie on, ``uprights`` are the x of lines that it
    had better not.
    """
    count = len(layer.upper)
    thickness = [upper - lower for lower, upper in zip(layer.lower, layer.upper, strict=True)]
    needed = height * axis.end / (axis.bottom - axis.top) * (1 - 1e-9)
    if max(thickness) < needed:
        return None
    places = [index for index in range(0, count, max(1, count // 48)) if thickness[index] > 0]
    places.sort(key=lambda index: (-thickness[index], abs(index - count / 2)))
    crossed = None
    for index in places:
        if thickness[index] < needed:  # nor are those after it
            break
        x = across.x(index)
        if x - width / 2 < across.left or x + width / 2 > across.right:
            continue
        first, last = across.at(x - width / 2), across.at(x + width / 2)
        top = axis.y(min(layer.upper[first : last + 1]))
        bottom = axis.y(max(layer.lower[first : last + 1]))
        if top < line < bottom:
            top, bottom = max((top, line - 3), (line + 3, bottom), key=lambda band: band[1] - band[0])
        if bottom - top < height:
            continue
        if not any(abs(x - upright) < width / 2 for upright in uprights):
            return x, (top + bottom) / 2
        crossed = crossed or (x, (top + bottom) / 2)
    return crossed
