"""Where Tab stops, in the order in which the window is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from memgui.gui.body import Body


def is_stop(widget: QWidget) -> bool:
    """Whether Tab can stop here."""
    return bool(widget.focusPolicy().value & Qt.FocusPolicy.TabFocus.value)


def first_stop(pane: QWidget) -> QWidget | None:
    """The first widget of a pane that Tab stops at; ``None`` where there is none in sight."""
    for widget in (pane, *pane.findChildren(QWidget)):
        if is_stop(widget) and widget.isVisible() and widget.isEnabled():
            return widget
    return None


def regions(column: Sequence[QWidget], body: Body) -> tuple[QWidget, ...]:
    """Parts of the window as they are read: what lies above the body, then the body from left to right."""
    above = (part for part in column if part is not body)
    return (*above, body.presets, body.form, body.picture, body.tabs)


def move(window: QWidget, parts: Sequence[QWidget], *, forward: bool) -> bool:
    """Move the focus to the next stop, through ``parts`` in this order and inside each as Qt would go.

    Parts are made when they are needed, and Qt appends what is made later: so the order is asked for
    at each step.  False where there is nothing to stop at.
    """
    stops: list[list[QWidget]] = [[] for _ in parts]
    for widget in _chain(window):
        place = next((at for at, part in enumerate(parts) if part.isAncestorOf(widget)), None)
        if place is not None:
            stops[place].append(widget)
    order = [widget for part in stops for widget in part]
    if not order:
        return False
    focus = window.focusWidget()
    at = order.index(focus) if focus in order else (-1 if forward else 0)
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    order[(at + (1 if forward else -1)) % len(order)].setFocus(reason)
    return True


def _chain(window: QWidget) -> Iterator[QWidget]:
    """Every stop of ``window`` that can be stopped at now; what hands the focus on is none of its own."""
    widget = window.nextInFocusChain()
    while widget is not None and widget is not window:
        if is_stop(widget) and widget.focusProxy() is None and widget.isEnabled() and widget.isVisible():
            yield widget
        widget = widget.nextInFocusChain()
