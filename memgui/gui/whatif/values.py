"""Values of swept fields as they are written on axes, tags and cells."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QCoreApplication

from memgui.gui.form.number_box import number_text
from memgui.gui.numbers import Numbers
from memgui.gui.texts import field_text
from memgui.spec.fields import BY_PATH, Kind

translate = QCoreApplication.translate


def value_text(path: str, value: int | float, numbers: Numbers) -> str:
    """Every digit; bytes in the chosen unit."""
    field = BY_PATH[path]
    if field.kind is Kind.BYTES:
        return numbers.tip(int(value))
    return numbers.grouped(value) if isinstance(value, int) else number_text(field, value)


def axis_value(path: str, value: int | float, numbers: Numbers) -> str:
    """Short: ``4k`` tokens, bytes in the chosen unit."""
    field = BY_PATH[path]
    if field.kind is Kind.TOKENS and isinstance(value, int):
        return numbers.tokens(value)
    if field.kind is Kind.BYTES:
        return numbers.one(int(value))
    return value_text(path, value, numbers)


def axis_title(path: str, numbers: Numbers) -> str:
    """The field and its unit, unless the name says that too."""
    field = BY_PATH[path]
    name = field_text(field.label)
    unit = numbers.unit if field.kind is Kind.BYTES else field_text(field.unit)
    if not unit or unit.casefold() in name.casefold():
        return name
    return translate("what_if", "{field}, {unit}").format(field=name, unit=unit)


def step_text(values: Mapping[str, int | float], numbers: Numbers) -> str:
    """What an undo step that sets these values is called."""
    return ", ".join(
        f"{field_text(BY_PATH[path].label)} {value_text(path, value, numbers)}"
        for path, value in values.items()
    )
