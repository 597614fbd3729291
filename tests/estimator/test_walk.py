"""A walk through a step says of each thing how often it is alive: never less often than never."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator.estimate import run_of
from memgui.estimator.events import Thing
from memgui.estimator.points import Point
from memgui.estimator.training import TrainingRun
from memgui.spec import Scenario, replace

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
FULL = {"training.activation_checkpointing": "full"}


@pytest.mark.parametrize(
    "how",
    [
        {},
        FULL,
        {**FULL, "training.checkpoint_every": 2},
        {
            **FULL,
            "training.optimizer": "badam",
        },  # the first layer is of a kind of its own
        {**FULL, "training.frozen_layers": 2},
        {**FULL, "training.method": "lora", "training.lora.target_modules": ("all-linear",)},
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "Llama-3.1-8B",
        "GLM-5",
        "gemma-3n-E4B-it",
        "DeepSeek-V3.2",
        "flan-t5-xxl",
        "Kimi-Linear-48B-A3B-Instruct",
    ],
)
def test_nothing_goes_that_has_not_come(name: str, how: dict[str, Any]) -> None:
    for point in _points(_scenario(name, how)):
        alive: Counter[Thing] = Counter()
        for group, _, times in point.live.parts():
            for thing in group.things:
                alive[thing] += times
        assert not [thing for thing, times in alive.items() if times < 0], (point.key, point.start)


def _scenario(name: str, how: dict[str, Any]) -> Scenario:
    scenario = replace(FIRST, "model", CATALOG.model(name).model)
    for path, value in how.items():
        scenario = replace(scenario, path, value)
    return scenario


def _points(scenario: Scenario) -> list[Point]:
    run = run_of(scenario)
    assert isinstance(run, TrainingRun)
    walk = run.walk(accumulate=False)
    return [*walk.forward(), *walk.backward()]
