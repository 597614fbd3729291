"""The Ways to fit tab: what could be changed, what it saves, what it costs, and a button to do it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.document.document import Document
from memgui.document.questions import Question
from memgui.document.result import Result
from memgui.document.view_settings import ViewSettings
from memgui.gui.controls.segmented import SegmentedSwitch
from memgui.gui.numbers import Numbers
from memgui.gui.texts import issue_text, message_text
from memgui.gui.theme import Look, Role
from memgui.gui.ways import texts
from memgui.gui.ways.list import WaysList
from memgui.gui.ways.model import WaysModel
from memgui.gui.ways.painting import HEADER, paint_header
from memgui.gui.why.qt_words import QtWords
from memgui.planning.ask import surely_fits
from memgui.planning.ways import Way, Ways
from memgui.spec.messages import counted

_TOP = 44
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


class WaysPage(QWidget):
    """Shows the answer to ``question`` and wants it while the tab is in sight."""

    def __init__(
        self, document: Document, question: Question, view: ViewSettings, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._question = question
        self._view = view
        self._ways: Ways | None = None
        self._result: Result | None = None
        self._said = ""
        self.model = WaysModel(self)
        self.list = WaysList(self.model, self)
        self.filter = SegmentedSwitch(self.tr("Which ways to show"), self)
        for value in ("all", "fit", "same"):
            self.filter.add(value, self._filter_text(value, 0))
        self.filter.hide()
        self.filter.chosen.connect(self._show)
        self.list.applied.connect(self._apply)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusProxy(self.list)
        question.answered.connect(self._learn)
        view.figures_changed.connect(self._reword)
        self._place()

    def set_result(self, result: Result) -> None:
        """Say why there are no ways where nothing can be computed; the ways come with their answer."""
        self._result = result
        self._learn()

    def showEvent(self, event: QEvent) -> None:
        self._question.want("page")
        self._learn()

    def hideEvent(self, event: QEvent) -> None:
        self._question.want("page", False)

    def _reword(self) -> None:
        """Figures are written in another unit: at once where they are in sight, else when they next are."""
        self._ways = None
        self._learn()

    def _learn(self) -> None:
        if not self.isVisible() or self._question.scenario is None:
            return
        if self._question.answer is not self._ways:
            self._ways = self._question.answer
            self._show()
        nothing = self.nothing()
        if nothing != self._said:
            self._said = nothing
            self.update()

    def _apply(self, way: Way) -> None:
        values = {one.path: one.new for one in way.changes}
        self._document.step(values, texts.title(way, QtWords(Numbers.of(self._view.view))))

    # -- which rows -----------------------------------------------------------------------------

    def _kept(self, which: object) -> list[Way]:
        if self._ways is None:
            return []
        every = self._ways.all
        if which == "fit":
            return [way for way in every if surely_fits(way.estimate)]
        if which == "same":
            return [way for way in every if way.same_results]
        return list(every)

    def _filter_text(self, which: str, count: int) -> str:
        templates = {
            "all": self.tr("All {count}"),
            "fit": self.tr("Fit {count}"),
            "same": self.tr("Same results {count}"),
        }
        return templates[which].format(count=count)

    def _show(self, _: object = None) -> None:
        line = self.model.line_at(self.list.currentIndex())
        scrolled = self.list.verticalScrollBar().value()
        for which in ("all", "fit", "same"):
            self.filter.set_text(which, self._filter_text(which, len(self._kept(which))))
        base = self._ways.estimate if self._ways is not None else None
        words = QtWords(Numbers.of(self._view.view))
        self.model.show(self._kept(self.filter.value()), base, words)
        row = self.model.row_of(line.way.key) if line is not None and self.list.touched else -1
        if row >= 0:
            self.list.verticalScrollBar().setValue(scrolled)
        else:
            self.list.touched = False
        self.list.choose(max(0, row))
        self.list.setVisible(self.model.rowCount() > 0)
        self.filter.setVisible(self._ways is not None and bool(self._ways.all))
        self._place()
        self.update()

    # -- what is written ------------------------------------------------------------------------

    def title(self) -> str:
        """How many ways there are, and in which order."""
        ways = self._ways
        if ways is None or ways.estimate is None or not ways.all:
            return ""
        count = counted(len(ways.singles))
        if surely_fits(ways.estimate):
            return self.tr(
                "It fits. {count} {count:change saves|changes save} memory, gentlest first"
            ).format(count=count)
        if ways.pairs:
            template = self.tr(
                "{count} single {count:change|changes} and {pairs} {pairs:pair|pairs}, what fits first"
            )
            return template.format(count=count, pairs=counted(len(ways.pairs)))
        return self.tr("{count} single {count:change|changes}, what fits first").format(count=count)

    def nothing(self) -> str:
        """Why the list is empty; empty before the first answer."""
        if self._question.scenario is None or self.model.rowCount():
            return ""
        if self._question.fault is not None:
            return issue_text(self._question.fault)
        reason = self._result.reason if self._result is not None else None
        if self._ways is None or self._ways.estimate is None:
            if reason is None:
                return self.tr("Nothing can be said of a set-up that cannot be computed.")
            text = message_text(reason.message).rstrip(".。")
            return self.tr("Nothing can be said of a set-up that cannot be computed: {reason}.").format(
                reason=text
            )
        if self._ways.all:
            return self.tr("No way of this kind.")
        return self.tr("Nothing that could be changed here would save memory.")

    def _titles(self) -> dict[str, str]:
        unit = Numbers.of(self._view.view).unit
        return {
            "change": self.tr("Change"),
            "bar": self.tr("Needs, saves"),
            "saves": self.tr("Saves {unit}").format(unit=unit),
            "needs": self.tr("Needs {unit}").format(unit=unit),
            "verdict": self.tr("Verdict"),
            "cost": self.tr("What it costs"),
        }

    # -- places ---------------------------------------------------------------------------------

    def _place(self) -> None:
        look = Look.of(self)
        top, edge = look.px(_TOP), look.px(16)
        size = self.filter.sizeHint()
        width = min(size.width(), max(0, self.width() - 2 * edge))
        self.filter.setGeometry(self.width() - edge - width, (top - look.px(28)) // 2, width, look.px(28))
        head = top + look.px(HEADER) + 1
        self.list.setGeometry(0, head, self.width(), max(0, self.height() - head))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

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
        top, edge = look.px(_TOP), look.px(16)
        room = self.filter.x() - 2 * edge
        painter.setPen(colours.text)
        painter.setFont(look.font(Role.BODY, 600))
        painter.drawText(QRectF(edge, 0, room + 2, top), _LEFT, look.cut(self.title(), room, Role.BODY, 600))
        height = look.px(HEADER)
        painter.fillRect(QRectF(0, top, self.width(), 1), colours.hairline)
        if self.model.rowCount():
            painter.fillRect(QRectF(0, top + 1, self.width(), height), colours.window)
            painter.fillRect(QRectF(0, top + height, self.width(), 1), colours.hairline)
            painter.translate(0, top)
            paint_header(painter, look, self.list.columns(), height, self._titles())
            painter.translate(0, -top)
        self._said = nothing = self.nothing()
        if nothing:
            painter.setPen(colours.secondary)
            painter.setFont(look.font())
            left, below = edge, top + look.px(16)
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
            painter.drawText(QRectF(left, below, self.width() - 2 * edge, self.height()), flags, nothing)
