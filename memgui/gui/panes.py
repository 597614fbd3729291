"""The views of a result: verdict, picture, legend, and the tabs under them."""

from __future__ import annotations

import msgspec
from PySide6.QtWidgets import QWidget

from memgui.document.result import Result
from memgui.gui.context import AppContext
from memgui.gui.donut.widget import Donut
from memgui.gui.legend.legend import Legend
from memgui.gui.tabs import Tabs
from memgui.gui.verdict.band import VerdictBand


class Panes(msgspec.Struct, frozen=True):
    """Each takes ``set_result`` and follows selection and view settings by itself."""

    verdict: VerdictBand
    donut: Donut
    legend: Legend

    def set_result(self, result: Result) -> None:
        """Give every view that is in sight the newest result."""
        self.verdict.set_result(result)
        self.donut.set_result(result)
        self.legend.set_result(result)


def make_panes(context: AppContext, tabs: Tabs, parent: QWidget) -> Panes:
    """Make the views and add the tabs that exist."""
    selection, view = context.selection, context.view
    return Panes(
        VerdictBand(selection, view, parent), Donut(selection, view, parent), Legend(selection, view, parent)
    )
