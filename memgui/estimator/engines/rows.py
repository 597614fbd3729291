"""llama.cpp's row split: each matrix lies on all devices, a stretch of its rows on each.

Layers are still given to devices in order, for their caches, norms, biases and experts (a product with
chosen experts does not run on split matrices).  Rows: llama.cpp b11434, ggml-cuda.cu, get_row_split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from memgui.estimator.options import capability
from memgui.estimator.quantisation import matrix
from memgui.estimator.state import State, state_of
from memgui.estimator.tape import Parameter
from memgui.spec.scenario import Scenario

Thing = Parameter | State
Listed = tuple[Thing, int]

VOLTA: Final = (7, 0)
"""From here on kernels take 128 rows at once, 64 before."""


def splits(scenario: Scenario) -> bool:
    """Whether matrices are split by rows."""
    return scenario.parallelism.tensor > 1


def is_matrix(thing: Thing) -> bool:
    """Whether ``thing`` is (a piece of) a matrix that is split."""
    weight = thing.of if isinstance(thing, State) else thing
    shape = matrix(weight)
    return shape is not None and shape.matrices == 1


def stretch(scenario: Scenario, rows: int, device: int) -> int:
    """Rows of a matrix on ``device``: an even share, its ends rounded down to whole kernels' steps."""
    step = 128 if capability(scenario.device.compute_capability) >= VOLTA else 64
    count = scenario.parallelism.tensor
    ends = [rows * at // count // step * step for at in range(count)] + [rows]
    return ends[device + 1] - ends[device]


def on_device(scenario: Scenario, things: Iterable[Listed], device: int) -> Iterator[Listed]:
    """The rows of every matrix in ``things`` that lie on ``device``."""
    for thing, count in things:
        weight = thing.of if isinstance(thing, State) else thing
        shape = matrix(weight)
        if shape is None or shape.matrices > 1:
            continue
        here = stretch(scenario, shape.rows, device)
        if here:
            name = thing.name if isinstance(thing, State) else "rows"
            yield state_of(name, weight, thing.coefficient * here // shape.rows, ()), count
