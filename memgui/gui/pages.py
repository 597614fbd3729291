"""The pages of the tabs: made when first shown, given a result when they come to front.

An edit waits for none of them: the window is painted with its new figures first, and the page in front
gets its turn of the event loop after that.  Only the page that says why those figures are what they are
comes with them.
"""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QCoreApplication, QElapsedTimer, QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from memgui.document.answers import Answers
from memgui.document.result import Result
from memgui.gui.context import AppContext
from memgui.gui.modules import PAGES
from memgui.gui.pinning import Pinning
from memgui.gui.tabs import Tabs

translate = QCoreApplication.translate


class Page(Protocol):
    """What shows a result; it follows selection and view settings by itself."""

    def set_result(self, result: Result) -> None:
        """Show another result."""


_PAINTED = QEvent.Type(QEvent.registerEventType())
_AFTER_PAINTING = Qt.EventPriority.LowEventPriority.value - 1
"""Painting is asked for by events of low priority; what is posted below them comes when they are through."""
SLOW_MS = 8
"""After an edit that took longer no page gets its turn at once: the next edit would wait for both."""
FAR_BEHIND_MS = 300
"""Unless it is so far behind."""
BEHIND_MS = 100
"""While a slider is dragged, a page may be so far behind before it gets a turn right after the window's."""


class Pages(QObject):
    """Adds the tabs that exist; a page out of sight costs nothing."""

    caught_up = Signal(str)
    """The page with that key was given the newest result."""

    def __init__(self, context: AppContext, answers: Answers, pinning: Pinning, tabs: Tabs) -> None:
        super().__init__(tabs)
        self._context = context
        self._answers = answers
        self._pinning = pinning
        self._tabs = tabs
        self._shown: dict[str, int] = {}
        for key, title, make, kinds in (
            ("why", translate("Tabs", "Why"), self._why, ()),
            ("what_if", translate("Tabs", "What if"), self._what_if, ("sweep", "largest", "heat_map")),
            ("timeline", translate("Tabs", "Timeline"), self._timeline, ()),
            ("ways", translate("Tabs", "Ways to fit"), self._ways, ("ways",)),
            ("compare", translate("Tabs", "Compare"), self._compare, ("methods", "devices")),
            ("measured", translate("Tabs", "Measured"), self._measured, ("explained",)),
        ):
            tabs.add(key, title, make, kinds, PAGES[key])
        tabs.shown.connect(self._bring_up_to_date)
        context.jobs.busy.connect(tabs.set_busy)
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.setInterval(1)  # at 0 it could come in the very round of events in which it is started
        self._turn.timeout.connect(lambda: self._bring_up_to_date(tabs.current))
        self._behind, self._edited = QElapsedTimer(), QElapsedTimer()
        context.document.result.connect(self._follow)
        context.document.changed.connect(self._put_off)

    def _why(self, parent: QWidget) -> QWidget:
        from memgui.gui.why.page import WhyPage

        answers = self._answers
        return WhyPage(self._context.selection, self._context.view, parent, answers.serving, answers.played)

    def _what_if(self, parent: QWidget) -> QWidget:
        from memgui.gui.whatif.page import WhatIfPage

        return WhatIfPage(self._context, parent)

    def _timeline(self, parent: QWidget) -> QWidget:
        from memgui.gui.timeline.page import TimelinePage

        return TimelinePage(self._context.selection, self._context.view, parent)

    def _ways(self, parent: QWidget) -> QWidget:
        from memgui.gui.ways.page import WaysPage

        context = self._context
        return WaysPage(context.document, self._answers.ways, context.view, parent)

    def _compare(self, parent: QWidget) -> QWidget:
        from memgui.gui.compare.page import ComparePage

        return ComparePage(self._context, self._answers, self._pinning, parent)

    def _measured(self, parent: QWidget) -> QWidget:
        from memgui.gui.measured.page import MeasuredPage

        return MeasuredPage(self._context, parent)

    def _follow(self) -> None:
        if self._tabs.current == "why":
            self._bring_up_to_date("why")
        else:
            QCoreApplication.postEvent(self, QEvent(_PAINTED), _AFTER_PAINTING)

    def _put_off(self) -> None:
        """Another result follows and is painted first: what the page has not begun to show is old already."""
        document = self._context.document
        if document.last_result.scenario is document.scenario:
            return  # it only got a name
        self._edited.start()
        if not self._behind.isValid():
            self._behind.start()
        self._turn.stop()

    def event(self, event: QEvent) -> bool:
        if event.type() == _PAINTED:
            slow = self._edited.isValid() and self._edited.hasExpired(SLOW_MS)
            if self._behind.isValid() and self._behind.hasExpired(FAR_BEHIND_MS if slow else BEHIND_MS):
                self._bring_up_to_date(self._tabs.current)
            else:
                self._turn.start()
            return True
        return super().event(event)

    def _bring_up_to_date(self, key: str) -> None:
        result, page = self._context.document.last_result, self._tabs.page(key)
        if page is not None and result.generation and self._shown.get(key) != result.generation:
            self._shown[key] = result.generation
            self._behind.invalidate()
            shown: Page = page  # type: ignore[assignment]  # every factory makes one
            shown.set_result(result)
            self.caught_up.emit(key)
