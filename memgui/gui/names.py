"""What components and their parts are called, in the person's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from memgui.document.selection import ComponentPath
from memgui.estimator.result import COMPONENTS, Estimate, Node
from memgui.spec import QT_TRANSLATE_NOOP

_SHORT = {"optimizer_states": QT_TRANSLATE_NOOP("estimator", "Optimizer")}


def node_name(node: Node) -> str:
    """The name of a node of the breakdown."""
    return QCoreApplication.translate("estimator", node.label)


def component_name(key: str, short: bool = False) -> str:
    """The name of a top-level component; the short one where room is scarce."""
    label = _SHORT.get(key, COMPONENTS[key]) if short else COMPONENTS[key]
    return QCoreApplication.translate("estimator", label)


def node_at(estimate: Estimate, path: ComponentPath) -> Node | None:
    """The node at a path, if this estimate has it."""
    nodes: tuple[Node, ...] = estimate.components
    found: Node | None = None
    for key in path:
        found = next((node for node in nodes if node.key == key), None)
        if found is None:
            return None
        nodes = found.children
    return found
