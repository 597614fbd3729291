"""The What if tab: the sweep at the left, heat map and largest values at the right."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from memgui.document.result import Result
from memgui.document.what_if import Swept, WhatIf
from memgui.gui.context import AppContext
from memgui.gui.controls.scrolling import slim
from memgui.gui.numbers import Numbers
from memgui.gui.texts import field_text, issue_text
from memgui.gui.theme import Look, Role
from memgui.gui.whatif.chart import SweepChart
from memgui.gui.whatif.controls import CHART, HEAT_MAP, SWEEP, Controls
from memgui.gui.whatif.heat import HeatMap
from memgui.gui.whatif.largest import LargestTable
from memgui.gui.whatif.table import SweepTable
from memgui.gui.whatif.values import step_text
from memgui.planning.sweep import as_csv
from memgui.spec import Issue, get
from memgui.spec.fields import BY_PATH

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_TITLE = 30


class _Titled(QWidget):
    """A picture under its title and a note, or what went wrong in its place."""

    def __init__(self, inner: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._inner = inner
        self._title = self._note = self._fault = ""
        look = Look.of(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, look.px(_TITLE), 0, 0)
        column.setSpacing(look.px(8))
        column.addWidget(inner, 1)

    def set_texts(self, title: str, note: str) -> None:
        """What stands above."""
        if (title, note) != (self._title, self._note):
            self._title, self._note = title, note
            self.update()

    @property
    def fault(self) -> str:
        """Why there is no picture; empty where there is one."""
        return self._fault

    def set_fault(self, fault: Issue | None) -> None:
        """Say why there is no picture; an old one would pass for the answer."""
        text = issue_text(fault) if fault is not None else ""
        if text != self._fault:
            self._fault = text
            self._inner.setVisible(not text)
            self.setAccessibleDescription(text)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        row = QRectF(0, 0, self.width(), look.px(_TITLE))
        if self._fault:
            painter.setPen(look.colours.secondary)
            painter.setFont(look.font())
            below = QRectF(self.rect()).adjusted(0, row.height() + look.px(4), 0, 0)
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
            painter.drawText(below, flags, self._fault)
        painter.setPen(look.colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        shown = look.cut(self._title, row.width(), Role.BODY, 600)
        painter.drawText(row, _LEFT, shown)
        if (
            look.width(shown, Role.BODY, 600) + look.width(self._note, Role.SMALL) + look.px(12)
            <= row.width()
        ):
            painter.setPen(look.colours.secondary)
            painter.setFont(look.font(Role.SMALL))
            painter.drawText(row, _RIGHT, self._note)


class WhatIfPage(QWidget):
    """Asks only while it is in sight; what was answered stays until something newer is."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = context.view
        self._result: Result | None = None
        self._swept: Swept | None = None
        self.what_if = WhatIf(context.document, context.jobs, context.catalog, context.pins, parent=self)
        self.controls = Controls(self.what_if, Numbers.of(context.view.view), self)
        self.chart = SweepChart(context.selection, context.view, self)
        self.table = SweepTable(context.view, self)
        self.heat = HeatMap(context.view, self)
        self.largest = LargestTable(context.view, self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.chart)
        self._stack.addWidget(self.table)
        self._sweep_part = _Titled(self._stack, self)
        self._heat_part = _Titled(self.heat)
        self._side = self._right_column()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusProxy(self.chart)
        self._connect()
        self._title()

    def _right_column(self) -> QScrollArea:
        inner = QWidget(self)
        column = self._column = QVBoxLayout(inner)
        column.setSpacing(Look.of(self).px(8))
        column.addWidget(self._heat_part, 1)
        column.addWidget(self.largest)
        area = QScrollArea(self)
        slim(area)
        area.setWidgetResizable(True)
        area.setWidget(inner)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for widget in (area, area.viewport(), inner):
            widget.setAutoFillBackground(False)
        return area

    def _connect(self) -> None:
        what_if = self.what_if
        what_if.sweep.answered.connect(self._show_sweep)
        what_if.largest.answered.connect(self._show_largest)
        what_if.heat_map.answered.connect(self._show_heat)
        what_if.planned.connect(self._show_present)
        self._view.figures_changed.connect(self._redraw_next)
        self.controls.shown.connect(lambda which: self._stack.setCurrentIndex(0 if which == CHART else 1))
        self.controls.copy_asked.connect(self.copy_csv)
        for source in (self.chart, self.table, self.largest):
            source.chosen.connect(self._take_value)
        self.heat.chosen.connect(self._take)
        self.heat.room.connect(what_if.set_cells)

    # results

    def set_result(self, result: Result) -> None:
        """Follow the open scenario; the answers come by themselves."""
        self._result = result
        for picture in (self.chart, self.heat):
            if picture.stale != result.stale:
                picture.stale = result.stale
                picture.update()
        self.controls.follow()
        self._show_present()

    def _show_present(self) -> None:
        result = self._result
        if result is None:
            return
        plan = self._swept.plan if self._swept is not None else self.what_if.plan
        need = result.estimate.peak_bytes if result.estimate is not None else 0
        self.chart.show_present(get(result.scenario, plan.path), need)
        grid = self.heat.grid
        if grid is not None:
            self.heat.show_present(get(result.scenario, grid.x_path), get(result.scenario, grid.y_path))

    def _show_sweep(self) -> None:
        swept = self.what_if.sweep.answer
        self._sweep_part.set_fault(self.what_if.sweep.fault)
        if swept is None:
            return  # the last picture stays, dimmed
        self._swept = swept
        self._show_present()
        self.chart.show_sweep(swept)
        self.table.show_sweep(swept)
        self._title()

    def _show_largest(self) -> None:
        found = self.what_if.largest.answer
        self.largest.show_fault(self.what_if.largest.fault)
        if found is not None:
            self.chart.show_crossings(found)
            self.largest.show_found(self.what_if.plan.path, found)

    def _show_heat(self) -> None:
        grid = self.what_if.heat_map.answer
        self._heat_part.set_fault(self.what_if.heat_map.fault)
        if grid is None:
            return
        shown = self._result.shown if self._result is not None else None
        self.heat.show_grid(grid, shown.verdict.capacity_bytes if shown is not None else 0)
        self._show_present()
        self._title()

    def _title(self) -> None:
        numbers = Numbers.of(self._view.view)
        swept, grid, plan = self._swept, self.heat.grid, self.what_if.plan
        path = swept.plan.path if swept is not None else plan.path
        fields = (grid.x_path, grid.y_path) if grid is not None else (plan.path, plan.against)
        left_out = len(swept.points) - len(swept.known) if swept is not None else 0
        note = numbers.unit
        if left_out:
            text = self.tr("{unit}; {count} {count:value|values} cannot be computed")
            note = text.format(unit=numbers.unit, count=numbers.count(left_out))
        name = field_text(BY_PATH[path].label)
        self._sweep_part.set_texts(self.tr("Peak memory · {field}").format(field=name), note)
        self._heat_part.set_texts(" × ".join(field_text(BY_PATH[one].label) for one in fields), numbers.unit)

    def _redraw_next(self, _: object = None) -> None:
        """The window is painted with its new figures first."""
        QTimer.singleShot(1, self, self._redraw)

    def _redraw(self) -> None:
        self.chart.repaint_all()
        self.table.show_sweep(self._swept)
        self.heat.repaint_all()
        self.largest.update()
        self._title()

    # what the person does

    def _take_value(self, value: int | float) -> None:
        path = self._swept.plan.path if self._swept is not None else self.what_if.plan.path
        self._take({path: value})

    def _take(self, values: dict[str, int | float]) -> None:
        self.what_if.apply(values, step_text(values, Numbers.of(self._view.view)))

    def copy_csv(self, which: str = SWEEP) -> None:
        """The sweep or the heat map on the clipboard, every byte of it."""
        swept, grid = self._swept, self.heat.grid
        if which == HEAT_MAP and grid is not None:
            QGuiApplication.clipboard().setText(grid.as_csv())
        elif which == SWEEP and swept is not None:
            QGuiApplication.clipboard().setText(as_csv(swept.plan.path, swept.points))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_csv(HEAT_MAP if self.heat.hasFocus() else SWEEP)
        else:
            super().keyPressEvent(event)

    # places

    def showEvent(self, event: QEvent) -> None:
        self.what_if.want(True)

    def hideEvent(self, event: QEvent) -> None:
        self.what_if.want(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        look = Look.of(self)
        self.controls.set_narrow(self.width() / look.scale)
        edge, top = look.px(16), look.px(44)
        self.controls.setGeometry(0, 0, self.width(), top)
        side = self._side_width(look)
        right = self.width() - (side + 2 * edge if side else edge)
        high = self.height() - top
        self._sweep_part.setGeometry(edge, top, right - (2 * edge if side else edge), high)
        self._side.setVisible(side > 0)
        self._side.setGeometry(right + edge, top, side + edge, high)
        self._column.setContentsMargins(0, 0, edge, 0)

    def _side_width(self, look: Look) -> int:
        if self.width() < look.px(620):
            return 0
        return min(max(look.px(330), self.width() * 38 // 100), look.px(1000))

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(760), look.px(236))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(320), look.px(160))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.fillRect(self.rect(), look.colours.base)
        side = self._side_width(look)
        if side:
            left = self.width() - side - 2 * look.px(16)
            painter.fillRect(left, look.px(44), 1, self.height() - look.px(44), look.colours.hairline)
