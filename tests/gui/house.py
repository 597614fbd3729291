"""A window around a small estimator, in a home of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memgui.catalog import Catalog
from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.library import Library
from memgui.document.notice import Notice
from memgui.document.pins import Pins
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator.result import Estimate
from memgui.gui.context import AppContext
from memgui.gui.main_window import MainWindow
from memgui.presets.paths import AppPaths
from memgui.presets.settings import SettingsStore
from memgui.presets.store import PresetStore
from memgui.spec import Scenario
from tests.document.fakes import Estimator, scenario


class House:
    """The context, and what the library told."""

    def __init__(self, home: Path, estimate: Callable[[Scenario], Estimate] | None = None) -> None:
        paths = AppPaths.default(home=home)
        self.document = Document(scenario(), estimate or Estimator())
        self.document.settle()
        self.jobs = Jobs()
        catalog = Catalog()
        self.library = Library(
            self.document, catalog, PresetStore(paths), SettingsStore(paths.settings), self.jobs
        )
        self.pins = Pins(self.document, self.jobs)
        self.told: list[Notice] = []
        self.library.told.connect(self.told.append)
        self.selection = Selection()
        self.view = ViewSettings()
        self.context = AppContext(
            paths, catalog, self.document, self.library, self.selection, self.view, self.jobs, self.pins
        )

    def window(self) -> MainWindow:
        """A window that is not furnished and not shown yet."""
        return MainWindow(self.document, self.selection, self.view, self.context.paths.window)

    def close(self) -> None:
        """End what runs; a test leaves nothing behind."""
        self.document.settle()
        assert self.jobs.close()
