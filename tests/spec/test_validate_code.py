"""What the code that runs a training step does not do is said before anything is computed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memgui.spec import Scenario
from memgui.spec.validate import validate
from tests.estimator.build import spread, training
from tests.estimator.models import LLAMA_2_7B, llama


def _codes(scenario: Scenario, severity: str = "error") -> set[str]:
    return {issue.code for issue in validate(scenario) if issue.severity == severity}


def _step(**settings: Any) -> Scenario:
    return training(LLAMA_2_7B, **settings)


def _megatron(**settings: Any) -> Scenario:
    return _step(implementation="megatron", **{"precision": "bf16_master", **settings})


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        (_step(precision="fp8"), "fp8_of_another_code"),
        (_megatron(precision="bf16"), "precision_of_another_code"),
        (spread(_megatron(), data=2, library="deepspeed"), "library_of_another_code"),
        (spread(_step(), tensor=2, sequence=True), "sequence_of_another_code"),
        (
            spread(_megatron(gradient_accumulation_steps=8), pipeline=8, virtual_pipeline=8),
            "stages_without_layers",
        ),
        (spread(_megatron(), pipeline=4, virtual_pipeline=2), "no_whole_turns"),
        (spread(_step(attention="eager"), context=2), "eager_in_a_ring"),
        (spread(_megatron(sequence_length=4098), context=4), "not_split"),
    ],
)
def test_what_the_code_does_not_do(scenario: Scenario, code: str) -> None:
    assert code in _codes(scenario)
    issue = next(one for one in validate(scenario) if one.code == code)
    assert "{" not in issue.text


def test_experts_want_sequence_parallel() -> None:
    model = msgspec.structs.replace(
        llama("experts", 32000, 1024, 8, (16, 4, 64), 4096),
        num_experts=16,
        num_experts_per_tok=2,
        moe_intermediate_size=1024,
    )
    scenario = training(model, implementation="megatron", precision="bf16_master")
    assert "experts_without_sequence" in _codes(spread(scenario, tensor=2))
    assert not _codes(spread(scenario, tensor=2, sequence=True, data=4, expert=4))


def test_a_pipeline_that_is_not_filled_is_computed_all_the_same() -> None:
    assert "pipeline_not_filled" in _codes(spread(_megatron(), pipeline=4), "warning")
    assert not _codes(spread(_megatron(), pipeline=4))
    full = spread(_megatron(gradient_accumulation_steps=4), pipeline=4)
    assert "pipeline_not_filled" not in _codes(full, "warning")


def test_layers_need_not_divide() -> None:
    uneven = spread(_megatron(gradient_accumulation_steps=5), pipeline=5)
    assert "stages_not_even" in _codes(uneven, "warning")
    assert not _codes(uneven)
    assert not _codes(spread(_step(gradient_accumulation_steps=5), pipeline=5))
