"""Values of fields as a person reads them, without Qt."""

from __future__ import annotations

from typing import Any

from memgui.planning.words import Words
from memgui.spec import QT_TRANSLATE_NOOP
from memgui.spec.fields import Field, Kind

MOST_ITEMS = 8
_ON = QT_TRANSLATE_NOOP("fields", "on")
_OFF = QT_TRANSLATE_NOOP("fields", "off")


def value_text(field: Field, value: Any, words: Words) -> str:
    """``value`` of ``field``: a choice by its label, bytes in the chosen unit, figures grouped."""
    if value is None:
        return words.translate("fields", field.empty_label)
    if isinstance(value, bool):
        return words.translate("fields", _ON if value else _OFF)
    if field.kind is Kind.BYTES:
        return f"{words.size(value)} ({words.exact(value)})"
    if isinstance(value, int):
        # other units name things and would have to be put in the singular
        unit = f" {words.translate('fields', field.unit)}" if field.kind is Kind.TOKENS and field.unit else ""
        return words.count(value) + unit
    if isinstance(value, tuple):
        shown = [_choice(field, item, words) for item in value[:MOST_ITEMS]]
        more = len(value) - MOST_ITEMS
        return ", ".join(shown) + (f", … (+{words.count(more)})" if more > 0 else "")
    return _choice(field, value, words)


def _choice(field: Field, value: Any, words: Words) -> str:
    choice = field.choice(value)
    return str(value) if choice is None else words.translate("fields", choice.label)
