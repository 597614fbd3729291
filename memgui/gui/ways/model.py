"""The ways to fit as a Qt list: each with its texts, made once for an answer and its units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from PySide6.QtCore import (
    QAbstractListModel,
    QCoreApplication,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)

from memgui.estimator.result import Estimate
from memgui.gui.numbers import UNCHANGED
from memgui.gui.verdict import sentence
from memgui.gui.ways import texts
from memgui.gui.why.qt_words import QtWords
from memgui.planning.ways import Way
from memgui.spec import QT_TRANSLATE_NOOP

Index = QModelIndex | QPersistentModelIndex
translate = QCoreApplication.translate

_WORDS = {
    "fits": QT_TRANSLATE_NOOP("ways", "Fits"),
    "tight": QT_TRANSLATE_NOOP("ways", "Tight"),
    "does_not_fit": QT_TRANSLATE_NOOP("ways", "Not enough"),
}


FAR = 4
"""A limit of more than this many times the need would leave nothing to see of the parts."""


class Line(msgspec.Struct, frozen=True):
    """One row: the way, and what is written of it.  ``needs`` and ``saves`` are bare figures."""

    rank: int
    way: Way
    title: str
    short: str
    two: str
    from_to: str
    saves: str
    needs: str
    word: str
    gap: str
    cost: str

    @property
    def spoken(self) -> str:
        """The row for those who do not see it."""
        return f"{self.rank}. {self.title}, {self.from_to}: {self.word}, {self.gap}. {self.cost}"


def line_of(rank: int, way: Way, words: QtWords) -> Line:
    """The row of a way."""
    numbers = words.numbers
    verdict = way.estimate.verdict
    gap = numbers.gap_figure(way.estimate.peak_bytes, verdict.capacity_bytes)
    over = verdict.headroom_bytes < 0
    return Line(
        rank,
        way,
        texts.title(way, words),
        texts.short_title(way, words),
        texts.in_two_lines(way, words),
        texts.from_to(way, numbers),
        numbers.two(way.saves_bytes) if abs(way.saves_bytes) * 200 > numbers.unit_bytes else UNCHANGED,
        numbers.two(way.estimate.peak_bytes),
        translate("ways", _WORDS[way.kind]),
        (translate("ways", "{gap} over") if over else translate("ways", "{gap} spare")).format(gap=gap),
        " ".join(said.text(words) for said in way.costs),
    )


class WaysModel(QAbstractListModel):
    """Rows in the order of the answer."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lines: tuple[Line, ...] = ()
        self._words: QtWords | None = None
        self.base: Estimate | None = None
        """The estimate without any of the changes."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """Every row."""
        return self._lines

    def show(self, ways: Sequence[Way], base: Estimate | None, words: QtWords) -> None:
        """Show these ways from ``base``."""
        self.beginResetModel()
        self._words, self.base = words, base
        self._lines = tuple(line_of(rank, way, words) for rank, way in enumerate(ways, 1))
        self.endResetModel()

    def line_at(self, index: Index) -> Line | None:
        """The row of an index."""
        if not index.isValid() or index.row() >= len(self._lines):
            return None
        return self._lines[index.row()]

    def row_of(self, key: str) -> int:
        """The row of the way called ``key``; -1 where there is none."""
        return next((row for row, line in enumerate(self._lines) if line.way.key == key), -1)

    def longest(self) -> int:
        """The bytes that the bars must have room for: every need, and the limit unless it is far away."""
        if self.base is None:
            return 1
        needs = max(1, self.base.peak_bytes, *(line.way.estimate.peak_bytes for line in self._lines))
        limit = self.base.verdict.capacity_bytes
        return max(needs, limit) if limit <= FAR * needs else needs

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        line = self.line_at(index)
        if line is None or self._words is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return line.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return line.spoken
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return sentence.verdict_word(line.way.kind)
        if role == Qt.ItemDataRole.ToolTipRole:
            return texts.way_tip(line.way, self._words)
        return None
