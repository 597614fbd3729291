"""Slopes within a series, and the tokens that messages of engines name: two sections beside the tables.

A series differs in batch or length alone, so its slope shows what a sequence or a token costs, whatever
lies still.  Slopes are those of least squares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.accuracy.score import Row, Sample, percent, quantile

WITHIN = 3.0
"""Percent that a slope, or a capacity, may be off."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series with its slope error, or one message with its capacity's, in percent."""

    name: str
    error: float
    note: str = ""


def slopes(rows: Iterable[Row]) -> Iterator[Line]:
    """One line for each series that says something of a slope."""
    series: dict[str, list[Sample]] = {}
    for row in rows:
        if row.sample is not None and row.sample.series:
            series.setdefault(row.sample.series, []).append(row.sample)
    for name, samples in series.items():
        for axis in (0, 1):
            for held, group in _groups(samples, 1 - axis).items():
                measured = _slope([(one.at[axis], one.expected) for one in group])
                if measured:
                    mine = _slope([(one.at[axis], one.got) for one in group])
                    what = f"{held:,.0f} tokens" if axis == 0 else f"batch {held:,.0f}"
                    note = f"{len(group)} rows, {measured:,.0f} bytes each"
                    yield Line(f"{name}, {what}", percent(mine, measured), note)


def _groups(samples: list[Sample], axis: int) -> dict[float, list[Sample]]:
    """The samples that have the same there, by what they have; two of them are no series yet."""
    groups: dict[float, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.at[axis], []).append(sample)
    return {at: group for at, group in groups.items() if len({one.at[1 - axis] for one in group}) > 2}


def _slope(points: list[tuple[float, float]]) -> float:
    count = len(points)
    x0 = sum(x for x, _ in points) / count
    y0 = sum(y for _, y in points) / count
    return sum((x - x0) * (y - y0) for x, y in points) / sum((x - x0) ** 2 for x, _ in points)


def sample_of(entry: Mapping[str, Any], expected: int, got: int) -> Sample:
    """Where a measured row lies in its series."""
    generated = entry.get("generated_tokens")
    tokens = _number(entry.get("seq_len")) + (generated if isinstance(generated, int) else 0)
    return Sample(str(entry.get("series") or ""), (_number(entry.get("micro_batch")), tokens), expected, got)


def _number(value: Any) -> float:
    found = re.findall(r"\d+", str(value).replace(",", ""))
    return float(sum(int(one) for one in found)) if found else 0.0


def stated_tokens(figures: str) -> int | None:
    """Tokens that a pool holds, as the message says it."""
    found = re.search(r"([\d,]+) tokens\b", figures)
    if found:
        return int(found.group(1).replace(",", ""))
    blocks = re.search(r"([\d,]+) blocks(?: of (\d+))?", figures)
    return int(blocks.group(1).replace(",", "")) * int(blocks.group(2) or 16) if blocks else None


def stated_pool(figures: str) -> int | None:
    """Bytes of the pool that the message names beside its tokens."""
    found = re.search(r"KV ([\d.]+) GiB|\(([\d.]+) GiB\b|pool ([\d.]+) GiB", figures)
    return round(float(next(filter(None, found.groups()))) * 2**30) if found else None


def capacities(rows: Iterable[Row]) -> Iterator[Line]:
    """One line for each message that names the tokens its pool holds."""
    for row in rows:
        if row.sample is not None and row.sample.note:
            yield Line(row.name, percent(row.sample.got, row.sample.expected), row.sample.note)


def summary(lines: list[Line]) -> str:
    """How many lines are near enough, and how far the others are."""
    sizes = sorted(abs(line.error) for line in lines)
    near = sum(size <= WITHIN for size in sizes)
    middle = quantile(sizes, 0.5)
    return f"{near} of {len(sizes)} within {WITHIN:g} %, median {middle:.3g}, worst {sizes[-1]:.3g}"
