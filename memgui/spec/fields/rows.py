"""Short ways to write the rows of a model's fields."""

from __future__ import annotations

from collections.abc import Callable

from memgui.spec.fields.field import Choice, Field, Kind, always
from memgui.spec.scenario import Scenario

Applies = Callable[[Scenario], bool]


def count(
    name: str,
    label: str,
    help_: str,
    *,
    minimum: int = 1,
    maximum: int = 10**9,
    usual_maximum: int | None = None,
    log_scale: bool = False,
    advanced: bool = False,
    empty_label: str = "",
    applies: Applies = always,
) -> Field:
    """A whole number; it may be left open where ``empty_label`` says what that means."""
    return Field(
        f"model.{name}",
        Kind.COUNT,
        label,
        help_,
        section="model",
        minimum=minimum,
        maximum=maximum,
        usual_maximum=usual_maximum,
        log_scale=log_scale,
        advanced=advanced,
        optional=bool(empty_label),
        empty_label=empty_label,
        applies=applies,
    )


def size(name: str, label: str, help_: str, *, applies: Applies = always) -> Field:
    """An advanced whole number that is 0 where a model has no such part."""
    return count(name, label, help_, minimum=0, advanced=True, applies=applies)


def flag(name: str, label: str, help_: str, *, applies: Applies = always) -> Field:
    """An advanced on/off field."""
    return Field(f"model.{name}", Kind.FLAG, label, help_, section="model", advanced=True, applies=applies)


def ratio(
    name: str,
    label: str,
    help_: str,
    *,
    maximum: float = 0.99,
    empty_label: str = "",
    applies: Applies = always,
) -> Field:
    """An advanced number from 0 to ``maximum``."""
    return Field(
        f"model.{name}",
        Kind.RATIO,
        label,
        help_,
        section="model",
        minimum=0.0,
        maximum=maximum,
        optional=bool(empty_label),
        empty_label=empty_label,
        advanced=True,
        applies=applies,
    )


def choice(name: str, label: str, help_: str, *choices: Choice, applies: Applies = always) -> Field:
    """An advanced choice of one."""
    return Field(
        f"model.{name}",
        Kind.CHOICE,
        label,
        help_,
        section="model",
        choices=choices,
        advanced=True,
        applies=applies,
    )
