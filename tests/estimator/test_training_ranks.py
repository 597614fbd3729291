"""Pipeline stages: those that are alike are one program and one run, and come out as if each were its own."""

from __future__ import annotations

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.account import account
from memgui.estimator.options import options
from memgui.estimator.program import compiled
from memgui.estimator.split import Stage
from memgui.estimator.training_ranks import _UNCOUNTED, stage_runs
from memgui.spec import Scenario, replace

CATALOG = Catalog()
LAYOUT = {"device.count": 8, "parallelism.pipeline": 8}


def staged(name: str, **settings: object) -> Scenario:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model(name).model)
    for path, value in (LAYOUT | {f"training.{key}": value for key, value in settings.items()}).items():
        made = replace(made, path, value)
    return made


def test_stages_with_as_many_equal_layers_are_compiled_once() -> None:
    made = staged("Meta-Llama-3.1-8B")
    runs = [run for _, run in stage_runs(made)]
    assert [name for name, _ in stage_runs(made)] == [str(stage) for stage in range(8)]
    assert len({run.program for run in runs}) == 3  # the first, those between, the last
    assert len(set(runs)) == 3  # with one micro batch a step nothing waits anywhere


def test_stages_where_more_waits_are_runs_of_their_own() -> None:
    runs = [run for _, run in stage_runs(staged("Meta-Llama-3.1-8B", gradient_accumulation_steps=8))]
    assert len({run.program for run in runs}) == 3
    assert [run.waiting for run in runs] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert len(set(runs)) == 8


@pytest.mark.parametrize(
    "name", ["Meta-Llama-3.1-8B", "google/gemma-3-27b-it", "deepseek-ai/DeepSeek-V2-Lite"]
)
@pytest.mark.parametrize(
    "settings",
    [{}, {"gradient_accumulation_steps": 4}, {"method": "lora", "activation_checkpointing": "full"}],
)
def test_each_stage_needs_what_it_needs_alone(
    name: str, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = staged(name, **settings)
    together = estimate(made)

    def apart(model: object, stage: Stage) -> object:
        return stage

    monkeypatch.setattr("memgui.estimator.training_ranks.layers_of", apart)
    alone = estimate(made)
    assert together.ranks == alone.ranks
    assert together.peak_moment == alone.peak_moment
    assert together.parameters == alone.parameters


@pytest.mark.parametrize("method", ["full", "lora", "prefix", "frozen"])
def test_weights_are_counted_whatever_is_computed(method: str) -> None:
    made = staged("google/gemma-3-27b-it", method=method, activation_checkpointing="full", padding_mask=True)
    chosen = options(made)
    plain = compiled(made.model, msgspec.structs.replace(chosen, **_UNCOUNTED))
    assert account(plain).parameters == account(compiled(made.model, chosen)).parameters
