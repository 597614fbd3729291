"""How a way to fit is drawn: columns, the mini bar, the button at the end."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from memgui.estimator.result import Estimate
from memgui.gui.controls.frames import outlined
from memgui.gui.icons import paint_verdict
from memgui.gui.metrics import broken
from memgui.gui.palette import DISPLAY_ORDER, Palette, hatch_brush
from memgui.gui.theme import Look, Role
from memgui.gui.ways.model import Line

ROW, HEADER = 48, 28
"""Height of a row with one line of everything, and the header's, at a 13 px body."""
MOST_LINES = 9
"""Lines of a row's cost."""
_LINE = 17
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
_RIGHT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
_CENTRE = Qt.AlignmentFlag.AlignCenter

# Least widths of what grows, and the widths of what does not, at a 13 px body.
_CHANGE, _BAR, _COST, _WORDS = 150, 64, 116, 170
_RANK, _FIGURE, _VERDICT, _BUTTON, _GAP, _EDGE = 44, 66, 122, 64, 16, 16


class Columns(msgspec.Struct, frozen=True):
    """Left and right of each column in px; ``bar`` and ``cost`` are ``None`` where there is no room."""

    change: tuple[float, float]
    bar: tuple[float, float] | None
    saves: float
    needs: float
    verdict: tuple[float, float]
    cost: tuple[float, float] | None
    button: tuple[float, float]


def columns_for(look: Look, width: float) -> Columns:
    """Lay the columns out; where all would be squeezed, the bars give way first, then the costs."""
    gap = look.px(_GAP)
    fixed = look.px(_RANK) + 2 * look.px(_FIGURE) + look.px(_VERDICT) + look.px(_BUTTON)
    fixed += look.px(_EDGE) + 3 * gap
    rest = max(width - fixed, look.px(_CHANGE))
    with_bar = rest >= look.px(_CHANGE) + look.px(_BAR) + look.px(_WORDS)
    with_cost = rest >= look.px(_CHANGE) + look.px(_COST)
    shares = (0.40, 0.31 if with_bar else 0.0, 0.29 if with_cost else 0.0)
    words = min(float(look.px(_WORDS)), rest - look.px(_CHANGE)) if with_cost else 0.0
    least = (look.px(_CHANGE), look.px(_BAR) if with_bar else 0, words)
    room = rest - sum(least)
    change, bar, cost = (part + room * share / sum(shares) for part, share in zip(least, shares, strict=True))
    x = float(look.px(_RANK))
    change_at = (x, x + change)
    x += change + (gap if with_bar else 0)
    bar_at = (x, x + bar) if with_bar else None
    saves = x + bar + look.px(_FIGURE)
    needs = saves + look.px(_FIGURE)
    x = needs + gap
    verdict_at = (x, x + look.px(_VERDICT))
    x = verdict_at[1]
    cost_at = (x, x + cost) if with_cost else None
    right = width - look.px(_EDGE)
    return Columns(change_at, bar_at, saves, needs, verdict_at, cost_at, (right - look.px(_BUTTON), right))


def paint_header(
    painter: QPainter, look: Look, columns: Columns, height: float, titles: dict[str, str]
) -> None:
    """The columns' names; ``titles`` by column."""
    painter.setPen(look.colours.secondary)
    painter.setFont(look.font(Role.SMALL))
    for key, place in (
        ("change", columns.change),
        ("bar", columns.bar),
        ("verdict", columns.verdict),
        ("cost", columns.cost),
    ):
        if place is not None:
            room = place[1] - place[0]
            text = look.cut(titles[key], room, Role.SMALL)
            painter.drawText(QRectF(place[0], 0, room + 2, height), _LEFT, text)
    for key, edge in (("saves", columns.saves), ("needs", columns.needs)):
        painter.drawText(QRectF(0, 0, edge, height), _RIGHT, titles[key])


def button_rect(look: Look, columns: Columns, row: QRectF) -> QRectF:
    """Where a row's button is."""
    high = look.px(28)
    left, right = columns.button
    return QRectF(left, round(row.center().y() - high / 2), right - left, high)


def paint_button(
    painter: QPainter, look: Look, rect: QRectF, text: str, main: bool, touched: bool, down: bool
) -> None:
    """The row's button, filled where it is the ``main`` one."""
    colours = look.colours
    if main:
        edge = colours.text if down else colours.accent
        outlined(painter, rect, look.px(5), colours.accent, edge)
    else:
        fill = colours.hover if touched or down else colours.raised
        edge = colours.accent if down else colours.secondary if touched else colours.border
        outlined(painter, rect, look.px(5), fill, edge)
    painter.setPen(colours.on_accent if main else colours.text)
    painter.setFont(look.font(Role.BODY, 500))
    painter.drawText(rect, _CENTRE, text)


def paint_line(
    painter: QPainter,
    look: Look,
    row: QRectF,
    columns: Columns,
    line: Line,
    base: Estimate | None,
    longest: int,
) -> None:
    """Everything of a row but its ground and its button."""
    colours = look.colours
    middle = row.center().y()
    upper = QRectF(0, middle - look.px(19), 0, look.px(20))
    lower = QRectF(0, middle - look.px(1), 0, look.px(20))
    painter.setPen(colours.secondary)
    painter.setFont(look.font(Role.SMALL))
    painter.drawText(QRectF(0, row.top(), look.px(_RANK) - look.px(2), row.height()), _CENTRE, str(line.rank))
    titles = title_lines(look, columns, line)
    top = middle - look.px(19 + 9 * (len(titles) - 1))
    for number, title in enumerate(titles):
        at = QRectF(0, top + number * look.px(18), 0, look.px(20))
        _write(painter, look, columns.change, at, title, Role.BODY, 600, colours.text)
    under = QRectF(0, top + len(titles) * look.px(18), 0, look.px(20))
    _write(painter, look, columns.change, under, line.from_to, Role.SMALL, 400, colours.secondary)
    if columns.bar is not None:
        left, right = columns.bar
        high = look.px(14)
        area = QRectF(left, round(middle - high / 2), right - left, high)
        paint_mini_bar(painter, look, area, line.way.estimate, base, longest)
    whole = QRectF(0, row.top(), columns.saves, row.height())
    painter.setPen(colours.secondary)
    painter.setFont(look.font())
    painter.drawText(whole, _RIGHT, line.saves)
    whole.setWidth(columns.needs)
    painter.setPen(colours.text)
    painter.setFont(look.font(Role.BODY, 600))
    painter.drawText(whole, _RIGHT, line.needs)
    left, right = columns.verdict
    paint_verdict(painter, line.way.kind, QPointF(left + look.px(8), middle), look.px(14), colours)
    beside = (left + look.px(22), right - look.px(6))
    _write(painter, look, beside, upper, line.word, Role.BODY, 600, colours.verdict(line.way.kind))
    _write(painter, look, beside, lower, line.gap, Role.SMALL, 400, colours.secondary)
    if columns.cost is not None:
        _paint_cost(painter, look, columns.cost, middle, line.cost)


def _write(
    painter: QPainter,
    look: Look,
    place: tuple[float, float],
    row: QRectF,
    text: str,
    role: float,
    weight: int,
    ink: QColor,
) -> None:
    left, right = place
    painter.setPen(ink)
    painter.setFont(look.font(role, weight))
    shown = look.cut(text, right - left, role, weight)
    painter.drawText(QRectF(left, row.top(), right - left + 2, row.height()), _LEFT, shown)


def _paint_cost(painter: QPainter, look: Look, place: tuple[float, float], middle: float, text: str) -> None:
    left, right = place
    width = right - left
    lines = cost_lines(look, text, width)
    if len(lines) > MOST_LINES:
        last = look.cut(" ".join(lines[MOST_LINES - 1 :]), width, Role.SMALL)
        lines = (*lines[: MOST_LINES - 1], last)
    step = look.px(_LINE)
    top = middle - step * len(lines) / 2
    painter.setPen(look.colours.secondary)
    painter.setFont(look.font(Role.SMALL))
    for number, shown in enumerate(lines):
        painter.drawText(QRectF(left, top + number * step, width + 4, step), _LEFT, shown)


def cost_lines(look: Look, text: str, width: float) -> tuple[str, ...]:
    """What a way costs, in lines of at most ``width`` px."""
    return _lines(text, look.font(Role.SMALL).toString(), width)


def title_lines(look: Look, columns: Columns, line: Line) -> list[str]:
    """The title, or the shorter one, in two lines or three where one has no room."""
    room = columns.change[1] - columns.change[0]
    for title in (line.short,) if line.way.parts else (line.title, line.short):
        if look.width(title, Role.BODY, 600) <= room:
            return [title]
    font = look.font(Role.BODY, 600).toString()
    return [piece for half in (line.two or line.short).split("\n") for piece in _lines(half, font, room)][:3]


def row_height(look: Look, columns: Columns, line: Line) -> int:
    """The height in px that a row needs; the tooltip has what :data:`MOST_LINES` cut of what it costs."""
    least = look.px(ROW + 18 * (len(title_lines(look, columns, line)) - 1))
    if columns.cost is None:
        return least
    lines = len(cost_lines(look, line.cost, columns.cost[1] - columns.cost[0]))
    return max(least, min(lines, MOST_LINES) * look.px(_LINE) + look.px(12))


@lru_cache(maxsize=1024)
def _lines(text: str, font: str, width: float) -> tuple[str, ...]:
    made = QFont()
    made.fromString(font)
    return tuple(broken(text, made, width))


def paint_mini_bar(
    painter: QPainter, look: Look, area: QRectF, after: Estimate, base: Estimate | None, longest: int
) -> None:
    """What is needed in component colours, what is saved in dashes, and the limit's line."""
    colours = look.colours
    limit = after.verdict.capacity_bytes
    end = longest * 1.02

    def x(size: float) -> float:
        return area.left() + area.width() * min(size, end) / end

    before = base.peak_bytes if base is not None else after.peak_bytes
    reach = x(after.peak_bytes)
    if before > after.peak_bytes:
        _paint_saved(painter, colours, area, reach, x(before), x(limit))
    start = 0
    for key in DISPLAY_ORDER:
        size = after.component(key).bytes
        if size > 0:
            _paint_segment(painter, look, area, key, x(start), x(start + size))
            start += size
    if limit <= end:
        at = min(round(x(limit)), round(area.right()) - 1)
        out = look.px(5)
        mark = QRectF(at - 1, area.top() - out, 2, area.height() + 2 * out)
        painter.fillRect(mark.adjusted(-1, 0, 1, 0), colours.base)
        painter.fillRect(mark, colours.text)


def _paint_segment(painter: QPainter, look: Look, area: QRectF, key: str, left: float, right: float) -> None:
    paint = look.colours.component(key)
    piece = QRectF(round(left), area.top(), max(1, round(right) - round(left) - 1), area.height())
    if right - left < 0.5:
        return
    if piece.width() < 3:
        painter.fillRect(piece, paint.edge)
        return
    painter.fillRect(piece, paint.fill)
    if paint.hatch is not None:
        painter.fillRect(piece, hatch_brush(paint.hatch, painter.device().devicePixelRatioF(), 4))
    painter.setPen(QPen(paint.edge, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(piece.adjusted(0.5, 0.5, -0.5, -0.5))


def _paint_saved(
    painter: QPainter, colours: Palette, area: QRectF, left: float, right: float, limit: float
) -> None:
    """From the need after to the need before; the part within the limit stands on the track."""
    gone = QRectF(round(left), area.top(), max(1, round(right) - round(left)), area.height())
    if limit > left:
        within = QRectF(gone.left(), gone.top(), min(limit, right) - left, gone.height())
        painter.fillRect(within, colours.track)
    pen = QPen(colours.secondary, 1, Qt.PenStyle.CustomDashLine)
    pen.setDashPattern([3, 2])
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(gone.adjusted(0.5, 0.5, -0.5, -0.5))
