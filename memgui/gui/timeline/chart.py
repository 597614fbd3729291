"""The timeline's chart: live bytes stacked by component, the peak named, a crosshair to read off."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui import accessible
from memgui.gui.controls.frames import by_keyboard, painting
from memgui.gui.numbers import Numbers
from memgui.gui.texts import message_text
from memgui.gui.theme import Look
from memgui.gui.timeline.painting import Artist, Content, Drawing, lay_out
from memgui.gui.why.qt_words import QtWords
from memgui.planning.moments import Span


class TimelineChart(QWidget):
    """Arrows go from moment to moment, Page keys from phase to phase, Escape back to the peak.

    The picture is kept and painted again only when what it shows has changed; the crosshair lies over it.
    """

    pointed = Signal(int)
    """The moment that is read off now."""

    accessible_role = "Chart"
    item_role = "ListItem"

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._selection = selection
        self._view = view
        self._estimate: Estimate | None = None
        self._content: Content | None = None
        self._pinned = -1
        self._hovered = -1
        self._ring = False
        self._picture: QPixmap | None = None
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._repaint)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Memory over one step"))
        selection.selected.connect(self._repaint)
        selection.hovered.connect(self._repaint)

    def show_estimate(self, estimate: Estimate) -> None:
        """Draw another estimate's timeline; the picture that is there stands until the next turn of events.

        To find its areas takes about as long as to paint them: each leaves room in a frame, both might not.
        """
        self._estimate = estimate
        self._content = Content(estimate)
        self._pinned = -1
        self._hovered = -1
        if self._picture is None:
            self._repaint()
        else:
            self._turn.start()
        self.pointed.emit(self.moment)

    @property
    def moment(self) -> int:
        """The moment that is read off: under the mouse, else the pinned one, else the peak."""
        if self._hovered >= 0:
            return self._hovered
        return self._pinned if self._pinned >= 0 else self.peak

    @property
    def peak(self) -> int:
        """The moment of the peak; -1 while there is none."""
        return self._content.peak if self._content is not None else -1

    def pin(self, index: int) -> None:
        """Stay at a moment; -1: back to the peak."""
        count = len(self._estimate.timeline) if self._estimate is not None else 0
        self._pinned = min(max(index, -1), count - 1)
        self._hovered = -1
        self.update()
        self.pointed.emit(self.moment)

    def step(self, by: int) -> None:
        """Go on to the next moment, or back."""
        if self._estimate is not None:
            self.pin(min(max(self.moment + by, 0), len(self._estimate.timeline) - 1))

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(520), look.px(200))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(200), look.px(100))

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per phase, with its highest moment."""
        estimate = self._estimate
        drawing = self._drawing()
        if estimate is None or drawing is None:
            return ()
        words = QtWords(Numbers.of(self._view.view))
        items = []
        for span in self._phases():
            best = max(range(span.first, span.last + 1), key=lambda index: estimate.timeline[index].bytes)
            moment = estimate.timeline[best]
            name = f"{span.title.text(words)}: {message_text(moment.label)}, {words.size(moment.bytes)}"
            rect = self._span_rect(drawing, span)
            items.append(accessible.Item(name, rect, span.first <= self.moment <= span.last))
        return items

    def _span_rect(self, drawing: Drawing, span: Span) -> QRect:
        left, right = drawing.across.edges[span.first], drawing.across.edges[span.last + 1]
        return QRectF(
            left, drawing.axis.top, right - left, drawing.axis.bottom - drawing.axis.top
        ).toAlignedRect()

    # what the person does

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        drawing = self._drawing()
        if drawing is None:
            return
        x = event.position().x()
        inside = drawing.across.left <= x <= drawing.across.right
        self._hover(drawing.across.at(x) if inside else -1)
        self._selection.point_at(self._path_at(drawing, event.position()))

    def _path_at(self, drawing: Drawing, position: QPointF) -> tuple[str, ...]:
        if self._hovered < 0:
            return ()
        for layer in drawing.layers:
            upper, lower = (
                drawing.axis.y(layer.upper[self._hovered]),
                drawing.axis.y(layer.lower[self._hovered]),
            )
            if upper <= position.y() <= lower:
                return (layer.key,)
        return ()

    def _hover(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            self.update()
            self.pointed.emit(self.moment)

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)
        self._selection.point_at(())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        drawing = self._drawing()
        if event.button() is Qt.MouseButton.LeftButton and drawing is not None:
            self._pinned = drawing.across.at(event.position().x())
            path = self._path_at(drawing, event.position())
            if path:
                self._selection.select(path)
            self.update()
            self.pointed.emit(self.moment)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        estimate = self._estimate
        keys = Qt.Key
        if estimate is None:
            super().keyPressEvent(event)
            return
        self._ring = True
        match event.key():
            case keys.Key_Left:
                self.step(-1)
            case keys.Key_Right:
                self.step(1)
            case keys.Key_Home:
                self.pin(0)
            case keys.Key_End:
                self.pin(len(estimate.timeline) - 1)
            case keys.Key_PageUp | keys.Key_PageDown:
                self._go_phase(1 if event.key() == keys.Key_PageDown else -1)
            case keys.Key_Escape:
                self.pin(-1)
            case _:
                super().keyPressEvent(event)

    def _phases(self) -> tuple[Span, ...]:
        return self._content.spans.phases if self._content is not None else ()

    def _go_phase(self, by: int) -> None:
        phases = self._phases()
        here = next((at for at, span in enumerate(phases) if span.first <= self.moment <= span.last), 0)
        self.pin(phases[min(max(here + by, 0), len(phases) - 1)].first)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()
        super().focusOutEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._picture = None
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._repaint()
        super().changeEvent(event)

    def _repaint(self, _: object = None) -> None:
        self._turn.stop()
        self._picture = None
        self.update()

    # painting

    def _drawing(self) -> Drawing | None:
        content = self._content
        if content is None or not content.layers:
            return None
        numbers = Numbers.of(self._view.view)
        return lay_out(content, Look.of(self), numbers, float(self.width()), float(self.height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        drawing = self._drawing()
        painter = QPainter(self)
        look = Look.of(self)
        if drawing is None or self._estimate is None:
            return
        ratio = self.devicePixelRatioF()
        if self._picture is None or self._picture.devicePixelRatio() != ratio:
            self._picture = self._painted(drawing, look, ratio)
        painter.drawPixmap(0, 0, self._picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_crosshair(painter, look, drawing)
        if self._ring and self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(look.colours.accent, 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), look.px(4), look.px(4))

    def _painted(self, drawing: Drawing, look: Look, ratio: float) -> QPixmap:
        assert self._estimate is not None
        pointed = frozenset(path[0] for path in (self._selection.component, self._selection.hover) if path)
        numbers = Numbers.of(self._view.view)
        with painting(self.size().toSizeF(), ratio, look.colours.base) as (picture, painter):
            Artist(painter, look, drawing, self._estimate, numbers, pointed, ratio).paint()
        return picture

    def _paint_crosshair(self, painter: QPainter, look: Look, drawing: Drawing) -> None:
        index = self._hovered if self._hovered >= 0 else self._pinned
        if index < 0:
            return
        assert self._estimate is not None
        point = drawing.point(self._estimate, index)
        x = round(point.x()) + 0.5
        painter.setPen(QPen(look.colours.accent, 1.5))
        painter.drawLine(QPointF(x, drawing.axis.top), QPointF(x, drawing.axis.bottom))
        painter.setBrush(look.colours.accent)
        painter.setPen(QPen(look.colours.base, 1.5))
        painter.drawEllipse(point, look.px(4), look.px(4))
