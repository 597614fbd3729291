"""The views of a result: verdict, picture, legend, and the pages of the tabs under them."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from memgui.document.result import Result
from memgui.gui.context import AppContext
from memgui.gui.donut.widget import Donut
from memgui.gui.legend.legend import Legend
from memgui.gui.tabs import Tabs
from memgui.gui.verdict.band import VerdictBand

translate = QCoreApplication.translate


class View(Protocol):
    """What shows a result; it follows selection and view settings by itself."""

    def set_result(self, result: Result) -> None:
        """Show another result."""


class Panes:
    """Gives each view in sight the newest result; a page out of sight gets it when it comes to front."""

    def __init__(self, context: AppContext, tabs: Tabs, parent: QWidget) -> None:
        self._context = context
        self._tabs = tabs
        self._shown: dict[str, int] = {}
        selection, view = context.selection, context.view
        self.verdict = VerdictBand(selection, view, parent)
        self.donut = Donut(selection, view, parent)
        self.legend = Legend(selection, view, parent)
        tabs.add("why", translate("Tabs", "Why"), self._why)
        tabs.shown.connect(self._page_shown)

    def _why(self, parent: QWidget) -> QWidget:
        from memgui.gui.why.page import WhyPage

        return WhyPage(self._context.selection, self._context.view, parent)

    def set_result(self, result: Result) -> None:
        """Show another result."""
        for view in (self.verdict, self.donut, self.legend):
            view.set_result(result)
        self._page_shown(self._tabs.current)

    def _page_shown(self, key: str) -> None:
        result, page = self._context.document.last_result, self._tabs.page(key)
        if page is not None and result.generation and self._shown.get(key) != result.generation:
            self._shown[key] = result.generation
            view: View = page  # type: ignore[assignment]  # every factory makes one
            view.set_result(result)
