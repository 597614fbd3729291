"""Transformers' generate() and gpt-fast held to published tables."""

from __future__ import annotations

import pytest

from memgui.estimator import estimate, ledger
from memgui.spec import replace
from tests.estimator.engines.serving import GIB, scenario, served

A100 = {"device__compute_capability": "8.0"}
FLASH = {"attention": "flash_attention_2", "generated_tokens": 2047}

# Qwen2.5's speed benchmark (Transformers 4.46, FlashAttention 2, A100): prompt, GiB as printed
QWEN = (
    ("Qwen/Qwen2.5-1.5B", 6144, 3.43),
    ("Qwen/Qwen2.5-1.5B", 14336, 4.16),
    ("Qwen/Qwen2.5-7B-Instruct", 6144, 15.38),
    ("Qwen/Qwen2.5-7B-Instruct", 14336, 16.91),
    ("Qwen/Qwen2.5-7B-Instruct", 30720, 19.97),
    ("Qwen/Qwen2.5-14B", 30720, 36.85),
    ("Qwen/Qwen2.5-32B", 6144, 63.72),
    ("Qwen/Qwen2.5-32B", 30720, 74.47),
)


@pytest.mark.parametrize(("name", "prompt", "printed"), QWEN)
def test_the_peak_of_a_prompt_is_in_its_feed_forward(name: str, prompt: int, printed: float) -> None:
    answer = served(name, "transformers", transformers_version="4.45", prompt_tokens=prompt, **FLASH, **A100)
    assert answer.allocated_bytes / GIB == pytest.approx(printed, abs=0.0101)


# Qwen3's (Transformers 4.51, H20): MiB when all is generated
@pytest.mark.parametrize(
    ("name", "prompt", "printed"),
    [
        ("Qwen/Qwen3-0.6B", 30720, 4755),
        ("Qwen/Qwen3-8B", 6144, 16811),
        ("Qwen/Qwen3-8B", 30720, 20267),
        ("Qwen/Qwen3-32B", 30720, 70728),
        ("Qwen/Qwen3-30B-A3B", 30720, 61342),
    ],
)
def test_weights_out_of_one_block_and_the_cache(name: str, prompt: int, printed: int) -> None:
    answer = served(name, "transformers", prompt_tokens=prompt, device__compute_capability="9.0", **FLASH)
    end = next(moment for moment in answer.timeline if moment.key == "after_decode")
    assert end.allocated is not None
    assert end.allocated / 2**20 == pytest.approx(printed, rel=1e-3)


def llama_2_13b(batch: int, generated: int, version: str = "4.35") -> float:
    """Allocated MB of Optimum's benchmark: Transformers 4.35, eager, prompts of 512 tokens."""
    answer = served(
        "meta-llama/Llama-2-13b-chat-hf",
        "transformers",
        weight_format="fp16",
        kv_cache_format="fp16",
        attention="eager",
        transformers_version=version,
        batch_size=batch,
        prompt_tokens=512,
        generated_tokens=generated,
        **A100,
    )
    return answer.allocated_bytes / 1e6


def test_old_versions_compute_all_logits_and_hold_two_caches() -> None:
    """Slopes of Optimum's table: 524.8 MB a prompt, and 1,678.1 MB a sequence of 1,024 tokens."""
    assert llama_2_13b(2, 0) - llama_2_13b(1, 0) == pytest.approx(524.83, abs=0.1)
    assert llama_2_13b(16, 0) - llama_2_13b(1, 0) == pytest.approx(15 * 524.82, rel=1e-3)
    assert llama_2_13b(2, 511) - llama_2_13b(1, 511) == pytest.approx(1678.11, rel=1e-3)
    newer = llama_2_13b(2, 511, "5.24") - llama_2_13b(1, 511, "5.24")
    assert newer == pytest.approx(1678.11 / 2, rel=0.05)


def test_the_prompts_logits_live_through_the_first_token() -> None:
    made = scenario(
        "Qwen/Qwen2-0.5B",
        "transformers",
        transformers_version="4.35",
        attention="sdpa",
        prompt_tokens=4000,
        generated_tokens=2,
    )
    moments = {moment.key: moment for moment in estimate(made).timeline}
    logits = 4000 * 151_936 * 4
    first, last = moments["first_token.embedding"], moments["decode.embedding"]
    assert first.components["activations"] - last.components["activations"] == pytest.approx(logits, rel=1e-3)


def test_flash_attention_has_no_masks_and_repeats_no_heads() -> None:
    made = scenario("Gemma-3-27B-Text", "transformers", prompt_tokens=20_000, generated_tokens=0)
    flash = replace(made, "inference.attention", "flash_attention_2")
    assert estimate(flash).allocated_bytes < estimate(made).allocated_bytes
    kept = ledger(made).cache, ledger(flash).cache
    assert kept[0].after_prompt == kept[1].after_prompt


def test_a_static_cache_is_there_from_the_first_layer_on() -> None:
    made = scenario("meta-llama/Meta-Llama-3.1-8B", "transformers", prompt_tokens=100, generated_tokens=3996)
    static = replace(made, "inference.cache_implementation", "static")
    answer = estimate(static)
    assert answer.extra["kv_cache_bytes"] == 4096 * 131_072
    after = next(moment for moment in answer.timeline if moment.key == "after_prefill")
    assert after.components["kv_cache"] == 4096 * 131_072


def test_a_packed_cache_gathers_128_tokens_before_it_packs_them() -> None:
    made = scenario(
        "meta-llama/Meta-Llama-3.1-8B",
        "transformers",
        kv_cache_format="quantized_int4",
        prompt_tokens=1000,
        generated_tokens=130,
    )
    packed = 32 * 2 * (8 * 128 // 64 * 36)
    assert estimate(made).extra["kv_cache_bytes"] == 1128 * packed + 2 * 131_072


# torchao's table of gpt-fast on an A100: GB reserved for a cache of so many tokens, bf16 and int8 cache
@pytest.mark.parametrize(
    ("tokens", "stored", "reserved"),
    [
        (8_192, "bf16", 17.86),
        (32_768, "bf16", 23.83),
        (65_536, "bf16", 33.5),
        (131_072, "bf16", 59.27),
        (32_768, "int8", 21.72),
        (65_536, "int8", 29.54),
    ],
)
def test_gpt_fast_holds_a_mask_of_every_pair(tokens: int, stored: str, reserved: float) -> None:
    answer = served(
        "meta-llama/Meta-Llama-3.1-8B",
        "gpt-fast",
        kv_cache_format=stored,
        prompt_tokens=6,
        generated_tokens=tokens - 6,
        **A100,
    )
    assert answer.reserved_bytes / 1e9 == pytest.approx(reserved, rel=0.01)


def test_bitsandbytes_unpacks_for_a_prompt_and_not_for_a_token() -> None:
    made = scenario("meta-llama/Llama-2-7b-hf", "transformers", weight_format="nf4", generated_tokens=0)
    short = replace(made, "inference.prompt_tokens", 1)
    plain = replace(short, "inference.weight_format", "bf16")
    unpacked = estimate(short).component("temporary").bytes - estimate(plain).component("temporary").bytes
    assert unpacked == pytest.approx(4096 * 11008 * 2, rel=0.01)
    decoding = replace(short, "inference.generated_tokens", 1)
    moments = {moment.key: moment for moment in estimate(decoding).timeline}
    assert moments["decode.layer.5"].components["temporary"] < 4096 * 11008


def test_autogptq_keeps_room_for_the_largest_matrix() -> None:
    made = scenario("Qwen/Qwen2.5-7B-Instruct", "transformers", weight_format="gptq_int4_g128")
    old = replace(made, "inference.transformers_version", "4.45")
    node = next(one for one in estimate(old).component("overhead").children if one.key == "unpacked")
    assert node.bytes == 18944 * 3584 * 2
    assert all(one.key != "unpacked" for one in estimate(made).component("overhead").children)


@pytest.mark.parametrize(("tokens", "printed"), [(32_768, 20.64), (131_072, 34.18)])
def test_a_mask_by_rows_leaves_the_cache_and_the_weights(tokens: int, printed: float) -> None:
    """torchao's table for Llama-3.1-8B on an H100, int8 cache, linear_causal_mask: GB reserved."""
    answer = served(
        "meta-llama/Meta-Llama-3.1-8B",
        "gpt-fast",
        kv_cache_format="int8",
        linear_causal_mask=True,
        prompt_tokens=6,
        generated_tokens=tokens - 6,
        device__compute_capability="9.0",
    )
    assert answer.reserved_bytes / 1e9 == pytest.approx(printed, rel=3e-3)
