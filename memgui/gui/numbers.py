"""Figures as a person reads them: sizes in the chosen unit, exact counts, shares, differences.

Everything is rounded from ints, half up, so that the same bytes read the same everywhere and a
person can subtract the figures of a sentence.
"""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QCoreApplication, QLocale

from memgui.document.view_settings import View
from memgui.spec.messages import MINUS, Count

THIN_SPACE = "\u2009"
UNCHANGED = "\u2013"
_INT64 = 2**63
_MOST_KNOWN = 1024


class Numbers:
    """Writes numbers in one unit (``GiB`` or ``GB``) and one language."""

    __slots__ = ("_by_threes", "_known", "_point", "_separator", "locale", "unit")

    def __init__(self, unit: str, locale: QLocale) -> None:
        self.unit = unit
        self.locale = locale
        self._point = locale.decimalPoint()
        self._separator = locale.groupSeparator()
        # Most languages group by threes in our digits: then Python writes numbers, much faster.
        written = f"1{self._separator}234{self._separator}567"
        self._by_threes = locale.toString(1_234_567) == written
        self._known: dict[tuple[int, int, int], str] = {}

    @staticmethod
    def of(view: View) -> Numbers:
        """For the units chosen and the language the program now speaks."""
        return _numbers(view.units, QLocale().name())

    @property
    def unit_bytes(self) -> int:
        """Bytes in one unit."""
        return 2**30 if self.unit == "GiB" else 10**9

    @property
    def small_unit(self) -> str:
        """What sizes under a tenth of the unit are written in."""
        return "MiB" if self.unit == "GiB" else "MB"

    @property
    def small_bytes(self) -> int:
        """Bytes in one small unit."""
        return 2**20 if self.unit == "GiB" else 10**6

    @property
    def least_unit(self) -> str:
        """What sizes under one small unit are written in."""
        return "KiB" if self.unit == "GiB" else "kB"

    @property
    def least_bytes(self) -> int:
        """Bytes in one least unit."""
        return 2**10 if self.unit == "GiB" else 10**3

    def grouped(self, number: int) -> str:
        """Every digit, in the language's groups."""
        size = abs(number)
        if self._by_threes or size >= _INT64:
            text = f"{size:,}"
            if self._separator != ",":
                text = text.replace(",", self._separator)
        else:
            text = self.locale.toString(size)
        return MINUS + text if number < 0 else text

    def count(self, number: int) -> Count:
        """:meth:`grouped`, where words depend on whether it is one."""
        return Count(self.grouped(number), is_one=number == 1)

    def exact(self, size: int) -> str:
        """``26,460,864,512 bytes``."""
        return QCoreApplication.translate("numbers", "{count} {count:byte|bytes}").format(
            count=self.count(size)
        )

    def one(self, size: int) -> str:
        """The bare figure with one decimal, as in sentences."""
        return self._scaled(size, self.unit_bytes, 1)

    def two(self, size: int) -> str:
        """The bare figure with two decimals, as in tables."""
        return self._scaled(size, self.unit_bytes, 2)

    def sentence(self, size: int) -> str:
        """``93.4 GiB``; under a tenth of the unit ``52.1 MiB``, ``128 KiB``."""
        return self._with_unit(size, 1)

    def tip(self, size: int) -> str:
        """``24.64 GiB``; under a tenth of the unit ``32.0 MiB``."""
        return self._with_unit(size, 2)

    def gap(self, first: int, second: int) -> str:
        """The difference of two sizes as :meth:`sentence` shows them, so that it can be checked by eye.

        Under a tenth of the unit it is the true difference, in the small unit.
        """
        if self._is_small(abs(first - second)):
            return self._with_unit(abs(first - second), 1)
        return f"{self.gap_figure(first, second)} {self.unit}"

    def gap_figure(self, first: int, second: int) -> str:
        """:meth:`gap` without its unit, which stands beside it already."""
        if self._is_small(abs(first - second)):
            return self._with_unit(abs(first - second), 1)
        tenths = abs(_rounded(first, self.unit_bytes, 1) - _rounded(second, self.unit_bytes, 1))
        return self._decimal(tenths, 1)

    def delta(self, size: int) -> str:
        """A signed difference for tables: ``+12.32``, ``−14.73``, ``–`` where nothing changed."""
        if size == 0:
            return UNCHANGED
        if _rounded(abs(size), self.unit_bytes, 2) == 0:
            text = self._with_unit(abs(size), 2)
        else:
            text = self._scaled(abs(size), self.unit_bytes, 2)
        return (MINUS if size < 0 else "+") + text

    def share(self, part: int, whole: int, decimals: int = 1) -> str:
        """``16.0 %``; ``–`` of nothing."""
        if whole <= 0:
            return UNCHANGED
        return f"{self._decimal(_rounded(part * 100, whole, decimals), decimals)}{THIN_SPACE}%"

    def percent_at_least(self, part: int, whole: int) -> str:
        """A share in whole per cent; ``<1 %`` where that would read as nothing."""
        if 0 < part * 200 < whole:
            return f"<1{THIN_SPACE}%"
        return self.share(part, whole, 0)

    def parameters(self, count: int) -> str:
        """A count of parameters in three figures: ``8.03 B``, ``124 M``."""
        for sign, power in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("k", 10**3)):
            if count >= power:
                decimals = 2 if count < 10 * power else 1 if count < 100 * power else 0
                return f"{self._scaled(count, power, decimals)} {sign}"
        return self.grouped(count)

    def axis(self, figure: str) -> str:
        """A plain English figure (``1,250.5``) in the language's groups and point."""
        whole, point, rest = figure.replace(",", "").partition(".")
        return self.grouped(int(whole)) + (self._point + rest if point else "")

    def tokens(self, count: int) -> str:
        """Tokens on an axis: ``128k`` where that is exact, else every digit."""
        if count >= 1024 and count % 1024 == 0:
            return f"{self.grouped(count // 1024)}k"
        return self.grouped(count)

    def _is_small(self, size: int) -> bool:
        return 0 < size * 10 < self.unit_bytes

    def _with_unit(self, size: int, decimals: int) -> str:
        if not self._is_small(size):
            return f"{self._scaled(size, self.unit_bytes, decimals)} {self.unit}"
        for unit, name in ((self.small_bytes, self.small_unit), (self.least_bytes, self.least_unit)):
            if size >= unit:
                return f"{self._scaled(size, unit, 0 if size >= 100 * unit else 1)} {name}"
        return self.exact(size)

    def _scaled(self, size: int, unit: int, decimals: int) -> str:
        """``size / unit``; the same figure stands in picture, legend, bar and reasons."""
        key = size, unit, decimals
        text = self._known.get(key)
        if text is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            text = self._decimal(_rounded(abs(size), unit, decimals), decimals)
            text = self._known[key] = MINUS + text if size < 0 else text
        return text

    def _decimal(self, scaled: int, decimals: int) -> str:
        """``scaled`` has ``decimals`` digits behind the point."""
        if not decimals:
            return self.grouped(scaled)
        whole, rest = divmod(scaled, 10**decimals)
        return f"{self.grouped(whole)}{self._point}{rest:0{decimals}d}"


def _rounded(size: int, unit: int, decimals: int) -> int:
    """``size / unit`` in units of the last decimal, half up."""
    scale: int = 10**decimals
    return (2 * size * scale + unit) // (2 * unit)


@lru_cache(maxsize=16)
def _numbers(unit: str, name: str) -> Numbers:
    locale = QLocale(name)
    if locale.language() is QLocale.Language.C:  # no language at all: it would not group
        locale = QLocale(QLocale.Language.English)
    return Numbers(unit, locale)
