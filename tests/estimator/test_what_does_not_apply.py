"""A field that does not apply decides nothing: who cannot see it cannot take it back."""

from __future__ import annotations

from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import Estimate, estimate
from memgui.spec import Scenario, ScenarioError, get, replace
from memgui.spec.fields import FIELDS, Field, Kind
from memgui.spec.validate import validate

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
SERVED: dict[str, Any] = {"task": "inference"}
TWO: dict[str, Any] = {"device.count": 2}
SET_UPS: dict[str, tuple[str, dict[str, Any]]] = {
    "one device": ("Llama-3.1-8B", {}),
    "experts on one device": ("Mixtral-8x7B-v0.1", {}),
    "an optimizer without states": ("Qwen3-0.6B", {"training.optimizer": "sgd"}),
    "packed base": ("Qwen3-0.6B", {"training.method": "lora", "training.base_format": "nf4"}),
    "shards of gradients": (
        "stablelm-3b-4e1t",
        {**TWO, "parallelism.data": 2, "parallelism.sharding": "zero2"},
    ),
    "tensor parallel": ("Llama-3.1-8B", {**TWO, "parallelism.tensor": 2}),
    "a ring of devices": (
        "Qwen3-0.6B",
        {**TWO, "parallelism.context": 2, "training.attention": "flash_attention_2"},
    ),
    "a loss without logits": ("Qwen3-0.6B", {"training.implementation": "fused"}),
    "a loss without logits, and a cache": (
        "Qwen1.5-14B",
        {"training.implementation": "fused", "training.use_cache": True},
    ),
    "stages": ("Llama-3.1-8B", {**TWO, "parallelism.pipeline": 2}),
    "a rule of thumb": ("bart-base", {"method": "llama_guide"}),
    "a rule of thumb of experts": ("gpt-oss-20b", {"method": "gpt_article"}),
    "a rule of thumb, split": ("opt-350m", {"method": "megatron_paper", "parallelism.tensor": 2}),
    "an encoder, served": ("deberta-v3-base", SERVED),
    "two stacks, served": ("flan-t5-xxl", SERVED),
    "experts, served": ("Mixtral-8x7B-v0.1", {**SERVED, "inference.engine": "vllm"}),
    "experts, served by another": ("Mixtral-8x7B-v0.1", {**SERVED, "inference.engine": "sglang"}),
    "served on two": ("Llama-3.1-8B", {**SERVED, **TWO, "parallelism.pipeline": 2}),
    "ggml": ("Llama-3.1-8B", {**SERVED, "inference.engine": "llama.cpp"}),
}


def _others(field: Field, present: Any) -> list[Any]:
    match field.kind:
        case Kind.FLAG:
            return [not present]
        case Kind.CHOICE:
            return [choice.value for choice in field.choices if choice.value != present]
        case Kind.COUNT | Kind.TOKENS | Kind.BYTES:
            low, high = field.minimum or 0, field.maximum
            more = 2 * int(present or 1) + 1
            return [one for one in (low, more) if one != present and (high is None or one <= high)]
        case Kind.RATIO:
            return [one for one in (0.25, 0.5) if one != present]
        case _:
            return []


def _said(found: Estimate) -> list[object]:
    return [
        found.peak_bytes,
        found.low_bytes,
        found.high_bytes,
        found.parameters,
        found.verdict.kind,
        found.version,
    ]


@pytest.mark.parametrize("title", SET_UPS)
def test_what_does_not_apply_decides_nothing(title: str) -> None:
    name, chosen = SET_UPS[title]
    scenario = replace(FIRST, "model", CATALOG.model(name).model)
    for path, value in chosen.items():
        scenario = replace(scenario, path, value)
    assert not [issue.text for issue in validate(scenario) if issue.severity == "error"]
    found = _said(estimate(scenario))
    assert found[-2] != "unknown"
    tried = 0
    for field, other in _out_of_sight(scenario):
        assert not [issue for issue in validate(other) if issue.severity == "error"], field.path
        assert _said(estimate(other)) == found, (field.path, get(other, field.path))
        tried += 1
    assert tried > 20


def _out_of_sight(scenario: Scenario) -> list[tuple[Field, Scenario]]:
    """The scenario with other values in fields that do not apply, and do not by these either."""
    found = []
    for field in FIELDS:
        if field.applies(scenario) or field.path.startswith("model."):
            continue
        for value in _others(field, get(scenario, field.path)):
            try:
                other = replace(scenario, field.path, value)
            except ScenarioError:
                continue
            if not field.applies(other):
                found.append((field, other))
    return found
