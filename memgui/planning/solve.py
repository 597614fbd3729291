"""The largest value of a field that fits, exact: galloping, then bisection, on the estimator itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memgui.estimator.result import Estimate
from memgui.planning.ask import Answer, Asker, Within, fits
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message, Scenario, ScenarioError, get, replace
from memgui.spec.fields import BY_PATH, Field, Kind

WHOLE = (Kind.COUNT, Kind.TOKENS, Kind.BYTES)
"""Kinds of fields that hold a whole number."""

NEAR = 128
"""How far above a value the next allowed one is looked for, where not every value is allowed."""

BEYOND = 11
"""How many doublings past the first value that does not fit are tried, for one that fits again."""


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

    What fits is for ``within`` to say; ``beyond`` is how far it is looked for after a dip (doublings).
    Exact where the need grows with the field.  Where
    it dips on the way (allocator blocks, kernels that pad), the answer still fits, the next allowed
    value does not, and no dip within a thousand steps is missed that holds at a doubling.

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


class _Search:
    """One search: ``low`` always fits, what lies at ``high`` does not or is not allowed."""

    def __init__(self, scenario: Scenario, field: Field, ask: Asker, within: Within, beyond: int) -> None:
        self.within = within
        self.beyond = beyond
        self.scenario = scenario
        self.path = field.path
        self.ask = ask
        self.before = ask.calls
        self.least = int(field.minimum if field.minimum is not None else 0)
        self.most = int(field.maximum if field.maximum is not None else 2**62)
        self.asked: dict[int, Answer] = {}
        self.wary = True

    def at(self, value: int) -> Answer:
        answer = self.asked.get(value)
        if answer is None:
            answer = self.asked[value] = self.ask(replace(self.scenario, self.path, value))
        return answer

    def fits(self, value: int) -> bool:
        if self.wary and value not in self.asked:
            # what fails whatever the value is needs no estimate
            self.wary = self.ask.lacks(replace(self.scenario, self.path, value)) is not None
            if self.wary:
                return False
        found = self.at(value).estimate
        return found is not None and self.within(found)

    def solution(self) -> Solution:
        start = self.start()
        if isinstance(start, Solution):
            return start
        (low, high), stride = start, 1
        while True:
            if high is None:
                low, high = self.bracket(low, stride)
            if high is None:
                return self.found(Bound.FIELD, low)
            low = self.bisect(low, high, stride)
            following = self.allowed_above(low)
            if following is None:
                return self.found(Bound.SCENARIO, low, issue=self.at(low + 1).issue)
            again = self.fitting_from(following)
            if again is None:
                return self.found(Bound.MEMORY, low, following)
            # an uneven row of allowed values goes on in its latest step, a dip in steps of one
            stride = following - low if again == following else 1
            low, high = again, None

    def start(self) -> tuple[int, int | None] | Solution:
        """A value that fits, and a larger one that does not where that is known.

        Looked for down from the present value: half of it, half of that, … the least.
        """
        present: Any = get(self.scenario, self.path)
        known = present is not None and self.least <= present <= self.most
        if known and self.fits(present):
            return int(present), None
        least = self.least if self.at(self.least).issue is None else self.allowed_above(self.least)
        if least is None:
            return self.found(Bound.SCENARIO, None, issue=self.at(self.least).issue)
        if not self.fits(least):
            return self.found(Bound.MEMORY, None, least)
        high = int(present) if known else None
        low = least if high is None else max(high // 2, least)
        while high is not None and low > least and not self.fits(low):
            low, high = max(low // 2, least), low
        return low, high

    def bracket(self, low: int, stride: int) -> tuple[int, int | None]:
        """Doubling steps up from ``low``: the last value that fits and the first that does not."""
        step = stride
        while low < self.most:
            high = min(low + step, self.most)
            if not self.fits(high):
                return low, high
            low, step = high, step * 2
        return low, None

    def bisect(self, low: int, high: int, stride: int) -> int:
        """The last of ``low``, ``low + stride``, … below ``high`` that fits."""
        while high - low > stride:
            middle = low + max((high - low) // stride // 2, 1) * stride
            if self.fits(middle):
                low = middle
            else:
                high = middle
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

    def fitting_from(self, value: int) -> int | None:
        """``value`` or one a power of two above it, where that fits; ``None`` where none does."""
        if self.fits(value):
            return value
        for power in range(self.beyond):
            further = value + (1 << power)
            if further > self.most:
                break
            if self.fits(further):
                return further
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
