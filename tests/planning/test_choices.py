"""What cannot be chosen as things stand, and the reason that is given for it."""

import time

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.choices import refused
from memgui.planning.opening import starting_scenario
from memgui.spec import Lora, replace
from memgui.spec.fields import BY_PATH, FIELDS, Kind
from memgui.spec.messages import Named
from memgui.spec.validate import validate
from tests.estimator.build import training
from tests.estimator.models import GPT2, LLAMA_3_1B

ADAPTERS = training(LLAMA_3_1B, method="lora")


def test_what_peft_does_not_build_is_refused_with_its_reason() -> None:
    dora = replace(ADAPTERS, "training.lora.variant", "dora")
    found = refused(dora, BY_PATH["training.base_format"])
    assert "nf4" not in found
    assert "no dora beside a base packed as awq_int4_g128" in found["awq_int4_g128"].text
    assert refused(ADAPTERS, BY_PATH["training.base_format"]) == {}


def test_what_a_library_cannot_run_is_refused() -> None:
    found = refused(training(GPT2, sequence_length=512), BY_PATH["training.implementation"])
    assert {"fused", "torchtune"} <= set(found)
    assert "transformers" not in found


@pytest.mark.parametrize(
    ("model", "method"),
    [("gpt2", "frozen"), ("bert-base-uncased", "prompt"), ("state-spaces/mamba-130m-hf", "ia3")],
)
def test_a_method_that_finds_nothing_to_train_is_refused(model: str, method: str) -> None:
    catalog = Catalog()
    scenario, _ = starting_scenario(catalog.first_scenario(), catalog.model(model).model)
    found = refused(scenario, BY_PATH["training.method"])
    assert method in found
    assert estimate(replace(scenario, "training.method", method)).verdict.reason == found[method]
    assert "lora" not in found
    stuck = replace(scenario, "training.method", method)
    assert "lora" not in refused(stuck, BY_PATH["training.method"])


def test_an_engine_that_does_not_run_the_model_is_refused() -> None:
    catalog = Catalog()
    scenario, _ = starting_scenario(catalog.first_scenario(), catalog.model("google/flan-t5-base").model)
    scenario = replace(scenario, "task", "inference")
    found = refused(scenario, BY_PATH["inference.engine"])
    assert {"vllm", "sglang", "llama.cpp", "ollama"} <= set(found)
    assert "num_encoder_layers" in found["vllm"].text
    stuck = replace(scenario, "inference.engine", "vllm")
    assert "transformers" not in refused(stuck, BY_PATH["inference.engine"])


def test_a_flag_is_on_or_off() -> None:
    sharded = training(LLAMA_3_1B, optimizer="sgd")
    split = msgspec.structs.replace(sharded.parallelism, data=8, sharding="zero3")
    sharded = replace(replace(sharded, "parallelism", split), "device.count", 8)
    field = BY_PATH["training.optimizer_in_backward"]
    assert "cannot wait to be reduced over 8 ranks" in refused(sharded, field)[True].text
    assert refused(replace(sharded, field.path, True), field) == {}
    assert refused(training(LLAMA_3_1B), BY_PATH["training.padding_mask"]) == {}


def test_a_fault_that_stands_anyway_is_no_choices_fault() -> None:
    broken = training(LLAMA_3_1B, method="lora", lora=Lora(rank=0))
    assert refused(broken, BY_PATH["training.lora.variant"]) == {}


def test_what_is_refused_cannot_be_computed() -> None:
    for field in FIELDS:
        if field.kind is not Kind.CHOICE or not field.applies(ADAPTERS):
            continue
        for value in refused(ADAPTERS, field):
            other = replace(ADAPTERS, field.path, value)
            faults = any(issue.severity == "error" for issue in validate(other))
            assert faults or estimate(other).verdict.kind == "unknown", (field.path, value)


def test_asking_takes_no_time_to_speak_of() -> None:
    began = time.process_time()
    refused(ADAPTERS, BY_PATH["training.base_format"])
    assert time.process_time() - began < 0.1


def test_a_reason_names_what_it_goes_against() -> None:
    """A long pattern of layers is not read out: the first of its kinds that is missing is."""
    mixed = msgspec.structs.replace(LLAMA_3_1B, layer_types=("full_attention", "sliding_attention") * 8)
    found = refused(training(mixed, method="lora"), BY_PATH["training.implementation"])
    assert found["unsloth"].args == {
        "path": "model.layer_types",
        "value": Named("model.layer_types", ("sliding_attention",)),
        "other": Named("training.implementation", ("unsloth",)),
    }
    assert found["unsloth"].text.endswith("= sliding_attention is not modelled yet with unsloth.")
