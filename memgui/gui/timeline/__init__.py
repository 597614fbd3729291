"""The Timeline tab: what is alive at each moment of a step."""

from memgui.gui.timeline.page import TimelinePage

__all__ = ["TimelinePage"]
