"""Rows, tables and the figures that are printed for each."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Miss:
    """One figure of a row: what stands in the truth, what memgui says (bytes or counts)."""

    name: str
    expected: int
    got: int | None

    @property
    def text(self) -> str:
        if self.got is None:
            return f"{self.name}: {self.expected:,} expected, nothing found"
        return f"{self.name}: {self.expected:,} expected, {self.got:,} ({self.got - self.expected:+,})"


@dataclass(frozen=True, slots=True)
class Sample:
    """Where a row lies in its series (batch and tokens), or what a message names: there, and here."""

    series: str
    at: tuple[float, float]
    expected: int
    got: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one row of the truth.

    ``reason`` is set where memgui cannot express the row; then nothing else counts.  ``errors`` are
    signed percentages, the row's own error being the one of largest size.  ``inside`` tells whether
    the truth lies in the printed range (``None``: not asked).  ``called`` is the verdict.
    """

    table: str
    name: str
    reason: str | None = None
    errors: tuple[float, ...] = ()
    exact: bool = False
    inside: bool | None = None
    range_pct: float | None = None
    close: bool | None = None
    called: str | None = None
    ran: bool | None = None
    misses: tuple[Miss, ...] = ()
    note: str = ""
    sample: Sample | None = None

    @property
    def error(self) -> float | None:
        """The error of largest size, with its sign."""
        return max(self.errors, key=abs) if self.errors else None


def percent(got: float, expected: float, of: float | None = None) -> float:
    """How far ``got`` is from ``expected``, in percent of ``of`` (of ``expected`` itself)."""
    base = expected if of is None else of
    if base == 0:
        return 0.0 if got == expected else math.inf
    return 100.0 * (got - expected) / base


def compare(
    pairs: Iterable[tuple[str, int | None, int | None]],
) -> tuple[Miss, ...]:
    """The figures that differ, of ``(name, expected, got)``; an absent expectation is not scored."""
    return tuple(
        Miss(name, expected, got) for name, expected, got in pairs if expected is not None and expected != got
    )


def compare_mapping(
    prefix: str, expected: Mapping[str, int], got: Mapping[str, int]
) -> list[tuple[str, int | None, int | None]]:
    """Triples for :func:`compare`: every key of either side; what one side lacks is 0 there."""
    return [
        (f"{prefix}{key}", expected.get(key, 0), got.get(key, 0))
        for key in sorted({*expected, *got})
        if expected.get(key, 0) or got.get(key, 0)
    ]


@dataclass(slots=True)
class Table:
    """All rows of one kind and the figures printed for them."""

    file: str
    kind: str
    rows: list[Row] = field(default_factory=list)

    @property
    def expressible(self) -> list[Row]:
        return [row for row in self.rows if row.reason is None]

    def inexpressible(self) -> dict[str, int]:
        counted = Counter(row.reason for row in self.rows if row.reason is not None)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def figures(self) -> dict[str, Any]:
        """The table as ``--json`` prints it; ``null`` where a figure has no meaning."""
        rows = self.expressible
        errors = [row.error for row in rows if row.error is not None]
        sizes = sorted(abs(error) for error in errors)
        inside = [row.inside for row in rows if row.inside is not None]
        close = [row.close for row in rows if row.close is not None]
        widths = [row.range_pct for row in rows if row.range_pct is not None]
        verdicts = [row for row in rows if row.called is not None]
        result: dict[str, Any] = {
            "file": self.file,
            "kind": self.kind,
            "rows": len(self.rows),
            "expressible": len(rows),
            "exact": sum(row.exact for row in rows),
            "mean_abs_pct": statistics.fmean(sizes) if sizes else None,
            "median_abs_pct": statistics.median(sizes) if sizes else None,
            "p90_abs_pct": quantile(sizes, 0.9) if sizes else None,
            "worst_abs_pct": sizes[-1] if sizes else None,
            "bias_pct": statistics.fmean(errors) if errors else None,
            "within_range_pct": 100.0 * sum(inside) / len(inside) if inside else None,
            "wrong_fits": None,
            "wrong_refusals": None,
            "ran": None,
            "inexpressible": self.inexpressible(),
        }
        if verdicts:
            result["wrong_fits"] = sum(row.called == "fits" and row.ran is False for row in verdicts)
            result["wrong_refusals"] = sum(
                row.called == "does_not_fit" and row.ran is True for row in verdicts
            )
            result["ran"] = sum(row.ran is True for row in verdicts)
        if close:
            result["phase_peaks_within_half_pct"] = 100.0 * sum(close) / len(close)
        if widths:
            result["widest_range_pct"] = max(widths)
        return result


def quantile(sizes: list[float], share: float) -> float:
    """The smallest of the sorted ``sizes`` that at least ``share`` of them do not exceed."""
    return sizes[max(0, math.ceil(share * len(sizes)) - 1)]


def tables_of(file: str, rows: Iterable[Row]) -> list[Table]:
    """Rows gathered by their table's kind, in order of first appearance."""
    found: dict[str, Table] = {}
    for row in rows:
        found.setdefault(row.table, Table(file, row.table)).rows.append(row)
    return list(found.values())
