"""Ways to fit for very different set-ups: legal, gentlest first, and what is said to fit does."""

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import surely_fits
from memgui.planning.devices import MACHINE, of_a_sort
from memgui.planning.layout import DEGREES
from memgui.planning.ways import Disturbance, Way, Ways, ways_to_fit
from memgui.planning.words import English
from memgui.spec import Scenario, get, replace
from memgui.spec.validate import validate

CATALOG = Catalog()
SERVED: dict[str, object] = {"task": "inference"}
VLLM: dict[str, object] = {**SERVED, "inference.engine": "vllm"}
LLAMA_CPP: dict[str, object] = {
    **SERVED,
    "inference.engine": "llama.cpp",
    "inference.kv_cache_format": "fp16",
}
LORA = {"training.method": "lora"}
FSDP_8: dict[str, object] = {"device.count": 8, "parallelism.data": 8, "parallelism.sharding": "zero3"}
SETUPS: dict[str, tuple[str, str, dict[str, object]]] = {
    "8B, all weights, 24 GB": ("Meta-Llama-3.1-8B", "GeForce RTX 4090", {}),
    "8B, LoRA, 24 GB": ("Meta-Llama-3.1-8B", "GeForce RTX 4090", {**LORA}),
    "70B, all weights, H100": ("Meta-Llama-3-70B", "H100 SXM5 80GB", {}),
    "70B, FSDP on eight": ("Meta-Llama-3-70B", "H100 SXM5 80GB", FSDP_8),
    "405B, all weights, H100": ("Meta-Llama-3.1-405B", "H100 SXM5 80GB", {}),
    "671B, all weights, H100": ("DeepSeek-V3", "H100 SXM5 80GB", {}),
    "30B of experts, LoRA, 48 GB": ("Qwen3-30B-A3B", "RTX A6000", {**LORA}),
    "GPT-2 XL": ("gpt2-xl", "Tesla T4", {"training.sequence_length": 1024}),
    "BERT large": (
        "bert-large-uncased",
        "Tesla T4",
        {"training.sequence_length": 512, "training.micro_batch_size": 128},
    ),
    "Mamba": ("state-spaces/mamba-2.8b-hf", "GeForce RTX 4090", {}),
    "70B served, 24 GB": ("Meta-Llama-3-70B", "GeForce RTX 4090", SERVED),
    "70B in vLLM, H100": ("Meta-Llama-3-70B", "H100 SXM5 80GB", VLLM),
    "405B in vLLM, H100": ("Meta-Llama-3.1-405B", "H100 SXM5 80GB", VLLM),
    "671B in vLLM, H100": ("DeepSeek-V3", "H100 SXM5 80GB", VLLM),
    "70B in llama.cpp, 24 GB": ("Meta-Llama-3-70B", "GeForce RTX 4090", LLAMA_CPP),
    "405B in llama.cpp, 24 GB": ("Meta-Llama-3.1-405B", "GeForce RTX 4090", LLAMA_CPP),
}


def scenario(name: str) -> Scenario:
    model, device, settings = SETUPS[name]
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model(model).model)
    made = replace(made, "device", CATALOG.device(device).device())
    for path, value in settings.items():
        made = replace(made, path, value)
    return made


@pytest.fixture(scope="module", params=SETUPS)
def found(request: pytest.FixtureRequest) -> Ways:
    asked = scenario(request.param)
    return ways_to_fit(asked, of_a_sort(CATALOG.devices, asked))


def test_there_is_a_way_and_it_does_what_it_says(found: Ways) -> None:
    assert found.estimate is not None
    assert not surely_fits(found.estimate)
    assert found.all[0].kind == "fits"
    for way in found.all:
        assert not [issue for issue in validate(way.scenario) if issue.severity == "error"], way.key
        said = estimate(way.scenario)
        assert (said.verdict.kind, said.peak_bytes) == (way.kind, way.estimate.peak_bytes), way.key
        assert said.verdict.headroom_bytes > found.estimate.verdict.headroom_bytes, way.key
        shared = [get(way.scenario, path) for path in DEGREES]
        used = 1
        for degree in shared:
            used *= degree
        assert used in (way.scenario.device.count, 1), way.key
        assert get(way.scenario, DEGREES[1]) <= MACHINE, "tensor parallel ranks stay in one machine"


def test_what_fits_comes_first_and_the_gentlest_of_it(found: Ways) -> None:
    orders = [way.order for way in found.all]
    assert orders == sorted(orders)
    fitting = [way for way in found.all if way.kind == "fits"]
    for pair in found.pairs:
        if pair.kind == "fits":
            first, second = pair.parts
            assert not surely_fits(first.estimate), "a pair is named where one of its changes is not enough"
            alone = [way for way in found.singles if way.key == second.key]
            assert not any(surely_fits(way.estimate) for way in alone), pair.key
    lessening = [way for way in fitting if way.disturbance is Disturbance.LESS]
    assert fitting[-len(lessening) :] == lessening or not lessening


def test_texts_are_whole(found: Ways) -> None:
    for way in found.all:
        for part in way.parts or (way,):
            assert "{" not in part.title.text(English())
        assert all("{" not in said.text(English()) and said.text(English()) for said in way.costs)


def by_devices(ways: Ways) -> list[Way]:
    paths = [{one.path for one in way.changes} for way in ways.singles]
    return [way for way, changed in zip(ways.singles, paths, strict=True) if "device.count" in changed]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("70B, all weights, H100", "16 GPUs, TP 8 × PP 2"),
        ("405B, all weights, H100", "56 GPUs, TP 8 × PP 7"),
        ("671B, all weights, H100", "80 GPUs, TP 8 × PP 10"),
        ("405B in vLLM, H100", "16 GPUs, TP 8 × PP 2"),
        ("671B in vLLM, H100", "24 GPUs, TP 8 × PP 3"),
        ("70B served, 24 GB", "7 GPUs, layers in turn"),
        ("405B in llama.cpp, 24 GB", "48 GPUs, layers in turn"),
    ],
)
def test_as_few_devices_as_will_do(name: str, title: str) -> None:
    asked = scenario(name)
    ways = ways_to_fit(asked)
    fitting = [way for way in by_devices(ways) if way.kind == "fits"]
    (way,) = [way for way in fitting if way.title.text(English()) == title]
    fewest = min(one.scenario.device.count for one in fitting)
    assert all(one.scenario.device.count <= 2 * fewest for one in fitting)
    path = "parallelism.pipeline"
    degree: int = get(way.scenario, path)
    count = way.scenario.device.count
    fewer = count - (MACHINE if count > MACHINE else 1)
    less = replace(replace(way.scenario, path, fewer * degree // count), "device.count", fewer)
    assert not surely_fits(estimate(less))


def test_many_devices_weigh_more_than_few() -> None:
    ways = ways_to_fit(scenario("8B, all weights, 24 GB"))
    by_count = sorted(by_devices(ways), key=lambda way: way.scenario.device.count)
    assert by_count[0].scenario.device.count < by_count[-1].scenario.device.count
    assert by_count[0].weight < by_count[-1].weight
    said = [said.text(English()) for said in by_count[-1].costs]
    assert "More GPUs: several machines with a fast network." in said


def test_the_shorter_the_harder() -> None:
    asked = scenario("Mamba")
    asked = replace(asked, "training.micro_batch_size", 4)
    (way,) = [one for one in ways_to_fit(asked).singles if one.key.startswith("training.sequence_length")]
    assert way.weight == (4096 // way.changes[0].new).bit_length() - 1 > 0
