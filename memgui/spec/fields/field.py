"""The shape of one row of the field table."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from memgui.spec.scenario import Scenario


class Kind(StrEnum):
    """What sort of value a field holds, and so which editor shows it."""

    COUNT = "count"  # int; k, M, B are powers of a thousand
    TOKENS = "tokens"  # int; k is 1,024
    BYTES = "bytes"  # int; takes GiB and GB
    RATIO = "ratio"  # float
    CHOICE = "choice"  # one of `choices`, a str
    CHOICES = "choices"  # some of `choices` (or any name, where `open_choices`), a tuple of str
    FLAG = "flag"  # bool
    TEXT = "text"  # str


class Choice(msgspec.Struct, frozen=True):
    """One value of a choice field.  ``note`` is the small second word in the list."""

    value: str
    label: str
    note: str = ""
    help: str = ""


def always(scenario: Scenario) -> bool:
    """The predicate of fields that apply to every scenario."""
    return True


class Field(msgspec.Struct, frozen=True):
    """One field of a scenario.

    ``minimum`` and ``maximum`` are hard: a value outside is refused.  ``usual_minimum`` and
    ``usual_maximum`` only raise a note.  ``optional`` fields may be ``None`` ("as the model
    says"); ``empty_label`` says what that means.  ``applies`` tells whether the field has any
    effect in a scenario; a field that does not apply keeps its value.  Texts are English msgids
    (context ``"fields"``).
    """

    path: str
    kind: Kind
    label: str
    help: str
    section: str
    unit: str = ""
    minimum: int | float | None = None
    maximum: int | float | None = None
    usual_minimum: int | float | None = None
    usual_maximum: int | float | None = None
    choices: tuple[Choice, ...] = ()
    open_choices: bool = False
    optional: bool = False
    empty_label: str = ""
    log_scale: bool = False
    advanced: bool = False
    applies: Callable[[Scenario], bool] = always
    why_not: str = ""
    """Said (as a tooltip) where ``applies`` is false but the field is shown disabled."""

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]

    def choice(self, value: Any) -> Choice | None:
        """The choice with this value, if there is one."""
        return next((choice for choice in self.choices if choice.value == value), None)
