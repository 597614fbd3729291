"""The window with its answer: verdict, donut and legend, and empty places for all that stands around them.

It is what a start shows first; :class:`memgui.gui.interior.Interior` furnishes it one frame later.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeyEvent,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QMainWindow, QScrollArea, QVBoxLayout, QWidget

from memgui.document.document import Document
from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.gui.body import NARROW, Body
from memgui.gui.controls.scrolling import slim
from memgui.gui.donut.widget import Donut
from memgui.gui.legend.legend import Legend
from memgui.gui.stops import move, regions
from memgui.gui.theme import Look
from memgui.gui.verdict.band import VerdictBand
from memgui.gui.window_state import WindowState

SIZE = (1280, 800)
SMALLEST = (1024, 660)
"""Below this (13 px body) the inside scrolls."""
MENU, TOOLBAR = 28, 43
"""Heights kept free for what comes a frame later, at a 13 px body."""
FRAME_MS = 16
"""What can wait begins this long after the first painting, when it is on the screen."""


class MainWindow(QMainWindow):
    """Composes; the arithmetic is the estimator's, the files are the library's."""

    painted = Signal()
    """The window has been painted for the first time: time to furnish it."""
    narrowed = Signal(bool)
    """The window became too narrow for everything, or wide enough again."""
    dropped = Signal(object)
    """:class:`QMimeData` with paths or a text was dropped on the window."""
    escaped = Signal()
    closing = Signal()

    def __init__(self, document: Document, selection: Selection, view: ViewSettings, state: Path) -> None:
        """``state`` is the ini file of geometry and splitters."""
        super().__init__()
        self.document = document
        self.state = WindowState(state)
        self.setAcceptDrops(True)
        self.verdict = VerdictBand(selection, view, self)
        self.donut = Donut(selection, view, self)
        self.legend = Legend(selection, view, self)
        self.body = Body(self.donut, self.legend, self)
        self._narrow: bool | None = None
        self.presets_folded = False
        """The presets are hidden for want of room only: they come back with it."""
        self._shown_before = False
        self._next_frame: QTimer | None = None
        self._lay_out()
        document.result.connect(self.set_result)
        document.changed.connect(self._title)
        if document.last_result.generation:
            self.set_result(document.last_result)
        self._title()
        self._restore()

    def _lay_out(self) -> None:
        look = Look.of(self)
        self.menuBar().setFixedHeight(look.px(MENU))
        inside = QWidget()
        self.column = QVBoxLayout(inside)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.top = QWidget(inside)
        self.top.setFixedHeight(look.px(TOOLBAR))
        for part in (self.top, self.verdict):
            self.column.addWidget(part)
        self.column.addWidget(self.body, 1)
        inside.setMinimumSize(look.px(SMALLEST[0]), look.px(SMALLEST[1]))
        scroll = QScrollArea(self)
        slim(scroll)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(inside)
        self.setCentralWidget(scroll)

    @property
    def is_narrow(self) -> bool:
        """Whether there is room for the most important only."""
        return self.width() < Look.of(self).px(NARROW)

    def set_result(self, result: Result) -> None:
        """Give each view the newest result; each repaints what changed of its own."""
        self.verdict.set_result(result)
        self.donut.set_result(result)
        self.legend.set_result(result)

    def _title(self) -> None:
        state = self.document.state
        name = state.name or state.scenario.model.name or self.tr("Unnamed model")
        title = self.tr("{name}[*] – memgui").format(name=name)
        if title != self.windowTitle():
            self.setWindowTitle(title)
        modified = bool(state.preset) and self.document.is_modified
        if modified != self.isWindowModified():
            self.setWindowModified(modified)

    def _restore(self) -> None:
        look = Look.of(self)
        if not self.state.restore_window(self):
            self.resize(look.px(SIZE[0]), look.px(SIZE[1]))
        wanted = self.state.flag("presets", True)
        self.presets_folded = wanted and self.is_narrow
        self.body.show_presets(wanted and not self.is_narrow)
        self.body.expand(self.state.flag("expanded", False))

    def put_back(self) -> None:
        """The layout of the first start."""
        self.body.expand(False)
        self.presets_folded = self.is_narrow
        self.body.show_presets(not self.is_narrow)
        self.body.put_back(self.body.width(), self.body.height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._shown_before:
            # Only now have the splitters the size that their handles are placed in.
            self._shown_before = True
            self.setFocus()  # no control looks touched before one is
            if not self.body.restore(self.state):
                self.body.put_back(self.body.width(), self.body.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._next_frame is None:
            self._next_frame = QTimer(self)
            self._next_frame.setSingleShot(True)
            self._next_frame.timeout.connect(self.painted)
            self._next_frame.start(FRAME_MS)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.is_narrow != self._narrow:
            self._narrow = self.is_narrow
            if self._narrow:
                self.presets_folded = self.presets_folded or not self.body.presets.isHidden()
                self.body.show_presets(False)
            elif self.presets_folded:
                self.presets_folded = False
                self.body.show_presets(True)
            self.body.fit()
            self.narrowed.emit(self._narrow)

    def focusNextPrevChild(self, forward: bool) -> bool:
        items = (self.column.itemAt(at) for at in range(self.column.count()))
        column = [part for item in items if item is not None and (part := item.widget()) is not None]
        parts = regions(column, self.body)
        return move(self, parts, forward=forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls() or event.mimeData().hasText():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.dropped.emit(_copy(event.mimeData()))

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        self.state.put("presets", self.presets_folded or not self.body.presets.isHidden())
        self.state.put("expanded", self.body.is_expanded)
        self.state.put("moved", self.body.was_moved)
        self.state.keep(self, self.body.splitters())
        super().closeEvent(event)


def _copy(mime: QMimeData) -> QMimeData:
    """The paths and the text of a drop, which are gone when the drop is over."""
    copy = QMimeData()
    if mime.hasUrls():
        copy.setUrls(mime.urls())
    if mime.hasText():
        copy.setText(mime.text())
    return copy
