"""Texts of the field table and of messages, in the person's language."""

from __future__ import annotations

import re
from functools import partial

from PySide6.QtCore import QCoreApplication

from memgui.spec import Issue, Message
from memgui.spec.fields import BY_PATH, SECTIONS, Field
from memgui.spec.messages import Named, Value, counted

_LONG = r"[^\s/-]{28,}"
"""A word too long for a narrow line: a commit's name, a number of fifty digits."""
_PART = r".{14}(?=.)"


def field_text(text: str) -> str:
    """A text of the field table (label, help, unit, choice, note)."""
    return QCoreApplication.translate("fields", text) if text else ""


def label(path: str) -> str:
    """The label of the field at ``path``; the path itself where there is no such field."""
    field = BY_PATH.get(path)
    return path if field is None else field_text(field.label)


def section_title(key: str) -> str:
    """The title of a section of the form."""
    return field_text(SECTIONS[key])


def message_text(message: Message) -> str:
    """A message with its values; a field is called by its label, not by its path."""
    return _labelled(message).said(partial(QCoreApplication.translate, "messages"))


def _labelled(message: Message) -> Message:
    args = {key: _shown(key, value) for key, value in message.args.items()}
    return Message(message.template, args)


def _shown(key: str, value: Value) -> Value:
    if isinstance(value, Message):
        return _labelled(value)
    if isinstance(value, Named):
        return named_text(value)
    return label(value) if key == "path" and isinstance(value, str) else value


def issue_text(issue: Issue) -> str:
    """What is wrong, and what is allowed after it."""
    return message_text(issue.whole)


def value_text(field: Field, value: object) -> str:
    """A field's value as a person reads it: the choice's label, on or off, the figure grouped."""
    if value is None:
        return field_text(field.empty_label)
    if isinstance(value, bool):
        return (
            QCoreApplication.translate("fields", "on")
            if value
            else QCoreApplication.translate("fields", "off")
        )
    if isinstance(value, (int, float)):
        return counted(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    choice = field.choice(value)
    return field_text(choice.label) if choice is not None else str(value)


def named_text(named: Named) -> str:
    """A field, or values of it, by their labels."""
    field = BY_PATH.get(named.path)
    if field is None:
        return named.text
    return ", ".join(value_text(field, value) for value in named.values) or field_text(field.label)


def breakable(text: str) -> str:
    """``text`` with places in long words where a line may end; nothing is seen of them."""
    return re.sub(_LONG, lambda word: re.sub(_PART, "\\g<0>\N{ZERO WIDTH SPACE}", word.group()), text)
