"""Adapters, frozen bases and loops against figures measured on real modules: every one to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from memgui.estimator import estimate, ledger
from memgui.spec import Lora
from memgui.spec.validate import validate
from tests.estimator.build import measured, training
from tests.estimator.models import GPT2, LLAMA_3_1B

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "adapter_rows.json").read_text("utf-8"))[
    "rows"
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_steps(row: dict[str, Any]) -> None:
    held = ledger(measured(row, layers=row["layers"]))
    steady = held.steps[1]
    assert {name: getattr(steady, name) for name in row["moments"]} == row["moments"]
    assert {phase: steady.phases.get(phase) for phase in row["phases"]} == row["phases"]
    assert held.parameters.trainable == row["trainable"]


@pytest.mark.parametrize(
    ("settings", "at_fault"),
    [
        (
            {"method": "lora", "lora": Lora(variant="dora"), "base_format": "awq_int4_g128"},
            "training.lora.variant",
        ),
        ({"method": "ia3", "base_format": "hqq_4bit_g64"}, "training.method"),
    ],
)
def test_what_peft_does_not_build_beside_a_packed_base(settings: dict[str, Any], at_fault: str) -> None:
    issues = validate(training(LLAMA_3_1B, **settings))
    assert [(issue.code, issue.paths[0]) for issue in issues if issue.severity == "error"] == [
        ("not_beside_this_base", at_fault)
    ]


def test_a_prefix_and_checkpoints_rule_each_other_out() -> None:
    issues = validate(training(LLAMA_3_1B, method="prefix", activation_checkpointing="full"))
    assert "prefix_with_checkpoints" in {issue.code for issue in issues}


def test_llamas_names_stand_for_what_a_model_calls_otherwise() -> None:
    """GPT-2 has one projection for queries, keys and values, and no gate."""
    asked, own = (
        ledger(training(GPT2, method="lora", lora=Lora(target_modules=targets)))
        for targets in (("q_proj", "v_proj", "up_proj"), ("c_attn", "c_fc"))
    )
    assert asked.parameters == own.parameters
    assert asked.saved_total == own.saved_total
    assert own.parameters.trainable == 12 * 16 * ((768 + 3 * 768) + (768 + 3072))


def test_adapters_on_no_layer_are_refused() -> None:
    found = estimate(training(GPT2, method="lora", lora=Lora(target_modules=("dt_proj",))))
    assert found.verdict.kind == "unknown"
    assert found.verdict.reason.args == {"targets": "dt_proj"}


def test_norms_of_weights_that_hqq_packs_are_refused() -> None:
    settings = {"method": "lora", "lora": Lora(variant="dora"), "base_format": "hqq_4bit_g64"}
    assert estimate(training(LLAMA_3_1B, **settings)).verdict.kind == "unknown"
