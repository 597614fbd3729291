"""Where Tab stops, in the order in which the window is read.

The order is taken from where things stand, not from Qt's focus chain: PySide makes what
``nextInFocusChain()`` and ``focusProxy()`` return a child of what was asked.  Walking the chain so hangs
the window under whatever stands last in it, and when that is deleted, PySide takes everything in the
window for deleted too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from memgui.gui.body import Body


def is_stop(widget: QWidget) -> bool:
    """Whether Tab can stop here."""
    return bool(widget.focusPolicy().value & Qt.FocusPolicy.TabFocus.value)


def stops_in(pane: QWidget) -> Iterator[QWidget]:
    """The stops of a pane, itself or in it, that can be stopped at now, as they are read.

    What stands in a stop is its own: a box hands the focus on to its line, and back.
    """
    if not (pane.isVisible() and pane.isEnabled()):
        return
    if is_stop(pane):
        yield pane
        return
    children = pane.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
    held = [(child, stops) for child in children if (stops := tuple(stops_in(child)))]
    held.sort(key=lambda one: one[0].y())
    while held:
        # A line: what begins above the middle of the topmost thing.
        middle = held[0][0].geometry().center().y()
        line = [one for one in held if one[0].y() < middle] or held[:1]
        del held[: len(line)]
        line.sort(key=lambda one: one[0].x(), reverse=pane.isRightToLeft())
        for _, stops in line:
            yield from stops


def first_stop(pane: QWidget) -> QWidget | None:
    """The first widget of a pane that Tab stops at; ``None`` where there is none in sight."""
    return next(stops_in(pane), None)


def regions(column: Sequence[QWidget], body: Body) -> tuple[QWidget, ...]:
    """Parts of the window as they are read: what lies above the body, then the body from left to right."""
    above = (part for part in column if part is not body)
    return (*above, body.presets, body.form, body.picture, body.tabs)


def move(window: QWidget, parts: Sequence[QWidget], *, forward: bool) -> bool:
    """Move the focus to the next stop, through ``parts`` in this order and inside each as it is read.

    Parts are made when they are needed: so the order is asked for at each step.  False where there is
    nothing to stop at.
    """
    order = [widget for part in parts for widget in stops_in(part)]
    if not order:
        return False
    focus = window.focusWidget()
    at = next((at for at, stop in enumerate(order) if _is_at(stop, focus)), -1 if forward else 0)
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    order[(at + (1 if forward else -1)) % len(order)].setFocus(reason)
    return True


def _is_at(stop: QWidget, focus: QWidget | None) -> bool:
    return focus is not None and (focus is stop or stop.isAncestorOf(focus))
