"""The dense families against figures measured on real modules: every one to the byte."""

from typing import Any

import pytest

from memgui.estimator import estimate, ledger
from memgui.spec.model import ModelSpec
from tests.estimator import models
from tests.estimator.build import ROWS, measured, serving, title, training


@pytest.mark.parametrize("row", ROWS["saved"], ids=title)
def test_saved_tensors(row: dict[str, Any]) -> None:
    held = ledger(measured(row, layers=len(row["layers"])))
    assert held.saved_by_layer() == {"layers": tuple(row["layers"])}
    assert held.saved_by_part() == row["parts"]
    assert held.saved_weight_casts == row["weight_casts"]
    assert held.parameters.trainable == row["trainable"]


@pytest.mark.parametrize("row", ROWS["peaks"], ids=title)
def test_steps(row: dict[str, Any]) -> None:
    first, steady = ledger(measured(row)).steps
    assert {name: getattr(steady, name) for name in row["moments"]} == row["moments"]
    assert {phase: steady.phases.get(phase) for phase in row["phases"]} == row["phases"]
    assert max(first.phases.values()) == row["first_peak"]


@pytest.mark.parametrize("row", ROWS["peaks"], ids=title)
def test_peak_of_the_estimate(row: dict[str, Any]) -> None:
    found = estimate(measured(row))
    tensors = found.peak_bytes - found.component("overhead").bytes
    assert tensors == max(row["phases"].values())
    assert row["operator"].startswith(found.peak_moment.operator)


@pytest.mark.parametrize(
    ("model", "total"),
    [
        (models.GPT2, 124439808),
        (models.LLAMA_3_1B, 1235814400),
        (models.LLAMA_3_8B, 8030261248),
        (models.MISTRAL_7B, 7241732096),
        (models.QWEN_2_7B, 7615616512),
        (models.SMOLLM2, 134515008),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_parameters(model: ModelSpec, total: int) -> None:
    """Totals of the real modules (reference tables params.json and peak.json)."""
    counted = ledger(training(model)).parameters
    assert counted.total == total
    assert sum(counted.by_part.values()) == total


@pytest.mark.parametrize(
    ("model", "sequences", "prompt", "after_prompt", "after_one_more"),
    [
        (models.GPT2, 4, 1024, 150994944, 151142400),
        (models.QWEN_2_7B, 1, 8192, 469762048, 469819392),
        (models.MISTRAL_7B, 1, 1024, 134217984, 134349056),
        (models.MISTRAL_7B, 1, 8192, 1073742080, 536871168),  # the prompt stays until a token is decoded
    ],
)
def test_cache(model: ModelSpec, sequences: int, prompt: int, after_prompt: int, after_one_more: int) -> None:
    """Bytes of a real DynamicCache (reference table kv_cache.json)."""
    cache = ledger(serving(model, batch_size=sequences, prompt_tokens=prompt)).cache
    assert (cache.after_prompt, cache.after_one_more) == (after_prompt, after_one_more)
