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


class Together:
    """Looks at two changes from ``base``, the second of which is legal and matters alone."""

    def __init__(self, base: Scenario, ask: Asker) -> None:
        self._base = base
        self._ask = ask
        self._alone: dict[tuple[tuple[str, object], ...], _Alone] = {}

    def lacks(self, first: Scenario, second: Sequence[Change]) -> int | None:
        """Bytes that ``first`` with ``second`` made probably lacks at the least."""
        key = tuple([(one.path, one.new) for one in second])
        alone = self._alone.get(key)
        if alone is None:
            alone = self._alone[key] = self._of(second)
        if not alone.floors:
            return None
        base = self._ask.floors(self._base)
        moments = zip(base, self._ask.floors(first), alone.floors, strict=False)
        need = max([_least(*moment) for moment in moments], default=0)
        peak = self._ask.peak(first) if alone.walks else None
        if peak is not None:
            need = max(need, peak["activations"] + _least(_lying(base[0]), peak, alone.floors[0]))
        limit = next((one.new for one in second if one.path == CAPACITY), first.device.memory_bytes)
        missing: int = need - need // SLACK - limit
        return missing if missing >= 0 else None

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


def _least(base: Mapping[str, int], first: Mapping[str, int], alone: Mapping[str, int]) -> int:
    """Bytes at a moment after both changes, from those before, after the first and after the second."""
    return sum(
        max(0, min(first[component], there) - max(0, there - alone[component]))
        for component, there in base.items()
    )
