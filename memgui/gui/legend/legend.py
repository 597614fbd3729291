"""The legend: header, tree, total; one result in, one selection shared."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.document.result import Result
from memgui.document.selection import ComponentPath, Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.controls.frames import filled
from memgui.gui.legend.model import LegendModel, rows_of
from memgui.gui.legend.rows import INDENT, ROW, Cells, Columns, columns_for, paint_cells, paint_swatch
from memgui.gui.legend.tree import LegendTree
from memgui.gui.numbers import Numbers
from memgui.gui.theme import Look, Role
from memgui.gui.verdict.bar import DIMMED

HEADER = 28


class _Strip(QWidget):
    """A painted line of the legend that does not scroll."""

    def __init__(self, legend: Legend, lines: int) -> None:
        super().__init__(legend)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._legend = legend
        self.lines = lines
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)


class _Header(_Strip):
    """The columns' names."""

    def sizeHint(self) -> QSize:
        return QSize(100, Look.of(self).px(HEADER) + 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        filled(painter, self.rect(), look.colours.base)
        height = self.height() - 1
        filled(painter, QRectF(0, height, self.width(), 1), look.colours.hairline)
        columns = self._legend.columns(look)
        if columns is None:
            return
        ink = look.colours.secondary
        titles = Cells(*self._legend.model.titles())
        rect = QRectF(0, 0, self.width(), height)
        shift = look.px(-10)
        paint_cells(painter, look, rect, columns, titles, shift, (400,) * 4, (ink,) * 4, Role.SMALL)


class _Footer(_Strip):
    """The total, and what is free where all of it fits."""

    def sizeHint(self) -> QSize:
        return QSize(100, self.lines * Look.of(self).px(ROW) + 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        filled(painter, self.rect(), colours.base)
        columns = self._legend.columns(look)
        estimate = self._legend.estimate
        if columns is None or estimate is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        filled(painter, QRectF(0, 0, self.width(), 1), colours.border)
        painter.setOpacity(self._legend.tree.dimmed)
        rect, named = QRectF(0, 1, self.width(), look.px(ROW)), event.rect().left() < columns.figures
        total, free = self._legend.footer_cells()
        ink = colours.text
        paint_cells(painter, look, rect, columns, total, 0, (600,) * 4, (ink,) * 4, named=named)
        if free is not None:
            rect.translate(0, look.px(ROW))
            paint_swatch(painter, look, look.px(26), rect.center().y(), None)
            ink = colours.secondary
            paint_cells(painter, look, rect, columns, free, 0, (400,) * 4, (ink,) * 4, named=named)


class Legend(QWidget):
    """Swatch, name, size, share, and the change against the pin or the exact bytes."""

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._selection = selection
        self._view = view
        self._stale = False
        self._pinned: Estimate | None = None
        self._used = False
        self.estimate: Estimate | None = None
        self.model = LegendModel(self)
        self._head = _Header(self, 1)
        self.tree = LegendTree(self.model, selection, self)
        self._foot = _Footer(self, 1)
        self._foot.hide()
        self.tree.setAccessibleName(self.tr("Components"))
        self.setFocusProxy(self.tree)
        self._columns: Columns | None = None
        self._named: tuple[object, object, object] = (None, None, None)
        """All that is painted beside the figures: titles, names, which lines there are."""
        self.tree.rows_changed.connect(self._fit)
        selection.selected.connect(self._selected)
        view.figures_changed.connect(lambda view: self._show())

    def set_result(self, result: Result) -> None:
        """Show an estimate; the last good one, dimmed, where there is none."""
        if result.shown is self.estimate and result.stale == self._stale:
            return
        self.estimate, self._stale = result.shown, result.stale
        self.tree.dimmed = DIMMED if result.stale else 1.0
        self._show()

    def set_pinned(self, estimate: Estimate | None) -> None:
        """Show changes against a pinned estimate in the last column."""
        if estimate is not self._pinned:
            self._pinned = estimate
            self._show()

    def columns(self, look: Look) -> Columns | None:
        """Where the columns are at the present width."""
        if self._columns is None and self.estimate is not None:
            self._columns = self._lay_out(look)
            self.tree.set_columns(self._columns)
        return self._columns

    def footer_cells(self) -> tuple[Cells, Cells | None]:
        """The texts of the total and of what is free."""
        estimate = self.estimate
        assert estimate is not None
        numbers = Numbers.of(self._view.view)
        last, rise = numbers.grouped(estimate.peak_bytes), 0
        if self._pinned is not None:
            change = estimate.peak_bytes - self._pinned.peak_bytes
            last, rise = numbers.delta(change), (change > 0) - (change < 0)
        share = numbers.share(estimate.peak_bytes, estimate.peak_bytes, 0)
        total = Cells(self.tr("Total"), numbers.two(estimate.peak_bytes), share, last, rise)
        spare = estimate.verdict.headroom_bytes
        if spare <= 0:
            return total, None
        exact = numbers.grouped(spare) if self._pinned is None else ""
        return total, Cells(self.tr("Free"), numbers.two(spare), "", exact)

    def _show(self) -> None:
        estimate = self.estimate
        if estimate is None:
            return
        open_before = self.tree.open_components()
        rows = rows_of(estimate, self._pinned)
        self._columns = None
        if self.model.show(rows, estimate.peak_bytes, Numbers.of(self._view.view)):
            self.tree.set_open(open_before)
            self.tree.follow(self._selection.component)
        self._foot.lines = 1 + (estimate.verdict.headroom_bytes > 0)
        self._foot.show()
        self._fit()
        titles = self.columns(Look.of(self)), self.model.titles()
        names = [(one.name, one.place) for row in rows for one in (row, *row.parts)]
        foot = self._foot.lines, self.tree.dimmed
        before, self._named = self._named, (titles, names, foot)
        if before[0] != titles:
            self._head.update()
        if before == self._named:  # figures alone are others
            for part in (self.tree.ground, self._foot):
                self.tree.update_figures(part)
        else:
            self.tree.ground.update()
            self._foot.update()

    def _fit(self) -> None:
        """The tree is as high as its rows, so that the total stands right under them."""
        head = self._head.sizeHint().height()
        foot = self._foot.sizeHint().height() if self.estimate is not None else 0
        high = max(0, min(self.tree.height_of_rows(), self.height() - head - foot))
        places = [
            (self._head, QRect(0, 0, self.width(), head)),
            (self.tree, QRect(0, head, self.width(), high)),
            (self._foot, QRect(0, head + high, self.width(), foot)),
        ]
        if any(part.geometry() != place for part, place in places):
            for part, place in places:
                part.setGeometry(place)
            self.update()

    def _lay_out(self, look: Look) -> Columns:
        total, free = self.footer_cells()
        titles = self.model.titles()
        numbers = Numbers.of(self._view.view)
        bold = look.metrics(Role.BODY, 500)
        opened = self.tree.open_components()
        names = 0.0
        texts, changes = [_with_triangle(total.last) if total.rise else total.last, titles[3]], set()
        if free is not None:
            texts.append(free.last)
        for row in self.model.rows:
            names = max(names, bold.horizontalAdvance(row.name))
            for part in row.parts if row.path[0] in opened else ():
                names = max(names, bold.horizontalAdvance(part.name) + look.px(INDENT))
            if row.change is not None:
                changes |= {shown.change for shown in (row, *row.parts)}
        texts += [_with_triangle(numbers.delta(change)) for change in changes if change is not None]
        columns = ([total.size, titles[1]], [numbers.share(999, 1000), titles[2]], texts)
        # A long name may be cut before a column is given up for it.
        return columns_for(look, float(self.width()), columns, min(names, look.px(106)))

    def _selected(self, path: ComponentPath) -> None:
        if path:
            self._used = True
        self.update()

    def sizeHint(self) -> QSize:
        return Look.of(self).size(408, 320)

    def minimumSizeHint(self) -> QSize:
        return Look.of(self).size(200, 28 + 2 * ROW)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._columns = None
        self._fit()
        self.columns(Look.of(self))
        self._head.update()
        self._foot.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        filled(painter, self.rect(), look.colours.base)
        top = self._foot.geometry().bottom() + look.px(12)
        if self._used or self.estimate is None or self.height() - top < look.px(40):
            return
        painter.setPen(look.colours.secondary)
        painter.setFont(look.font(Role.SMALL))
        room = QRectF(look.px(16), top, self.width() - look.px(32), self.height() - top)
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
        painter.drawText(
            room,
            flags,
            self.tr("Click a slice or a row to see why it is this large. Drag a slider and watch it move."),
        )


def _with_triangle(text: str) -> str:
    """As wide as the text and its triangle."""
    return "M" + text
