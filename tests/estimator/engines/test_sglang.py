"""SGLang's static share."""

from __future__ import annotations

import pytest

from memgui.estimator import estimate
from memgui.estimator.engines.sglang import reserve
from memgui.spec import replace
from tests.estimator.engines.serving import GIB, scenario

MIB = 1 << 20


@pytest.mark.parametrize(
    ("memory", "tensor", "megabytes"),
    [
        (16, 1, 512 + 3072 + 128 + 16),
        (24, 1, 512 + 3072 + 128 + 48),
        (24, 4, 512 + 3072 + 512 + 160),
        (48, 1, 512 + 6144 + 128 + 64),
        (80, 1, 512 + 12288 + 128 + 512),
        (80, 8, 512 + 12288 + 1024 + 1024),
        (180, 1, 512 + 24576 + 128 + 1024),
    ],
)
def test_what_is_left_free_follows_from_the_device(memory: int, tensor: int, megabytes: int) -> None:
    made = scenario(
        "meta-llama/Meta-Llama-3.1-8B",
        "sglang",
        device__memory_bytes=memory * GIB,
        device__count=tensor,
        parallelism__tensor=tensor,
    )
    assert reserve(made) == megabytes * MIB


def test_the_pool_is_the_static_share_less_the_weights() -> None:
    made = scenario("meta-llama/Meta-Llama-3.1-8B", "sglang", mem_fraction_static=0.8)
    answer = estimate(made)
    memory = made.device.memory_bytes
    assert answer.extra["budget_bytes"] == int(memory * 0.8)
    assert answer.extra["kv_pool_bytes"] == int(memory * 0.8) - answer.component("weights").bytes
    assert answer.extra["pool_tokens"] == answer.extra["kv_pool_bytes"] // 131_072
    small = replace(made, "inference.batch_size", 1000)
    assert estimate(small).verdict.kind == "does_not_fit"


def test_states_have_a_part_of_the_pool_of_their_own() -> None:
    """model_runner.py: 0.9 bytes of states for each byte of keys and values, cut once for all."""
    made = scenario("Qwen3.5-27B-Text", "sglang", weight_format="fp8_block_128x128")
    answer = estimate(made)
    extra = answer.extra
    assert extra["kv_bytes_per_token"] == 16 * 2 * 4 * 256 * 2
    state = 48 * (10_240 * 3 * 2 + 48 * 128 * 128 * 4)
    assert extra["state_bytes_per_sequence"] == state
    slots = extra["kv_pool_bytes"] * 9 // 19 // state
    assert extra["pool_tokens"] == (extra["kv_pool_bytes"] - slots * state) // extra["kv_bytes_per_token"]
    many = replace(replace(made, "inference.prompt_tokens", 8), "inference.generated_tokens", 8)
    assert estimate(many).extra["max_concurrency"] == slots
    assert estimate(replace(many, "inference.batch_size", slots)).verdict.kind == "fits"
    more = estimate(replace(many, "inference.batch_size", slots + 1)).verdict
    assert more.kind == "does_not_fit"
    assert str(slots) in more.reason.text.replace(",", "")


def test_windows_of_gpt_oss_have_a_pool_of_four_fifths() -> None:
    """server_args.py and model_runner.py of SGLang 0.5: 12 layers with a window, 12 without."""
    made = scenario("openai/gpt-oss-20b", "sglang", mem_fraction_static=0.8, weight_format="mxfp4")
    answer = estimate(made)
    layers = 12 * 2 * 8 * 64 * 2
    assert answer.extra["kv_bytes_per_token"] == layers + layers * 4 // 5
    whole = estimate(replace(made, "inference.kv_cache_format", "fp8")).extra
    assert whole["kv_bytes_per_token"] == (layers + layers * 4 // 5) // 2
    dense = estimate(scenario("Gemma-3-27B-Text", "sglang"))
    assert dense.extra["kv_bytes_per_token"] == 62 * 2 * 16 * 128 * 2
