"""The legend: every component and part by name, size and share."""

from memgui.gui.legend.legend import Legend

__all__ = ["Legend"]
