"""Two fields against each other: a heat map of the need, and the line along which it stops fitting."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memgui.planning.ask import Answer, Asker
from memgui.spec import Issue, Scenario, replace


@dataclass(frozen=True, slots=True)
class Cell:
    """The need at one pair of values; ``fits`` as everywhere on this floor.  All sizes are bytes.

    Where nothing can be computed ``kind`` is ``unknown``, ``issue`` says why, and all sizes are 0.
    """

    kind: str
    fits: bool = False
    peak_bytes: int = 0
    low_bytes: int = 0
    high_bytes: int = 0
    headroom_bytes: int = 0
    issue: Issue | None = None


class Edge(NamedTuple):
    """A stretch of the boundary in cell coordinates: cell (column, row) reaches from there to +1."""

    x0: int
    y0: int
    x1: int
    y1: int


@dataclass(frozen=True, slots=True)
class Grid:
    """``rows[j][i]`` is the cell at ``ys[j]`` and ``xs[i]``."""

    x_path: str
    y_path: str
    xs: tuple[int | float, ...]
    ys: tuple[int | float, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def boundary(self) -> tuple[Edge, ...]:
        """The edges between a cell that fits and a neighbour that does not."""
        found = [
            Edge(i + 1, j, i + 1, j + 1)
            for j, row in enumerate(self.rows)
            for i in range(len(row) - 1)
            if row[i].fits != row[i + 1].fits
        ]
        for j, (row, above) in enumerate(zip(self.rows, self.rows[1:], strict=False)):
            found += [
                Edge(i, j + 1, i + 1, j + 1)
                for i, (cell, other) in enumerate(zip(row, above, strict=True))
                if cell.fits != other.fits
            ]
        return tuple(found)

    def as_csv(self) -> str:
        """Bytes of the peak, a row for each value of the first field; empty where nothing is known."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow((f"{self.y_path} \\ {self.x_path}", *self.xs))
        for value, row in zip(self.ys, self.rows, strict=True):
            writer.writerow((value, *("" if cell.issue else cell.peak_bytes for cell in row)))
        return text.getvalue().rstrip("\n")


def rows(
    scenario: Scenario,
    x_path: str,
    xs: Sequence[int | float],
    y_path: str,
    ys: Sequence[int | float],
    ask: Asker | None = None,
) -> Iterator[tuple[Cell, ...]]:
    """The rows of the heat map, as they are found; the check of ``ask`` is called for each cell.

    Raises ``KeyError`` where there is no such field and ``ScenarioError`` for a value of another type.
    """
    ask = Asker() if ask is None else ask
    for y in ys:
        across = replace(scenario, y_path, y)
        yield tuple(_cell(ask(replace(across, x_path, x))) for x in xs)


def heat_map(
    scenario: Scenario,
    x_path: str,
    xs: Sequence[int | float],
    y_path: str,
    ys: Sequence[int | float],
    ask: Asker | None = None,
) -> Grid:
    """All of :func:`rows` at once."""
    return Grid(x_path, y_path, tuple(xs), tuple(ys), tuple(rows(scenario, x_path, xs, y_path, ys, ask)))


def _cell(answer: Answer) -> Cell:
    found = answer.estimate
    if found is None:
        return Cell("unknown", issue=answer.issue)
    return Cell(
        found.verdict.kind,
        answer.fits,
        found.peak_bytes,
        found.low_bytes,
        found.high_bytes,
        found.verdict.headroom_bytes,
    )
