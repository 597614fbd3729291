"""What rules that look for ways are given, and what they propose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memgui.catalog import DeviceEntry
from memgui.planning.ask import Asker, surely_fits
from memgui.planning.changes import Change, apply
from memgui.planning.devices import MOST
from memgui.planning.ways.together import Together
from memgui.planning.words import Said
from memgui.spec import Issue, Scenario


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes that belong together; ``title`` where the first change does not say what it is."""

    changes: tuple[Change, ...]
    title: Said | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What rules work with: the asker, the devices on offer, and of fields with many choices a few.

    ``together`` is there where a rule looks for a second change.  ``most`` devices are asked about.
    """

    ask: Asker
    devices: Sequence[DeviceEntry] = ()
    favoured: Mapping[str, frozenset[object]] = field(default_factory=dict)
    together: Together | None = None
    most: int = MOST

    def rules_out(self, scenario: Scenario, changes: Sequence[Change]) -> bool:
        """Whether ``scenario`` with ``changes`` made need not be looked at: it lacks too much."""
        return self.together is not None and self.together.lacks(scenario, changes) is not None

    def may_do(self, scenario: Scenario, changes: Sequence[Change]) -> bool:
        """Whether ``scenario`` may fit with ``changes`` made, as far as is known without an estimate."""
        return not self.rules_out(scenario, changes) and self.ask.lacks(apply(scenario, changes)) is None

    def is_enough(self, scenario: Scenario, changes: Sequence[Change]) -> bool:
        """Whether ``scenario`` surely fits with ``changes`` made."""
        if self.rules_out(scenario, changes):
            return False
        changed = apply(scenario, changes)
        if self.ask.lacks(changed) is not None:
            return False
        found = self.ask(changed).estimate
        return found is not None and surely_fits(found)

    def prohibition(self, scenario: Scenario, changes: Sequence[Change]) -> Issue | None:
        """What validation has against ``scenario`` with ``changes`` made."""
        return self.ask.forbids(apply(scenario, changes))

    def refusal(self, scenario: Scenario, changes: Sequence[Change]) -> Issue | None:
        """Why nothing can be said of ``scenario`` with ``changes`` made; ``None`` where something can."""
        if self.rules_out(scenario, changes):
            return None
        changed = apply(scenario, changes)
        return None if self.ask.lacks(changed) is not None else self.ask(changed).issue


Rule = Callable[[Scenario, Means], Iterator[Proposal]]
