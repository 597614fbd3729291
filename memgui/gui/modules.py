"""What parts of the window are read from disk for, to be called in a thread before they are made."""

# ruff: noqa: F401

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple


def inside() -> None:
    """All that stands around the picture."""
    import memgui.catalog
    import memgui.document.garbage
    import memgui.document.library
    import memgui.document.pins
    import memgui.document.verdicts
    import memgui.gui.context
    import memgui.gui.interior
    import memgui.gui.laid
    import memgui.presets.logs
    import memgui.presets.store


def later() -> None:
    """What a person may ask for next: 3 MiB.  What draws curves takes 23 and waits until it is asked for."""
    import memgui.gui.compare.page
    import memgui.gui.help
    import memgui.gui.measured.page
    import memgui.gui.model_picker
    import memgui.gui.name_bar
    import memgui.gui.notice_bar
    import memgui.gui.report.reports
    import memgui.gui.timeline.page
    import memgui.gui.ways.page
    import memgui.planning.opening


def _why() -> None:
    import memgui.gui.why.page


def _what_if() -> None:
    import memgui.gui.whatif.page
    import memgui.gui.whatif.plot


def _timeline() -> None:
    import memgui.gui.timeline.page


def _ways() -> None:
    import memgui.gui.ways.page


def _compare() -> None:
    import memgui.gui.compare.page


def _measured() -> None:
    import memgui.gui.measured.page


class Part(NamedTuple):
    """A module, and what reads it with all that it needs."""

    module: str
    read: Callable[[], None]


PAGES: Final[dict[str, Part]] = {
    "why": Part("memgui.gui.why.page", _why),
    "what_if": Part("memgui.gui.whatif.plot", _what_if),
    "timeline": Part("memgui.gui.timeline.page", _timeline),
    "ways": Part("memgui.gui.ways.page", _ways),
    "compare": Part("memgui.gui.compare.page", _compare),
    "measured": Part("memgui.gui.measured.page", _measured),
}
"""Of each tab's page."""
