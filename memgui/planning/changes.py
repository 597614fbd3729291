"""A change to a scenario as data: what was, what becomes of it, at which path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memgui.spec import Scenario, get, replace
from memgui.spec.fields import FIELDS


@dataclass(frozen=True, slots=True)
class Change:
    """The field at ``path`` goes from ``old`` to ``new``."""

    path: str
    old: Any
    new: Any


def change(scenario: Scenario, path: str, new: Any) -> Change:
    """The change that sets ``path`` to ``new``."""
    return Change(path, get(scenario, path), new)


def apply(scenario: Scenario, changes: Iterable[Change]) -> Scenario:
    """``scenario`` with every change made, in order."""
    for one in changes:
        scenario = replace(scenario, one.path, one.new)
    return scenario


def differences(old: Scenario, new: Scenario) -> tuple[Change, ...]:
    """What leads from ``old`` to ``new``: every field that differs, in table order.

    A field that has no effect in either scenario is left out.
    """
    found: list[Change] = []
    for field in FIELDS:
        before, after = get(old, field.path), get(new, field.path)
        if before != after and (field.applies(old) or field.applies(new)):
            found.append(Change(field.path, before, after))
    return tuple(found)
