"""The largest value that fits: exact, proven by the next, bounded by what a set-up allows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import Asker, fits
from memgui.planning.solve import Bound, solve
from memgui.spec import Device, Scenario, ScenarioError, replace
from tests.planning.fakes import MODEL, needing

FIRST = Catalog().first_scenario()
LORA = replace(FIRST, "training.method", "lora")
SERVING = replace(FIRST, "task", "inference")
GPT2 = replace(replace(FIRST, "model", Catalog().model("gpt2").model), "training.sequence_length", 512)
PACKING = replace(SERVING, "inference.kv_cache_format", "quantized_int4")


def _on(name: str, device: str = "RTX 4090", *, serving: bool = False) -> Scenario:
    scenario = replace(SERVING if serving else FIRST, "model", Catalog().model(name).model)
    return replace(scenario, "device", Catalog().device(device).device())


SMALL = Scenario(model=MODEL, device=Device(name="d", memory_bytes=1000))


@pytest.mark.parametrize(
    ("scenario", "path"),
    [
        (FIRST, "training.sequence_length"),
        (FIRST, "training.micro_batch_size"),
        (FIRST, "model.num_hidden_layers"),
        (FIRST, "model.vocab_size"),
        (LORA, "training.lora.rank"),
        (LORA, "training.sequence_length"),
        (SERVING, "inference.prompt_tokens"),
        (SERVING, "inference.generated_tokens"),
        (SERVING, "inference.batch_size"),
        (GPT2, "training.micro_batch_size"),
    ],
)
def test_the_largest_fits_and_the_next_does_not(scenario: Scenario, path: str) -> None:
    solution = solve(scenario, path)
    assert solution.bound is Bound.MEMORY
    assert solution.largest is not None
    assert solution.next == solution.largest + 1
    last, beyond = (estimate(replace(scenario, path, value)) for value in (solution.largest, solution.next))
    assert fits(last)
    assert not fits(beyond)
    assert (last.peak_bytes, beyond.peak_bytes) == (solution.peak_bytes, solution.next_peak_bytes)
    assert last.peak_bytes <= scenario.device.memory_bytes < beyond.peak_bytes


@pytest.mark.parametrize(
    ("scenario", "path"),
    [
        (FIRST, "training.sequence_length"),
        (_on("google-t5/t5-base"), "training.sequence_length"),
        (_on("google/gemma-3-1b-it", serving=True), "inference.prompt_tokens"),
        (replace(PACKING, "device.memory_bytes", 25 * 10**9), "inference.generated_tokens"),
    ],
)
def test_the_answer_does_not_hang_on_the_present_value(scenario: Scenario, path: str) -> None:
    found = {
        solve(replace(scenario, path, present), path).largest for present in (1, 777, 4400, 4600, 100_000)
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("name", "serving"),
    [
        ("google-t5/t5-base", False),  # a bias of relative positions is copied at odd lengths
        ("google/flan-t5-xxl", True),
        ("google/gemma-3-1b-it", True),  # masks beyond a window
        ("google/gemma-3-270m", False),
        ("google/gemma-3n-E4B-it", True),
        ("CohereLabs/c4ai-command-r7b-12-2024", True),
        ("answerdotai/ModernBERT-base", False),
        ("google/recurrentgemma-2b", True),
        ("mistralai/Mistral-7B-v0.1", True),
        ("microsoft/Phi-3-mini-4k-instruct", True),  # a window of 2,047
        ("bigcode/starcoder2-3b", True),
        ("tiiuae/Falcon-H1-0.5B-Instruct", False),  # chunks of a scan
        ("Qwen/Qwen3.5-27B", True),
    ],
)
def test_nothing_larger_fits_between_or_beyond(name: str, serving: bool) -> None:
    """Multiples of 8 need gigabytes less than what lies between them."""
    path = "inference.prompt_tokens" if serving else "training.sequence_length"
    for device in ("RTX 4090", "H100 SXM5 80GB"):
        scenario = _on(name, device, serving=serving)
        solution = solve(scenario, path)
        low = solution.largest or 0
        beyond = {low + one for one in (*range(1, 18), 33, 63, 64, 65)}
        for step in (8, 64, 512, max(low // 300, 1) * 8):
            beyond |= {(low // step + one) * step for one in range(1, 40)}
        windows = (scenario.model.sliding_window or 0, scenario.model.attention_chunk_size or 0)
        beyond |= {one for one in windows if one > low}
        ask = Asker()
        assert not [one for one in sorted(beyond) if ask(replace(scenario, path, one)).fits]
        assert not low or ask(replace(scenario, path, low)).fits
        assert solution.next == low + 1


def test_few_questions_are_enough() -> None:
    for scenario, path in (
        (FIRST, "training.sequence_length"),
        (FIRST, "training.micro_batch_size"),
        (SERVING, "inference.prompt_tokens"),
        (_on("google-t5/t5-base"), "training.sequence_length"),
        (_on("google/gemma-3-1b-it", serving=True), "inference.prompt_tokens"),
    ):
        assert solve(scenario, path).calls <= 40


@given(st.integers(1, 10**9 - 1), st.integers(1, 50), st.integers(0, 10**6), st.integers(1, 10**9))
@settings(max_examples=60, deadline=None)
def test_any_growing_need_is_solved_exactly(limit: int, slope: int, fixed: int, present: int) -> None:
    scenario = replace(replace(SMALL, "device.memory_bytes", limit), "training.sequence_length", present)
    ask = Asker(estimate=needing(lambda one: fixed + slope * one.training.sequence_length))
    solution = solve(scenario, "training.sequence_length", ask)
    expected = (limit - fixed) // slope
    if expected < 1:
        assert solution.largest is None
        assert (solution.next, solution.next_peak_bytes) == (1, fixed + slope)
    else:
        assert (solution.largest, solution.next) == (expected, expected + 1)
    assert solution.calls <= 90


@given(st.randoms(use_true_random=False), st.integers(1, 99), st.integers(1, 200))
@settings(max_examples=50, deadline=None)
def test_any_need_at_all_gives_a_value_that_fits_before_one_that_does_not(
    chance: random.Random, limit: int, present: int
) -> None:
    table = [chance.randint(0, 100) for _ in range(200)]
    scenario = replace(replace(SMALL, "device.memory_bytes", limit), "training.sequence_length", present)

    def need(length: int) -> int:
        return table[length - 1] if length <= 200 else 101

    ask = Asker(estimate=needing(lambda one: need(one.training.sequence_length)))
    solution = solve(scenario, "training.sequence_length", ask)
    if solution.largest is None:
        assert solution.next == 1
        assert need(1) > limit
    else:
        assert solution.next == solution.largest + 1
        assert need(solution.largest) <= limit < need(solution.next)
        assert need(present) > limit or solution.largest >= present


def test_a_dip_is_crossed() -> None:
    """A kernel that pads to 64 needs less at a multiple of it."""
    ask = Asker(
        estimate=needing(
            lambda one: 1000 + one.training.sequence_length - 200 * (one.training.sequence_length % 64 == 0)
        )
    )
    solution = solve(replace(SMALL, "device.memory_bytes", 1063), "training.sequence_length", ask)
    assert solution.largest == 256


def test_a_model_without_further_positions_is_the_bound() -> None:
    solution = solve(replace(GPT2, "device.memory_bytes", 2**42), "training.sequence_length")
    assert (solution.largest, solution.next, solution.bound) == (1024, None, Bound.SCENARIO)
    assert solution.issue is not None
    assert solution.issue.code == "beyond_longest"


def test_the_fields_own_end_is_the_bound() -> None:
    solution = solve(SMALL, "training.gradient_accumulation_steps", Asker(estimate=needing(lambda one: 1)))
    assert (solution.largest, solution.next, solution.bound) == (1_000_000, None, Bound.FIELD)


def test_values_between_allowed_ones_are_passed_over() -> None:
    heads = solve(FIRST, "model.num_attention_heads")
    assert (heads.largest, heads.next) == (32, 40)
    shared = solve(FIRST, "model.num_key_value_heads")
    assert (shared.largest, shared.next) == (8, 16)
    roomy = solve(replace(FIRST, "device.memory_bytes", 2**40), "model.num_key_value_heads")
    assert (roomy.largest, roomy.next, roomy.bound) == (32, None, Bound.SCENARIO)


def test_where_nothing_fits_the_least_value_is_the_proof() -> None:
    solution = solve(replace(FIRST, "device.memory_bytes", 2**30), "training.sequence_length")
    assert (solution.largest, solution.peak_bytes, solution.next) == (None, None, 1)
    assert solution.next_peak_bytes == estimate(replace(FIRST, "training.sequence_length", 1)).peak_bytes


def test_a_range_that_crosses_the_limit_is_counted_by_its_usual_figure() -> None:
    ask = Asker(estimate=needing(lambda one: 10 * one.training.sequence_length, loose=55))
    solution = solve(SMALL, "training.sequence_length", ask)
    assert solution.largest == 100
    assert solution.estimate is not None
    assert solution.estimate.verdict.kind == "tight"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("training.precision", "no_whole_number"),
        ("training.dropout", "no_whole_number"),
        ("training.lora.rank", "no_effect"),
    ],
)
def test_what_has_no_largest_value_is_refused(path: str, code: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        solve(FIRST, path)
    assert caught.value.issue.code == code
    assert caught.value.issue.paths == (path,)


def test_an_unknown_field_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        solve(FIRST, "training.nonsense")


def test_work_that_nobody_waits_for_ends_at_the_next_question() -> None:
    class Stop(Exception):
        pass

    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > 5:
            raise Stop

    with pytest.raises(Stop):
        solve(FIRST, "training.sequence_length", Asker(check))
    assert asked == 6
