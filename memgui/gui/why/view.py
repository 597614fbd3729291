"""The left side of the Why tab: title, sentences, formula, numbers that lead to their fields."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QSize, Qt
from PySide6.QtGui import (
    QAccessible,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from memgui.document.selection import Selection
from memgui.gui import accessible
from memgui.gui.theme import Look
from memgui.gui.why.flow import Flow, Link, flow_of
from memgui.planning.why import Explanation, as_text
from memgui.planning.words import Words


class WhyView(QWidget):
    """Paints one explanation.  Numbers with a field are links: Tab goes through them, Enter follows."""

    accessible_role = "Document"
    item_role = "Link"

    def __init__(self, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        accessible.install()
        self._selection = selection
        self._explanation: Explanation | None = None
        self._words: Words | None = None
        self._flow: Flow | None = None
        self._focused = -1
        self._hovered = -1
        self.opacity = self._painted_opacity = 1.0
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Why"))
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_explanation(self, explanation: Explanation, words: Words) -> None:
        """Show another explanation; the link that had the focus keeps it if it is still there."""
        focused, before = self._link(self._focused), self._flow
        self._explanation, self._words, self._flow = explanation, words, None
        links = self.links()
        self._focused = next((at for at, link in enumerate(links) if focused and link.leads_as(focused)), -1)
        self._hovered = min(self._hovered, len(links) - 1)
        if QAccessible.isActive():
            self.setAccessibleDescription(as_text(explanation, words))
        self.setFixedHeight(self.heightForWidth(self.width()))
        flow = self._made()
        marked = self._focused >= 0 or self._hovered >= 0
        if before is None or flow is None or marked or self.opacity != self._painted_opacity:
            self.update()
        else:
            for top, bottom in flow.changed(before):
                self.update(0, top, self.width(), bottom - top)

    def links(self) -> Sequence[Link]:
        """The numbers that lead somewhere, in the order of the keyboard."""
        flow = self._made()
        return flow.links if flow is not None else ()

    def _link(self, at: int) -> Link | None:
        links = self._flow.links if self._flow is not None else []
        return links[at] if 0 <= at < len(links) else None

    def _link_path(self, at: int) -> str:
        link = self._link(at)
        return link.path if link is not None else ""

    def _made(self) -> Flow | None:
        if self._flow is None and self._explanation is not None and self._words is not None:
            self._flow = flow_of(self._explanation, self._words, Look.of(self), float(self.width()))
        return self._flow

    def accessible_items(self) -> Sequence[accessible.Item]:
        """One item per link."""
        return [
            accessible.Item(link.name, link.rect.toAlignedRect(), at == self._focused)
            for at, link in enumerate(self.links())
        ]

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if self._explanation is None or self._words is None:
            return 0
        if self._flow is None or round(self._flow.width) != width:
            self._flow = flow_of(self._explanation, self._words, Look.of(self), float(width))
        return round(self._flow.height) + 1

    def sizeHint(self) -> QSize:
        width = max(self.width(), Look.of(self).px(240))
        return QSize(width, self.heightForWidth(width))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._flow = None
            self.setFixedHeight(self.heightForWidth(self.width()))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.PaletteChange):
            self._flow = None
            self.update()
        super().changeEvent(event)

    def _at(self, position: QPointF) -> int:
        return next((at for at, link in enumerate(self.links()) if link.rect.contains(position)), -1)

    def _follow(self, at: int) -> None:
        """Go where a link leads: to a field, or into a component."""
        link = self.links()[at]
        if link.component:
            self._selection.select((link.component,))
        else:
            self._selection.go_to_field(link.path)

    def _hover(self, at: int) -> None:
        if at != self._hovered:
            self._hovered = at
            self._selection.point_at_field(self._link_path(at))
            self.setCursor(Qt.CursorShape.PointingHandCursor if at >= 0 else Qt.CursorShape.ArrowCursor)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self._at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position())
        if event.button() is Qt.MouseButton.LeftButton and at >= 0:
            self._follow(at)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            at = self._at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), self._tip(self.links()[at]) if at >= 0 else "", self)
            return True
        return super().event(event)

    def _tip(self, link: Link) -> str:
        if link.component:
            return self.tr("{name}: explain it").format(name=link.name)
        return self.tr("{name}: go to its field").format(name=link.name)

    def focusInEvent(self, event: QFocusEvent) -> None:
        reasons = Qt.FocusReason
        if event.reason() is reasons.TabFocusReason:
            self._focused = 0 if self.links() else -1
        elif event.reason() is reasons.BacktabFocusReason:
            self._focused = len(self.links()) - 1
        if self._focused >= 0:
            self._tell_focus()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        if self._focused >= 0:
            self._selection.point_at_field("")
        self._focused = -1
        self.update()
        super().focusOutEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        step = self._focused + (1 if forward else -1)
        if self._focused >= 0 and 0 <= step < len(self.links()):
            self._focused = step
            self._tell_focus()
            return True
        return super().focusNextPrevChild(forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        count = len(self.links())
        if event.key() in (keys.Key_Left, keys.Key_Right) and count:
            step = 1 if event.key() == keys.Key_Right else -1
            self._focused = (self._focused + step) % count if self._focused >= 0 else 0
            self._tell_focus()
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space) and self._focused >= 0:
            self._follow(self._focused)
        else:
            super().keyPressEvent(event)

    def _tell_focus(self) -> None:
        self._selection.point_at_field(self._link_path(self._focused))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.base)
        flow = self._made()
        if flow is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(self.opacity)
        self._painted_opacity, region = self.opacity, event.region()
        pointed = self._selection.field
        for at, link in enumerate(flow.links):
            tinted = at in (self._hovered, self._focused) or (pointed and link.path == pointed)
            if tinted:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(colours.tint)
                pad = look.px(3)
                painter.drawRoundedRect(link.number.adjusted(-pad, 0, pad, 1), look.px(4), look.px(4))
            if at == self._focused:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(colours.accent, 2))
                painter.drawRoundedRect(link.rect.adjusted(-3, -2, 3, 2), look.px(4), look.px(4))
            painter.setPen(QPen(colours.accent, 1, Qt.PenStyle.DotLine))
            line = round(link.line) - 0.5
            painter.drawLine(QPointF(link.number.left(), line), QPointF(link.number.right(), line))
        for piece in flow.pieces:
            if not region.intersects(piece.rect.toAlignedRect()):
                continue
            painter.setPen(piece.colour)
            piece.metrics.write(painter, piece.rect, piece.text)
