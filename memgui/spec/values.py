"""Typed or pasted values: ``128k``, ``7B``, ``1e9``, ``24 GiB``, ``true``, and what is wrong with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from memgui.spec.fields import BY_PATH, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, ScenarioError, Value, allowed, one_line

if TYPE_CHECKING:
    from fractions import Fraction

# Texts, for a start reads none: re compiles them when they are first asked for, and keeps them.
_NUMBER = (
    r"^((?:[+-]?[0-9][0-9,_\u00a0\u2009\u202f ']*(?:\.[0-9]*)?|[+-]?\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)"
    r"\s*([A-Za-zµ]*|%)$"
)
_POWERS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_TOKENS = {"": 1, "k": 2**10, "m": 2**20}
_SIZES = {"": 1, "b": 1, "byte": 1, "bytes": 1}
_SIZES |= {unit + tail: 10 ** (3 * power) for power, unit in enumerate("kmgt", 1) for tail in ("b",)}
_SIZES |= {unit + tail: 2 ** (10 * power) for power, unit in enumerate("kmgt", 1) for tail in ("ib",)}
_UNITS = {  # as they are usually written; any capitals are understood
    Kind.BYTES: "bytes, KB, MB, GB, TB, KiB, MiB, GiB, TiB",
    Kind.TOKENS: "k, M",
    Kind.RATIO: "%",
}
_GROUPED = r"[+-]?[0-9]{1,3}(?:,[0-9]{3})*(?![0-9,])"
_OTHER_GROUPS = "[_\u00a0\u2009\u202f ']"
_LONGEST = 60


def parse(path: str, text: str) -> Any:
    """The value that ``text`` means for the field at ``path``.

    In token fields ``k`` is 1,024, in counts k, M, B are powers of a thousand, byte fields take
    ``GiB`` and ``GB``, shares ``%``; ``1.5e9`` is exactly that number.  Nothing is clamped:
    :class:`ScenarioError` says what is allowed.
    ``KeyError`` where there is no such field.
    """
    field = BY_PATH[path]
    value = read(path, text)
    if field.kind in (Kind.COUNT, Kind.TOKENS, Kind.BYTES):
        _require_grouped(field, text)
    issue = check(field, value)
    if issue is not None:
        raise ScenarioError(issue)
    return value


def read(path: str, text: str) -> Any:
    """Like :func:`parse`, but of what is still being typed.

    A value outside the field's range is returned, not refused; so is a whole number with a comma where a
    digit may just be missing.
    """
    field = BY_PATH[path]
    text = text.strip()
    if text != one_line(text):
        raise _fault(
            field,
            one_line(text),
            QT_TRANSLATE_NOOP(
                "messages",
                "{path} cannot be “{value}”: characters that break a line or turn its direction are not "
                "allowed.",
            ),
        )
    if field.optional and text.lower() in ("", "none", "null", "auto"):
        return None
    match field.kind:
        case Kind.FLAG:
            return _flag(field, text)
        case Kind.CHOICE | Kind.TEXT:
            value: Any = text
        case Kind.CHOICES:
            value = tuple(part for part in re.split(r"[\s,]+", text) if part)
        case Kind.RATIO:
            value = _ratio(field, text)
        case _:
            from fractions import Fraction  # when something is typed, not at each start

            units = {Kind.TOKENS: _TOKENS, Kind.BYTES: _SIZES}.get(field.kind, _POWERS)
            number = _number(field, text, units)
            if field.kind is Kind.BYTES and text[-1:].isalpha():
                number = Fraction(round(number))  # 79.2 GiB is no whole number of bytes, and means one
            if number.denominator != 1:
                raise _fault(
                    field,
                    text,
                    QT_TRANSLATE_NOOP("messages", "{path} cannot be “{value}”: a whole number is needed."),
                )
            value = int(number)
    return value


def _ratio(field: Field, text: str) -> float:
    if text.endswith("%"):
        return float(_number(field, text, {"%": 1}) / 100)
    return float(_number(field, text, _POWERS))


def _flag(field: Field, text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "on", "yes", "1"):
        return True
    if lowered in ("false", "off", "no", "0"):
        return False
    raise _fault(
        field,
        text,
        QT_TRANSLATE_NOOP("messages", "{path} cannot be “{value}”. {allowed}"),
        allowed=allowed(field.path, True, False),
    )


def _number(field: Field, text: str, units: dict[str, int]) -> Fraction:
    from fractions import Fraction  # when something is typed, not at each start

    matched = re.match(_NUMBER, text) if len(text) <= _LONGEST else None
    unit = matched.group(2).lower() if matched else ""
    if matched is None or unit not in units:
        known = _UNITS.get(field.kind, "k, M, B, T")
        raise _fault(
            field,
            text,
            QT_TRANSLATE_NOOP(
                "messages",
                "{path} cannot be “{value}”: a number is needed, with one of these after it or nothing: "
                "{known}.",
            ),
            known=known,
        )
    if unit or field.kind is Kind.RATIO:  # else a digit may just be missing
        _require_grouped(field, text)
    try:
        return Fraction(re.sub(r"[^0-9.eE+-]", "", matched.group(1))) * units[unit]
    except ValueError:
        raise _fault(
            field, text, QT_TRANSLATE_NOOP("messages", "{path} cannot be “{value}”: a number is needed.")
        ) from None


def _require_grouped(field: Field, text: str) -> None:
    if not commas_part_thousands(text):
        raise _fault(
            field,
            text,
            QT_TRANSLATE_NOOP(
                "messages",
                "{path} cannot be “{value}”: a comma parts thousands, a point parts decimals.",
            ),
        )


def commas_part_thousands(text: str) -> bool:
    """Whether commas in a number stand between groups of three, or there are none.

    24,5 GiB means 24.5 to half of the world, and 245 to nobody.
    """
    return "," not in text or re.match(_GROUPED, re.sub(_OTHER_GROUPS, "", text)) is not None


def _fault(field: Field, value: str, template: str, **more: Value) -> ScenarioError:
    message = Message(template, {"path": field.path, "value": value[:80], **more})
    return ScenarioError(Issue("error", "bad_value", (field.path,), message))


def check(field: Field, value: Any) -> Issue | None:
    """What forbids ``value`` (already of the right type) in ``field``, or ``None``."""
    if value is None:
        return None
    if field.kind is Kind.CHOICE and field.choice(value) is None:
        return _not_allowed(field, value)
    if field.kind is Kind.CHOICES and not field.open_choices:
        unknown = next((item for item in value if field.choice(item) is None), None)
        if unknown is not None:
            return _not_allowed(field, unknown)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = field.minimum, field.maximum
        inside = (low is None or value >= low) and (high is None or value <= high)
        if value != value or not inside:
            assert low is not None
            if high is None:
                text = QT_TRANSLATE_NOOP("messages", "Allowed: {low} or more.")
                return _out_of(field, value, Message(text, {"low": low}))
            text = QT_TRANSLATE_NOOP("messages", "Allowed: {low} to {high}.")
            return _out_of(field, value, Message(text, {"low": low, "high": high}))
    return None


def _not_allowed(field: Field, value: object) -> Issue:
    return _out_of(field, value, allowed(field.path, *(choice.value for choice in field.choices)))


def _out_of(field: Field, value: object, range_: Message) -> Issue:
    shown: str | int | float = value if isinstance(value, (int, float)) else str(value)[:80] or "“”"
    return Issue(
        "error",
        "not_allowed",
        (field.path,),
        Message(
            QT_TRANSLATE_NOOP("messages", "{path} cannot be {value}."), {"path": field.path, "value": shown}
        ),
        range_,
    )
