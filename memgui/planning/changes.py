"""A change to a scenario as data: what was, what becomes of it, at which path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from memgui.spec import Scenario, get, replace
from memgui.spec.fields import BY_PATH, FIELDS


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
    paths = differing(old, new)
    return tuple(
        Change(field.path, get(old, field.path), get(new, field.path))
        for field in FIELDS
        if field.path in paths and (field.applies(old) or field.applies(new))
    )


def differing(old: Scenario, new: Scenario) -> frozenset[str]:
    """Paths of all fields that differ, whether they have an effect or not; equal branches are not walked."""
    return frozenset(_differing(old, new, ""))


def _differing(one: msgspec.Struct, other: msgspec.Struct, above: str) -> Iterator[str]:
    for name in one.__struct_fields__:
        first, second = getattr(one, name), getattr(other, name)
        if first is second or first == second:
            continue
        path = above + name
        if isinstance(first, msgspec.Struct) and isinstance(second, msgspec.Struct) and path not in BY_PATH:
            yield from _differing(first, second, path + ".")
        else:
            yield path
