"""What people ask of serving, answered; the numbers are those of the reference's list of questions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memgui.estimator import estimate
from memgui.estimator.result import Estimate
from memgui.planning.serving import best_weight_format, limits
from memgui.spec import ModelSpec, Scenario, replace
from tests.estimator.engines.serving import GIB, model, scenario

CARDS = {
    "V100-16": (15.77, "7.0"),
    "RTX 3090": (23.69, "8.6"),
    "RTX 5090": (31.36, "12.0"),
    "A100-80": (79.25, "8.0"),
    "H100": (79.18, "9.0"),
}


def on(card: str, which: str | ModelSpec, engine: str, count: int = 1, **settings: Any) -> Scenario:
    """One sequence of 2,048 tokens unless said otherwise; devices share layers, or matrices in vLLM."""
    memory, capability = CARDS[card]
    way = "tensor" if engine in ("vllm", "sglang") else "pipeline"
    lengths = {"batch_size": 1, "prompt_tokens": 1536, "generated_tokens": 512}
    device = {
        "device__memory_bytes": int(memory * GIB),
        "device__compute_capability": capability,
        "device__count": count,
        f"parallelism__{way}": count,
    }
    return scenario(which, engine, **{**device, **lengths, **settings})


def kind(*arguments: Any, **settings: Any) -> str:
    return estimate(on(*arguments, **settings)).verdict.kind


def test_22_a_13b_on_one_3090() -> None:
    half = {"weight_format": "fp16", "kv_cache_format": "fp16"}
    assert kind("RTX 3090", "Llama-2-13B", "transformers", **half) == "does_not_fit"
    assert kind("RTX 3090", "Llama-2-13B", "transformers", weight_format="int8") == "fits"


def test_24_70b_with_a_context_of_4096_on_two_3090() -> None:
    packed = {"weight_format": "gptq_int4_g128", "prompt_tokens": 4000, "generated_tokens": 96}
    assert kind("RTX 3090", "Llama-2-70B", "transformers", 2, **packed) == "fits"
    assert kind("RTX 3090", "Llama-2-70B", "transformers", 1, **packed) == "does_not_fit"


def test_25_70b_on_one_v100_in_no_format_that_transformers_loads() -> None:
    assert best_weight_format(on("V100-16", "Llama-2-70B", "transformers")) is None


def test_26_70b_in_16_bits_on_two_a100() -> None:
    loaded = estimate(on("A100-80", "Llama-2-70B", "transformers", 2, weight_format="fp16"))
    assert loaded.verdict.kind == "fits"
    assert 64 <= loaded.component("weights").bytes / GIB <= 68  # the fuller of the two


def test_28_104b_in_q5_k_s_on_three_cards_of_24_gb() -> None:
    """The file is 67 GiB, and 71 GiB are there: it just fits without a context, and with 8,192 not."""
    packed = {"weight_format": "q5_k_s", "kv_cache_format": "fp16", "generated_tokens": 0}
    name = "CohereForAI/c4ai-command-r-plus"
    long = estimate(on("RTX 3090", name, "llama.cpp", 3, prompt_tokens=32_768, **packed))
    assert long.verdict.kind == "does_not_fit"
    total = sum(rank.peak_bytes for rank in long.ranks)
    assert total / GIB > 67


def test_30_405b_on_four_h100() -> None:
    """In fp8 the weights alone are 95 GiB each; eight hold them, and say how long a sequence may be."""
    stored = {"weight_format": "fp8_per_channel", "kv_cache_format": "bf16"}
    assert kind("H100", "Llama-3.1-405B", "vllm", 4, **stored) == "does_not_fit"
    far = limits(on("H100", "Llama-3.1-405B", "vllm", 8, **stored))
    assert far is not None
    assert far.context is not None
    assert 100_000 < far.context <= 131_072


def test_32_the_cache_is_shared_out_between_two_cards() -> None:
    """160 KiB a token: 20 GiB at 131,072, half of it on each of two cards."""
    spec = msgspec.structs.replace(  # Mistral Small 3.1
        model("mistralai/Mistral-7B-v0.1"),
        num_hidden_layers=40,
        hidden_size=5120,
        intermediate_size=32_768,
        vocab_size=131_072,
        sliding_window=None,
        layer_types=("full_attention",),
        max_position_embeddings=131_072,
    )
    packed = {"weight_format": "q4_k_m", "kv_cache_format": "fp16", "generated_tokens": 0}
    one = estimate(on("RTX 3090", spec, "ollama", 1, prompt_tokens=131_072, **packed))
    two = estimate(on("RTX 3090", spec, "ollama", 2, prompt_tokens=131_072, **packed))
    assert one.extra["kv_cache_bytes"] == two.extra["kv_cache_bytes"] == 20 * GIB
    assert one.component("kv_cache").bytes == 20 * GIB
    assert two.component("kv_cache").bytes == pytest.approx(10 * GIB, rel=0.06)


def test_33_which_qwen_runs_on_a_5090() -> None:
    eight = {"weight_format": "fp8_block_128x128", "gpu_memory_utilization": 0.95, "prompt_tokens": 16_000}
    assert kind("RTX 5090", "Qwen/Qwen3-30B-A3B", "vllm", **eight) == "does_not_fit"
    four = {"weight_format": "q4_k_m", "kv_cache_format": "fp16", "prompt_tokens": 32_000}
    assert kind("RTX 5090", "Qwen/Qwen3-30B-A3B", "llama.cpp", **four) == "fits"


def test_40_a_small_model_fills_the_share_that_vllm_is_given() -> None:
    """What vLLM takes is its share of the device, whatever the model's size."""
    for name in ("Qwen/Qwen2.5-3B", "Qwen/Qwen2.5-7B-Instruct"):
        found = estimate(on("RTX 3090", name, "vllm", weight_format="awq_int4_g128"))
        share = found.extra["budget_bytes"] + found.extra["outside_budget_bytes"]
        assert found.extra["process_bytes"] == share


def token(which: str | ModelSpec) -> int:
    return estimate(on("H100", which, "vllm")).extra["kv_bytes_per_token"]


def test_43_heads_of_their_own_cost_eight_times_the_cache() -> None:
    shared = model("Llama-2-70B")
    alone = msgspec.structs.replace(shared, num_key_value_heads=shared.num_attention_heads)  # Qwen-72B's
    assert token(alone) == 8 * token(shared) == 80 * 8192 * 2 * 2
    assert token("meta-llama/Meta-Llama-3.1-8B") == 128 * 1024
    assert token("microsoft/Phi-3-mini-128k-instruct") * 131_072 == 48 * GIB


def test_45_more_sequences_than_the_log_says_do_not_fit() -> None:
    made = on("RTX 3090", "meta-llama/Meta-Llama-3.1-8B", "vllm", prompt_tokens=7000, generated_tokens=1000)
    found: Estimate = estimate(made)
    most = found.extra["max_concurrency"]
    far = limits(made)
    assert far is not None
    assert far.sequences == most
    assert estimate(replace(made, "inference.batch_size", most + 1)).verdict.kind != "fits"
