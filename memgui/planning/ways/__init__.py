"""Ways to fit: what could be changed, what it saves, what it costs.  See :func:`ways_to_fit`."""

from __future__ import annotations

from memgui.planning.ways.cost import Cost, Disturbance
from memgui.planning.ways.costs import cost_of
from memgui.planning.ways.find import Way, Ways, ways_to_fit
from memgui.planning.ways.titles import title_of

__all__ = ["Cost", "Disturbance", "Way", "Ways", "cost_of", "title_of", "ways_to_fit"]
