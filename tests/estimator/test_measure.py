"""What is counted again for another workload is what a program that nothing is known of counts."""

from __future__ import annotations

from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.program import compiled
from memgui.spec import Scenario, replace

CATALOG = Catalog()

SETTINGS: dict[str, dict[str, object]] = {
    "full": {},
    "accumulated": {"training.gradient_accumulation_steps": 4, "training.precision": "bf16_mixed"},
    "checkpointed": {"training.activation_checkpointing": "full", "training.method": "lora"},
    "by operator": {"training.activation_checkpointing": "selective_op"},
    "serving": {"task": "inference"},
}


def told(scenario: Scenario) -> list[Any]:
    found = estimate(scenario)
    parts = [(part.key, part.bytes) for node in found.components for part in (node, *node.children)]
    return [found.peak_moment.key, parts, [(moment.bytes, moment.components) for moment in found.timeline]]


@pytest.mark.parametrize(
    "model", ["Llama-3.1-8B", "flan-t5-xxl", "Qwen3-Next-80B-A3B-Instruct", "gemma-4-E2B-it"]
)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_counted_again_it_is_the_same(model: str, settings: dict[str, object]) -> None:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model(model).model)
    for path, value in settings.items():
        made = replace(made, path, value)
    path = "inference.prompt_tokens" if made.task == "inference" else "training.sequence_length"
    scenarios = [replace(made, path, length) for length in (100, 333, 512)]
    for scenario in scenarios:
        estimate(scenario)
    again = [told(scenario) for scenario in scenarios]
    for scenario, known in zip(scenarios, again, strict=True):
        compiled.cache_clear()
        assert told(scenario) == known
