"""How long the questions asked of the estimator take: a sweep, a heat map, ways to fit, one solve."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from memgui.catalog import Catalog, DeviceEntry
from memgui.document.garbage import WITHOUT_REST, sweep
from memgui.planning.ask import Asker
from memgui.planning.devices import of_a_sort
from memgui.planning.grid import heat_map
from memgui.planning.ladder import climbed
from memgui.planning.solve import solve
from memgui.planning.sweep import Scale, points, spread
from memgui.planning.ways import ways_to_fit
from memgui.spec import Scenario, replace
from tests.benchmarks.drawn import drawn

LENGTH = "training.sequence_length"
BATCH = "training.micro_batch_size"
ROUNDS = 5
FEW = 3
"""Of what takes longest."""
DRAWN = 10
SEED = 20
"""So many set-ups are drawn for the ways figure that nobody picked."""


def planning(catalog: Catalog, rounds: int = ROUNDS) -> dict[str, float]:
    """Medians in milliseconds, each of the slowest of its set-ups.

    ``sweep_ms`` is 200 points, ``heat_map_ms`` 40 × 40 cells, ``ways_ms`` all single changes and,
    where none is enough, their pairs (``ways_calls`` estimates; of DeepSeek-V3 ``ways_deepseek_ms``),
    ``solve_ms`` one largest value.  ``ways_drawn_ms`` and ``ways_slowest_ms`` are the median and the
    slowest of ways from set-ups of every kind, drawn by chance, each looked at once, after its estimate.
    """
    base = catalog.first_scenario()
    devices = of_a_sort(catalog.devices, base)
    lengths = spread(LENGTH, 256, 16_384, 200, Scale.LOG)
    across = spread(LENGTH, 256, 16_384, 40, Scale.LOG)
    pairs = [_eager(base), _large(base), replace(_large(base), "training.padding_mask", True)]
    few = min(rounds, FEW)
    calls = 0
    slowest = 0.0
    for scenario in pairs:
        ask = Asker(remember=True)
        ways_to_fit(scenario, devices, ask)
        calls = max(calls, ask.calls)
        slowest = max(slowest, _median(partial(_ways, scenario, devices), few))
    number = DRAWN if rounds > 1 else 2
    any_kind = sorted(_once(catalog, one) for one in drawn(catalog, number, SEED))
    experts = replace(base, "model", catalog.model("DeepSeek-V3").model)
    return {
        "sweep_ms": _median(lambda: list(points(base, LENGTH, lengths)), rounds),
        "heat_map_ms": _median(lambda: heat_map(base, LENGTH, across, BATCH, range(1, 41)), few),
        "ways_ms": slowest,
        "ways_deepseek_ms": _median(partial(_ways, experts, devices), few),
        "ways_calls": calls,
        "ways_drawn_ms": statistics.median(any_kind),
        "ways_slowest_ms": any_kind[-1],
        "solve_ms": _median(lambda: solve(base, LENGTH), rounds),
        "ladder_ms": _median(lambda: climbed(replace(base, "task", "inference")), rounds),
    }


def _eager(base: Scenario) -> Scenario:
    """Fits after two changes, after none alone."""
    return replace(replace(base, BATCH, 8), "training.attention", "eager")


def _large(base: Scenario) -> Scenario:
    """A model of 70B: hardly anything fits."""
    sizes = {
        "hidden_size": 8192,
        "intermediate_size": 28_672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
    }
    for name, value in sizes.items():
        base = replace(base, f"model.{name}", value)
    return base


def _once(catalog: Catalog, scenario: Scenario) -> float:
    """Milliseconds of this process that ways from ``scenario`` take, which was estimated before."""
    devices = of_a_sort(catalog.devices, scenario)
    gc.collect()
    start = time.process_time()
    _ways(scenario, devices)
    return (time.process_time() - start) * 1e3


def _ways(scenario: Scenario, devices: Sequence[DeviceEntry]) -> None:
    """Ways to fit, looked through for garbage as while the window's jobs run."""
    before = gc.get_threshold()
    gc.set_threshold(*WITHOUT_REST)
    ways_to_fit(scenario, devices, Asker(sweep, remember=True))
    gc.set_threshold(*before)


def _median(work: Callable[[], object], rounds: int) -> float:
    gc.collect()
    taken: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1e3)
    return statistics.median(taken)
