"""Adapters, frozen bases and loops against figures measured on real modules: every one to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate, ledger
from memgui.estimator.targets import TARGETS, adaptable, offered, usual_targets
from memgui.spec import Lora, Scenario, replace
from memgui.spec.messages import Named
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
    assert found.verdict.reason.args["value"] == Named("training.lora.target_modules", ("dt_proj",))


def test_norms_of_weights_that_hqq_packs_are_refused() -> None:
    settings = {"method": "lora", "lora": Lora(variant="dora"), "base_format": "hqq_4bit_g64"}
    assert estimate(training(LLAMA_3_1B, **settings)).verdict.kind == "unknown"


def _adapted(model_type: str, *asked: str) -> Scenario:
    model = next(entry.model for entry in Catalog().models if entry.model.model_type == model_type)
    return replace(training(model, method="lora"), TARGETS, asked)


@pytest.mark.parametrize(
    ("model_type", "usual"),
    [
        ("llama", ("q_proj", "v_proj")),
        ("bert", ("q_proj", "v_proj")),  # they stand for query and value
        ("phi", ("q_proj", "v_proj", "fc1", "fc2")),
        ("nemotron_h", ("q_proj", "k_proj", "v_proj", "o_proj")),
        ("qwen3_next", ("q_proj", "v_proj")),
        ("deepseek_v3", ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")),
        ("mamba", ("in_proj", "x_proj")),
        ("mamba2", ("in_proj",)),
    ],
)
def test_adapters_usually_go_on_layers_that_are_there(model_type: str, usual: tuple[str, ...]) -> None:
    scenario = _adapted(model_type, *usual)
    assert usual_targets(scenario.model) == usual
    alone = [estimate(replace(scenario, TARGETS, (name,))).parameters.trainable for name in usual]
    assert all(alone)
    assert estimate(scenario).parameters.trainable == sum(alone)


def test_no_built_in_model_is_left_without_adapters() -> None:
    for entry in Catalog().models:
        scenario = replace(training(entry.model, method="lora"), TARGETS, usual_targets(entry.model))
        reason = estimate(replace(scenario, "training.sequence_length", 64)).verdict.reason
        assert "nothing would be trained" not in reason.text, entry.name


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("q_proj", "v_proj"), f"{TARGETS} cannot be q_proj, v_proj: the model has no layers called so"),
        ((), f"{TARGETS} cannot be empty"),
    ],
)
def test_a_refusal_names_the_layers_that_there_are(asked: tuple[str, ...], said: str) -> None:
    scenario = _adapted("mamba", *asked)
    found = estimate(scenario)
    (issue,) = found.issues
    assert (found.verdict.kind, issue.message) == ("unknown", found.verdict.reason)
    assert issue.text.startswith(said)
    assert ", ".join(adaptable(scenario)) in issue.text
    assert adaptable(scenario) == ("in_proj", "x_proj", "dt_proj")  # PEFT refuses out_proj


@pytest.mark.parametrize(
    ("model_type", "halves"), [("qwen3_moe", ("gate_proj", "up_proj")), ("mixtral", ("w1", "w3"))]
)
def test_gate_and_up_of_stacked_experts_are_adapted_together(
    model_type: str, halves: tuple[str, str]
) -> None:
    """As PEFT converts what was asked of the experts of old: one weight has both."""
    both = _adapted(model_type, *halves)
    found = estimate(both)
    assert found.parameters.trainable
    assert found.assumptions == ()
    assert set(halves) <= set(adaptable(both)) & set(offered(both, halves))
    for one, other in (halves, halves[::-1]):
        alone = estimate(replace(both, TARGETS, ("q_proj", one)))
        assert [issue.paths for issue in alone.issues] == [(TARGETS,)]
        assert f"cannot be {one} without {other}" in alone.issues[0].text


@pytest.mark.parametrize(
    ("model_type", "asked", "left_out"),
    [
        ("llama", ("q_proj", "v_proj"), ""),
        ("llama", ("all-linear",), ""),
        ("llama", ("embed_tokens", "lm_head", "q_proj"), ""),
        ("gpt2", ("q_proj", "c_fc"), ""),  # Llama's names stand for the same layers
        ("llama", ("q_proj", "foo", "bar"), "foo, bar"),
        ("llama", ("all-linear", "foo"), "foo"),
        ("mamba", ("q_proj", "in_proj"), "q_proj"),
    ],
)
def test_a_target_that_no_layer_is_called_is_named(
    model_type: str, asked: tuple[str, ...], left_out: str
) -> None:
    said = [one.text for one in estimate(_adapted(model_type, *asked)).assumptions]
    named = [text for text in said if "no layers called" in text]
    text = f"The model has no layers called {left_out}: adapters go on the others alone."
    assert named == ([text] if left_out else [])


@pytest.mark.parametrize(
    ("model_type", "names"),
    [
        (
            "llama",
            ("all-linear", "q_proj", "v_proj", "k_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        ),
        ("gpt2", ("all-linear", "q_proj", "v_proj", "c_attn", "c_proj", "c_fc")),
        ("mamba", ("all-linear", "in_proj", "x_proj", "dt_proj")),
    ],
)
def test_names_to_choose_from_are_those_that_mean_something(model_type: str, names: tuple[str, ...]) -> None:
    assert offered(_adapted(model_type, "q_proj"), ("all-linear", "q_proj", "v_proj")) == names
    wrong = replace(_adapted(model_type, "q_proj"), "model.hidden_size", 0)
    assert offered(wrong, ("all-linear", "q_proj")) == ("all-linear", "q_proj")
