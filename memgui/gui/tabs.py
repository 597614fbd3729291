"""The tabs under the picture: each page is made when it is first shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from memgui.document.ahead import Ahead
from memgui.gui.controls.buttons import ToolButton
from memgui.gui.modules import Part
from memgui.gui.theme import Look, Role

PATIENCE_MS = 300
"""Work that is done sooner is not worth a mark."""


class TabBar(QTabBar):
    """Texts with the chosen one underlined; Qt's keys."""

    pointed = Signal(int)
    """The mouse moved over the tab with that index."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setUsesScrollButtons(True)
        self.setElideMode(Qt.TextElideMode.ElideNone)
        self.setMouseTracking(True)

    def tabSizeHint(self, index: int) -> QSize:
        look = Look.of(self)
        width = look.metrics(Role.BODY, 600).horizontalAdvance(self.tabText(index))
        return QSize(round(width) + look.px(24), look.px(36))

    def minimumTabSizeHint(self, index: int) -> QSize:
        return self.tabSizeHint(index)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self.pointed.emit(self.tabAt(event.position().toPoint()))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        under = self.tabAt(self.mapFromGlobal(self.cursor().pos())) if self.underMouse() else -1
        for index in range(self.count()):
            rect = QRectF(self.tabRect(index))
            chosen = index == self.currentIndex()
            painter.setPen(colours.text if chosen or index == under else colours.secondary)
            painter.setFont(look.font(Role.BODY, 600 if chosen else 400))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self.tabText(index))
            if chosen:
                painter.fillRect(
                    QRectF(rect.left() + look.px(8), rect.bottom() - 2, rect.width() - look.px(16), 2),
                    colours.accent,
                )
            if chosen and self.hasFocus():
                painter.setPen(QPen(colours.accent, 2))
                painter.drawRoundedRect(rect.adjusted(3, 5, -3, -6), look.px(4), look.px(4))


class Tabs(QWidget):
    """A tab bar with pages under it and a button that spreads them over the picture above."""

    expand_asked = Signal()
    shown = Signal(str)
    """Key of the page that came to front."""

    def __init__(self, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        """``at_once``: a page is there when its tab comes to front; else what makes it may be read first."""
        super().__init__(parent)
        self._at_once = at_once
        self._keys: list[str] = []
        self._parts: dict[str, Part] = {}
        self._read: dict[str, Ahead] = {}
        self._factories: dict[str, Callable[[QWidget], QWidget]] = {}
        self._pages: dict[str, QWidget] = {}
        self._jobs: dict[str, str] = {}
        self._busy: set[str] = set()
        self._waiting = QTimer(self)
        self._waiting.setSingleShot(True)
        self._waiting.setInterval(PATIENCE_MS)
        self._waiting.timeout.connect(self._draw_busy)
        self.bar = TabBar(self)
        self.bar.setAccessibleName(self.tr("Views"))
        self.bar.currentChanged.connect(self._turn)
        self.bar.tabBarDoubleClicked.connect(lambda index: self.expand_asked.emit())
        self.expand = ToolButton("expand", self.tr("Expand"), self)
        self.expand.clicked.connect(self.expand_asked)
        self.bar.pointed.connect(self._foresee)
        self._stack = QStackedWidget(self)
        self._blank = QWidget(self._stack)
        self._stack.addWidget(self._blank)
        look = Look.of(self)
        top = QHBoxLayout()
        top.setContentsMargins(look.px(8), 0, look.px(8), 0)
        top.addWidget(self.bar, 1)
        top.addWidget(self.expand)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addLayout(top)
        column.addWidget(self._stack, 1)

    def add(
        self,
        key: str,
        title: str,
        factory: Callable[[QWidget], QWidget],
        jobs: tuple[str, ...] = (),
        part: Part | None = None,
    ) -> None:
        """Append a tab; ``factory`` makes its page when it first comes to front, of what ``part`` reads.

        ``jobs`` are the kinds of work in the background that the page waits for.
        """
        if part is not None:
            self._parts[key] = part
        self._jobs |= dict.fromkeys(jobs, key)
        self._keys.append(key)
        self._factories[key] = factory
        self.bar.addTab(title)

    def page(self, key: str) -> QWidget | None:
        """The page of a tab, if it was ever shown."""
        return self._pages.get(key)

    @property
    def keys(self) -> tuple[str, ...]:
        """Key of every tab, in order."""
        return tuple(self._keys)

    @property
    def current(self) -> str:
        """Key of the tab in front; empty where there is none."""
        index = self.bar.currentIndex()
        return self._keys[index] if index >= 0 else ""

    def show_tab(self, key: str) -> None:
        """Bring a tab to front; one that does not exist is ignored (an older memgui's setting)."""
        if key in self._keys:
            self.bar.setCurrentIndex(self._keys.index(key))
            self._turn(self.bar.currentIndex())

    def set_expanded(self, on: bool) -> None:
        """Say on the button whether the tabs are spread."""
        self.expand.set_icon_name("collapse" if on else "expand")
        text = self.tr("Put the picture back") if on else self.tr("Expand over the picture")
        self.expand.setToolTip(text)
        self.expand.setAccessibleName(text)

    def set_busy(self, kind: str, on: bool) -> None:
        """A job began or ended; a line under the bar says, after a while, that the tab in front waits."""
        if kind not in self._jobs:
            return
        if on:
            self._busy.add(kind)
        else:
            self._busy.discard(kind)
        if not self._busy:
            self._waiting.stop()
            self._draw_busy()
        elif not self._waiting.isActive():
            self._waiting.start()

    @property
    def is_busy(self) -> bool:
        """Whether the tab in front waits for something, and has for a while."""
        waits = any(self._jobs[kind] == self.current for kind in self._busy)
        return waits and not self._waiting.isActive()

    def _draw_busy(self) -> None:
        self.update(0, self.bar.height(), self.width(), 2)

    def _turn(self, index: int) -> None:
        if not self.isVisible() or not 0 <= index < len(self._keys):
            return
        key = self._keys[index]
        if key not in self._pages and self._reads(key):
            self._stack.setCurrentWidget(self._blank)
            return
        if key not in self._pages:
            page = self._pages[key] = self._factories[key](self._stack)
            self._stack.addWidget(page)
        self._stack.setCurrentWidget(self._pages[key])
        self.shown.emit(key)

    def _reads(self, key: str) -> bool:
        """Whether what a page is made of is still being read; the tab is turned to again when it is not."""
        if key not in self._read:
            part = self._parts.get(key)
            if self._at_once or part is None or part.module in sys.modules:
                return False
            self._read[key] = Ahead(part.read(), partial(self._arrived, key), self)
        return not self._read[key].done

    def _arrived(self, key: str) -> None:
        if key == self.current:
            self._turn(self.bar.currentIndex())

    def _foresee(self, index: int) -> None:
        """The mouse is over a tab: what its page is made of will be wanted."""
        if 0 <= index < len(self._keys) and self._keys[index] not in self._pages:
            self._reads(self._keys[index])

    def showEvent(self, event: object) -> None:
        self._turn(self.bar.currentIndex())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.position().y() < self.bar.height():
            self.expand_asked.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        painter = QPainter(self)
        painter.fillRect(self.rect(), look.colours.base)
        painter.fillRect(0, self.bar.height(), self.width(), 1, look.colours.hairline)
        if self.is_busy:
            painter.fillRect(0, self.bar.height() - 1, self.width(), 2, look.colours.accent)
