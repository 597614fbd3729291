"""What stands side by side: pins and what is open, methods, or devices, each with its letter."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import QCoreApplication

from memgui.document.pins import Pin, Pins
from memgui.document.result import Result
from memgui.estimator.result import Estimate
from memgui.gui.numbers import Numbers
from memgui.gui.texts import issue_text
from memgui.gui.verdict import sentence
from memgui.planning.compare import Column
from memgui.spec import Issue, Scenario

translate = QCoreApplication.translate


class SetUp(msgspec.Struct, frozen=True):
    """One of those compared.  ``pin`` is set for a pin, ``is_open`` for what is open now."""

    letter: str
    name: str
    scenario: Scenario
    estimate: Estimate | None
    issue: Issue | None = None
    pin: Pin | None = None
    is_open: bool = False

    @property
    def column(self) -> Column:
        """The set-up for :func:`memgui.planning.compare.compare`, called by its letter."""
        return Column(self.letter, self.scenario, self.estimate, self.issue)

    def said(self, numbers: Numbers) -> str:
        """``Fits, 17.8 GiB spare``; why it is unknown."""
        if self.estimate is None:
            why = issue_text(self.issue) if self.issue is not None else ""
            return f"{sentence.verdict_word('unknown')}: {why}" if why else sentence.verdict_word("unknown")
        verdict = sentence.verdict_word(self.estimate.verdict.kind)
        return translate("Compare", "{verdict}, {gap}").format(
            verdict=verdict, gap=sentence.gap(self.estimate, numbers)
        )


def letter(place: int) -> str:
    """A to Z, then numbers from 27."""
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def pinned(pins: Pins, result: Result) -> list[SetUp]:
    """Every pin, the baseline first, and what is open behind them unless it is one of them."""
    found = [
        SetUp(
            letter(place),
            pin.name,
            pin.scenario,
            pin.estimate,
            pin=pin,
            is_open=pin.scenario == result.scenario,
        )
        for place, pin in enumerate(pins.all)
    ]
    if result.generation and not any(one.is_open for one in found):
        name = translate("Compare", "What is open now")
        open_now = SetUp(
            letter(len(found)), name, result.scenario, result.estimate, result.reason, is_open=True
        )
        found.append(open_now)
    return found


def listed(columns: Sequence[Column], scenario: Scenario) -> list[SetUp]:
    """Columns of methods or devices."""
    return [
        SetUp(
            letter(place),
            column.name if isinstance(column.name, str) else translate(*column.name),
            column.scenario,
            column.estimate,
            column.issue,
            is_open=column.scenario == scenario,
        )
        for place, column in enumerate(columns)
    ]
