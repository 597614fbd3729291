"""What a person means by a path or a name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memgui.catalog import Catalog, UnknownName
from memgui.files.bounded import FileFault
from memgui.planning.opening import opened, starting_scenario, with_device
from memgui.presets.codec import Preset, encode
from memgui.spec import ModelSpec, Scenario, ScenarioError, replace

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


def model_folder(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    return folder


def test_a_config_its_folder_and_a_built_in_name(tmp_path: Path, catalog: Catalog) -> None:
    folder = model_folder(tmp_path / "my-llama")
    by_folder = opened(str(folder), catalog)
    by_file = opened(str(folder / "config.json"), catalog)
    assert by_folder == by_file
    assert isinstance(by_folder.content, ModelSpec)
    assert by_folder.model.name == "my-llama"
    assert by_folder.model.intermediate_size == 11008
    named = opened(catalog.models[0].name.upper(), catalog)
    assert named.model == catalog.models[0].model


def test_presets_of_both_kinds(tmp_path: Path, catalog: Catalog) -> None:
    scenario = replace(catalog.first_scenario(), "training.micro_batch_size", 7)
    (tmp_path / "run.memgui.json").write_bytes(encode(Preset(name="run", content=scenario)))
    (tmp_path / "model.memgui.json").write_bytes(encode(Preset(name="model", content=scenario.model)))
    assert opened(str(tmp_path / "run.memgui.json"), catalog).content == scenario
    assert opened(str(tmp_path / "model.memgui.json"), catalog).content == scenario.model


def test_what_is_not_there_is_said_of_the_path_or_the_name(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(FileFault, match=r"nowhere\.json"):
        opened(str(tmp_path / "nowhere.json"), catalog)
    with pytest.raises(UnknownName, match="no-such-model"):
        opened("no-such-model", catalog)


def test_lengths_that_nobody_chose_end_where_learned_positions_end(catalog: Catalog) -> None:
    short = replace(
        replace(catalog.first_scenario(), "model.max_position_embeddings", 1024),
        "model.position_embedding",
        "learned",
    ).model
    scenario, told = starting_scenario(catalog.first_scenario(), short)
    assert scenario.training.sequence_length == 1024
    assert scenario.inference.prompt_tokens + scenario.inference.generated_tokens == 1024
    assert [message.args["path"] for message in told] == ["training.sequence_length"]
    rotary, told = starting_scenario(
        catalog.first_scenario(), replace(scenario, "model.position_embedding", "rope").model
    )
    assert rotary.training.sequence_length == catalog.first_scenario().training.sequence_length
    assert told == ()


def test_a_built_in_device_brings_its_facts_unless_they_are_given(catalog: Catalog) -> None:
    entry = next(entry for entry in catalog.devices if entry.compute_capability == "7.5")
    scenario: Scenario = catalog.first_scenario()
    filled = with_device(scenario, {"device.name": entry.name.lower()}, catalog)
    assert filled.device.name == entry.name
    assert filled.device.memory_bytes == entry.memory_bytes
    assert filled.device.compute_capability == "7.5"
    given = replace(scenario, "device.memory_bytes", 5 * 2**30)
    kept = with_device(given, {"device.name": entry.name, "device.memory_bytes": 5 * 2**30}, catalog)
    assert kept.device.memory_bytes == 5 * 2**30
    assert kept.device.compute_capability == "7.5"


def test_an_unknown_device_needs_its_memory(catalog: Catalog) -> None:
    scenario = replace(catalog.first_scenario(), "device.name", "my own card")
    with pytest.raises(ScenarioError, match=r"device\.name cannot be my own card"):
        with_device(scenario, {"device.name": "my own card"}, catalog)
    given = {"device.name": "my own card", "device.memory_bytes": 24 * 2**30}
    assert with_device(scenario, given, catalog) == scenario
