"""Set-ups that no other table holds (drawn in pairs of settings), against the classes of Transformers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memgui.estimator import Ledger, estimate, ledger
from memgui.importers.hf_config import import_config
from memgui.spec import Lora, Scenario, Training
from memgui.spec.messages import Named
from memgui.spec.validate import validate
from tests.estimator.families import model, read

ROWS = read("setups")


def held(row: dict[str, Any]) -> Ledger:
    """The tensors of a measured row's set-up."""
    settings = {"torch_version": "2.13", **row["training"]}  # on which most were measured
    if "lora" in settings:
        settings["lora"] = msgspec.convert(settings["lora"], Lora)
    return ledger(Scenario(model=model(ROWS, row["model"]), training=Training(**settings)))


def title(row: dict[str, Any]) -> str:
    said = (f"{key}={value}" for key, value in row["training"].items() if key != "lora")
    return "-".join([row["model"], *said, *map(str, row["training"].get("lora", {}).values())]).replace(
        " ", ""
    )


@pytest.mark.parametrize("row", ROWS["rows"], ids=title)
def test_step(row: dict[str, Any]) -> None:
    """Weights, what autograd saves, live bytes at the moments, each phase's peak: all to the byte."""
    found = held(row)
    steady = found.steps[1]
    assert (found.parameters.total, found.parameters.trainable) == (row["total"], row["trainable"])
    assert {name: getattr(steady, name) for name in row["moments"]} == row["moments"]
    assert {phase: steady.phases[phase] for phase in row["phases"]} == row["phases"]
    if "saved" in row:
        assert (found.saved_total, found.saved_weight_casts) == (row["saved"], row["weight_casts"])


SMALL = {
    "vocab_size": 1000,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    ("model_type", "name", "classifier"),
    [
        ("bert", "BertForSequenceClassification", "pooled"),
        ("roberta", "RobertaForSequenceClassification", "dropped"),
        ("deberta-v2", "DebertaV2ForSequenceClassification", "dropped_gelu"),
        ("distilbert", "DistilBertForSequenceClassification", "relu"),
        ("modernbert", "ModernBertForSequenceClassification", "normed"),
        ("llama", "LlamaForSequenceClassification", "pooled"),
    ],
)
def test_a_head_over_classes_is_read(model_type: str, name: str, classifier: str) -> None:
    config = {**SMALL, "model_type": model_type, "architectures": [name], "num_labels": 3}
    found = import_config(config, name)
    assert (found.model.head, found.model.num_labels) == ("sequence", 3)
    assert found.model.classifier == classifier
    assert not any("head" in said.text for said in found.assumed)


@pytest.mark.parametrize(
    ("model_type", "name"),
    [
        ("bert", "BertForTokenClassification"),
        ("gpt2", "GPT2DoubleHeadsModel"),
        ("bart", "BartForSequenceClassification"),
    ],
)
def test_a_head_that_is_not_described_is_told(model_type: str, name: str) -> None:
    said = import_config({**SMALL, "model_type": model_type, "architectures": [name]}, name).assumed
    assert any(name in str(one.args.get("name")) for one in said)


def classifier(**training: Any) -> Scenario:
    config = {**SMALL, "model_type": "llama", "architectures": ["LlamaForSequenceClassification"]}
    return Scenario(model=import_config(config, "classes").model, training=Training(**training))


def test_classes_generate_nothing() -> None:
    scenario = msgspec.structs.replace(classifier(), task="inference")
    assert "no_tokens_from_classes" in {issue.code for issue in validate(scenario)}


def test_other_code_has_no_head_over_classes() -> None:
    assert estimate(classifier(implementation="torchtitan")).verdict.kind == "unknown"


@pytest.mark.parametrize("name", ["classifier", "norm"])
def test_what_cannot_be_trained_whole_is_refused(name: str) -> None:
    lora = Lora(modules_to_save=(name,))
    found = estimate(Scenario(model=classifier().model, training=Training(method="lora", lora=lora)))
    assert found.verdict.kind == "unknown"
    assert found.verdict.reason.args["value"] == Named("training.lora.modules_to_save", (name,))
    assert [issue.paths for issue in found.issues] == [("training.lora.modules_to_save",)]


def test_the_head_over_classes_can_be_trained_whole() -> None:
    lora = Lora(modules_to_save=("score",))
    held = ledger(Scenario(model=classifier().model, training=Training(method="lora", lora=lora)))
    without = ledger(Scenario(model=classifier().model, training=Training(method="lora")))
    assert held.parameters.trainable == without.parameters.trainable + 2 * 128


def test_a_text_model_within_another_may_name_no_class() -> None:
    inner = {**SMALL, "model_type": "llama", "architectures": None}
    assert import_config({"model_type": "llava", "text_config": inner}, "inner").model.head == "causal"
