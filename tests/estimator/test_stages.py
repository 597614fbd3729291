"""Models that Transformers spreads over devices, held to published sums and to the whole."""

from __future__ import annotations

import sys

import pytest

from memgui.estimator import estimate
from memgui.estimator.estimate import _runs
from memgui.estimator.result import Estimate
from memgui.spec import replace
from tests.estimator.engines.serving import GIB, scenario, served

QWEN = "Qwen/Qwen2.5-72B"
SPLIT = {
    "attention": "flash_attention_2",
    "transformers_version": "4.45",
    "device__compute_capability": "8.0",
}


def spread(name: str, devices: int, way: str = "pipeline", **settings: object) -> Estimate:
    layout = {"device__count": devices, f"parallelism__{way}": devices}
    return served(name, "transformers", **layout, **settings)


def allocated(answer: Estimate) -> int:
    """The sum over devices of what is allocated at each one's peak."""
    beyond = answer.peak_bytes - answer.allocated_bytes
    return sum(rank.peak_bytes - beyond for rank in answer.ranks)


# Qwen2.5's speed benchmark: devices, prompt, GiB summed over A100s with device_map="auto"
@pytest.mark.parametrize(
    ("devices", "prompt", "printed"),
    [(2, 1, 136.2), (2, 6144, 140.0), (3, 14336, 149.14), (3, 30720, 164.79)],
)
def test_layers_in_turn_sum_to_the_published_table(devices: int, prompt: int, printed: float) -> None:
    answer = spread(QWEN, devices, prompt_tokens=prompt, generated_tokens=2047, **SPLIT)
    assert len(answer.ranks) == devices
    assert allocated(answer) / GIB == pytest.approx(printed, rel=0.006)


def test_devices_share_out_weights_and_caches() -> None:
    """Every layer lies somewhere, once: the parts add up to the whole."""
    made = scenario(QWEN, "transformers", prompt_tokens=64, generated_tokens=1)
    whole = estimate(made).component("weights").bytes
    two = estimate(replace(replace(made, "device.count", 2), "parallelism.pipeline", 2))
    fullest = two.component("weights").bytes
    assert whole / 2 < fullest < whole * 0.56
    assert two.extra["kv_cache_bytes"] == estimate(made).extra["kv_cache_bytes"]
    assert two.parameters == estimate(made).parameters
    assert two.peak_bytes == max(rank.peak_bytes for rank in two.ranks)
    assert "of 80" in two.assumptions[0].text
    assert min(rank.peak_bytes for rank in two.ranks) > whole * 0.44


@pytest.mark.parametrize("way", ["pipeline", "tensor"])
def test_weights_of_8_bytes_are_shared_out_as_others_are(way: str) -> None:
    narrow, wide = (
        spread("Qwen3-0.6B", 2, way, prompt_tokens=8, generated_tokens=1, weight_format=one)
        for one in ("fp32", "fp64")
    )
    assert wide.component("weights").bytes == pytest.approx(2 * narrow.component("weights").bytes, rel=1e-4)


def test_a_device_without_layers_holds_nothing_of_the_model() -> None:
    answer = spread("openai-community/gpt2", 16, prompt_tokens=8, generated_tokens=1)
    assert len(answer.ranks) == 16
    assert answer.component("weights").bytes < 124_439_808 * 2


# DeepSpeed's AutoTP (V100): GiB per device after loading
@pytest.mark.parametrize(("degree", "printed"), [(2, 12.23), (4, 6.36)])
def test_ranks_hold_a_part_of_the_layers_and_all_of_the_embedding(degree: int, printed: float) -> None:
    answer = spread("facebook/opt-13b", degree, "tensor", weight_format="fp16", prompt_tokens=1)
    assert answer.component("weights").bytes / GIB == pytest.approx(printed, rel=1e-3)
    assert len(answer.ranks) == degree


def test_a_rank_has_a_part_of_the_head_and_of_the_cache() -> None:
    settings = {"prompt_tokens": 1024, "generated_tokens": 8}
    whole = served(QWEN, "transformers", **settings)
    rank = spread(QWEN, 4, "tensor", **settings)
    parts = whole.parameters.by_part
    quarter = parts["attention"] + parts["mlp"] + parts["lm_head"]
    lying = parts["embedding"] + parts["norm"]
    assert rank.component("weights").bytes == pytest.approx(2 * (quarter // 4 + lying), rel=1e-6)
    assert 4 * rank.extra["kv_cache_bytes"] == whole.extra["kv_cache_bytes"]


def test_what_does_not_divide_is_refused() -> None:
    answer = spread("openai-community/gpt2", 8, "tensor", prompt_tokens=8)
    assert answer.verdict.kind == "unknown"
    assert "8" in answer.verdict.reason.text


def test_devices_with_layers_that_are_alike_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal layers the first, those between and the last device; each one's peak as if run alone."""
    for name, form in ((QWEN, "bf16"), ("google/gemma-3-27b-it", "bf16"), (QWEN, "q4_k_m")):
        made = scenario(name, "transformers", device__count=8, parallelism__pipeline=8, weight_format=form)
        runs = _runs(made)
        assert len(runs) == 8
        together = estimate(made)
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules[_runs.__module__], "layers_of", lambda program, span: object())
            assert len(set(_runs(made))) == 8
            apart = estimate(made)
        assert together.ranks == apart.ranks
        assert together.peak_moment == apart.peak_moment
        if (name, form) == (QWEN, "bf16"):
            assert len(set(runs)) <= 4  # what does not divide is left to one of them
