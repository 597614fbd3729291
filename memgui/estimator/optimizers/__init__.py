"""What each optimizer keeps of each weight, and what its step holds for a moment.

A rule looks at one weight at a time (its shape, its format), so that what depends on shapes and sizes
(rows and columns, blocks, a least size) comes out exactly.  See :class:`~.rule.Optimizer`.
"""

from __future__ import annotations

from memgui.estimator.optimizers.elementwise import ELEMENTWISE
from memgui.estimator.optimizers.factored import FACTORED
from memgui.estimator.optimizers.low_bit import LOW_BIT
from memgui.estimator.optimizers.matrices import MATRICES
from memgui.estimator.optimizers.rule import Kept, Optimizer, Settings, Step, Trained, Weight

OPTIMIZERS: dict[str, Optimizer] = {**ELEMENTWISE, **LOW_BIT, **FACTORED, **MATRICES}
"""Every optimizer by its name in ``training.optimizer``."""

__all__ = ["OPTIMIZERS", "Kept", "Optimizer", "Settings", "Step", "Trained", "Weight"]
