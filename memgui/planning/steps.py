"""How the numbers in a formula come about which no field holds: formulas of their own, and fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memgui.estimator.result import Derivation, Symbol
from memgui.planning.formula import Token, tokens_of
from memgui.planning.values import value_text
from memgui.planning.words import Words
from memgui.spec import Scenario, get
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import QT_TRANSLATE_NOOP


@dataclass(frozen=True, slots=True)
class Given:
    """A field that numbers follow from, and its value."""

    path: str
    value: Any

    def label(self, words: Words) -> str:
        """What the field is called."""
        return words.translate("fields", BY_PATH[self.path].label)

    def text(self, words: Words) -> str:
        """Its value as a person reads it."""
        return value_text(BY_PATH[self.path], self.value, words)


@dataclass(frozen=True, slots=True)
class Step:
    """How the letter called ``name`` comes to its value: ``tokens``, and fields that say the rest.

    Without tokens fields alone decide it.
    """

    name: str
    symbol: Symbol
    tokens: tuple[Token, ...]
    given: tuple[Given, ...]


def given(scenario: Scenario, derivation: Derivation) -> tuple[Given, ...]:
    """The fields that a derivation's plain numbers follow from, those that the scenario has."""
    held = {symbol.path for symbol in derivation.symbols.values()}
    paths = dict.fromkeys(path for path in derivation.depends if path not in held)
    return tuple(Given(path, get(scenario, path)) for path in paths if BY_PATH[path].applies(scenario))


def steps(scenario: Scenario, tokens: tuple[Token, ...]) -> tuple[Step, ...]:
    """A step for each letter in ``tokens`` that no field holds, and for the letters in these."""
    found: dict[tuple[str, str], Step] = {}
    _walk(scenario, tokens, found)
    return tuple(found.values())


def _walk(scenario: Scenario, tokens: tuple[Token, ...], found: dict[tuple[str, str], Step]) -> None:
    below: list[tuple[Token, ...]] = []
    for token in tokens:
        symbol = token.symbol
        if symbol is None or symbol.derivation is None or (token.text, symbol.label) in found:
            continue
        own = tokens_of(symbol.derivation) if symbol.derivation.symbols else ()
        step = Step(token.text, symbol, own, given(scenario, symbol.derivation))
        found[token.text, symbol.label] = step
        below.append(own)
    for own in below:
        _walk(scenario, own, found)


DEPENDS = QT_TRANSLATE_NOOP("why", "depends on")


def depends_text(fields: tuple[Given, ...], words: Words) -> Iterator[str]:
    """One line that names the fields and their values, if there are any."""
    if fields:
        named = ", ".join(f"{one.label(words)}: {one.text(words)}" for one in fields)
        yield f"{words.translate('why', DEPENDS)} {named}"
