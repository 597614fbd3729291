"""The Why tab: what is selected, explained; copied as text or Markdown."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QScrollArea, QSizePolicy, QWidget

from memgui.document.questions import Question
from memgui.document.result import Result
from memgui.document.selection import ComponentPath, Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.controls.buttons import ToolButton
from memgui.gui.controls.scrolling import slim
from memgui.gui.icons import paint_icon
from memgui.gui.legend.rows import paint_swatch
from memgui.gui.metrics import RIGHT
from memgui.gui.names import node_at
from memgui.gui.numbers import Numbers
from memgui.gui.palette import Paint
from memgui.gui.theme import Look, Role
from memgui.gui.verdict.bar import DIMMED
from memgui.gui.verdict.sentence import assumptions_text
from memgui.gui.why.flow import title_of
from memgui.gui.why.parts import PartsList, lines_of
from memgui.gui.why.qt_words import QtWords
from memgui.gui.why.view import WhyView
from memgui.planning.served import found
from memgui.planning.why import FRAGMENTATION, Explanation, as_markdown, as_text, explain, source_text
from memgui.planning.words import Said
from memgui.spec import NO_REPORT, Message

_TITLE, _FOOT = 36, 32


class _Scroll(QScrollArea):
    """A column that scrolls by itself where it is too long."""

    def __init__(self, inner: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        slim(self)
        self.setWidget(inner)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Its room is always taken, so that nothing moves when it is needed.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for widget in (self, self.viewport(), inner):
            widget.setAutoFillBackground(False)


class WhyPage(QWidget):
    """Explains the selected component, or the whole where nothing is selected."""

    def __init__(
        self,
        selection: Selection,
        view: ViewSettings,
        parent: QWidget | None = None,
        serving: Question | None = None,
        played: Question | None = None,
    ) -> None:
        """``serving`` answers with :class:`~memgui.planning.serving.Limits`, if anything does.

        ``played`` answers with what the allocator makes of the run.
        """
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._serving, self._played = serving, played
        for question in (serving, played):
            if question is not None:
                question.answered.connect(self._look_again)
        self._selection = selection
        self._settings = view
        self._estimate: Estimate | None = None
        self._stale = False
        self._report = NO_REPORT
        self._explanation: Explanation | None = None
        self._dirty = True
        self._divided = 0
        self._placed: tuple[object, ...] = ()
        self._written: tuple[object, object] = (None, None)
        self.view = WhyView(selection)
        self.parts = PartsList()
        self._scroll = _Scroll(self.view, self)
        self._side = _Scroll(self.parts, self)
        self._copy = ToolButton("copy", self.tr("Copy"), self)
        menu = QMenu(self._copy)
        menu.addAction(self.tr("Copy as text"), self.copy_text)
        menu.addAction(self.tr("Copy as Markdown"), self.copy_markdown)
        self._copy.setMenu(menu)
        self._copy.setPopupMode(ToolButton.ToolButtonPopupMode.InstantPopup)
        self.parts.chosen.connect(self._go_into)
        selection.selected.connect(self._look_again)
        selection.field_hovered.connect(self.view.update)
        view.figures_changed.connect(self._look_again)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusProxy(self.view)

    def set_result(self, result: Result) -> None:
        """Explain another estimate; the last good one, dimmed, where there is none."""
        news = (result.shown, result.stale, result.report)
        if result.shown is self._estimate and news[1:] == (self._stale, self._report):
            return
        self._estimate, self._stale, self._report = news
        self._look_again()

    def explanation(self) -> Explanation | None:
        """What is explained now; a node that is gone gives way to what it was in."""
        if self._dirty:
            self._dirty = False
            self._explanation = self._made()
        return self._explanation

    def copy_text(self) -> None:
        """Put the explanation on the clipboard as plain text."""
        explanation = self.explanation()
        if explanation is not None:
            QGuiApplication.clipboard().setText(as_text(explanation, self._words()))

    def copy_markdown(self) -> None:
        """Put the explanation on the clipboard as Markdown."""
        explanation = self.explanation()
        if explanation is not None:
            QGuiApplication.clipboard().setText(as_markdown(explanation, self._words()))

    def _words(self) -> QtWords:
        return QtWords(Numbers.of(self._settings.view))

    def _made(self) -> Explanation | None:
        if self._estimate is None:
            return None
        path = self._selection.component
        while path and node_at(self._estimate, path) is None:
            path = path[:-1]
        answers, further = self._answers(self._estimate, path), self._further(self._estimate, path)
        return explain(self._estimate, path, self._report, answers, further)

    def _further(self, estimate: Estimate, path: ComponentPath) -> tuple[Message, ...]:
        """What the allocator makes of a run, where that is asked for and known."""
        asked = self._played
        if asked is None:
            return ()
        wanted = path == FRAGMENTATION and estimate.scenario.task == "training"
        asked.want("why", wanted and self.isVisible())
        known = wanted and asked.scenario == estimate.scenario and asked.answer is not None
        return (asked.answer,) if known else ()

    def _answers(self, estimate: Estimate, path: ComponentPath) -> tuple[Said, ...]:
        """How far a set-up that serves goes, where that is known of it."""
        asked = self._serving
        serves = not path and estimate.scenario.task == "inference"
        if asked is None:
            return ()
        asked.want("why", serves and self.isVisible())
        if not serves or asked.scenario != estimate.scenario:
            return ()
        if asked.fault is not None:
            return (Said("{fault}", messages={"fault": asked.fault.message}),)
        if asked.answer is None:
            return ()
        return found(estimate, asked.answer)

    def _look_again(self, _: object = None) -> None:
        self._dirty = True
        if self.isVisible():
            self._show()

    def _show(self) -> None:
        explanation = self.explanation()
        if explanation is None:
            return
        opacity = DIMMED if self._stale else 1.0
        self.view.opacity = opacity
        self.parts.show_lines(lines_of(explanation, self._words().numbers), opacity)
        self._place()
        self.view.show_explanation(explanation, self._words())
        self._repaint()

    def _repaint(self) -> None:
        """Have title and foot painted; what lies between them repaints itself."""
        look = Look.of(self)
        if self._side_width(look) != self._divided:
            self.update()
            return
        title, foot = self._title(), self._foot()
        high = look.px(_FOOT)
        if title != self._written[0]:
            self.update(0, 0, self._copy.x(), look.px(_TITLE))
        if foot != self._written[1]:
            self.update(0, self.height() - high, self._copy.geometry().right() + 1, high)

    def _title(self) -> tuple[object, ...]:
        """What stands over the explanation: the way there, the name, the size; and how strongly."""
        explanation, words = self.explanation(), self._words()
        assert explanation is not None
        return (*title_of(explanation, words), words.size(explanation.bytes), explanation.path, self._stale)

    def _foot(self) -> tuple[str, str, bool]:
        """What stands under it: what is assumed, where it comes from; and how strongly."""
        explanation = self.explanation()
        assert explanation is not None
        # the verdict's count: what a method leaves out is assumed to be nothing
        count = len(explanation.left_out) + len(explanation.assumptions) + len(explanation.report.assumed)
        return assumptions_text(count), source_text(explanation, self._words()), self._stale

    def _go_into(self, key: str) -> None:
        explanation = self.explanation()
        if explanation is not None:
            self._selection.select((*explanation.path, key))

    def showEvent(self, event: QEvent) -> None:
        self._dirty = True
        self._show()

    def hideEvent(self, event: QEvent) -> None:
        for question in (self._serving, self._played):
            if question is not None:
                question.want("why", False)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange and self.isVisible():
            self._show()
        super().changeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_text()
        elif event.key() == Qt.Key.Key_Backspace and self._selection.component:
            self._selection.select(self._selection.component[:-1])
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self._copy.menu()
        if menu is not None:
            menu.popup(event.globalPos())

    # places

    def _side_width(self, look: Look) -> int:
        """The list's column; none where there is nothing to list or no room for it."""
        if not self.parts.lines or self.width() < look.px(480):
            return 0
        return min(look.px(300), max(look.px(228), self.width() * 32 // 100))

    def _place(self) -> None:
        look = Look.of(self)
        edge = look.px(16)
        side = self._side_width(look)
        if self._placed == (self.size(), side, look):
            return
        self._placed = self.size(), side, look
        left = self.width() - (side + 2 * edge if side else 0)
        top, foot = look.px(_TITLE), look.px(_FOOT)
        bar = self._scroll.verticalScrollBar().sizeHint().width()
        self._scroll.setGeometry(edge, top, max(0, left - 2 * edge + bar), max(0, self.height() - top - foot))
        self.view.resize(self._scroll.viewport().width(), self.view.height())
        self._side.setVisible(side > 0)
        if side:
            self._side.setGeometry(left + edge, look.px(8), side + bar, self.height() - look.px(12))
        size = self._copy.sizeHint()
        self._copy.setGeometry(QRectF(left - edge - size.width(), 4, size.width(), size.height()).toRect())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(760), look.px(236))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(240), look.px(120))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.fillRect(self.rect(), look.colours.base)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        explanation = self.explanation()
        if explanation is None:
            return
        side = self._divided = self._side_width(look)
        edge = look.px(16)
        right = self.width() - (side + 2 * edge if side else 0)
        if side:
            painter.fillRect(
                QRectF(right, look.px(12), 1, self.height() - look.px(24)), look.colours.hairline
            )
        painter.setOpacity(DIMMED if self._stale else 1.0)
        region = event.region()
        self._written = self._title(), self._foot()
        if region.intersects(QRect(0, 0, self._copy.x(), look.px(_TITLE))):
            self._paint_title(painter, look, explanation, self._copy.x() - look.px(8))
        if region.intersects(QRect(0, self.height() - look.px(_FOOT), right, look.px(_FOOT))):
            self._paint_foot(painter, look, right - edge)

    def _paint_title(self, painter: QPainter, look: Look, explanation: Explanation, right: float) -> None:
        colours = look.colours
        edge = look.px(16)
        row = QRectF(edge, look.px(6), right - edge, look.px(26))
        words = self._words()
        above, name = title_of(explanation, words)
        size = words.size(explanation.bytes)
        wide = look.width(size, Role.TITLE, 600)
        bold = look.metrics(Role.TITLE, 600)
        painter.setPen(colours.text)
        bold.write(painter, row, size, RIGHT)
        left = row.left()
        if explanation.path:
            paint = self._swatch(look, explanation.path)
            paint_swatch(painter, look, left, row.center().y(), paint)
            left += look.px(20)
        metrics = look.metrics(Role.TITLE)
        painter.setPen(colours.secondary)
        metrics.write(painter, QRectF(left, row.top(), row.width(), row.height()), above)
        left += metrics.horizontalAdvance(above)
        room = row.right() - wide - look.px(12) - left
        painter.setPen(colours.text)
        bold.write(painter, QRectF(left, row.top(), room + 2, row.height()), bold.cut(name, room))

    def _swatch(self, look: Look, path: ComponentPath) -> Paint:
        if len(path) == 1 or self._estimate is None:
            return look.colours.component(path[0])
        parts = self._estimate.component(path[0]).children
        index = next((at for at, part in enumerate(parts) if part.key == path[1]), 0)
        return look.colours.part(path[0], index)

    def _paint_foot(self, painter: QPainter, look: Look, right: float) -> None:
        colours = look.colours
        edge = look.px(16)
        top = self.height() - look.px(_FOOT)
        painter.fillRect(QRectF(edge, top, right - edge, 1), colours.hairline)
        row = QRectF(edge, top + 1, right - edge, look.px(_FOOT) - 1)
        said, source, _ = self._foot()
        small = look.metrics(Role.SMALL)
        painter.setPen(colours.secondary)
        small.write(painter, row, said, RIGHT)
        paint_icon(
            painter, "file", QPointF(edge + look.px(8), row.center().y()), look.px(16), colours.secondary
        )
        left = edge + look.px(22)
        room = row.right() - small.horizontalAdvance(said) - look.px(16) - left
        painter.setPen(colours.secondary)
        small.write(painter, QRectF(left, row.top(), room + 2, row.height()), small.cut(source, room))
