"""What parts of the window are read from disk for, in pieces of some milliseconds, leaves first."""

# ruff: noqa: F401

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from memgui.document.ahead import Pieces, classes, in_a_thread


def inside() -> Pieces:
    """All that stands around the picture."""
    import memgui.catalog
    import memgui.document.library
    import memgui.gui.laid

    yield None
    import memgui.document.answers
    import memgui.document.limits
    import memgui.document.pins
    import memgui.document.verdicts
    import memgui.presets.store

    yield None
    import memgui.gui.accessible
    import memgui.gui.context

    yield None
    import memgui.gui.controls.fields

    yield None
    import memgui.gui.form.row
    import memgui.gui.form.section

    yield None
    import memgui.gui.actions
    import memgui.gui.files
    import memgui.gui.form.form

    yield None
    import memgui.gui.presets_dock
    import memgui.gui.verdict.advice

    yield None
    import memgui.gui.interior

    yield None
    import memgui.presets.logs

    yield None
    import memgui.document.garbage


def later() -> Pieces:
    """What a person may ask for next: 3 MiB.  What draws curves takes 23 and waits until it is asked for."""
    import memgui.importers.hf_config

    yield None
    import memgui.planning.opening

    yield None
    import memgui.gui.model_picker

    yield None
    import memgui.gui.help
    import memgui.gui.name_bar
    import memgui.gui.notice_bar

    yield None
    for part in (_why, _timeline, _ways, _compare, _measured):
        yield from part()
    import memgui.planning.report

    yield None
    import memgui.gui.report.reports


def _why() -> Pieces:
    import memgui.planning.why

    yield None
    import memgui.gui.why.flow

    yield None
    import memgui.gui.why.page


def _what_if() -> Pieces:
    from PySide6 import QtCore, QtGui, QtWidgets

    yield from classes((QtCore, QtGui, QtWidgets))
    yield in_a_thread(_curves)  # which use every class of Qt
    yield from _why()
    import memgui.gui.timeline.chart

    yield None
    import memgui.gui.whatif.chart

    yield None
    import memgui.gui.whatif.page

    yield None
    import memgui.gui.whatif.plot


def _curves() -> None:
    import pyqtgraph


def _timeline() -> Pieces:
    import memgui.gui.timeline.geometry

    yield None
    import memgui.gui.timeline.painting

    yield None
    import memgui.gui.timeline.page


def _ways() -> Pieces:
    import memgui.planning.ways

    yield None
    import memgui.gui.ways.page


def _compare() -> Pieces:
    import memgui.planning.compare

    yield None
    import memgui.gui.compare.bars

    yield None
    import memgui.gui.compare.page


def _measured() -> Pieces:
    import memgui.planning.measured

    yield None
    import memgui.document.measurements

    yield None
    import memgui.gui.measured.page


class Part(NamedTuple):
    """A module, and what reads it with all that it needs."""

    module: str
    read: Callable[[], Pieces]


PAGES: Final[dict[str, Part]] = {
    "why": Part("memgui.gui.why.page", _why),
    "what_if": Part("memgui.gui.whatif.plot", _what_if),
    "timeline": Part("memgui.gui.timeline.page", _timeline),
    "ways": Part("memgui.gui.ways.page", _ways),
    "compare": Part("memgui.gui.compare.page", _compare),
    "measured": Part("memgui.gui.measured.page", _measured),
}
"""Of each tab's page."""
