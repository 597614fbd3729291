"""The largest value of a field that fits, found on the estimator itself, with the next as proof.

The need does not grow with every step.  Kernels copy masks whose rows are no multiple of 8, recurrences
fill up chunks, the allocator rounds blocks up, and beyond a window another kernel may run: a value
may need gigabytes more than a larger one.  What all of this leaves is that **a value needs no less than
itself with its last binary digits cleared**: multiples of a power of two need least among their
neighbours, and grow from one to the next.  So binary digits are settled from the first to the last, each on
the value that has only zeros behind it: where the assumption holds, nothing above what is found fits,
whatever lies between.  Where it does not hold (a window that is no multiple, a cache that packs every so
many tokens) the answer still fits and the next value does not, and what fits again is looked for at
powers of two above and at the model's windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memgui.estimator.result import Estimate
from memgui.planning.ask import Answer, Asker, Within, fits, surely_fits
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message, Scenario, ScenarioError, get, replace
from memgui.spec.fields import BY_PATH, Field, Kind

WHOLE = (Kind.COUNT, Kind.TOKENS, Kind.BYTES)
"""Kinds of fields that hold a whole number."""

NEAR = 128
"""How far above a value the next allowed one is looked for, where not every value is allowed."""

BEYOND = 11
"""How many doublings past the first value that does not fit are tried, for one that fits again."""

FIRST = {Kind.COUNT: 4, Kind.TOKENS: 12, Kind.BYTES: 30}
"""The power of two that a search begins with: where answers usually lie; the answer hangs not on it."""


class Bound(StrEnum):
    """What keeps a value from being larger."""

    MEMORY = "memory"  # `next` is allowed and does not fit
    FIELD = "field"  # the field's own maximum
    SCENARIO = "scenario"  # the next values are refused in this set-up; `issue` says why


@dataclass(frozen=True, slots=True)
class Solution:
    """The largest value of a field that fits, and the next one as proof.

    ``largest`` is ``None`` where not even the least allowed value fits (``next`` is that value, or
    ``None`` where none is allowed at all).  ``next`` is the least allowed value above ``largest``;
    it does not fit.  It is ``None`` where ``bound`` is not the memory.
    """

    path: str
    bound: Bound
    at_largest: Answer | None
    at_next: Answer | None
    issue: Issue | None
    calls: int
    """How many estimates it took."""

    @property
    def largest(self) -> int | None:
        return self._value(self.at_largest)

    @property
    def next(self) -> int | None:
        return self._value(self.at_next)

    @property
    def estimate(self) -> Estimate | None:
        """The estimate at :attr:`largest`."""
        return None if self.at_largest is None else self.at_largest.estimate

    @property
    def next_estimate(self) -> Estimate | None:
        """The estimate at :attr:`next`."""
        return None if self.at_next is None else self.at_next.estimate

    @property
    def peak_bytes(self) -> int | None:
        return None if self.estimate is None else self.estimate.peak_bytes

    @property
    def next_peak_bytes(self) -> int | None:
        return None if self.next_estimate is None else self.next_estimate.peak_bytes

    def _value(self, answer: Answer | None) -> int | None:
        return None if answer is None else get(answer.scenario, self.path)


def solve(
    scenario: Scenario,
    path: str,
    ask: Asker | None = None,
    within: Within = fits,
    beyond: int = BEYOND,
) -> Solution:
    """The largest whole number at ``path`` with which ``scenario`` fits; all else stays as it is.

    What fits is for ``within`` to say; ``beyond`` is how far (doublings) what fits again is looked for.
    No larger value fits where a value needs no less than itself with its last binary digits cleared (see
    the head of this module).  The present value at ``path`` decides nothing.

    Raises:
        KeyError: there is no such field.
        ScenarioError: it holds no whole number, or has no effect in this scenario.
    """
    field = _searchable(scenario, path)
    return _Search(scenario, field, Asker() if ask is None else ask, within, beyond).solution()


def _searchable(scenario: Scenario, path: str) -> Field:
    field = BY_PATH[path]
    if field.kind not in WHOLE:
        numbers = ", ".join(
            one.path for one in BY_PATH.values() if one.kind in WHOLE and one.applies(scenario)
        )
        raise _refusal(
            "no_whole_number",
            path,
            QT_TRANSLATE_NOOP("messages", "{path} holds no whole number, so it has no largest value."),
            Message(QT_TRANSLATE_NOOP("messages", "Allowed: {allowed}."), {"allowed": numbers}),
        )
    if not field.applies(scenario):
        raise _refusal(
            "no_effect", path, QT_TRANSLATE_NOOP("messages", "{path} has no effect in this set-up.")
        )
    return field


def _refusal(code: str, path: str, text: str, allowed: Message | None = None) -> ScenarioError:
    return ScenarioError(Issue("error", code, (path,), Message(text, {"path": path}), allowed))


def _turns(scenario: Scenario) -> tuple[int, ...]:
    """Lengths from which a model may run other kernels: its windows, and half of them around a token."""
    windows = (scenario.model.sliding_window, scenario.model.attention_chunk_size)
    return tuple(length for one in windows if one for length in (one // 2, one))


class _Search:
    """One search, upwards from the least value: ``low`` always fits."""

    def __init__(self, scenario: Scenario, field: Field, ask: Asker, within: Within, beyond: int) -> None:
        self.within = within
        self.beyond = beyond
        self.scenario = scenario
        self.path = field.path
        self.ask = ask
        self.before = ask.calls
        self.least = int(field.minimum if field.minimum is not None else 0)
        self.most = int(field.maximum if field.maximum is not None else 2**62)
        self.first = FIRST[field.kind]
        self.turns = _turns(scenario) if field.kind is Kind.TOKENS else ()
        self.asked: dict[int, Answer] = {}
        self.lacking: set[int] = set()
        self.foretold = within in (fits, surely_fits)  # what lacks memory for sure needs no estimate

    def at(self, value: int) -> Answer:
        answer = self.asked.get(value)
        if answer is None:
            answer = self.asked[value] = self.ask(replace(self.scenario, self.path, value))
        return answer

    def fits(self, value: int) -> bool:
        if value > self.most or value in self.lacking:
            return False
        if self.foretold and value not in self.asked:
            scenario = replace(self.scenario, self.path, value)
            if self.ask.lacks(scenario) is not None:
                self.lacking.add(value)
                return False
            self.asked[value] = self.ask(scenario)
        found = self.at(value).estimate
        return found is not None and self.within(found)

    def solution(self) -> Solution:
        least: int | None = self.least
        if self.at(self.least).issue is not None:
            least = self.allowed_above(self.least)
        if least is None:
            return self.found(Bound.SCENARIO, None, issue=self.at(self.least).issue)
        low: int | None = least if self.fits(least) else self.further(least)
        if low is None:
            return self.found(Bound.MEMORY, None, least)
        unit = 1
        while True:
            low = self.climb(low, unit)
            if low == self.most:
                return self.found(Bound.FIELD, low)
            following = self.allowed_above(low)
            if following is None:
                return self.found(Bound.SCENARIO, low, issue=self.at(low + 1).issue)
            if self.fits(following):  # an uneven row of allowed values goes on in its latest step
                low, unit = following, following - low
                continue
            again = self.further(following)
            if again is None:
                return self.found(Bound.MEMORY, low, following)
            low, unit = again, 1

    def climb(self, low: int, unit: int) -> int:
        """The last value that fits on the way up from ``low`` in multiples of ever smaller powers of two."""

        def above(power: int) -> int:
            return ((low // unit >> power) + 1 << power) * unit

        power = self.first
        while self.fits(above(power)):
            low = above(power)
            power += 1
        for smaller in reversed(range(power)):
            if self.fits(above(smaller)):
                low = above(smaller)
        return low

    def allowed_above(self, value: int) -> int | None:
        """The least value above ``value`` that can be computed; ``None`` where none is near."""
        for near in range(value + 1, min(value + NEAR, self.most) + 1):
            answer = self.asked.get(near)
            if answer is None and self.ask.forbids(replace(self.scenario, self.path, near)) is not None:
                continue
            if self.at(near).issue is None:
                return near
        return None

    def further(self, value: int) -> int | None:
        """A value above ``value``, which does not fit, with which it fits again; ``None`` if none is found.

        Looked for a power of two above, where the model turns to other kernels, and at the present value.
        """
        if not self.beyond:
            return None
        present: int | None = get(self.scenario, self.path)
        for one in (*(value + (1 << power) for power in range(self.beyond)), *self.turns, present):
            if one is not None and one > value and self.fits(one):
                return one
        return None

    def found(
        self, bound: Bound, largest: int | None, following: int | None = None, issue: Issue | None = None
    ) -> Solution:
        return Solution(
            self.path,
            bound,
            None if largest is None else self.at(largest),
            None if following is None else self.at(following),
            issue,
            self.ask.calls - self.before,
        )
