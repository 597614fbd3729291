"""Any number in any field that applies is computed or refused, whatever the model and the program."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.spec import Scenario, get, replace
from memgui.spec.fields import BY_PATH, FIELDS, Field, Kind
from memgui.spec.validate import validate

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
MODELS = (
    "google/mobilebert-uncased",
    "openai/gpt-oss-20b",
    "google/recurrentgemma-2b",
    "google/gemma-3n-E4B-it",
    "LiquidAI/LFM2-1.2B",
    "tiiuae/Falcon-H1-0.5B-Instruct",
    "google/vit-base-patch16-224",
    "bigcode/starcoder2-3b",
    "google-t5/t5-base",
    "deepseek-ai/DeepSeek-V3.2",
)
NUMBERS = (Kind.COUNT, Kind.TOKENS, Kind.BYTES, Kind.RATIO)


def _set_ups(name: str) -> Iterator[Scenario]:
    scenario = replace(FIRST, "model", CATALOG.model(name).model)
    longest = scenario.model.max_position_embeddings
    if scenario.model.position_embedding == "learned":
        scenario = replace(scenario, "training.sequence_length", longest)
        scenario = replace(scenario, "inference.prompt_tokens", longest)
    yield scenario
    serving = replace(scenario, "task", "inference")
    for engine in ("transformers", "vllm", "llama.cpp"):
        yield replace(serving, "inference.engine", engine)


def _values(field: Field, present: int | float | None, chance: random.Random) -> list[int | float]:
    low, high = field.minimum or 0, field.maximum
    if field.kind is Kind.RATIO:
        return [low, high if high is not None else 1.0]
    now = int(present or 0)
    near = (low, low + 1, low + 2, now // 2, now + 1, 2 * now, chance.randrange(1, 130))
    return chance.sample(sorted({one for one in near if low <= one and (high is None or one <= high)}), 2)


@pytest.mark.parametrize("name", MODELS)
def test_any_number_is_computed_or_refused(name: str) -> None:
    chance = random.Random(name)
    tried = 0
    for scenario in _set_ups(name):
        for field in FIELDS:
            if field.kind not in NUMBERS or not field.applies(scenario):
                continue
            for value in _values(field, get(scenario, field.path), chance):
                one = replace(scenario, field.path, value)
                if any(issue.severity == "error" for issue in validate(one)):
                    continue
                found = estimate(one)
                assert found.peak_bytes == sum(part.bytes for part in found.components), field.path
                assert all(part.bytes >= 0 for part in found.components), field.path
                tried += 1
    assert tried > 60


@pytest.mark.parametrize(
    "name", ["gpt2", "google-bert/bert-base-uncased", "google-t5/t5-base", "Qwen/Qwen3-8B"]
)
def test_any_choice_of_a_model_is_computed_or_refused(name: str) -> None:
    scenario = next(_set_ups(name))
    computed = 0
    for field in FIELDS:
        if not field.path.startswith("model.") or field.kind not in (Kind.FLAG, Kind.CHOICE):
            continue
        for value in (True, False) if field.kind is Kind.FLAG else (one.value for one in field.choices):
            other = replace(scenario, field.path, value)
            if any(issue.severity == "error" for issue in validate(other)):
                continue
            found = estimate(other)
            known = found.verdict.kind != "unknown"
            assert known or found.verdict.reason.text, field.path
            computed += known
    assert computed > 100


@pytest.mark.parametrize(
    "changes",
    [
        {"training.offload_optimizer": 0.5},
        {"parallelism.data": 8, "parallelism.sharding": "zero3", "device.count": 8},
    ],
    ids=" ".join,
)
def test_a_feed_forward_of_no_width_has_states_of_no_bytes(changes: dict[str, object]) -> None:
    scenario = replace(next(_set_ups("Qwen/Qwen3-8B")), "model.intermediate_size", 0)
    for path, value in changes.items():
        scenario = replace(scenario, path, value)
    found = estimate(scenario)
    assert found.verdict.kind != "unknown"
    for component in found.components:
        for part in component.children:
            assert part.derivation.formula


@pytest.mark.parametrize(
    "name",
    [
        *("gpt2", "answerdotai/ModernBERT-base", "Qwen/Qwen3-8B", "state-spaces/mamba-130m-hf"),
        *("google/gemma-3n-E4B-it", "google-t5/t5-base"),
    ],
)
@pytest.mark.parametrize("path", ["model.layer_types", "model.mlp_layer_types"])
def test_any_pattern_of_layers_is_computed_or_refused(name: str, path: str) -> None:
    for scenario in list(_set_ups(name))[:2]:
        for kind in BY_PATH[path].choices:
            other = replace(scenario, path, (kind.value,) * scenario.model.num_hidden_layers)
            if any(issue.severity == "error" for issue in validate(other)):
                continue
            found = estimate(other)
            assert found.peak_bytes or found.verdict.reason.text, kind.value
