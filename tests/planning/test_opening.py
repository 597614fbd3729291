"""What a person means by a path or a name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memgui.catalog import Catalog, UnknownName
from memgui.estimator import estimate
from memgui.estimator.targets import TARGETS
from memgui.files.bounded import FileFault
from memgui.planning.opening import mattering, opened, starting_scenario, with_device
from memgui.planning.why import report_lists
from memgui.planning.words import English
from memgui.presets.codec import Preset, encode, plain
from memgui.presets.reports import report_of
from memgui.spec import ModelSpec, Scenario, ScenarioError, replace
from memgui.spec.scenario import Lora
from memgui.spec.validate import validate
from tests.importers.files import gguf_llama, llama, number, sparse, write_safetensors, write_shards

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


def test_a_model_folder_is_opened_as_a_whole(tmp_path: Path, catalog: Catalog) -> None:
    """config.json, weights, and the quantisation block that older checkpoints keep beside them."""
    folder = model_folder(tmp_path / "my-llama")
    write_shards(folder, llama(32, 4096, 11008, 4096, 32000), 3)
    block = {"bits": 4, "group_size": 128, "desc_act": False}
    (folder / "quantize_config.json").write_text(json.dumps(block), "utf-8")
    found = opened(str(folder), catalog)
    assert found.weights is not None
    assert found.weights.elements == 6_738_415_616
    assert found.quantization is not None
    assert (found.quantization.method, found.quantization.bits) == ("gptq", 4)
    assert "hidden_size" in found.report.understood
    index = opened(str(folder / "model.safetensors.index.json"), catalog)
    assert (index.content, index.weights) == (found.content, found.weights)
    (folder / "model-00002-of-00003.safetensors").write_bytes(b"not one")
    broken = opened(str(folder), catalog)
    assert broken.content == found.content
    assert broken.weights is None
    assert any("model-00002-of-00003" in message.text for message in broken.report.assumed)


def test_a_gguf_file_alone_is_a_model(tmp_path: Path, catalog: Catalog) -> None:
    more = [number("llama.attention.head_count", 8), number("llama.feed_forward_length", 512)]
    header, size = gguf_llama(2, 256, 512, 40, more=more)
    found = opened(str(sparse(tmp_path / "tiny-00001-of-00001.gguf", header, size)), catalog)
    assert found.model.name == "tiny"
    assert (found.model.hidden_size, found.model.vocab_size, found.model.tie_word_embeddings) == (
        256,
        40,
        False,
    )
    assert found.weights is not None
    assert {tensor.format for tensor in found.weights.tensors} == {"Q4_K", "F32"}


def test_safetensors_alone_are_a_model_where_shapes_leave_no_doubt(tmp_path: Path, catalog: Catalog) -> None:
    plain = llama(2, 64, 128, 16, 100)
    path = write_safetensors(tmp_path / "plain.safetensors", plain)
    with pytest.raises(FileFault, match="do not say: head_dim"):
        opened(str(path), catalog)
    norms = {
        f"model.layers.{i}.self_attn.{one}_norm.weight": ("BF16", (8,)) for i in range(2) for one in "qk"
    }
    found = opened(str(write_safetensors(tmp_path / "qwen.safetensors", plain | norms)), catalog).model
    assert (found.name, found.model_type) == ("qwen", "qwen3")
    assert (found.num_attention_heads, found.num_key_value_heads, found.head_dim) == (8, 2, 8)
    assert (found.num_hidden_layers, found.intermediate_size, found.vocab_size) == (2, 128, 100)
    stored = {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": ("F32", (4,)) for i in range(2)}
    found = opened(str(write_safetensors(tmp_path / "old.safetensors", plain | stored)), catalog).model
    assert (found.model_type, found.head_dim) == ("llama", 8)
    experts = {"model.layers.0.mlp.experts.0.up_proj.weight": ("BF16", (32, 64))}
    path = write_safetensors(tmp_path / "experts.safetensors", plain | norms | experts)
    with pytest.raises(FileFault, match="do not say: num_experts_per_tok"):
        opened(str(path), catalog)
    path = write_safetensors(tmp_path / "lora.safetensors", {"a.lora_A.weight": ("F32", (8, 64))})
    with pytest.raises(FileFault, match="model_type, hidden_size"):
        opened(str(path), catalog)


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


def test_another_version_of_a_built_in_model_is_opened_and_said(catalog: Catalog) -> None:
    found = opened("google/gemma-2-9b-it", catalog)
    assert found.model.name == "gemma-2-9b"
    assert [one.text for one in found.assumptions] == [
        "google/gemma-2-9b-it is not built in: google/gemma-2-9b is taken, as base and tuned versions have "
        "the same layers."
    ]
    assert opened("google/gemma-2-9b", catalog).assumptions == ()


def test_lengths_that_nobody_chose_end_where_learned_positions_end(catalog: Catalog) -> None:
    short = replace(
        replace(catalog.first_scenario(), "model.max_position_embeddings", 1024),
        "model.position_embedding",
        "learned",
    ).model
    scenario, told = starting_scenario(catalog.first_scenario(), short)
    assert scenario.training.sequence_length == 1024
    assert scenario.inference.prompt_tokens + scenario.inference.generated_tokens == 1024
    assert [message.args["path"] for message in mattering(told, scenario)] == ["training.sequence_length"]
    assert mattering(told, scenario, ("training.sequence_length",)) == ()
    rotary, told = starting_scenario(
        catalog.first_scenario(), replace(scenario, "model.position_embedding", "rope").model
    )
    assert rotary.training.sequence_length == catalog.first_scenario().training.sequence_length
    assert told == ()


@pytest.mark.parametrize("task", ["training", "inference"])
def test_every_built_in_model_starts_with_lengths_that_it_has_positions_for(
    catalog: Catalog, task: str
) -> None:
    base = replace(catalog.first_scenario(), "task", task)
    for entry in catalog.models:
        scenario, _ = starting_scenario(base, entry.model)
        wrong = [issue.text for issue in validate(scenario) if issue.severity == "error"]
        assert not wrong, entry.model.name


def test_an_encoder_reads_all_its_positions_and_generates_nothing(catalog: Catalog) -> None:
    base = replace(catalog.first_scenario(), "task", "inference")
    scenario, told = starting_scenario(base, catalog.model("bert-base-uncased").model)
    assert (scenario.inference.prompt_tokens, scenario.inference.generated_tokens) == (512, 0)
    assert [message.args["path"] for message in mattering(told, scenario)] == ["inference.prompt_tokens"]
    whisper, told = starting_scenario(base, catalog.model("whisper-tiny").model)
    told = mattering(told, whisper)
    assert whisper.inference.prompt_tokens + whisper.inference.generated_tokens == 448
    assert len(told) == 2
    both, _ = starting_scenario(base, catalog.model("bart-base").model)  # each stack has its own
    assert (both.inference.prompt_tokens, both.inference.generated_tokens) == (1024, 512)


def test_adapters_that_nobody_placed_go_on_layers_that_the_model_has(catalog: Catalog) -> None:
    base = replace(catalog.first_scenario(), "training.method", "lora")
    latent, told = starting_scenario(base, catalog.model("DeepSeek-V3").model)
    assert estimate(latent).verdict.kind != "unknown"
    assert [message.args["path"] for message in mattering(told, latent)] == [TARGETS]
    assert mattering(told, replace(latent, "training.method", "full")) == ()
    back, told = starting_scenario(latent, catalog.first_scenario().model)
    assert (back.training.lora, told) == (Lora(), ())
    chosen = replace(base, TARGETS, ("o_proj",))
    kept, told = starting_scenario(chosen, catalog.model("DeepSeek-V3").model)
    assert (kept.training.lora.target_modules, told) == (("o_proj",), ())


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


def test_a_report_says_what_was_understood_assumed_and_ignored(tmp_path: Path, catalog: Catalog) -> None:
    folder = model_folder(tmp_path / "m")
    config = {**LLAMA, "unheard_of": 3}
    del config["tie_word_embeddings"]
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    found = opened(str(folder), catalog)
    lines = [message.text for message in found.report.lines]
    assert lines[0].startswith("Understood: ")
    assert "hidden_size" in lines[0]
    assert lines[1] == "Assumed:"
    assert any(line.startswith("tie_word_embeddings is not stated") for line in lines)
    assert lines[-1] == "Ignored, because nothing here reads it: unheard_of"
    assert found.assumptions[-1].text == lines[-1]


def test_a_report_names_some_hundred_keys_and_counts_the_rest(tmp_path: Path, catalog: Catalog) -> None:
    folder = model_folder(tmp_path / "m")
    config = {**LLAMA, **{f"key_{number}": number for number in range(50_000)}}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    report = opened(str(folder), catalog).report
    assert (len(report.ignored), report.unnamed) == (500, 49_500)
    assert report.lines[-1].text.endswith("key_499, and 49,500 more.")
    assert report_of(plain(report)) == report
    lists = dict(report_lists(report, English()))
    assert lists["In config.json, but nothing here reads it:"][0].endswith("key_499, and 49,500 more")


def test_files_that_hold_other_weights_than_described_are_told(tmp_path: Path, catalog: Catalog) -> None:
    folder = model_folder(tmp_path / "m")
    write_shards(folder, llama(32, 4096, 11008, 4096, 32000), 2)
    assert not any("hold" in message.text for message in opened(str(folder), catalog).report.assumed)
    write_shards(folder, llama(31, 4096, 11008, 4096, 32000), 2)
    told = next(
        message.text for message in opened(str(folder), catalog).report.assumed if "hold" in message.text
    )
    assert "6,738,415,616" in told
    assert "6,536,032,256" in told


def test_of_several_gguf_models_it_is_said_which_one_is_open(tmp_path: Path, catalog: Catalog) -> None:
    more = [number("llama.attention.head_count", 8), number("llama.feed_forward_length", 512)]
    header, size = gguf_llama(2, 256, 512, 40, more=more)
    for name in ("b-Q8_0.gguf", "a-Q4_K_M.gguf"):
        sparse(tmp_path / name, header, size)
    found = opened(str(tmp_path), catalog)
    told = next(message.text for message in found.report.assumed if "GGUF models" in message.text)
    assert told == "The folder holds 2 GGUF models; a-Q4_K_M.gguf is the one that is open."


@pytest.mark.parametrize(
    ("block", "base"),
    [
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": True,
            },
            "nf4_dq",
        ),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq_int4_g128"),
        ({"quant_method": "fp8"}, "bf16"),  # no adapters are trained beside it
    ],
)
def test_adapters_stand_beside_weights_as_they_are_stored(
    tmp_path: Path, catalog: Catalog, block: dict[str, object], base: str
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**LLAMA, "quantization_config": block}), "utf-8")
    found = opened(str(file), catalog)
    scenario, told = starting_scenario(catalog.first_scenario(), found.model, found.quantization)
    assert scenario.training.base_format == base
    assert mattering(told, scenario) == ()  # every weight is trained
    adapters = replace(scenario, "training.method", "lora")
    said = [message.text for message in mattering(told, adapters)]
    assert said == (
        [] if base == "bf16" else [f"training.base_format is {base}: so the file's weights are stored."]
    )
