"""How far a set-up goes, against direct questions to the estimator."""

from __future__ import annotations

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.changes import apply
from memgui.planning.devices import a_few, of_a_sort
from memgui.planning.reach import Furthest, reach
from memgui.spec import Device, Scenario, replace

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
SMALL = replace(replace(FIRST, "training.sequence_length", 512), "training.activation_checkpointing", "full")
SERVING = replace(FIRST, "task", "inference")
DEVICES = [entry.device() for entry in of_a_sort(CATALOG.devices, FIRST)]


@pytest.mark.parametrize("scenario", [SMALL, SERVING], ids=["training", "inference"])
def test_the_furthest_fits_and_the_next_does_not(scenario: Scenario) -> None:
    found = reach(scenario, DEVICES)
    for far in (found.length, found.batch):
        assert far is not None
        there = estimate(apply(scenario, (far.change,)))
        assert there.verdict.headroom_bytes >= 0
        assert far.answer.estimate is not None
        assert far.answer.estimate.peak_bytes == there.peak_bytes
        if far.next is not None:
            beyond = estimate(replace(scenario, far.change.path, far.next))
            assert beyond.verdict.headroom_bytes < 0
            assert far.may_fit is (beyond.verdict.kind == "tight")


def test_a_sequence_goes_no_further_than_the_model() -> None:
    card = replace(SMALL, "device.memory_bytes", 2**50)
    length = reach(card, ()).length
    assert length == Furthest(length.change, length.answer, None, True) if length is not None else False
    assert length is not None
    assert length.value == card.model.max_position_embeddings
    served = reach(replace(SERVING, "device.memory_bytes", 2**50), ()).length
    assert served is not None
    assert served.value == SERVING.model.max_position_embeddings - SERVING.inference.generated_tokens


def test_a_longer_sequence_than_the_models_is_the_end_where_it_is_the_present_one() -> None:
    longer = replace(replace(SMALL, "device.memory_bytes", 2**50), "training.sequence_length", 200_000)
    length = reach(longer, ()).length
    assert length is not None
    assert length.value == 200_000
    assert not length.is_model_limit


def test_the_smallest_device_is_enough_and_no_smaller_one_is() -> None:
    found = reach(SMALL, DEVICES).device
    assert found is not None
    assert estimate(apply(SMALL, found.changes)).verdict.headroom_bytes >= 0
    for device in DEVICES:
        if device.memory_bytes < found.device.memory_bytes:
            there = replace(replace(SMALL, "device.memory_bytes", device.memory_bytes), "device.name", "x")
            there = replace(there, "device.compute_capability", device.compute_capability)
            assert estimate(there).verdict.headroom_bytes < 0


def test_what_never_fits_goes_nowhere() -> None:
    tiny = Device(name="tiny", memory_bytes=2**20, compute_capability="9.0")
    found = reach(replace(FIRST, "device", tiny), (tiny,))
    assert (found.length, found.batch, found.device) == (None, None, None)


def test_a_few_devices_are_of_as_many_sizes() -> None:
    found = a_few(CATALOG.devices, FIRST)
    assert found[0] == FIRST.device
    sizes = [round(one.memory_bytes / 2**30) for one in found]
    assert len(set(sizes)) == len(sizes) == 8
    assert sizes[1:] == sorted(sizes[1:])
    assert min(sizes) < sizes[0] < max(sizes)
    own = replace(FIRST, "device", Device(name="mine", memory_bytes=2**34, count=4, compute_capability="8.6"))
    others = a_few(CATALOG.devices, own)
    assert others[0] == own.device
    assert {one.count for one in others} == {4}
