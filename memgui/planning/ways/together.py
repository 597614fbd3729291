"""What two changes need at the least when both are made, from what each does alone.

At any moment two changes together take away no more of a component than the one does and the other; what
the first adds to it the second is taken to take away again.  That is no law: a kernel may be free to run
after both changes only.  So some slack is left, and what is told is a reason not to look, never a figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memgui.planning.ask import Asker, Floors
from memgui.planning.changes import Change, apply
from memgui.spec import Scenario
from memgui.spec.fields import BY_PATH

SLACK = 8
"""Of what two changes are thought to need at the least, one part in so many may be wrong."""


CAPACITY = "device.memory_bytes"


Moment = list[tuple[str, int, int]]
"""Components at a moment: bytes before any change, and how many of them the first change leaves."""


class Together:
    """Looks at two changes from ``base``, the second of which is legal and matters alone."""

    def __init__(self, base: Scenario, ask: Asker) -> None:
        self._base = base
        self._ask = ask
        self._alone: dict[tuple[tuple[str, object], ...], _Alone] = {}
        self._first: Scenario | None = None
        self._moments: list[Moment] = []
        self._peak: Mapping[str, int] | None = None

    def lacks(self, first: Scenario, second: Sequence[Change]) -> int | None:
        """Bytes that ``first`` with ``second`` made probably lacks at the least."""
        key = tuple([(one.path, one.new) for one in second])
        alone = self._alone.get(key)
        if alone is None:
            alone = self._alone[key] = self._of(second)
        if not alone.floors:
            return None
        if first is not self._first:
            self._look_at(first)
        need = max([_least(*moment) for moment in zip(self._moments, alone.floors, strict=False)], default=0)
        peak = self._peak if alone.walks else None
        if peak is not None:
            lying = _between(_lying(self._ask.floors(self._base)[0]), peak)
            need = max(need, peak["activations"] + _least(lying, alone.floors[0]))
        limit = next((one.new for one in second if one.path == CAPACITY), first.device.memory_bytes)
        missing: int = need - need // SLACK - limit
        return missing if missing >= 0 else None

    def _look_at(self, first: Scenario) -> None:
        """What is the same of ``first`` whatever the second change is."""
        moments = zip(self._ask.floors(self._base), self._ask.floors(first), strict=False)
        self._moments = [_between(*moment) for moment in moments]
        self._peak = self._ask.peak(first)
        self._first = first

    def _of(self, second: Sequence[Change]) -> _Alone:
        alone = apply(self._base, second)
        if alone == self._base or not all(BY_PATH[one.path].applies(alone) for one in second):
            return _Alone((), walks=False)
        return _Alone(self._ask.floors(alone), walks=self._ask.walks_alike(self._base, alone))


class _Alone(NamedTuple):
    """What the second change alone leads to: nothing is known where it does not matter alone.

    ``walks``: it leaves alone what is computed, so that no activations go.
    """

    floors: Floors
    walks: bool


def _lying(moment: Mapping[str, int]) -> Mapping[str, int]:
    """What lies still of a moment in which the optimizer steps."""
    return {key: moment[key] for key in ("weights", "gradients", "optimizer_states")}


def _between(base: Mapping[str, int], first: Mapping[str, int]) -> Moment:
    """Of each component at a moment what was there, and what of that is there after the first change."""
    return [(component, there, min(first[component], there)) for component, there in base.items()]


def _least(moment: Moment, alone: Mapping[str, int]) -> int:
    """Bytes at a moment after both changes; ``alone``: what is there after the second."""
    need = 0
    for component, there, left in moment:
        gone = there - alone[component]
        if gone <= 0:
            need += left
        elif gone < left:
            need += left - gone
    return need
