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
    """A number that leads to its field; ``rect`` takes number and caption."""

    rect: QRectF
    number: QRectF
    path: str
    name: str
    line: float


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

    def numbers(self, tokens: tuple[Token, ...]) -> None:
        """The formula with its numbers put in; what each number is stands beneath it."""
        look = self._look
        metrics, caption = look.metrics(Role.FORMULA), look.metrics(Role.CAPTION)
        row = metrics.height() + caption.height() + look.px(8)
        gap = float(look.px(5))
        left = metrics.horizontalAdvance("= ") + gap
        self._put(0, left, metrics.height(), "=", metrics, look.colours.secondary)
        x = left
        for term in _terms(tokens):
            whole = sum(self._width(token, gap) for token in term)
            if x + whole > self.flow.width and left + whole <= self.flow.width:
                x = self._wrap(x, whole, row, left)
            for token in term:
                x = self._wrap(x, self._width(token, gap), row, left)
                x = self._number(token, x, gap)
        self.y += row

    def _caption(self, token: Token) -> tuple[str, float]:
        """What stands under a symbol's number, and how wide both are."""
        assert token.symbol is not None
        look = self._look
        wide = look.width(self._words.count(token.value), Role.FORMULA)
        caption = look.metrics(Role.CAPTION)
        label = symbol_label(token.symbol, self._words)
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
        metrics, caption = look.metrics(Role.FORMULA), look.metrics(Role.CAPTION)
        high = metrics.height()
        if token.symbol is None:
            text, before, after = self._plain(token, gap)
            wide = metrics.horizontalAdvance(text)
            self._put(x + before, wide, high, text, metrics, colours.secondary)
            return x + before + wide + after
        text = self._words.count(token.value)
        wide = metrics.horizontalAdvance(text)
        shown, needs = self._caption(token)
        path = token.symbol.path or ""
        at = x + (needs - wide) / 2
        self._put(at, wide, high, text, metrics, colours.accent if path else colours.text)
        beneath = x + (needs - caption.horizontalAdvance(shown)) / 2
        rect = QRectF(beneath, self.y + high + look.px(1), needs, caption.height())
        self.flow.pieces.append(Piece(rect, shown, caption, colours.secondary))
        if path:
            number = QRectF(at, self.y, wide, high)
            whole = QRectF(x, self.y, needs, high + caption.height() + look.px(1))
            name = f"{symbol_label(token.symbol, self._words)} {text}"
            self.flow.links.append(Link(whole, number, path, name, self.y + high))
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
    if divides(explanation.tokens):
        writer.paragraph(words.translate("why", _ROUNDS), Role.CAPTION, colours.secondary)
    writer.bullets(words.translate("why", _SERVING), [one.text(words) for one in explanation.answers])
    writer.bullets(words.translate("why", _LEFT_OUT), [words.message(one) for one in explanation.left_out])
    if explanation.path or explanation.left_out == ():
        assumed = [words.message(one) for one in explanation.assumptions]
        writer.bullets(words.translate("why", _ASSUMED), assumed)
    for title, lines in report_lists(explanation.report, words):
        writer.bullets(title, lines)
    writer.flow.height = writer.y
    return writer.flow


def title_of(explanation: Explanation, words: Words) -> tuple[str, str]:
    """The way to the node, and its own name."""
    names = names_of(explanation, words)
    return "".join(name + " › " for name in names[:-1]), names[-1]
