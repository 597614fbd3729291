"""What a place takes, said of its Python type: for values of another type that files and callers give."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from memgui.spec.messages import QT_TRANSLATE_NOOP, Message, Value

ALLOWED: Final = QT_TRANSLATE_NOOP("messages", "Allowed: {allowed}.")
_NAMES: Final[dict[Any, str]] = {
    bool: QT_TRANSLATE_NOOP("messages", "true or false"),
    int: QT_TRANSLATE_NOOP("messages", "a whole number"),
    float: QT_TRANSLATE_NOOP("messages", "a number"),
    str: QT_TRANSLATE_NOOP("messages", "a text"),
    tuple: QT_TRANSLATE_NOOP("messages", "a list"),
    dict: QT_TRANSLATE_NOOP("messages", "an object"),
}
_TEXTS: Final = QT_TRANSLATE_NOOP("messages", "a list of texts")


def allowed_type(kind: Any) -> Message:
    """The sentence of what values of the type ``kind`` are, as JSON and people call them."""
    return Message(ALLOWED, {"allowed": _noun(kind)})


def wrong_place(error: msgspec.ValidationError) -> str:
    """Where in a file's values msgspec found the wrong one, ``""`` where it does not say: ``[2].pasted``."""
    found = re.search(r" - at `(?:key in )?\$?\.?([^`]*)`$", str(error))
    return found[1] if found else ""


def _noun(kind: Any) -> Value:
    if get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        longest = next((meta.max_length for meta in more if isinstance(meta, msgspec.Meta)), None)
        if longest is not None and kind is str:
            text = QT_TRANSLATE_NOOP("messages", "a text of at most {longest} characters")
            return Message(text, {"longest": longest})
    if get_origin(kind) is Literal:
        return ", ".join(map(str, get_args(kind)))
    if get_origin(kind) in (Union, UnionType):
        parts = [part for part in get_args(kind) if part is not NoneType]
        text = QT_TRANSLATE_NOOP("messages", "{allowed}, or null")
        return Message(text, {"allowed": _noun(parts[0])}) if len(parts) == 1 else Message(_NAMES[dict])
    plain = get_origin(kind) or kind
    if plain is tuple and get_args(kind)[:1] == (str,):
        return Message(_TEXTS)
    return Message(_NAMES.get(plain, _NAMES[dict]))
