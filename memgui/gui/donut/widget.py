"""The donut as a widget: mouse, keyboard, tooltips, screen readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from memgui.document.result import Result
from memgui.document.selection import ComponentPath, Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.controls.frames import by_keyboard, filled
from memgui.gui.donut import geometry
from memgui.gui.donut.painting import Scene, Texts, paint_donut
from memgui.gui.motion import Eased
from memgui.gui.names import component_name, node_at, node_name
from memgui.gui.numbers import Numbers
from memgui.gui.palette import DISPLAY_ORDER
from memgui.gui.texts import message_text
from memgui.gui.theme import Look, Role
from memgui.gui.tips import node_tip, two_lines
from memgui.gui.verdict.bar import DIMMED

if TYPE_CHECKING:
    from memgui.gui.accessible import Item

HEADER = 28
_LIMIT = "limit"
_SEPARATOR = "/"


class Donut(QWidget):
    """Two rings: components inside, their parts outside.

    Arrows go from slice to slice, Enter into a component's parts and from a part to its reasons,
    Backspace back out, Escape selects nothing.
    """

    accessible_role = "Chart"
    item_role = "ListItem"

    def __init__(self, selection: Selection, view: ViewSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._view = view
        self._estimate: Estimate | None = None
        self._stale = False
        self._pinned: Estimate | None = None
        self._eased = Eased(self, view)
        self._part_index: dict[ComponentPath, int] = {}
        self._centre, self._radius = QPointF(), 0.0
        self._ring = False
        self._written: Texts | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Memory by component"))
        selection.selected.connect(self._selected)
        selection.hovered.connect(self.update)
        view.figures_changed.connect(self._reword)

    def set_result(self, result: Result) -> None:
        """Show an estimate; the last good one, dimmed, where there is none."""
        estimate = result.shown
        if estimate is self._estimate and result.stale == self._stale:
            return
        self._estimate, self._stale = estimate, result.stale
        if estimate is not None:
            lengths = {_LIMIT: float(estimate.verdict.capacity_bytes)}
            self._part_index = {}
            for node in estimate.components:
                lengths[node.key] = float(node.bytes)
                for index, part in enumerate(node.children):
                    lengths[node.key + _SEPARATOR + part.key] = float(part.bytes)
                    self._part_index[(node.key, part.key)] = index
            self._eased.go(lengths)
        self._reword()

    def set_pinned(self, estimate: Estimate | None) -> None:
        """Show a pinned estimate as a thin ring in the hole, on the same scale."""
        if estimate is not self._pinned:
            self._pinned = estimate
            self.update()

    def sizeHint(self) -> QSize:
        return Look.of(self).size(360, 320)

    def minimumSizeHint(self) -> QSize:
        return Look.of(self).size(160, 160)

    # what is where

    def need(self) -> geometry.Need:
        """What is shown at this moment of the motion."""
        components: dict[str, float] = {}
        parts: dict[str, dict[str, float]] = {}
        for name, size in self._eased.now.items():
            key, separator, part = name.partition(_SEPARATOR)
            if separator:
                parts.setdefault(key, {})[part] = size
            elif name != _LIMIT:
                components[name] = size
        return geometry.Need(components, parts, self._eased.now.get(_LIMIT, 0.0))

    def path_at(self, position: QPointF) -> ComponentPath:
        """The node under a point of the widget; ``("free",)`` on what is not used."""
        if self._estimate is None:
            return ()
        away = position - self._centre
        return geometry.hit(geometry.slices(self.need()), away.x(), away.y(), self._radius)

    def _walk(self) -> list[ComponentPath]:
        """Every path in the order of the keyboard: components as displayed, each before its parts."""
        estimate = self._estimate
        if estimate is None:
            return []
        found: list[ComponentPath] = []
        for key in DISPLAY_ORDER:
            node = node_at(estimate, (key,))
            if node is not None and node.bytes > 0:
                found.append((key,))
                found.extend((key, part.key) for part in node.children if part.bytes > 0)
        return found

    def accessible_items(self) -> Sequence[Item]:
        """One item per slice and part: name, size and share."""
        from memgui.gui.accessible import Item

        estimate = self._estimate
        if estimate is None:
            return ()
        numbers = Numbers.of(self._view.view)
        places = {piece.path: piece for piece in geometry.slices(self.need())}
        items = []
        for path in self._walk():
            node = node_at(estimate, path)
            piece = places.get(path)
            if node is None or piece is None:
                continue
            share = numbers.share(node.bytes, estimate.peak_bytes)
            name = f"{node_name(node)}, {numbers.tip(node.bytes)}, {share}"
            angle = math.radians(piece.middle)
            reach = self._radius * (piece.ring[0] + piece.ring[1]) / 2
            half = max(2, round(self._radius * (piece.ring[1] - piece.ring[0]) / 2))
            middle = self._centre + QPointF(reach * math.sin(angle), -reach * math.cos(angle))
            rect = QRect(middle.toPoint() - QPoint(half, half), QSize(2 * half, 2 * half))
            items.append(Item(name, rect, path == self._selection.component))
        return items

    # what the person does

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        path = self.path_at(event.position())
        if path != self._selection.hover:
            self._selection.point_at(path)
            self._show_tip(event.globalPosition().toPoint(), path)

    def leaveEvent(self, event: QEvent) -> None:
        self._selection.point_at(())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            path = self.path_at(event.position())
            self._selection.select(() if path == (geometry.FREE,) else path)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        path = self.path_at(event.position())
        if event.button() is Qt.MouseButton.LeftButton and path and path != (geometry.FREE,):
            self._selection.open(path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        keys = Qt.Key
        moves = {keys.Key_Right: 1, keys.Key_Down: 1, keys.Key_Left: -1, keys.Key_Up: -1}
        self._ring = True
        if key in moves:
            self._move(moves[keys(key)])
        elif key in (keys.Key_Home, keys.Key_End):
            level = self._level(self._selection.component)
            if level:
                self._selection.select(level[0] if key == keys.Key_Home else level[-1])
        elif key in (keys.Key_Return, keys.Key_Enter, keys.Key_Space):
            self._enter()
        elif key == keys.Key_Backspace and self._selection.component:
            self._selection.select(self._selection.component[:-1])
        elif key == keys.Key_Escape and self._selection.component:
            self._selection.select(())
        else:
            super().keyPressEvent(event)
            return
        self.update()

    def _level(self, path: ComponentPath) -> list[ComponentPath]:
        """The slices beside a path: components, or the parts of one component."""
        if len(path) > 1:
            return [other for other in self._walk() if len(other) == 2 and other[0] == path[0]]
        return [other for other in self._walk() if len(other) == 1]

    def _move(self, step: int) -> None:
        path = self._selection.component[:2]
        level = self._level(path)
        if not level:
            return
        if path in level:
            self._selection.select(level[(level.index(path) + step) % len(level)])
        else:
            self._selection.select(level[0] if step > 0 else level[-1])

    def _enter(self) -> None:
        path = self._selection.component
        inside = [other for other in self._walk() if len(other) == 2 and other[:1] == path]
        if inside:
            self._selection.select(inside[0])
        elif path:
            self._selection.open(path)

    def _show_tip(self, at: QPoint, path: ComponentPath) -> None:
        estimate = self._estimate
        if estimate is None or not path:
            QToolTip.hideText()
            return
        numbers = Numbers.of(self._view.view)
        tip = (
            self._free_tip(estimate, numbers)
            if path == (geometry.FREE,)
            else node_tip(estimate, path, numbers)
        )
        QToolTip.showText(at + QPoint(12, 12), tip, self)

    def _free_tip(self, estimate: Estimate, numbers: Numbers) -> str:
        size = max(0, estimate.verdict.headroom_bytes)
        return two_lines(f"{self.tr('Free')}  {numbers.tip(size)}", numbers.exact(size))

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = by_keyboard(event)
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        self.update()
        super().focusOutEvent(event)

    def hideEvent(self, event: QEvent) -> None:
        self._eased.stop()

    def _selected(self, path: ComponentPath) -> None:
        self.update()
        if not self.hasFocus():
            return
        from PySide6.QtGui import QAccessible, QAccessibleEvent

        if QAccessible.isActive() and path in self._walk():
            told = QAccessibleEvent(self, QAccessible.Event.Focus)
            told.setChild(self._walk().index(path))
            QAccessible.updateAccessibility(told)

    def _reword(self) -> None:
        self._written = None
        if self._estimate is not None:
            numbers = Numbers.of(self._view.view)
            self.setAccessibleDescription(
                self.tr("{total} of {limit}").format(
                    total=numbers.sentence(self._estimate.peak_bytes),
                    limit=numbers.sentence(self._estimate.verdict.capacity_bytes),
                )
            )
        self.update()

    # painting

    def _texts(self, estimate: Estimate, numbers: Numbers) -> Texts:
        names = {key: component_name(key, short=True) for key in DISPLAY_ORDER}
        figures = {node.key: numbers.two(node.bytes) for node in estimate.components}
        names[geometry.FREE] = self.tr("Free")
        figures[geometry.FREE] = numbers.two(max(0, estimate.verdict.headroom_bytes))
        capacity = estimate.verdict.capacity_bytes
        total, _, unit = numbers.sentence(estimate.peak_bytes).rpartition(" ")
        return Texts(
            total=total,
            unit=unit,
            limit=self.tr("of {limit}").format(limit=numbers.sentence(capacity))
            if unit == numbers.unit
            else self.tr("{unit} of {limit}").format(unit=unit, limit=numbers.sentence(capacity)),
            percent=numbers.percent_at_least(estimate.peak_bytes, capacity),
            names=names,
            figures=figures,
            shares={
                node.key: numbers.share(node.bytes, estimate.peak_bytes, 0) for node in estimate.components
            },
        )

    def _said(self, estimate: Estimate) -> Texts:
        """The texts, made once for a result and its units."""
        if self._written is None:
            self._written = self._texts(estimate, Numbers.of(self._view.view))
        return self._written

    def scene(self) -> Scene | None:
        """What is to be painted now; for pictures and reports too."""
        estimate = self._estimate
        if estimate is None:
            return None
        need = self.need()
        pinned: Mapping[str, float] = {}
        if self._pinned is not None:
            pinned = {node.key: float(node.bytes) for node in self._pinned.components}
        return Scene(
            need=need,
            slices=geometry.slices(need),
            part_index=self._part_index,
            pinned=pinned,
            texts=self._said(estimate),
            kind="unknown" if self._stale else estimate.verdict.kind,
            selected=self._selection.component[:2],
            hovered=self._selection.hover[:2],
            focused=self._ring and self.hasFocus(),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        filled(painter, self.rect(), look.colours.base)  # before smoothing: its edges take whole pixels
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        scene = self.scene()
        top = self._paint_header(painter, look)
        if scene is None:
            return
        if self._stale:
            painter.setOpacity(DIMMED)
        area = QRectF(0, top, self.width(), self.height() - top).adjusted(2, 4, -2, -4)
        self._centre, self._radius = paint_donut(painter, look, scene, area)

    def _paint_header(self, painter: QPainter, look: Look) -> int:
        """Says of which moment the picture is; the height is returned."""
        height = look.px(HEADER)
        filled(painter, QRectF(0, height, self.width(), 1), look.colours.hairline)
        if self._estimate is None:
            return height
        left = look.px(16)
        lead = self.tr("At the peak:")
        wide = look.width(lead, Role.SMALL) + look.px(4)
        painter.setPen(look.colours.secondary)
        look.metrics(Role.SMALL).write(painter, QRectF(left, 0, self.width() - left, height), lead)
        moment = message_text(self._estimate.peak_moment.label)
        room = self.width() - left - wide - look.px(12)
        bold = look.metrics(Role.SMALL, 600)
        painter.setPen(look.colours.text)
        bold.write(painter, QRectF(left + wide, 0, room + 2, height), bold.cut(moment, room))
        return height + 1
