"""Places the pieces of an explanation: text, formula, numbers with captions, result.

A :class:`Flow` is what :mod:`memgui.gui.why.view` paints and asks for hits; it is made once for an
explanation and a width.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import zip_longest

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor

from memgui.gui.metrics import Metrics
from memgui.gui.theme import Look, Role
from memgui.planning.formula import Kind, Token, operator_text
from memgui.planning.steps import DEPENDS, Given, Step
from memgui.planning.why import (
    Explanation,
    divides,
    names_of,
    part_name,
    report_lists,
    sentences,
    symbol_label,
)
from memgui.planning.words import Words
from memgui.spec.messages import QT_TRANSLATE_NOOP

_SYMBOL = re.compile(r"([A-Za-z])(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A text in its place."""

    rect: QRectF
    text: str
    metrics: Metrics
    colour: QColor


@dataclass(frozen=True, slots=True)
class Link:
    """A number that leads to its field; ``rect`` takes number and caption.

    It leads to a ``component`` instead where it is the size of one.
    """

    rect: QRectF
    number: QRectF
    path: str
    name: str
    line: float
    component: str = ""

    def leads_as(self, other: Link) -> bool:
        """Whether both lead to the same place."""
        return (self.path, self.component) == (other.path, other.component)


@dataclass(slots=True)
class Flow:
    """Pieces and links, and how high they are."""

    width: float
    pieces: list[Piece] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    rules: list[float] = field(default_factory=list)
    height: float = 0.0

    def changed(self, before: Flow) -> list[tuple[int, int]]:
        """From where to where down the page something else stands than in ``before``, in px."""
        mine: list[Piece | Link] = [*self.pieces, *self.links]
        others: list[Piece | Link] = [*before.pieces, *before.links]
        found = []
        for one, other in zip_longest(mine, others):
            if one != other:
                rects = [piece.rect for piece in (one, other) if piece is not None]
                found.append((min(map(QRectF.top, rects)), max(map(QRectF.bottom, rects))))
        return [(math.floor(top) - 2, math.ceil(bottom) + 2) for top, bottom in found]


class Writer:
    """Writes from the top down."""

    def __init__(self, look: Look, words: Words, width: float) -> None:
        self._look = look
        self._words = words
        self.flow = Flow(width)
        self.y = 0.0

    def space(self, length: float) -> None:
        """Leave room."""
        self.y += self._look.px(length)

    def paragraph(
        self, text: str, role: float, colour: QColor, indent: float = 0.0, weight: int = 400
    ) -> None:
        """A text broken to the width."""
        if not text:
            return
        metrics = self._look.metrics(role, weight)
        step = metrics.height() + self._look.px(2)
        for line in metrics.broken(text, self.flow.width - indent):
            rect = QRectF(indent, self.y, self.flow.width - indent + 2, metrics.height())
            self.flow.pieces.append(Piece(rect, line, metrics, colour))
            self.y += step

    def bullets(self, title: str, lines: list[str]) -> None:
        """A heading and its lines, if there are any."""
        if not lines:
            return
        colours = self._look.colours
        self.space(8)
        self.paragraph(title, Role.SMALL, colours.text, weight=600)
        for line in lines:
            at = self.y
            metrics = self._look.metrics(Role.SMALL)
            dot = QRectF(0, at, self._look.px(12), metrics.height())
            self.flow.pieces.append(Piece(dot, "•", metrics, colours.secondary))
            self.paragraph(line, Role.SMALL, colours.secondary, self._look.px(12))

    def symbols(self, tokens: tuple[Token, ...]) -> None:
        """The formula in letters: symbols italic, what stands behind their letter lowered."""
        look = self._look
        ink = look.colours.text
        upright, slanted = look.metrics(Role.FORMULA), look.metrics(Role.FORMULA, 500, True)
        small = look.metrics(Role.CAPTION, 500, True)
        x, gap = 0.0, look.px(5)
        for token in tokens:
            if token.kind is Kind.SYMBOL:
                letter, rest = _split(token.text)
                wide = slanted.horizontalAdvance(letter)
                low = small.horizontalAdvance(rest) if rest else 0.0
                x = self._wrap(x, wide + low, upright.height() + look.px(4))
                self._put(x, wide, upright.height(), letter, slanted, ink)
                if rest:
                    rect = QRectF(x + wide, self.y + look.px(5), low + 2, upright.height())
                    self.flow.pieces.append(Piece(rect, rest, small, ink))
                x += wide + low + 1
                continue
            text, before, after = _spaced(token, gap)
            wide = upright.horizontalAdvance(text)
            x = self._wrap(x + before, wide + after, upright.height() + look.px(4))
            self._put(x, wide, upright.height(), text, upright, ink)
            x += wide + after
        self.y += upright.height() + look.px(6)

    def _row(self) -> float:
        """How high numbers with captions beneath them are."""
        look = self._look
        return look.metrics(Role.FORMULA).height() + look.metrics(Role.CAPTION).height() + look.px(8)

    def numbers(self, tokens: tuple[Token, ...], name: str = "") -> None:
        """The formula with its numbers put in; what each number is stands beneath it.

        ``name`` is the letter that it is the value of, if it is one.
        """
        row, gap = self._row(), float(self._look.px(5))
        left = self._begin(name)
        x = left
        for term in _terms(tokens):
            whole = sum(self._width(token, gap) for token in term)
            if x + whole > self.flow.width and left + whole <= self.flow.width:
                x = self._wrap(x, whole, row, left)
            for token in term:
                x = self._wrap(x, self._width(token, gap), row, left)
                x = self._number(token, x, gap)
        self.y += row

    def _begin(self, name: str) -> float:
        """Write a row's letter, if it has one, and the sign behind it; where they end is returned."""
        look = self._look
        metrics, x = look.metrics(Role.FORMULA), 0.0
        if name:
            letter, rest = _split(name)
            slanted, small = look.metrics(Role.FORMULA, 500, True), look.metrics(Role.CAPTION, 500, True)
            x = slanted.horizontalAdvance(letter)
            self._put(0, x, metrics.height(), letter, slanted, look.colours.text)
            low = small.horizontalAdvance(rest)
            rect = QRectF(x, self.y + look.px(5), low + 2, metrics.height())
            self.flow.pieces.append(Piece(rect, rest, small, look.colours.text))
            x += low + look.px(5)
        wide = metrics.horizontalAdvance("= ")
        self._put(x, wide, metrics.height(), "=", metrics, look.colours.secondary)
        return x + wide + look.px(5)

    def step(self, step: Step) -> None:
        """How a letter comes about: its formula with numbers, or its value; fields that say the rest."""
        look = self._look
        if step.tokens:
            self.numbers(step.tokens, step.name)
            if step.given:
                self.given(step.given)
            return
        left = self._begin(step.name)
        metrics, text = look.metrics(Role.FORMULA), self._words.count(step.symbol.value)
        wide = metrics.horizontalAdvance(text)
        self._put(left, wide, metrics.height(), text, metrics, look.colours.text)
        self.given(step.given, left + wide + look.px(12))

    def given(self, fields: tuple[Given, ...], x: float = 0.0) -> None:
        """Fields that numbers follow from: the value of each, its name beneath; from ``x`` on."""
        look, words, row = self._look, self._words, self._row()
        small = look.metrics(Role.SMALL)
        if fields:
            said = words.translate("why", DEPENDS if x else _DEPENDS)
            wide = small.horizontalAdvance(said)
            high = look.metrics(Role.FORMULA).height()
            self.flow.pieces.append(
                Piece(QRectF(x, self.y, wide + 2, high), said, small, look.colours.secondary)
            )
            x += wide + look.px(8)
        for one in fields:
            metrics = look.metrics(Role.BODY)
            text, label = metrics.cut(one.text(words), look.px(160)), one.label(words)
            wide = self._captioned(label, metrics.horizontalAdvance(text))[1]
            x = self._wrap(x, wide, row, 0.0)
            x = self._linked(x, text, label, metrics, one.path) + look.px(14)
        self.y += row

    def _caption(self, token: Token) -> tuple[str, float]:
        """What stands under a symbol's number, and how wide both are."""
        assert token.symbol is not None
        wide = self._look.width(self._words.count(token.value), Role.FORMULA)
        return self._captioned(symbol_label(token.symbol, self._words), wide)

    def _captioned(self, label: str, wide: float) -> tuple[str, float]:
        """What is shown of ``label`` under something so ``wide``, and how wide both are."""
        look = self._look
        caption = look.metrics(Role.CAPTION)
        shown = caption.cut(label, max(wide, look.px(160)))
        return shown, max(wide, caption.horizontalAdvance(shown)) + 2

    def _width(self, token: Token, gap: float) -> float:
        """The room a token takes in the line of numbers."""
        if token.kind is Kind.SYMBOL:
            return self._caption(token)[1] + self._look.px(1)
        text, before, after = self._plain(token, gap)
        return before + self._look.width(text, Role.FORMULA) + after

    def _plain(self, token: Token, gap: float) -> tuple[str, float, float]:
        if token.kind is Kind.NUMBER:
            return self._words.count(token.value), 0.0, 0.0
        return _spaced(token, gap)

    def _number(self, token: Token, x: float, gap: float) -> float:
        """Write a token of the line of numbers at ``x``; where it ends is returned."""
        look = self._look
        colours = look.colours
        metrics = look.metrics(Role.FORMULA)
        high = metrics.height()
        if token.symbol is None:
            text, before, after = self._plain(token, gap)
            wide = metrics.horizontalAdvance(text)
            self._put(x + before, wide, high, text, metrics, colours.secondary)
            return x + before + wide + after
        label, text = symbol_label(token.symbol, self._words), self._words.count(token.value)
        return self._linked(x, text, label, metrics, token.symbol.path or "", token.symbol.component)

    def _linked(
        self, x: float, text: str, label: str, metrics: Metrics, path: str, component: str = ""
    ) -> float:
        """Write ``text`` at ``x`` with its label beneath, a link where it leads somewhere; return its end."""
        look, colours = self._look, self._look.colours
        caption, high = look.metrics(Role.CAPTION), look.metrics(Role.FORMULA).height()
        wide = metrics.horizontalAdvance(text)
        shown, needs = self._captioned(label, wide)
        leads = bool(path or component)
        at = x + (needs - wide) / 2
        self._put(at, wide, high, text, metrics, colours.accent if leads else colours.text)
        beneath = x + (needs - caption.horizontalAdvance(shown)) / 2
        rect = QRectF(beneath, self.y + high + look.px(1), needs, caption.height())
        self.flow.pieces.append(Piece(rect, shown, caption, colours.secondary))
        if leads:
            number = QRectF(at, self.y, wide, high)
            whole = QRectF(x, self.y, needs, high + caption.height() + look.px(1))
            self.flow.links.append(Link(whole, number, path, f"{label} {text}", self.y + high, component))
        return x + needs + look.px(1)

    def result(self, exact: str, size: str) -> None:
        """Bytes, and the same in the unit."""
        look = self._look
        colours = look.colours
        metrics = look.metrics(Role.FORMULA)
        high = metrics.height()
        left = metrics.horizontalAdvance("= ") + look.px(5)
        bold = look.metrics(Role.FORMULA, 600)
        wide = metrics.horizontalAdvance(exact)
        self._put(0, left, high, "=", metrics, colours.secondary)
        self._put(left, wide, high, exact, metrics, colours.text)
        x = self._wrap(left + wide + look.px(10), left + bold.horizontalAdvance(size), high + look.px(4))
        self._put(x, left, high, "=", metrics, colours.secondary)
        x += left + look.px(2)
        self._put(x, bold.horizontalAdvance(size), high, size, bold, colours.text)
        self.y += high + look.px(6)

    def _put(self, x: float, wide: float, high: float, text: str, metrics: Metrics, ink: QColor) -> None:
        self.flow.pieces.append(Piece(QRectF(x, self.y, wide + 2, high), text, metrics, ink))

    def _wrap(self, x: float, wide: float, row: float, left: float = 0.0) -> float:
        """``x``, or the start of the next row where ``wide`` px do not fit into this one."""
        if x + wide <= self.flow.width or x <= left:
            return x
        self.y += row
        return left


def _terms(tokens: tuple[Token, ...]) -> list[list[Token]]:
    """Pieces of a formula that stay on one line if they can: each begins at a plus or minus."""
    terms: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind is Kind.OPERATOR and token.text in "+-" and terms[-1]:
            terms.append([])
        terms[-1].append(token)
    return terms


def _split(name: str) -> tuple[str, str]:
    """The letter of a symbol and what is set low behind it; a whole word stays a word."""
    found = _SYMBOL.fullmatch(name)
    if found is None or len(name) > 4:
        return name, ""
    return found.group(1), found.group(2).strip("_")


def _spaced(token: Token, gap: float) -> tuple[str, float, float]:
    """The text of an operator, bracket or number, and the room before and behind it."""
    match token.kind:
        case Kind.OPERATOR:
            tight = gap * (0.7 if token.text == "*" else 1.2)
            return operator_text(token.text), tight, tight
        case Kind.OPEN:
            return "(", 0.0, gap * 0.4
        case Kind.CLOSE:
            return ")", gap * 0.4, 0.0
        case _:
            return token.text, 0.0, 0.0


_DEPENDS = QT_TRANSLATE_NOOP("why", "Depends on")
_LEFT_OUT = QT_TRANSLATE_NOOP("why", "The method leaves out")
_ASSUMED = QT_TRANSLATE_NOOP("why", "Assumed")
_SERVING = QT_TRANSLATE_NOOP("why", "Serving")
_ROUNDS = QT_TRANSLATE_NOOP("why", "÷ divides without remainder.")


def flow_of(explanation: Explanation, words: Words, look: Look, width: float) -> Flow:
    """Everything under the title, for a width in px."""
    colours = look.colours
    writer = Writer(look, words, width)
    writer.paragraph(" ".join(sentences(explanation, words)), Role.SMALL, colours.secondary)
    writer.space(10)
    if explanation.symbols:
        writer.symbols(explanation.tokens)
        writer.numbers(explanation.tokens)
    elif len(explanation.parts) > 1 and all(part.key for part in explanation.parts):
        plus = " + ".join(part_name(part, words) for part in explanation.parts)
        writer.paragraph(plus, Role.BODY, colours.text)
        writer.space(4)
    writer.result(words.exact(explanation.bytes), words.size(explanation.bytes))
    if explanation.steps or explanation.given:
        writer.space(8)
    if explanation.given:
        writer.given(explanation.given)
    for step in explanation.steps:
        writer.step(step)
    if any(divides(tokens) for tokens in (explanation.tokens, *(step.tokens for step in explanation.steps))):
        writer.paragraph(words.translate("why", _ROUNDS), Role.CAPTION, colours.secondary)
    writer.bullets(words.translate("why", _SERVING), [one.text(words) for one in explanation.answers])
    writer.bullets(words.translate("why", _LEFT_OUT), [words.message(one) for one in explanation.left_out])
    writer.bullets(words.translate("why", _ASSUMED), [words.message(one) for one in explanation.assumptions])
    for title, lines in report_lists(explanation.report, words):
        writer.bullets(title, lines)
    writer.flow.height = writer.y
    return writer.flow


def title_of(explanation: Explanation, words: Words) -> tuple[str, str]:
    """The way to the node, and its own name."""
    names = names_of(explanation, words)
    return "".join(name + " › " for name in names[:-1]), names[-1]
