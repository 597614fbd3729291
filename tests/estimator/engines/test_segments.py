"""PyTorch's caching allocator as it is simulated, and what vLLM made of it before 0.6.4."""

from __future__ import annotations

from math import prod

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.estimator.engines.segments import Segments
from memgui.estimator.result import Derivation
from memgui.spec import ModelSpec
from tests.estimator.engines.serving import GIB, MIB, model, served

FOUR = model("Qwen/Qwen1.5-4B-Chat")
SEVEN = msgspec.structs.replace(  # Qwen1.5-7B
    FOUR,
    hidden_size=4096,
    intermediate_size=11_008,
    num_attention_heads=32,
    num_key_value_heads=32,
    num_hidden_layers=32,
)


def test_large_requests_get_segments_and_are_used_again() -> None:
    pool = Segments()
    pool.allocate("a", 768 * MIB)
    pool.free("a")
    pool.allocate("b", 256 * MIB)  # split off the block that is free
    assert pool.reserved == 768 * MIB
    pool.allocate("c", 512 * MIB)
    assert pool.reserved == 768 * MIB
    pool.allocate("d", 11 * MIB)
    assert pool.reserved == 768 * MIB + 12 * MIB


def test_what_does_not_fit_is_reserved_anew() -> None:
    pool = Segments()
    pool.allocate("a", 100 * MIB)
    pool.allocate("b", 100 * MIB)
    for key in "ab":
        pool.free(key)
    pool.allocate("c", 200 * MIB)  # two segments beside each other are no block
    assert pool.reserved == 400 * MIB


def test_neighbours_become_one() -> None:
    pool = Segments()
    pool.allocate("whole", 90 * MIB)
    pool.free("whole")
    for key in "abc":
        pool.allocate(key, 30 * MIB)
    for key in "acb":
        pool.free(key)
    pool.allocate("whole", 90 * MIB)
    assert pool.reserved == 90 * MIB


def test_small_requests_share_segments() -> None:
    pool = Segments()
    for number in range(4):
        pool.allocate(number, 512 * 1024)
    assert pool.reserved == 2 * MIB
    for number in range(2):
        pool.allocate(("middle", number), 5 * MIB)
    assert pool.reserved == 22 * MIB


@given(st.lists(st.integers(1, 64 * MIB), min_size=1, max_size=40))
def test_at_least_what_is_alive_is_reserved_and_reuse_costs_nothing(sizes: list[int]) -> None:
    pool = Segments()
    for number, size in enumerate(sizes):
        pool.allocate(number, size)
    before = pool.reserved
    assert before >= sum(sizes)
    for number in range(len(sizes)):
        pool.free(number)
    for number, size in enumerate(sizes):
        pool.allocate(number, size)
    assert pool.reserved == before


@pytest.mark.parametrize(
    ("spec", "stored", "room", "tokens"),
    [
        (SEVEN, "gptq_int4_g128", 23.69, 24_320),  # QwenLM/Qwen3 issue 16: RTX 3090
        (FOUR, "bf16", 23.65, 29_472),  # lm-sys/FastChat issue 3177: a 24 GB card
    ],
)
def test_before_0_6_4_what_was_reserved_was_gone(
    spec: ModelSpec, stored: str, room: float, tokens: int
) -> None:
    """The tokens that vLLM 0.3 named, whose profile run took 32,768 of them at once."""
    answer = served(
        spec,
        "vllm",
        vllm_version="0.3",
        weight_format=stored,
        prompt_tokens=32_768,
        generated_tokens=0,
        gpu_memory_utilization=0.9,
        device__memory_bytes=int(room * GIB),
        device__compute_capability="8.6",
    )
    assert answer.extra["pool_tokens"] == pytest.approx(tokens, rel=0.03)


def test_the_awq_kernel_of_0_2_splits_its_sum() -> None:
    """Issue 2199 of vLLM: 10.75 GiB could not be had for one matrix of a model whose weights are 18 GiB."""
    answer = served(
        "codellama/CodeLlama-34b-hf",
        "vllm",
        vllm_version="0.2",
        weight_format="awq_int4_g128",
        prompt_tokens=16_384,
        generated_tokens=0,
    )
    profile = answer.component("temporary").children[0]
    assert round(max(_terms(profile.child("tensors").derivation)) / GIB, 2) == 10.75


def _terms(derivation: Derivation) -> list[int]:
    def value(factor: str) -> int:
        return int(factor) if factor.isdigit() else derivation.symbols[factor].value

    return [prod(map(value, term.split("*"))) for term in derivation.formula.split(" + ")]
