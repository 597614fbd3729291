"""The catalog: complete, valid, found in any case and while typing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from memgui.catalog import Catalog, UnknownName
from memgui.spec import Scenario, Training
from memgui.spec.validate import validate
from tests.importers.parameters import count

SHARED = Path(os.environ.get("MEMGUI_SHARED", Path(__file__).parents[3] / "shared"))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog()


def test_every_model_is_a_valid_scenario(catalog: Catalog) -> None:
    for entry in catalog.models:
        length = min(4096, entry.spec.max_position_embeddings or 4096)
        scenario = Scenario(model=entry.model, training=Training(sequence_length=length))
        errors = [issue.text for issue in validate(scenario) if issue.severity == "error"]
        assert not errors, entry.name


def test_there_are_enough_models(catalog: Catalog) -> None:
    assert len(catalog.models) >= 120


@pytest.mark.skipif(not SHARED.is_dir(), reason="the reference folder is not here")
def test_truth_models_are_there_by_their_names_with_their_parameters(catalog: Catalog) -> None:
    configs = json.loads((SHARED / "truth" / "configs.json").read_text("utf-8"))
    counted = json.loads((SHARED / "truth" / "params.json").read_text("utf-8"))["models"]
    for name in configs:
        entry = catalog.model(name)
        assert entry.spec.head == configs[name]["head"], name
        if name in counted:
            assert entry.parameters == counted[name]["total_params"], name


def test_stored_parameters_are_those_of_the_description(catalog: Catalog) -> None:
    for entry in catalog.models:
        assert entry.parameters == sum(count(entry.spec).values()), entry.name


@pytest.mark.parametrize(
    ("name", "published"), [("granite-4.0-h-1b", 1_461_538_368), ("granite-4.0-h-small", 32_207_337_984)]
)
def test_trimmed_files_are_completed(catalog: Catalog, name: str, published: int) -> None:
    """Elements of the safetensors files on the Hub; class defaults made 17 billion of the smaller one."""
    spec = catalog.model(name).spec
    assert sum(count(spec).values()) == published
    assert spec.layer_types.count("full_attention") * spec.num_hidden_layers // len(spec.layer_types) == 4


def test_every_device_is_bounded_and_valid(catalog: Catalog) -> None:
    first = catalog.first_scenario()
    for entry in catalog.devices:
        assert 0 < entry.low_bytes <= entry.memory_bytes <= entry.high_bytes, entry.name
        assert entry.high_bytes <= entry.marketed_gb * 2**30 * 1.06, entry.name
        assert entry.known in ("seen", "recalled", "derived"), entry.name
        assert entry.source, entry.name
        scenario = Scenario(model=first.model, device=entry.device())
        assert not [issue for issue in validate(scenario) if issue.severity == "error"], entry.name


def test_there_are_enough_devices(catalog: Catalog) -> None:
    assert len(catalog.devices) >= 120


def test_no_name_means_two_things(catalog: Catalog) -> None:
    for entries in (catalog.models, catalog.devices):
        names = [name.casefold() for entry in entries for name in (entry.name, *entry.aliases)]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


@pytest.mark.parametrize(
    "name", ["gpt2", "GPT2", "META-LLAMA/meta-llama-3.1-8b", "llama-3.1-8B", "llama 3 8b"]
)
def test_model_is_found_in_any_case(catalog: Catalog, name: str) -> None:
    assert catalog.model(name).name


def test_every_name_finds_its_entry(catalog: Catalog) -> None:
    for entry in catalog.models:
        for name in (entry.name, *entry.aliases):
            assert catalog.model(name.upper()) is entry
    for device in catalog.devices:
        for name in (device.name, *device.aliases):
            assert catalog.device(name.lower()) is device


def test_unknown_name_says_what_is_near(catalog: Catalog) -> None:
    with pytest.raises(UnknownName) as caught:
        catalog.model("lama-3.1-8b")
    assert "Llama-3.1-8B" in caught.value.near
    assert "lama-3.1-8b" in str(caught.value)
    with pytest.raises(UnknownName, match="no built-in device called"):
        catalog.device("x" * 10_000)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("llama-3.1-8", "Meta-Llama-3.1-8B"),
        ("llama 8b", "Meta-Llama-3-8B-Instruct"),
        ("3.1 8b", "Meta-Llama-3.1-8B"),
        ("lamma 3.1", "Meta-Llama-3.1-8B"),
        ("qwen3 32", "Qwen3-32B"),
        ("gpt2", "gpt2"),
        ("openai", "gpt2"),
        ("Mistrall nemo", "Mistral-Nemo-Instruct-2407"),
    ],
)
def test_search_finds(catalog: Catalog, typed: str, expected: str) -> None:
    assert expected in [entry.title for entry in catalog.search(typed)[:8]]


def test_search_puts_the_exact_name_first(catalog: Catalog) -> None:
    for entry in catalog.models:
        assert catalog.search(entry.name)[0] is entry
    for device in catalog.devices:
        assert catalog.search_devices(device.name)[0] is device


def test_search_for_nothing_is_everything_and_for_nonsense_nothing(catalog: Catalog) -> None:
    assert len(catalog.search("", 10_000)) == len(catalog.models)
    assert catalog.search("zzzzqqq") == []
    assert catalog.search("  --- ") == list(catalog.models[:50])


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("h100", "H100 SXM5 80GB"),
        ("4090", "GeForce RTX 4090"),
        ("a100 40", "A100 SXM4 40GB"),
        ("mi300", "Instinct MI300X"),
    ],
)
def test_search_finds_devices(catalog: Catalog, typed: str, expected: str) -> None:
    assert expected in [entry.name for entry in catalog.search_devices(typed)[:4]]


def test_first_scenario_is_llama_on_an_h100(catalog: Catalog) -> None:
    scenario = catalog.first_scenario()
    assert scenario.model.name == "Meta-Llama-3.1-8B"
    assert (scenario.model.hidden_size, scenario.model.num_key_value_heads) == (4096, 8)
    assert (scenario.task, scenario.training.method, scenario.training.precision) == (
        "training",
        "full",
        "bf16",
    )
    assert (scenario.training.sequence_length, scenario.training.micro_batch_size) == (4096, 1)
    assert scenario.device.name == "H100 SXM5 80GB"
    assert scenario.device.compute_capability == "9.0"
    assert not [issue for issue in validate(scenario) if issue.severity == "error"]


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    with pytest.raises(FileNotFoundError):
        _ = catalog.models


def test_decoding_is_quick() -> None:
    """Loose on purpose: the start of the program has a few milliseconds for this, machines differ."""
    start = time.process_time()
    catalog = Catalog()
    assert catalog.models
    assert catalog.devices
    assert time.process_time() - start < 0.2


def test_one_entry_stands_on_each_line(catalog: Catalog) -> None:
    from memgui._resources import root

    for file, entries in (("models.json", catalog.models), ("devices.json", catalog.devices)):
        lines = (root() / "catalog" / file).read_text("utf-8").splitlines()
        assert len(lines) == len(entries) + 2
        assert all(json.loads(line.rstrip(",")) for line in lines[1:-1])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the reference folder is not here")
def test_catalog_is_what_the_generator_makes(catalog: Catalog) -> None:
    from tests.catalog.make_devices import devices
    from tests.catalog.make_models import models

    gpus = json.loads((SHARED / "data" / "gpus.json").read_text("utf-8"))
    assert tuple(devices(gpus)) == catalog.devices
    assert tuple(models(SHARED)) == catalog.models


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B"),  # as it is called there by now
        ("meta-llama/llama-3.3-70b-instruct", "meta-llama/Llama-3.1-70B-Instruct"),
    ],
)
def test_a_model_is_found_as_the_hub_calls_it(catalog: Catalog, asked: str, found: str) -> None:
    assert catalog.model(asked).name == found


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B"),
        ("Qwen/Qwen2.5-VL-7B", "Qwen/Qwen2.5-VL-7B-Instruct"),
        ("google/gemma-2-9b-it", "google/gemma-2-9b"),
        ("mixtral 8x7b instruct v0.1", "mistralai/Mixtral-8x7B-v0.1"),
        ("deepseek-ai/deepseek-llm-7b-chat", "deepseek-ai/deepseek-llm-7b-base"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-30B-A3B"),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-30B-A3B"),
    ],
)
def test_another_version_of_a_model_is_its_kin_and_found_by_search(
    catalog: Catalog, asked: str, found: str
) -> None:
    with pytest.raises(UnknownName):
        catalog.model(asked)
    kin = catalog.kin(asked)
    assert kin is not None
    assert kin.name == found
    assert catalog.search(asked)[0].name == found
    assert catalog.search(asked + " ins")[0].name == found


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("unsloth/Qwen3-4B-bnb-4bit", "Qwen/Qwen3-4B"),
        ("TheBloke/Llama-2-7B-GPTQ", "meta-llama/Llama-2-7b-hf"),
        ("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
    ],
)
def test_what_shares_words_with_a_name_that_none_has_is_near(catalog: Catalog, asked: str, near: str) -> None:
    assert catalog.search(asked) == []
    assert near in [entry.name for entry in catalog.alike(asked)]
    with pytest.raises(UnknownName) as unknown:
        catalog.model(asked)
    assert unknown.value.near


def test_one_word_that_is_alike_is_not_enough(catalog: Catalog) -> None:
    assert catalog.alike("zzzz") == catalog.alike("zzzz 7b") == catalog.alike("") == []


@pytest.mark.parametrize(
    "asked",
    [
        "t5",
        "bert-base",
        "whisper-large",
        "instruct",
        "8b",
        "",
        "facebook/Llama-3.1-8B-Instruct",
        "zai-org/GLM-4-9B",
    ],
)
def test_a_name_without_a_size_or_of_another_house_has_no_kin(catalog: Catalog, asked: str) -> None:
    assert catalog.kin(asked) is None
