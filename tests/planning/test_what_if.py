"""Sweeps, heat maps, the ladder, devices: each figure is the estimator's own."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.result import COMPONENTS
from memgui.planning.ask import Asker, fits
from memgui.planning.changes import apply, differences
from memgui.planning.devices import fewest_devices, of_a_sort, smallest_device
from memgui.planning.grid import Edge, heat_map
from memgui.planning.ladder import climbed, lengths
from memgui.planning.serving import best_weight_format
from memgui.planning.solve import solve
from memgui.planning.sweep import Scale, as_csv, crossings, points, spread, sweepable, usual_range
from memgui.spec import Device, Scenario, ScenarioError, get, replace
from memgui.spec.fields import BY_PATH, Kind
from tests.planning.fakes import MODEL, needing

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
SERVING = replace(FIRST, "task", "inference")
GPT2 = replace(replace(FIRST, "model", CATALOG.model("gpt2").model), "training.sequence_length", 512)
LENGTH = "training.sequence_length"
BATCH = "training.micro_batch_size"


def test_a_point_is_the_estimate_at_its_value() -> None:
    values = spread(LENGTH, 256, 16384, 9, Scale.LOG)
    assert values[0] == 256
    assert values[-1] == 16384
    found = list(points(FIRST, LENGTH, values))
    assert [one.value for one in found] == list(values)
    for one in found:
        there = estimate(replace(FIRST, LENGTH, one.value))
        assert (one.peak_bytes, one.low_bytes, one.high_bytes) == (
            there.peak_bytes,
            there.low_bytes,
            there.high_bytes,
        )
        assert one.components == tuple(node.bytes for node in there.components)
        assert sum(one.components) == one.peak_bytes
        assert (one.kind, one.capacity_bytes) == (there.verdict.kind, there.verdict.capacity_bytes)


def test_a_value_that_is_not_allowed_is_an_unknown_point() -> None:
    known, unknown = points(GPT2, LENGTH, (1024, 1025))
    assert known.issue is None
    assert (unknown.kind, unknown.peak_bytes) == ("unknown", 0)
    assert unknown.issue is not None
    rows = list(csv.reader(io.StringIO(as_csv(LENGTH, (known, unknown)))))
    assert rows[0] == [
        LENGTH,
        "peak_bytes",
        "low_bytes",
        "high_bytes",
        "capacity_bytes",
        "verdict",
        *COMPONENTS,
    ]
    assert rows[1][0:2] == ["1024", str(known.peak_bytes)]
    assert rows[2] == ["1025", "", "", "", "", "unknown", *[""] * 8]


def test_points_come_one_by_one() -> None:
    ask = Asker()
    sweep = points(FIRST, LENGTH, (1, 2, 3), ask)
    assert ask.calls == 0
    next(sweep)
    assert ask.calls == 1


@given(st.integers(1, 10**9 - 1), st.integers(1, 10**9), st.integers(2, 300), st.sampled_from(Scale))
def test_values_grow_from_end_to_end(low: int, more: int, count: int, scale: Scale) -> None:
    high = min(low + more, 10**9)
    values = spread(LENGTH, low, high, count, scale)
    assert values[0] == low
    assert values[-1] == high
    assert list(values) == sorted(set(values))
    assert len(values) <= count
    assert all(isinstance(value, int) for value in values)


def test_a_curve_goes_by_values_that_kernels_like_and_meets_its_crossing() -> None:
    """Beside multiples of 8 T5 copies a bias of gigabytes: points at any length would jump up and down."""
    t5 = replace(FIRST, "model", CATALOG.model("google-t5/t5-base").model)
    values = spread(LENGTH, 1024, 16384, 200, Scale.LOG)
    assert len(values) > 180
    assert all(value % 8 == 0 for value in values)
    found = [one.peak_bytes for one in points(t5, LENGTH, values)]
    assert found == sorted(found)
    [crossing] = crossings(t5, LENGTH, [t5.device])
    largest, limit = crossing.solution.largest, t5.device.memory_bytes
    assert largest is not None
    assert max(value for value, need in zip(values, found, strict=True) if need <= limit) <= largest
    assert min(value for value, need in zip(values, found, strict=True) if need > limit) > largest
    assert spread(LENGTH, 4097, 4101, 9) == (4097, 4098, 4099, 4100, 4101)


@pytest.mark.parametrize(
    ("low", "high", "count"), [(10, 10, 5), (20, 10, 5), (1, 10, 1), (0, 10, 5), (1, 10, 10**6)]
)
def test_a_range_that_is_none_is_refused(low: int, high: int, count: int) -> None:
    with pytest.raises(ScenarioError) as caught:
        spread(LENGTH, low, high, count)
    assert caught.value.issue.paths == (LENGTH,)


def test_a_ratio_is_swept_too() -> None:
    values = spread("training.dropout", 0.0, 0.5, 3)
    assert values == (0.0, 0.25, 0.5)
    assert [one.issue for one in points(FIRST, "training.dropout", values)] == [None] * 3


def test_every_sweepable_field_has_a_range_to_start_with() -> None:
    for scenario in (FIRST, SERVING, GPT2):
        for field in sweepable(scenario):
            low, high = usual_range(scenario, field.path)
            assert low < high, field.path
            values = spread(field.path, low, high, 5)
            assert len(values) >= 2, field.path
            assert all(isinstance(value, float) == (field.kind is Kind.RATIO) for value in values)


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "t5-base", "whisper-large-v3", "vit-base-patch16-224"])
def test_every_field_that_is_offered_has_a_value_that_can_be_computed(name: str) -> None:
    """Encoder and decoder of T5 and Whisper must be of one width: neither's is offered alone."""
    model = CATALOG.model(name).model
    scenario = replace(FIRST, "model", model)
    scenario = replace(scenario, LENGTH, min(512, model.max_position_embeddings or 512) // 2)
    offered = {field.path for field in sweepable(scenario)}
    two_stacks = model.num_encoder_layers > 0
    assert ("model.intermediate_size" in offered) is not two_stacks
    assert "model.hidden_size" in offered
    for path in offered:
        low, high = usual_range(scenario, path)
        scale = Scale.LINEAR if BY_PATH[path].kind is Kind.RATIO else Scale.LOG
        others = (value for value in spread(path, low, high, 24, scale) if value != get(scenario, path))
        assert any(one.issue is None and one.peak_bytes for one in points(scenario, path, others)), path


def test_experts_are_offered_where_they_have_a_width() -> None:
    """Else 29,000 of them fit, each of no weight."""
    assert "model.num_experts" not in {field.path for field in sweepable(FIRST)}
    mixtral = replace(FIRST, "model", CATALOG.model("Mixtral-8x7B-v0.1").model)
    assert "model.num_experts" in {field.path for field in sweepable(mixtral)}


@pytest.mark.parametrize(("name", "high"), [("Llama-3.1-8B", 100.0), ("gemma-2-9b", 200.0)])
def test_a_cap_is_swept_over_caps_that_occur(name: str, high: float) -> None:
    """Up to four times the present one, not up to the thousand millions that are allowed."""
    scenario = replace(FIRST, "model", CATALOG.model(name).model)
    assert usual_range(scenario, "model.attn_logit_softcapping") == (0.0, high)


def test_crossings_are_the_solvers() -> None:
    devices = [CATALOG.device(name).device() for name in ("H100 SXM5 80GB", "H200 SXM 141GB")]
    found = list(crossings(FIRST, LENGTH, devices))
    assert [one.device for one in found] == devices
    on_h200 = replace(replace(FIRST, "device", devices[1]), LENGTH, 1)
    assert found[1].solution.largest == solve(on_h200, LENGTH).largest
    assert found[0].solution.largest == solve(FIRST, LENGTH).largest


def test_a_cell_is_the_estimate_of_its_pair() -> None:
    grid = heat_map(FIRST, LENGTH, (512, 4096, 8192), BATCH, (1, 2))
    for y, row in zip(grid.ys, grid.rows, strict=True):
        for x, cell in zip(grid.xs, row, strict=True):
            there = estimate(replace(replace(FIRST, LENGTH, x), BATCH, y))
            assert (cell.peak_bytes, cell.kind, cell.fits) == (
                there.peak_bytes,
                there.verdict.kind,
                fits(there),
            )
    rows = list(csv.reader(io.StringIO(grid.as_csv())))
    assert rows[0][1:] == ["512", "4096", "8192"]
    assert rows[2] == ["2", *(str(cell.peak_bytes) for cell in grid.rows[1])]


def test_the_boundary_is_a_stair_between_what_fits_and_what_does_not() -> None:
    scenario = Scenario(model=MODEL, device=Device(name="d", memory_bytes=6))
    ask = Asker(estimate=needing(lambda one: one.training.sequence_length * one.training.micro_batch_size))
    grid = heat_map(scenario, LENGTH, (1, 2, 3, 4), BATCH, (1, 2, 3), ask)
    # 1 2 3 4 | 2 4 6 (8) | 3 6 (9) (12)
    assert set(grid.boundary()) == {Edge(3, 1, 3, 2), Edge(2, 2, 2, 3), Edge(3, 1, 4, 1), Edge(2, 2, 3, 2)}


def test_the_ladder_climbs_to_the_models_limit() -> None:
    rungs = climbed(SERVING)
    assert [one.tokens for one in rungs if not one.is_largest] == sorted(
        {4608, *(4096 << step for step in range(6))}
    )
    for one in rungs:
        assert one.answer.estimate is not None
        there = apply(SERVING, one.changes)
        assert one.answer.scenario == there
        assert one.answer.estimate.peak_bytes == estimate(there).peak_bytes
        assert there.inference.prompt_tokens + there.inference.generated_tokens == one.tokens
    assert [one.tokens for one in rungs if one.is_present] == [4608]


def test_the_longest_that_fits_stands_at_its_place() -> None:
    small = replace(SERVING, "device.memory_bytes", 20 * 2**30)
    rungs = climbed(small)
    largest = next(one for one in rungs if one.is_largest)
    solution = solve(small, "inference.prompt_tokens")
    assert solution.largest is not None
    assert largest.tokens == solution.largest + 512
    place = rungs.index(largest)
    assert all(one.answer.fits for one in rungs[: place + 1])
    assert not any(one.answer.fits for one in rungs[place + 1 :])


def test_lengths_end_where_the_model_ends() -> None:
    assert lengths(GPT2) == (512, 1024)
    assert lengths(FIRST)[-1] == 131072
    endless = replace(FIRST, "model.max_position_embeddings", 0)
    assert lengths(endless, 3) == (4096, 2**18, 2**19, 2**20)


def test_the_smallest_device_is_the_first_that_fits() -> None:
    entries = of_a_sort(CATALOG.devices, FIRST)
    devices = [entry.device() for entry in entries]
    assert {entry.vendor for entry in entries} == {"NVIDIA"}
    assert "laptop" not in {entry.kind for entry in entries}
    found = smallest_device(FIRST, devices)
    assert found is not None
    assert found.answer.fits
    for device in devices:
        if device.memory_bytes < found.device.memory_bytes:
            assert not fits(estimate(replace(FIRST, "device", device)))
    assert apply(FIRST, found.changes).device == found.device


def test_where_no_device_is_enough_there_is_none() -> None:
    assert smallest_device(replace(FIRST, BATCH, 1000), [FIRST.device]) is None


def test_devices_are_added_until_the_shards_fit() -> None:
    scenario = Scenario(model=MODEL, device=Device(name="d", memory_bytes=100))
    ask = Asker(estimate=needing(lambda one: 350 // one.parallelism.data))
    found = fewest_devices(scenario, (), "parallelism.data", ask)
    assert found is not None
    assert (found.device.count, apply(scenario, found.changes).parallelism.data) == (4, 4)


def test_devices_that_stand_idle_are_taken_first() -> None:
    scenario = Scenario(model=MODEL, device=Device(name="d", memory_bytes=100, count=8))
    ask = Asker(estimate=needing(lambda one: 350 // one.parallelism.data))
    found = fewest_devices(scenario, (), "parallelism.data", ask)
    assert found is not None
    assert [(one.path, one.new) for one in found.changes] == [("parallelism.data", 8)]


def test_differences_lead_from_one_to_the_other() -> None:
    other = replace(replace(FIRST, LENGTH, 8192), "training.optimizer", "sgd")
    changes = differences(FIRST, other)
    assert [(one.path, one.old, one.new) for one in changes] == [
        (LENGTH, 4096, 8192),
        ("training.optimizer", "adamw", "sgd"),
    ]
    assert apply(FIRST, changes) == other
    assert differences(FIRST, replace(FIRST, "inference.batch_size", 9)) == ()


@pytest.mark.parametrize(("version", "enough"), [("0.6", "A100 PCIe 40GB"), ("0.11", "Tesla V100 SXM2 32GB")])
def test_a_device_that_the_program_refuses_is_not_offered(version: str, enough: str) -> None:
    """vLLM 0.6 refuses bf16 below compute capability 8.0; fp16 takes as much and runs there."""
    serving = replace(replace(FIRST, "task", "inference"), "inference.engine", "vllm")
    serving = replace(serving, "inference.vllm_version", version)
    devices = [CATALOG.device(name).device() for name in ("Tesla V100 SXM2 32GB", "A100 PCIe 40GB")]
    found = smallest_device(serving, devices)
    assert found is not None
    assert found.device.name == enough
    there = replace(serving, "device", devices[0])
    best = best_weight_format(there)
    assert best is not None
    assert best.change.new == ("fp16" if version == "0.6" else "bf16")
    half = smallest_device(replace(serving, "inference.weight_format", "fp16"), devices)
    assert half is not None
    assert half.device == devices[0]
