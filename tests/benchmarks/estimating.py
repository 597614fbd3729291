"""How long one ``estimate()`` takes: with what earlier calls left behind, and with nothing of it."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.spec import Scenario, replace

WARM_CALLS = 400
COLD_CALLS = 100
PROCESSES = 3


def slowest_scenarios(catalog: Catalog) -> tuple[Scenario, Scenario]:
    """The first start's set-up about the catalog models that take longest: estimated again, and when new."""
    base = catalog.first_scenario()
    timed: list[tuple[float, Scenario]] = []
    for entry in catalog.models:
        scenario = _sized(replace(base, "model", entry.model))
        if estimate(scenario).verdict.kind != "unknown":  # what it imports is imported now
            timed.append((min(_cold(scenario, 3)), scenario))
    slow = [scenario for _, scenario in sorted(timed, key=lambda pair: pair[0], reverse=True)[:8]]
    again = max(slow, key=lambda scenario: statistics.median(_warm(scenario, 20)))
    new = max(slow, key=lambda scenario: statistics.median(_cold(scenario, 10)))
    return again, new


def _sized(scenario: Scenario) -> Scenario:
    longest = scenario.model.max_position_embeddings or scenario.training.sequence_length
    return replace(scenario, "training.sequence_length", min(longest, scenario.training.sequence_length))


def estimating(catalog: Catalog) -> dict[str, float | str]:
    """``estimate_ms_p50``, ``estimate_cold_ms_p50`` and the model they are of.

    ``estimate_coldest_ms_p50`` is the second of the model that takes longest when it is new.
    """
    scenario, new = slowest_scenarios(catalog)
    return {
        "estimate_model": scenario.model.name,
        "estimate_ms_p50": statistics.median(_warm(scenario, WARM_CALLS)),
        "estimate_cold_ms_p50": statistics.median(_cold(scenario, COLD_CALLS)),
        "estimate_coldest_model": new.model.name,
        "estimate_coldest_ms_p50": statistics.median(_cold(new, COLD_CALLS)),
        "estimate_new_process_ms_p50": statistics.median(_new_process(scenario.model.name)),
    }


def _warm(scenario: Scenario, calls: int) -> list[float]:
    """Milliseconds of each call, a workload field changed before it."""
    lengths = range(1, scenario.training.sequence_length + 1)
    scenarios = [
        replace(
            replace(scenario, "training.micro_batch_size", 1 + call % 7),
            "training.sequence_length",
            lengths[-1 - call % len(lengths)],
        )
        for call in range(calls)
    ]
    estimate(scenarios[0])
    gc.collect()
    return [_milliseconds(lambda one=one: estimate(one)) for one in scenarios]  # type: ignore[misc]


def _milliseconds(run: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e6


def _cold(scenario: Scenario, calls: int) -> list[float]:
    """Milliseconds of each call with nothing remembered from earlier ones."""
    timed = []
    caches = remembering()
    for _ in range(calls):
        for clear in caches:
            clear()
        timed.append(_milliseconds(lambda: estimate(scenario)))
    return timed


def remembering() -> list[Callable[[], None]]:
    """What empties every ``functools`` cache of memgui's modules."""
    found: dict[int, Callable[[], None]] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("memgui."):
            for value in vars(module).values():
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    found[id(value)] = clear
    return list(found.values())


_NEW_PROCESS = """
import sys, time
from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.spec import replace
from tests.benchmarks.estimating import _sized
catalog = Catalog()
base = catalog.first_scenario()
# modules that the estimator imports when first called belong to the start, not to the call
estimate(replace(base, "training.sequence_length", 8))
scenario = _sized(replace(base, "model", catalog.model(sys.argv[1]).model))
start = time.perf_counter_ns()
estimate(scenario)
print((time.perf_counter_ns() - start) / 1e6)
"""


def _new_process(model: str) -> list[float]:
    """Milliseconds of a model's estimate in a process of its own that has estimated another model once."""
    command = [sys.executable, "-c", _NEW_PROCESS, model]
    return [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(PROCESSES)
    ]


if __name__ == "__main__":
    print(json.dumps(estimating(Catalog())))
