"""Tooltips of components: the exact figures."""

from __future__ import annotations

from memgui.document.selection import ComponentPath
from memgui.estimator.result import Estimate
from memgui.gui.names import node_at, node_name
from memgui.gui.numbers import Numbers

MOST = 1000
"""Longest text of a stranger's in a tooltip (characters)."""


def node_tip(estimate: Estimate, path: ComponentPath, numbers: Numbers) -> str:
    """Name, size and exact bytes of a node, and its share; empty where there is no such node."""
    node = node_at(estimate, path)
    if node is None:
        return ""
    share = numbers.share(node.bytes, estimate.peak_bytes)
    return two_lines(
        f"{node_name(node)}  {numbers.tip(node.bytes)}", f"{numbers.exact(node.bytes)} · {share}"
    )


def plain(text: str) -> str:
    """A stranger's text as it stands: Qt would follow the tags in it, and read the files they name."""
    from html import escape

    shown = text if len(text) <= MOST else text[:MOST] + "…"
    return f"<p style='white-space:pre-wrap'>{escape(shown)}</p>" if shown else ""


def two_lines(title: str, rest: str) -> str:
    """A bold line over a plain one, as rich text that is never wrapped."""
    from html import escape  # with a table of all entities: not before a tooltip is shown

    return f"<p style='white-space:pre'><b>{escape(title)}</b><br>{escape(rest)}</p>"
