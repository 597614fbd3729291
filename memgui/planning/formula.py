"""A derivation's formula, taken apart: what to show of it, and what it evaluates to.

Grammar: integers and symbols joined by ``+ - * //`` and brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from memgui.estimator.result import Derivation, Symbol


class Kind(Enum):
    """What a token is."""

    SYMBOL = "symbol"
    NUMBER = "number"
    OPERATOR = "operator"
    OPEN = "("
    CLOSE = ")"


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a formula; symbols carry what they stand for, numbers and symbols their value."""

    kind: Kind
    text: str
    value: int = 0
    symbol: Symbol | None = None


_PIECE = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*])|(\()|(\)))")
_SHOWN = {"*": "·", "//": "÷", "-": "\u2212", "+": "+"}


def tokens_of(derivation: Derivation) -> tuple[Token, ...]:
    """The formula's tokens in order.

    Raises:
        ValueError: the formula has something else in it, or a symbol without a value.
    """
    formula = derivation.formula.strip()
    found: list[Token] = []
    at = 0
    while at < len(formula):
        piece = _PIECE.match(formula, at)
        if piece is None:
            raise ValueError(f"{formula!r} cannot be read at {formula[at:]!r}")
        number, name, operator, opened, closed = piece.groups()
        if number:
            found.append(Token(Kind.NUMBER, number, int(number)))
        elif name:
            symbol = derivation.symbols.get(name)
            if symbol is None:
                raise ValueError(f"{formula!r} has no value for {name!r}")
            found.append(Token(Kind.SYMBOL, name, symbol.value, symbol))
        elif operator:
            found.append(Token(Kind.OPERATOR, operator))
        else:
            found.append(Token(Kind.OPEN if opened else Kind.CLOSE, opened or closed))
        at = piece.end()
    return tuple(found)


def operator_text(operator: str) -> str:
    """How an operator is printed; ``÷`` is division without remainder."""
    return _SHOWN[operator]


def value_of(tokens: tuple[Token, ...]) -> int:
    """What the formula comes to with its values put in; ``ValueError`` where it is not well formed."""
    value, rest = _sum(tokens)
    if rest:
        raise ValueError(f"{rest[0].text!r} is out of place")
    return value


def _sum(tokens: tuple[Token, ...]) -> tuple[int, tuple[Token, ...]]:
    value, rest = _product(tokens)
    while rest and rest[0].kind is Kind.OPERATOR and rest[0].text in "+-":
        sign = 1 if rest[0].text == "+" else -1
        further, rest = _product(rest[1:])
        value += sign * further
    return value, rest


def _product(tokens: tuple[Token, ...]) -> tuple[int, tuple[Token, ...]]:
    value, rest = _factor(tokens)
    while rest and rest[0].kind is Kind.OPERATOR and rest[0].text in ("*", "//"):
        divides = rest[0].text == "//"
        further, rest = _factor(rest[1:])
        if divides and further == 0:
            raise ValueError("division by zero")
        value = value // further if divides else value * further
    return value, rest


def _factor(tokens: tuple[Token, ...]) -> tuple[int, tuple[Token, ...]]:
    if not tokens:
        raise ValueError("the formula ends too soon")
    first, rest = tokens[0], tokens[1:]
    if first.kind in (Kind.NUMBER, Kind.SYMBOL):
        return first.value, rest
    if first.kind is Kind.OPERATOR and first.text == "-":
        value, rest = _factor(rest)
        return -value, rest
    if first.kind is Kind.OPEN:
        value, rest = _sum(rest)
        if not rest or rest[0].kind is not Kind.CLOSE:
            raise ValueError("a bracket is not closed")
        return value, rest[1:]
    raise ValueError(f"{first.text!r} is out of place")
