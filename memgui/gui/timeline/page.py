"""The Timeline tab: chart at the left, the moment that is read off at the right."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QWidget

from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.controls.buttons import ToolButton
from memgui.gui.controls.scrolling import slim
from memgui.gui.numbers import Numbers
from memgui.gui.theme import Look, Role
from memgui.gui.timeline.chart import TimelineChart
from memgui.gui.timeline.panel import MomentPanel

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class TimelinePage(QWidget):
    """Shows the timeline of an estimate; nothing is worked out while the tab is not in sight."""

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._estimate: Estimate | None = None
        self._shown: Estimate | None = None
        self._stale = False
        self.chart = TimelineChart(selection, view, self)
        self.panel = MomentPanel(selection, view)
        self._side = QScrollArea(self)
        slim(self._side)
        self._side.setWidget(self.panel)
        self._side.setWidgetResizable(True)
        self._side.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._side.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._side.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        for widget in (self._side, self._side.viewport(), self.panel):
            widget.setAutoFillBackground(False)
        self._before = ToolButton("chevron-left", self.tr("Moment before"), self)
        self._after = ToolButton("chevron-right", self.tr("Moment after"), self)
        self._before.clicked.connect(lambda: self.chart.step(-1))
        self._after.clicked.connect(lambda: self.chart.step(1))
        for button in (self._before, self._after):
            button.setAutoRepeat(True)
        self.chart.pointed.connect(self._point)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusProxy(self.chart)
        view.figures_changed.connect(self._redraw)

    def set_result(self, result: Result) -> None:
        """Show another estimate; the last good one where there is none."""
        self._estimate, self._stale = result.shown, result.stale
        if self.isVisible():
            self._show()

    def _show(self) -> None:
        if self._estimate is not None and self._estimate is not self._shown:
            self._shown = self._estimate
            self.chart.show_estimate(self._estimate)
        self.update()

    def _redraw(self, _: object = None) -> None:
        if self._shown is not None and self.isVisible():
            self.chart.show_estimate(self._shown)
        self.update()

    def _point(self, index: int) -> None:
        if self._shown is not None:
            self.panel.show_moment(self._shown, index, self.chart.peak)
            self.update(0, 0, self.width(), Look.of(self).px(36))

    def showEvent(self, event: QEvent) -> None:
        self._show()

    def title(self) -> str:
        """What the chart is of."""
        if self._shown is None:
            return ""
        scenario = self._shown.scenario
        if self._shown.method != "detailed":
            return self.tr("One total")
        if scenario.task == "inference":
            phases = {moment.phase for moment in self._shown.timeline}
            if "profile" in phases:
                return self.tr("Serving: load, profile, last token")
            if "prefill" in phases:
                return self.tr("Serving: load, prompt, last token")
            return self.tr("Serving: load, last token")
        steps = scenario.training.gradient_accumulation_steps
        if steps > 1:
            return self.tr("Training step of {count} micro batches").format(
                count=Numbers.of(self._view.view).grouped(steps)
            )
        return self.tr("Training step")

    def _side_width(self, look: Look) -> int:
        return look.px(212) if self.width() >= look.px(560) else 0

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        look = Look.of(self)
        edge, top = look.px(16), look.px(36)
        side = self._side_width(look)
        right = self.width() - (side + 2 * edge if side else 0)
        self.chart.setGeometry(edge, top, right - 2 * edge, self.height() - top - look.px(6))
        bar = self._side.verticalScrollBar().sizeHint().width()
        self._side.setVisible(side > 0)
        self._side.setGeometry(right + edge, look.px(8), side + bar, self.height() - look.px(12))
        for at, button in enumerate((self._after, self._before)):
            button.setVisible(side > 0)
            size = look.px(24)
            button.setGeometry(self.width() - edge - (at + 1) * size, look.px(6), size, size)
            button.raise_()

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(760), look.px(236))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(240), look.px(140))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.base)
        if self._shown is None:
            return
        edge = look.px(16)
        side = self._side_width(look)
        right = self.width() - (side + 2 * edge if side else 0)
        if side:
            painter.fillRect(QRectF(right, look.px(12), 1, self.height() - look.px(24)), colours.hairline)
        row = QRectF(edge, look.px(6), right - 2 * edge, look.px(26))
        title = self.title()
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(row, _LEFT, title)
        numbers = Numbers.of(self._view.view)
        moment = self.chart.moment
        note = self.tr("{unit}; moment {index} of {count}, not seconds").format(
            unit=numbers.unit,
            index=numbers.grouped(moment + 1),
            count=numbers.grouped(len(self._shown.timeline)),
        )
        room = row.width() - look.width(title, Role.BODY, 600) - look.px(12)
        if look.width(note, Role.SMALL) <= room:
            painter.setPen(colours.secondary)
            painter.setFont(look.font(Role.SMALL))
            painter.drawText(row, _RIGHT, note)
