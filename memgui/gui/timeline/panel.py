"""Beside the chart: what is alive at the moment that is read off, and why."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.legend.rows import paint_swatch
from memgui.gui.metrics import RIGHT
from memgui.gui.names import component_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DISPLAY_ORDER
from memgui.gui.texts import message_text
from memgui.gui.theme import Look, Role
from memgui.gui.why.qt_words import QtWords
from memgui.planning.moments import why_here

ROW = 24


class MomentPanel(QWidget):
    """Components of one moment, their total, and what is going on."""

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._view = view
        self._estimate: Estimate | None = None
        self._index = -1
        self._peak = -1
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Minimum)
        selection.hovered.connect(self.update)
        selection.selected.connect(self.update)
        view.figures_changed.connect(self.update)

    def show_moment(self, estimate: Estimate, index: int, peak: int) -> None:
        """Show another moment."""
        self._estimate, self._index, self._peak = estimate, index, peak
        self.setAccessibleName(f"{self.title()}: {self.summary()}")
        self.setFixedHeight(self.sizeHint().height())
        self.update()

    def title(self) -> str:
        """Whether this is the peak."""
        return self.tr("Alive at the peak") if self._index == self._peak else self.tr("Alive at this moment")

    def rows(self) -> list[tuple[str, int]]:
        """Components with bytes, in display order."""
        if self._estimate is None or not 0 <= self._index < len(self._estimate.timeline):
            return []
        sizes = self._estimate.timeline[self._index].components
        return [(key, sizes[key]) for key in DISPLAY_ORDER if sizes.get(key, 0)]

    def summary(self) -> str:
        """The moment and its parts in a line, for screen readers."""
        if self._estimate is None or not self.rows():
            return ""
        numbers = Numbers.of(self._view.view)
        moment = self._estimate.timeline[self._index]
        parts = ", ".join(f"{component_name(key)} {numbers.tip(size)}" for key, size in self.rows())
        return f"{message_text(moment.label)}, {numbers.tip(moment.bytes)}: {parts}"

    def _sentences(self, look: Look, width: float) -> list[str]:
        if self._estimate is None or self._index < 0:
            return []
        words = QtWords(Numbers.of(self._view.view))
        lines: list[str] = []
        for said in why_here(self._estimate, self._index):
            lines += look.metrics(Role.SMALL).broken(said.text(words), width)
        return lines

    def _where(self, look: Look) -> list[str]:
        """The moment's name, in as many lines as it needs."""
        if self._estimate is None or not self.rows():
            return []
        name = message_text(self._estimate.timeline[self._index].label)
        return look.metrics(Role.SMALL).broken(name, float(look.px(212)))

    def _head(self, look: Look) -> int:
        lines = max(1, len(self._where(look)))
        return look.px(30) + round(lines * (look.metrics(Role.SMALL).height() + 2))

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        text = len(self._sentences(look, float(look.px(212)))) * (look.metrics(Role.SMALL).height() + 2)
        rows = (len(self.rows()) + 1) * look.px(ROW)
        return QSize(look.px(212), round(self._head(look) + rows + look.px(34) + text))

    def _key_at(self, y: float) -> str:
        look = Look.of(self)
        head = self._head(look)
        at = int((y - head) // look.px(ROW))
        rows = self.rows()
        return rows[at][0] if y >= head and at < len(rows) else ""

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position().y())
        self._selection.point_at((key,) if key else ())

    def leaveEvent(self, event: QEvent) -> None:
        self._selection.point_at(())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position().y())
        if event.button() is Qt.MouseButton.LeftButton and key:
            self._selection.select((key,))

    def paintEvent(self, event: QPaintEvent) -> None:
        estimate = self._estimate
        rows = self.rows()
        if estimate is None or not rows:
            return
        look = Look.of(self)
        colours = look.colours
        numbers = Numbers.of(self._view.view)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        moment = estimate.timeline[self._index]
        width = float(self.width())
        body, bold, small = look.metrics(), look.metrics(Role.BODY, 600), look.metrics(Role.SMALL)
        painter.setPen(colours.text)
        bold.write(painter, QRectF(0, 0, width, look.px(22)), self.title())
        painter.setPen(colours.secondary)
        step = small.height() + 2
        for at, line in enumerate(self._where(look)):
            small.write(painter, QRectF(0, look.px(24) + at * step, width + 2, step), line)
        head = self._head(look)
        high = look.px(ROW)
        pointed = {path[0] for path in (self._selection.component, self._selection.hover) if path}
        for at, (key, size) in enumerate(rows):
            rect = QRectF(0, head + at * high, width, high)
            if key in pointed:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(
                    colours.selected if self._selection.component[:1] == (key,) else colours.hover
                )
                painter.drawRoundedRect(rect.adjusted(-4, 0, 4, 0), look.px(4), look.px(4))
            paint_swatch(painter, look, 0, rect.center().y(), colours.component(key))
            painter.setPen(colours.text)
            body.write(painter, rect.adjusted(look.px(20), 0, 0, 0), component_name(key))
            body.write(painter, rect, numbers.two(size), RIGHT)
        rect = QRectF(0, head + len(rows) * high, width, high)
        painter.fillRect(QRectF(0, rect.top(), width, 1), colours.border)
        painter.setPen(colours.text)
        bold.write(painter, rect, self.tr("Total"))
        bold.write(painter, rect, numbers.two(moment.bytes), RIGHT)
        self._paint_why(painter, look, rect.bottom() + look.px(8), width)

    def _paint_why(self, painter: QPainter, look: Look, top: float, width: float) -> None:
        lines = self._sentences(look, width)
        if not lines:
            return
        painter.setPen(look.colours.text)
        look.metrics(Role.BODY, 600).write(painter, QRectF(0, top, width, look.px(20)), self.tr("Why here"))
        painter.setPen(look.colours.secondary)
        small = look.metrics(Role.SMALL)
        step = small.height() + 2
        for at, line in enumerate(lines):
            small.write(painter, QRectF(0, top + look.px(22) + at * step, width + 2, step), line)
