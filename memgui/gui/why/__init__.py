"""The Why tab: the formula, the numbers in it, its source."""

from memgui.gui.why.page import WhyPage

__all__ = ["WhyPage"]
