"""Angles, rings and places of the donut.  Pure: sizes in, degrees and px out, nothing painted.

Angles are degrees clockwise from 12 o'clock; radii are fractions of the donut's radius.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from memgui.document.selection import ComponentPath
from memgui.gui.palette import DISPLAY_ORDER

HOLE = 0.50
COMPONENTS = (0.50, 0.80)
PARTS = (0.815, 0.935)
LIMIT = (0.972, 1.0)
GHOST = (0.437, 0.467)
FREE = "free"
"""First key of the slice that is not used."""

SHARE_FROM = 20.0
"""Degrees from which a slice's share stands in its ring."""
LABEL_FROM = 0.02
"""Share of the circle from which a slice has a label outside."""


class Slice(msgspec.Struct, frozen=True):
    """A part of a ring: which node it is, where it begins, how far it goes."""

    path: ComponentPath
    start: float
    sweep: float
    ring: tuple[float, float]

    @property
    def middle(self) -> float:
        """The angle of its middle."""
        return self.start + self.sweep / 2

    def covers(self, angle: float, radius: float) -> bool:
        """Whether a point lies in it."""
        return self.ring[0] <= radius < self.ring[1] and self.start <= angle < self.start + self.sweep


class Need(msgspec.Struct, frozen=True):
    """What the donut shows, in bytes (floats: they may be on their way).

    ``components`` by key; ``parts`` by component and part key, in the model's order.
    """

    components: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    limit: float

    @property
    def total(self) -> float:
        """All components together."""
        return sum(self.components.values())

    @property
    def circle(self) -> float:
        """What the whole circle stands for: the need where it is over the limit, else the limit."""
        return max(self.total, self.limit, 1.0)

    @property
    def over(self) -> bool:
        """Whether more is needed than there is."""
        return self.total > self.limit


def slices(need: Need) -> list[Slice]:
    """Both rings, components in display order from 12 o'clock, and the free slice last."""
    found: list[Slice] = []
    angle, turn = 0.0, 360.0 / need.circle
    for key in DISPLAY_ORDER:
        size = need.components.get(key, 0.0)
        if size <= 0:
            continue
        sweep = size * turn
        found.append(Slice((key,), angle, sweep, COMPONENTS))
        within = angle
        for part, bytes_ in need.parts.get(key, {}).items():
            if bytes_ > 0:
                part_sweep = bytes_ * turn
                found.append(Slice((key, part), within, part_sweep, PARTS))
                within += part_sweep
        angle += sweep
    if 360.0 - angle > 0.05:
        found.append(Slice((FREE,), angle, 360.0 - angle, COMPONENTS))
    return found


def ghost(pinned: Mapping[str, float], circle: float) -> list[Slice]:
    """The pinned components on the same scale: the ring stops where their total stops."""
    found = []
    angle = 0.0
    for key in DISPLAY_ORDER:
        sweep = min(360.0 * pinned.get(key, 0.0) / circle, 360.0 - angle)
        if sweep > 0:
            found.append(Slice((key,), angle, sweep, GHOST))
            angle += sweep
    return found


def limit_angle(need: Need) -> float:
    """Where the limit lies on the circle."""
    return 360.0 * min(1.0, need.limit / need.circle)


def polar(x: float, y: float, radius: float) -> tuple[float, float]:
    """Angle and fraction of the radius of a point, from the donut's centre."""
    return math.degrees(math.atan2(x, -y)) % 360.0, math.hypot(x, y) / radius if radius > 0 else math.inf


def hit(found: Sequence[Slice], x: float, y: float, radius: float) -> ComponentPath:
    """The node under a point from the centre; the gap between the rings belongs to the inner one."""
    angle, distance = polar(x, y, radius)
    if COMPONENTS[1] <= distance < PARTS[0]:
        distance = COMPONENTS[1] - 1e-6
    for piece in found:
        if piece.covers(angle, distance):
            return piece.path
    return ()


class Box(msgspec.Struct, frozen=True):
    """A label's place, in px from the donut's centre."""

    left: float
    top: float
    width: float
    height: float

    def meets(self, other: Box, space: float) -> bool:
        """Whether it comes nearer than ``space``."""
        return (
            self.left < other.left + other.width + space
            and other.left < self.left + self.width + space
            and self.top < other.top + other.height + space / 2
            and other.top < self.top + self.height + space / 2
        )

    def distance(self) -> float:
        """How near it comes to the centre."""
        x = max(self.left, 0.0, -(self.left + self.width))
        y = max(self.top, 0.0, -(self.top + self.height))
        return math.hypot(x, y)


def side_of(angle: float) -> int:
    """How a label at an angle is aligned: 1 left-aligned at the right side, -1 the other way, 0 middle."""
    across = math.sin(math.radians(angle))
    return 0 if abs(across) < 0.2 else 1 if across > 0 else -1


def label_box(angle: float, width: float, height: float, radius: float, away: float) -> Box:
    """Where a label stands: ``away`` px off the ring, sliding round it with the angle."""
    across, down = math.sin(math.radians(angle)), -math.cos(math.radians(angle))
    reach = radius + away
    # The centre slides along the box's half sizes, so that the box leaves the ring on its near side.
    x = reach * across + across * width / 2
    y = reach * down + down * height / 2
    box = Box(x - width / 2, y - height / 2, width, height)
    near = box.distance()
    if near < radius + away / 2:
        push = radius + away / 2 - near
        box = Box(box.left + across * push, box.top + down * push, width, height)
    return box


def place_labels(
    wanted: Sequence[tuple[Slice, float, float]],
    radius: float,
    away: float,
    half_width: float,
    half_height: float,
) -> dict[ComponentPath, Box]:
    """Places for labels ``(slice, width, height)`` within the panel; the larger slice goes first.

    A label that would leave the panel or touch another is left out: the legend and the tooltip have it.
    """
    placed: dict[ComponentPath, Box] = {}
    for piece, width, height in sorted(wanted, key=lambda entry: -entry[0].sweep):
        for turn in _TURNS:
            box = label_box(piece.middle + turn, width, height, radius, away)
            inside = (
                box.left >= -half_width
                and box.left + width <= half_width
                and box.top >= -half_height
                and box.top + height <= half_height
            )
            if inside and not any(box.meets(other, 5.0) for other in placed.values()):
                placed[piece.path] = box
                break
    return placed


_TURNS = (0.0, 4.0, -4.0, 8.0, -8.0, 12.0, -12.0)
"""How far a label may slide along the ring, in degrees, to find room."""


def radius_for(
    width: float, height: float, label_width: float, label_height: float, away: float
) -> tuple[float, bool]:
    """The radius for a panel, and whether labels stand outside: only where they leave a donut worth it."""
    margin = 3.0
    bare = max(0.0, min(width, height) / 2 - margin)
    labelled = min(width / 2 - label_width - away - 2, height / 2 - label_height - away - 2)
    if labelled >= 80.0 and labelled >= 0.55 * bare:
        return labelled, True
    return bare, False
