"""How a reason is said: the sentence with its figures, and what a change is called."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from memgui.planning.changes import Change
from memgui.planning.measured.beside import Beside
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP, Message
from memgui.spec.fields import BY_PATH

NEAR = Fraction(1, 100)
"""How near (as a share of the measured figure) counts as the same."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One possible reason.  ``remains`` is how far (bytes, absolute) the figures are apart with it.

    ``changes``, where there are any, make the scenario that the reason speaks of.
    """

    said: Said
    remains: int | None = None
    changes: tuple[Change, ...] = ()


def sentence(
    template: str,
    words: dict[str, str | tuple[str, str]] | None = None,
    messages: dict[str, Message] | None = None,
    **numbers: int,
) -> Said:
    """``numbers`` that end in ``_count`` are counts, all others sizes."""
    counts = {name: number for name, number in numbers.items() if name.endswith("_count")}
    sizes = {name: number for name, number in numbers.items() if name not in counts}
    return Said(template, sizes, counts, words or {}, messages or {}, "measured")


def near(size: int, row: Beside) -> bool:
    """Whether ``size`` is what was measured, to the digits that were printed or a hundredth."""
    return abs(row.figure.bytes - size) <= max(row.tolerance, int(row.figure.bytes * NEAR))


def change_words(one: Change) -> dict[str, str | tuple[str, str]]:
    """The field and the value of a change, for ``{field}`` and ``{value}``."""
    return {"field": ("fields", BY_PATH[one.path].label), "value": _value(one)}


def _value(one: Change) -> str | tuple[str, str]:
    if isinstance(one.new, bool):
        on, off = QT_TRANSLATE_NOOP("fields", "on"), QT_TRANSLATE_NOOP("fields", "off")
        return ("fields", on if one.new else off)
    if isinstance(one.new, float):
        return f"{one.new:g}"
    choice = BY_PATH[one.path].choice(one.new)
    return str(one.new) if choice is None else ("fields", choice.label)
