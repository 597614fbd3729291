"""A run's figures beside the estimate's: two bars to one scale, the difference, whether it is within."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.estimator.result import Estimate
from memgui.gui import accessible
from memgui.gui.icons import paint_icon
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import hatch_brush
from memgui.gui.texts import message_text
from memgui.gui.theme import Look, Role
from memgui.planning.measured import (
    COUNTERS,
    PARTS,
    Beside,
    Count,
    Measurement,
    beside,
    counts_beside,
    named_part,
)

translate = QCoreApplication.translate
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_ROW, _HEAD = 30, 22


class MeasuredRows(QWidget):
    """A table of one run; components in their colours, totals in grey."""

    accessible_role = "Table"
    item_role = "Row"

    def __init__(
        self, run: Measurement, estimate: Estimate, numbers: Numbers, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        accessible.install()
        self.rows: tuple[Beside, ...] = beside(run, estimate)
        self.counts: tuple[Count, ...] = counts_beside(run, estimate)
        self._numbers = numbers
        self._most = max((max(row.figure.bytes, row.high) for row in self.rows), default=1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Measured beside estimated"))

    def name(self, row: Beside) -> str:
        """The component or the counter, and what the log calls it."""
        figure = row.figure
        if figure.part in PARTS:
            return translate("measured", PARTS[figure.part])
        if figure.components:
            names = [component_name(key) for key in figure.components]
            shown = ", ".join(names)
            part = message_text(named_part(figure.part)) if figure.part else shown
            if part.casefold() == shown.casefold():
                return shown
            # Of several the log's own word is the shorter one, and what is cut where there is no room.
            return f"{shown} ({part})" if len(names) == 1 else f"{part} ({shown})"
        return translate("measured", COUNTERS[figure.counter])

    def gap(self, row: Beside) -> str:
        """Measured less estimated, signed, and in per cent of the estimate."""
        sign = "+" if row.gap > 0 else "−" if row.gap < 0 else ""
        if not row.gap:
            return "–"
        share = self._numbers.share(abs(row.gap), row.expected) if row.expected else ""
        return f"{sign}{self._numbers.tip(abs(row.gap))}" + (f"  {sign}{share}" if share else "")

    def outcome(self, row: Beside) -> str:
        """Whether the estimate allows the figure."""
        if row.within:
            return self.tr("within the estimate")
        return self.tr("more than estimated") if row.gap > 0 else self.tr("less than estimated")

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        count = max(1, len(self.rows) + len(self.counts))
        return QSize(look.px(480), look.px(_HEAD + _ROW * count + 4))

    def minimumSizeHint(self) -> QSize:
        return QSize(Look.of(self).px(300), self.sizeHint().height())

    def _rect(self, index: int) -> QRectF:
        look = Look.of(self)
        return QRectF(0, look.px(_HEAD + _ROW * index), self.width(), look.px(_ROW))

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per figure."""
        numbers = self._numbers
        said = [
            self.tr("{name}: measured {measured}, estimated {estimated}, {outcome}").format(
                name=self.name(row),
                measured=numbers.tip(row.figure.bytes),
                estimated=numbers.tip(row.expected),
                outcome=self.outcome(row),
            )
            for row in self.rows
        ]
        said += [
            self.tr("{name}: measured {measured}, estimated {estimated}").format(
                name=translate("measured", one.label),
                measured=numbers.grouped(one.measured),
                estimated=numbers.grouped(one.expected),
            )
            for one in self.counts
        ]
        return [accessible.Item(text, self._rect(at).toAlignedRect()) for at, text in enumerate(said)]

    def figures(self, row: Beside) -> tuple[str, str, str]:
        """Measured, estimated, difference."""
        measured = self._numbers.tip(row.figure.bytes)
        return (
            f"≥ {measured}" if row.figure.at_least else measured,
            self._numbers.tip(row.expected),
            self.gap(row),
        )

    def _edges(self, look: Look) -> tuple[float, float, float, float, float]:
        """The bars' ends, then the right edges of measured, estimated, difference."""
        width = float(self.width())
        gap = width - look.px(24)
        apart = max((look.width(self.gap(row)) for row in self.rows), default=0.0) + look.px(16)
        estimated = gap - max(apart, look.px(152))
        each = [look.width(text, Role.BODY, 600) for row in self.rows for text in self.figures(row)[:2]]
        wide = max(max(each, default=0.0) + look.px(14), look.px(84))
        measured = estimated - wide
        names = max((look.width(self.name(row)) for row in self.rows), default=0.0) + look.px(16)
        return (
            min(max(names, look.px(130)), (measured - wide) * 0.6),
            measured - wide,
            measured,
            estimated,
            gap,
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bars, end, *edges = self._edges(look)
        end -= look.px(4)
        if not self.rows and not self.counts:
            painter.setPen(colours.secondary)
            painter.setFont(look.font())
            said = self.tr("The estimate has no figure for what this run counts.")
            painter.drawText(QRectF(self.rect()), _LEFT, said)
            return
        painter.setPen(colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        heads = (self.tr("Measured"), self.tr("Estimated"), self.tr("Difference"))
        for head, edge in zip(heads, edges, strict=True):
            painter.drawText(QRectF(0, 0, edge, look.px(_HEAD)), _RIGHT, head)
        said = self.tr("above measured, below estimated")
        if self.rows and look.width(said, Role.SMALL) < end - bars:
            painter.drawText(QRectF(bars, 0, edges[0], look.px(_HEAD)), _LEFT, said)
        for index, row in enumerate(self.rows):
            self._paint_texts(painter, look, index, self.name(row), self.figures(row), bars, edges)
            self._paint_bars(painter, look, index, row, bars, end)
            icon = "verdict-fits" if row.within else "verdict-tight"
            colour = colours.good if row.within else colours.warn
            middle = self._rect(index).center().y()
            paint_icon(painter, icon, QPointF(self.width() - look.px(9), middle), look.px(16), colour)
        for at, one in enumerate(self.counts, start=len(self.rows)):
            gap = one.measured - one.expected
            sign = "+" if gap > 0 else ""
            figures = (
                self._numbers.grouped(one.measured),
                self._numbers.grouped(one.expected),
                f"{sign}{self._numbers.grouped(gap)}" if gap else "–",
            )
            # there is no bar: all room is the name's
            self._paint_texts(painter, look, at, translate("measured", one.label), figures, end, edges)

    def _paint_texts(
        self,
        painter: QPainter,
        look: Look,
        index: int,
        name: str,
        figures: Sequence[str],
        room: float,
        edges: Sequence[float],
    ) -> None:
        """A row's name, cut where it has more than ``room``, and its figures."""
        rect = self._rect(index)
        painter.fillRect(QRectF(0, rect.top(), rect.width(), 1), look.colours.hairline)
        painter.setPen(look.colours.text)
        painter.setFont(look.font(Role.BODY, 500))
        painter.drawText(rect, _LEFT, look.cut(name, room - look.px(8), Role.BODY, 500))
        for at, (text, edge) in enumerate(zip(figures, edges, strict=True)):
            painter.setFont(look.font(Role.BODY, 600 if at == 0 else 400))
            painter.setPen(look.colours.text if at < 2 else look.colours.secondary)
            painter.drawText(QRectF(0, rect.top(), edge, rect.height()), _RIGHT, text)

    def _paint_bars(
        self, painter: QPainter, look: Look, index: int, row: Beside, left: float, right: float
    ) -> None:
        """The measured bar above; below it the estimate, its range hatched."""
        wide = right - left
        if wide < look.px(40):
            return
        rect, colours = self._rect(index), look.colours
        key = row.figure.components[0] if row.figure.components else ""
        fill = colours.component(key).fill if key else colours.secondary
        edge = colours.component(key).edge if key else colours.text
        high = look.px(7)
        top = rect.center().y() - high - 1

        def span(size: int) -> float:
            return wide * size / self._most

        painter.setPen(QPen(edge, 1))
        painter.setBrush(fill)
        painter.drawRect(QRectF(left, top, max(span(row.figure.bytes), 1.0), high))
        painter.setBrush(colours.track)
        painter.setPen(QPen(colours.border, 1))
        below = top + high + 3
        painter.drawRect(QRectF(left, below, max(span(row.expected), 1.0), high))
        if row.high > row.low:
            band = QRectF(left + span(row.low), below, span(row.high) - span(row.low), high)
            painter.setBrush(hatch_brush(colours.border, self.devicePixelRatioF()))
            painter.drawRect(band)
