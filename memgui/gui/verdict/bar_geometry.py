"""Where everything on the capacity bar stands.  Pure: lengths in, px out, nothing painted.

All sizes are bytes as floats (they may be on their way between two estimates); x are px from the
bar's left end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from memgui.gui.palette import DISPLAY_ORDER

Measure = Callable[[str], float]
"""The width of a text in px."""


class Sizes(msgspec.Struct, frozen=True):
    """What the bar shows, in bytes."""

    components: Mapping[str, float]
    low: float
    high: float
    total: float
    limit: float
    card: float


class Segment(msgspec.Struct, frozen=True):
    """One component: from ``left`` to ``right``, and where its certain part ends."""

    key: str
    left: float
    right: float


class Label(msgspec.Struct, frozen=True):
    """A text whose left end is at ``x``."""

    x: float
    width: float
    text: str

    @property
    def right(self) -> float:
        """Its right end."""
        return self.x + self.width

    def clear_of(self, others: Sequence[Label], gap: float) -> bool:
        """Whether it keeps ``gap`` px from all the others."""
        return all(self.right + gap <= other.x or other.right + gap <= self.x for other in others)


class Scale(msgspec.Struct, frozen=True):
    """From 0 to ``end`` bytes over ``width`` px, a tick every ``step`` bytes."""

    end: float
    step: float
    width: float

    def x(self, size: float) -> float:
        """Where a size stands."""
        return self.width * min(size, self.end) / self.end


def nice_step(unit: float, least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten, in ``unit``, that is at least ``least`` bytes."""
    wanted = max(least / unit, 1e-3)
    power = 10.0 ** math.floor(math.log10(wanted))
    factor = next(factor for factor in (1, 2, 5, 10) if factor * power >= wanted * (1 - 1e-9))
    return factor * power * unit


def scale_for(sizes: Sizes, width: float, unit: int, spacing: float, limit_label: float) -> Scale:
    """The next round step past all there is to show; one more where the limit's label needs the room."""
    most = max(sizes.high, sizes.total, sizes.limit, sizes.card, 1.0)
    ticks = max(1.0, math.floor(width / spacing))
    step = nice_step(unit, most / ticks)
    end = (math.floor(most / step * (1 + 1e-12)) + 1) * step
    over = sizes.total > sizes.limit
    if not over and width * (1 - sizes.limit / end) < limit_label and end / step + 1 <= ticks + 1:
        end += step
    return Scale(end, step, width)


def segments(sizes: Sizes, scale: Scale) -> list[Segment]:
    """The components side by side, in display order, those with no bytes left out."""
    found = []
    start = 0.0
    for key in DISPLAY_ORDER:
        size = sizes.components.get(key, 0.0)
        if size > 0:
            found.append(Segment(key, scale.x(start), scale.x(start + size)))
            start += size
    return found


def tick_figures(scale: Scale, unit: int) -> list[tuple[float, str]]:
    """Each tick's size and its bare figure in ``unit``."""
    step = scale.step / unit
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    count = round(scale.end / scale.step)
    return [(index * scale.step, f"{index * step:,.{decimals}f}") for index in range(count + 1)]


def tick_labels(
    scale: Scale,
    unit: int,
    unit_name: str,
    figure: Callable[[str], str],
    measure: Measure,
    taken: Sequence[Label],
    gap: float,
) -> list[Label]:
    """Ticks under the bar; the last carries the unit; those that would touch a label are dropped."""
    return clear_labels(all_ticks(scale, unit, unit_name, figure, measure), taken, gap)


def all_ticks(
    scale: Scale, unit: int, unit_name: str, figure: Callable[[str], str], measure: Measure
) -> list[Label]:
    """The label of every tick of a scale."""
    labels = []
    figures = tick_figures(scale, unit)
    for index, (size, raw) in enumerate(figures):
        last = index == len(figures) - 1
        text = f"{figure(raw)} {unit_name}" if last else figure(raw)
        width = measure(text)
        x = scale.x(size) - width / 2
        x = min(max(x, 0.0), scale.width - width)
        labels.append(Label(x, width, text))
    return labels


def clear_labels(labels: Sequence[Label], taken: Sequence[Label], gap: float) -> list[Label]:
    """The last of these labels, and of the others those that touch none that stands there."""
    kept: list[Label] = []
    # The last tick tells the unit: it is placed first, and closer than the others may come.
    for label in (labels[-1], *labels[:-1]):
        if label.clear_of([*taken, *kept], gap if kept else gap / 2):
            kept.append(label)
    return kept


def range_label(scale: Scale, sizes: Sizes, text: str, measure: Measure) -> Label:
    """The likely range, under the middle of its hatch."""
    width = measure(text)
    middle = (scale.x(sizes.low) + scale.x(sizes.high)) / 2
    return Label(min(max(middle - width / 2, 0.0), scale.width - width), width, text)


class Above(msgspec.Struct, frozen=True):
    """What stands above the bar: the limit's label and the dimension line with the gap."""

    limit: Label | None
    gap: Label | None
    left: float
    """Where the dimension line begins and …"""
    right: float
    """… ends; the line is broken around labels that lie on it."""

    def strokes(self, space: float) -> list[tuple[float, float]]:
        """The pieces of the dimension line that no label covers."""
        pieces = [(self.left, self.right)]
        for label in (self.limit, self.gap):
            if label is None:
                continue
            cut: list[tuple[float, float]] = []
            for start, end in pieces:
                if label.right + space <= start or label.x - space >= end:
                    cut.append((start, end))
                    continue
                if label.x - space > start:
                    cut.append((start, label.x - space))
                if label.right + space < end:
                    cut.append((label.right + space, end))
            pieces = cut
        return [(start, end) for start, end in pieces if end - start >= 1]


def above(
    scale: Scale, sizes: Sizes, limit_text: str, gap_texts: Sequence[str], measure: Measure, space: float
) -> Above:
    """Place the limit's label and the gap's.

    The limit's stands outside the gap where there is room, the gap's in the middle of its line, else
    beside it; what finds no room is left out (the sentence above says it all).
    """
    limit_x, total_x = scale.x(sizes.limit), scale.x(sizes.total)
    left, right = min(limit_x, total_x), max(limit_x, total_x)
    over = total_x > limit_x
    width = measure(limit_text)
    before, behind = (
        Label(limit_x - space - width, width, limit_text),
        Label(limit_x + space, width, limit_text),
    )
    limit = next(
        (label for label in ((before, behind) if over else (behind, before)) if _inside(label, scale)), None
    )
    taken = [limit] if limit is not None else []
    for text in gap_texts:
        wide = measure(text)
        room = [(left, right)]
        if limit is not None and limit.x < right and limit.right > left:  # it lies on the line
            room = [(left, limit.x), (limit.right, right)]
        start, end = max(room, key=lambda piece: piece[1] - piece[0])
        if end - start >= wide + 4 * space:
            return Above(limit, Label((start + end - wide) / 2, wide, text), left, right)
    wide = measure(gap_texts[0])
    sides = (Label(right + space, wide, gap_texts[0]), Label(left - space - wide, wide, gap_texts[0]))
    for label in sides if over else reversed(sides):
        if _inside(label, scale) and label.clear_of(taken, space):
            return Above(limit, label, left, right)
    return Above(limit, None, left, right)


def _inside(label: Label, scale: Scale) -> bool:
    return label.x >= 0 and label.right <= scale.width


def free_of(left: float, right: float, mark: float) -> tuple[float, float]:
    """The wider side of a segment that a mark crosses: what is written there is not struck through."""
    if not left < mark < right:
        return left, right
    return (left, mark) if mark - left >= right - mark else (mark, right)


def inner_label(
    room: float, name: str, short: str, figure: str, bold: Measure, plain: Measure, pad: float
) -> tuple[str, str]:
    """What is written in a segment ``room`` px wide: name and figure, the name alone, or nothing."""
    for text in dict.fromkeys((name, short)):
        if bold(text) + pad * 0.75 + plain(figure) + 2 * pad <= room:
            return text, figure
    for text in dict.fromkeys((name, short)):
        if bold(text) + 2 * pad <= room:
            return text, ""
    return "", ""
