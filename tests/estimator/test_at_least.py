"""What is known before the peak is looked for is never more than what the peak turns out to be."""

import pytest

from memgui.catalog import Catalog
from memgui.estimator import Draft, at_least, estimate
from memgui.spec import Scenario, replace

CATALOG = Catalog()
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"training.activation_checkpointing": "full"},
    {"training.activation_checkpointing": "selective_op", "training.gradient_accumulation_steps": 4},
    {"training.method": "lora", "training.base_format": "nf4"},
    {"training.optimizer": "lomo", "training.precision": "bf16_mixed"},
    {"device.count": 4, "parallelism.data": 4, "parallelism.sharding": "zero1"},
    {"device.count": 4, "parallelism.data": 4, "parallelism.sharding": "zero3"},
    {"device.count": 2, "parallelism.tensor": 2},
    {"device.count": 2, "parallelism.pipeline": 2, "training.gradient_accumulation_steps": 4},
    {"method": "gpt_article"},
    {"task": "inference"},
    {"task": "inference", "device.count": 2, "parallelism.pipeline": 2},
    {"task": "inference", "inference.engine": "vllm"},
)


def scenario(model: str, settings: dict[str, object]) -> Scenario:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model(model).model)
    for path, value in settings.items():
        made = replace(made, path, value)
    return made


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("model", ["Llama-3.1-8B", "gemma-3-27b-it", "Mixtral-8x7B-v0.1"])
def test_the_least_is_not_more_than_the_range(model: str, settings: dict[str, object]) -> None:
    made = scenario(model, settings)
    least, found = at_least(made), estimate(made)
    assert 0 <= least <= found.low_bytes or found.verdict.kind == "unknown"
    draft = Draft(made)
    assert max((sum(floor.values()) for floor in draft.floors), default=0) <= draft.at_least()
    again = draft.estimate()
    assert (again.verdict, again.low_bytes, again.ranks) == (found.verdict, found.low_bytes, found.ranks)
    assert draft.first_peak <= found.peak_bytes or found.verdict.kind == "unknown"
    other = Draft(made, backward=True)
    assert other.first_peak <= found.peak_bytes or found.verdict.kind == "unknown"
    assert other.at_least() == draft.at_least()
    assert other.estimate().ranks == found.ranks
    if draft.first_peak:
        assert other.peaks_at(max(draft.first_peak, other.first_peak))
        assert not other.peaks_at(found.peak_bytes + 1)
    if least:
        small = replace(made, "device.memory_bytes", least)
        assert estimate(small).verdict.kind in ("does_not_fit", "unknown")


@pytest.mark.parametrize("micro_batch", [1, 64])
def test_it_sees_states_and_what_is_kept_for_backward(micro_batch: int) -> None:
    made = scenario("Llama-3.1-8B", {"training.micro_batch_size": micro_batch})
    assert max(sum(floor.values()) for floor in Draft(made).floors) > estimate(made).low_bytes * 3 // 4


@pytest.mark.parametrize("settings", SETTINGS[:8], ids=str)
def test_all_but_the_blocks_is_in_it(settings: dict[str, object]) -> None:
    made = scenario("Llama-3.1-8B", settings)
    assert at_least(made) > estimate(made).low_bytes * 97 // 100
