"""What the window is made around; built once by the program, passed down, never global."""

from __future__ import annotations

import msgspec

from memgui.catalog import Catalog
from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.library import Library
from memgui.document.pins import Pins
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.presets.paths import AppPaths


class AppContext(msgspec.Struct, frozen=True):
    """The state and the services that every part of the window may ask."""

    paths: AppPaths
    catalog: Catalog
    document: Document
    library: Library
    selection: Selection
    view: ViewSettings
    jobs: Jobs
    pins: Pins
