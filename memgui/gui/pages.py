"""The pages of the tabs: made when first shown, given a result when they come to front."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from memgui.document.answers import Answers
from memgui.document.result import Result
from memgui.gui.context import AppContext
from memgui.gui.pinning import Pinning
from memgui.gui.tabs import Tabs

translate = QCoreApplication.translate


class Page(Protocol):
    """What shows a result; it follows selection and view settings by itself."""

    def set_result(self, result: Result) -> None:
        """Show another result."""


class Pages:
    """Adds the tabs that exist; a page out of sight costs nothing."""

    def __init__(self, context: AppContext, answers: Answers, pinning: Pinning, tabs: Tabs) -> None:
        self._context = context
        self._answers = answers
        self._pinning = pinning
        self._tabs = tabs
        self._shown: dict[str, int] = {}
        tabs.add("why", translate("Tabs", "Why"), self._why)
        tabs.add("what_if", translate("Tabs", "What if"), self._what_if, ("sweep", "largest", "heat_map"))
        tabs.add("timeline", translate("Tabs", "Timeline"), self._timeline)
        tabs.add("ways", translate("Tabs", "Ways to fit"), self._ways, ("ways",))
        tabs.add("compare", translate("Tabs", "Compare"), self._compare, ("methods", "devices"))
        tabs.add("measured", translate("Tabs", "Measured"), self._measured, ("explained",))
        tabs.shown.connect(self._bring_up_to_date)
        context.jobs.busy.connect(tabs.set_busy)
        context.document.result.connect(lambda result: self._bring_up_to_date(tabs.current))

    def _why(self, parent: QWidget) -> QWidget:
        from memgui.gui.why.page import WhyPage

        return WhyPage(self._context.selection, self._context.view, parent, self._answers.serving)

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

    def _bring_up_to_date(self, key: str) -> None:
        result, page = self._context.document.last_result, self._tabs.page(key)
        if page is not None and result.generation and self._shown.get(key) != result.generation:
            self._shown[key] = result.generation
            shown: Page = page  # type: ignore[assignment]  # every factory makes one
            shown.set_result(result)
