"""vLLM held to its own start-up logs."""

from __future__ import annotations

import pytest

from memgui.estimator import estimate
from memgui.estimator.engines.blocks import Group, Pool, pool_of
from memgui.estimator.engines.cache import Keys, State, layers
from memgui.estimator.engines.settings import padded
from memgui.estimator.engines.vllm import ranks
from memgui.spec import replace
from memgui.spec.formats import cache_format
from tests.estimator.engines.serving import GIB, H100, model, scenario, served

# llm-d-planner, docs/empirical-vllm-memory-results.md: vLLM 0.11 on an H100, GiB; utilisation 0.9
TABLE = (
    ("meta-llama/Meta-Llama-3.1-8B", 1, "bf16", 14.99, 4.76, 51.38),
    ("Qwen/Qwen3-0.6B", 1, "bf16", 1.12, 5.56, 64.45),
    ("Qwen/Qwen3-32B", 1, "bf16", 61.03, 5.64, 4.45),
    ("Qwen/Qwen3-32B", 2, "bf16", 30.59, 5.64, 34.49),
    ("meta-llama/Meta-Llama-3-70B", 2, "fp8_per_channel", 33.88, 4.84, 32.0),
    ("openai/gpt-oss-20b", 1, "mxfp4", 13.47, 7.38, 50.28),
)


@pytest.mark.parametrize(("name", "tensor", "stored", "weights", "activation", "pool"), TABLE)
def test_a_start_on_an_h100(
    name: str, tensor: int, stored: str, weights: float, activation: float, pool: float
) -> None:
    answer = served(
        name,
        "vllm",
        weight_format=stored,
        prompt_tokens=16_000,
        generated_tokens=0,
        gpu_memory_utilization=0.9,
        block_size=128,
        device__name="H100",
        device__memory_bytes=H100,
        device__compute_capability="9.0",
        device__count=tensor,
        parallelism__tensor=tensor,
    )
    assert answer.component("weights").bytes / GIB == pytest.approx(weights, rel=3e-3, abs=0.006)
    assert answer.component("temporary").bytes / GIB == pytest.approx(activation, abs=0.006)
    assert answer.extra["kv_pool_bytes"] / GIB == pytest.approx(pool, rel=3e-3)


# vllm-project/vllm issue 10517: vLLM 0.6.4 on an RTX 3090 with 23.58 GiB, Llama-3.1-8B
@pytest.mark.parametrize(
    ("tokens", "peak", "pool", "held", "verdict"),
    [
        (20_000, 17.06, 3.81, 31_232, "fits"),
        (29_000, 17.98, 2.89, 23_648, "does_not_fit"),
        (35_000, 15.05, 5.82, None, "fits"),
    ],
)
def test_a_longer_sequence_may_fit_where_a_shorter_one_does_not(
    tokens: int, peak: float, pool: float, held: int | None, verdict: str
) -> None:
    answer = served(
        "meta-llama/Meta-Llama-3.1-8B",
        "vllm",
        vllm_version="0.6",
        gpu_memory_utilization=0.9,
        prompt_tokens=tokens,
        generated_tokens=0,
        device__memory_bytes=int(23.58 * GIB),
        device__compute_capability="8.6",
    )
    torch = answer.component("weights").bytes + answer.component("temporary").bytes
    assert torch / GIB == pytest.approx(peak, abs=0.04)
    assert answer.extra["kv_pool_bytes"] / GIB == pytest.approx(pool, abs=0.01)
    if held is not None:
        assert answer.extra["pool_tokens"] == pytest.approx(held, rel=1e-3)
    assert answer.verdict.kind == verdict


def test_tokens_that_a_stated_pool_holds() -> None:
    """Issue 10517 refused 29,000 tokens with 2.89 GiB: 1,478 blocks of 16 tokens."""
    made = scenario("meta-llama/Meta-Llama-3.1-8B", "vllm", vllm_version="0.6")
    filled = pool_of(made, ranks(made)[0][1]).filled(int(2.887 * GIB))
    assert (filled.blocks, filled.tokens) == (1_478, 23_648)


def test_states_and_windows_have_groups_of_their_own() -> None:
    made = scenario("Gemma-3-27B-Text", "vllm", prompt_tokens=100_000)
    pool = pool_of(made, ranks(made)[0][1])
    assert {group.window for group in pool.groups} == {0, 1024}
    assert len({group.layers * group.page for group in pool.groups}) == 1, "blocks are of one size"
    assert sum(group.layers for group in pool.groups) >= 62
    old = replace(made, "inference.vllm_version", "0.6")
    whole = pool_of(old, ranks(old)[0][1])
    assert [group.window for group in whole.groups] == [0]
    assert whole.token_bytes == 62 * 16 * 128 * 2 * 2  # 496 KiB, as issue 16199 found


def test_latent_attention_is_compressed_on_each_rank_and_was_expanded_before() -> None:
    made = scenario("deepseek-ai/DeepSeek-V3", "vllm", device__count=8, parallelism__tensor=8)
    share = ranks(made)[0][1]
    assert pool_of(made, share).token_bytes == 61 * 576 * 2
    old = replace(made, "inference.vllm_version", "0.6")
    assert pool_of(old, share).token_bytes == 61 * 2 * (128 // 8) * 256 * 2


def test_a_share_that_leaves_too_little_outside() -> None:
    """Issue 16199: at 0.98 of 22 GiB the pool leaves no room to capture graphs, however short the prompt."""
    made = scenario(
        "Qwen/Qwen3-14B",
        "vllm",
        weight_format="awq_int4_g128",
        gpu_memory_utilization=0.98,
        prompt_tokens=128,
        device__memory_bytes=int(21.99 * GIB),
        device__compute_capability="8.6",
    )
    answer = estimate(made)
    assert answer.verdict.kind == "tight"
    assert "outside" in answer.verdict.reason.text
    assert estimate(replace(made, "inference.gpu_memory_utilization", 0.9)).verdict.kind == "fits"


def test_pipeline_stages_get_layers_as_vllm_cuts_them() -> None:
    made = scenario("meta-llama/Meta-Llama-3.1-8B", "vllm", device__count=3, parallelism__pipeline=3)
    sizes = [share.stop - share.start for _, share in ranks(made) if share.stop is not None]
    assert sizes == [11, 11, 10]
    assert len(estimate(made).ranks) == 3


def test_the_hybrid_cache_of_a_vllm_log() -> None:
    """16 of 64 layers look back on all tokens: 32 KiB a token in fp8 (talos-argocd-proxmox 1995)."""
    kept = cache_format("fp8")
    found = layers(model("Qwen3.5-27B-Text"))
    token = sum(count * one.bytes_for(kept, kept) for one, count in found if isinstance(one, Keys))
    assert token == 32 * 1024
    assert int(9.2444 * GIB) // token == pytest.approx(302_921, rel=1e-3)


def test_a_hybrid_with_a_draft_layer_and_three_draft_tokens() -> None:
    """Issues 35 and 41 of club-3090: 3.05, 2.43 and 2.17 GiB for 180,000, 130,000 and 111,456 tokens.

    Qwen3.6-27B with a layer for drafts: 17 layers look back on all tokens, in 3 bits; 48 keep a state,
    whose convolution remembers the drafts too, and which five blocks hold (prefix caching, three drafts).
    """
    spec = model("Qwen3.5-27B-Text")
    keys = next(one for one, _ in layers(spec) if isinstance(one, Keys))
    state = next(one for one, _ in layers(spec) if isinstance(one, State))
    kept = cache_format("turboquant_3bit")
    token = keys.bytes_for(kept, kept)
    assert token == 4 * (98 + 100)
    drafts = 3
    size = state.channels * (state.kernel - 1 + drafts) * 2 + state.state * 4
    block = padded(-(-size // token), 16)
    assert block == 4128
    attention = Group(17, block * token, block)
    states = Group(17, block * token, block, state=True, held=2 + drafts)
    for length, gib in ((180_000, 3.05), (130_000, 2.43), (111_456, 2.17)):
        pool = Pool((states, states, states, attention), 1, length, 8192)
        assert round(pool.needed / GIB, 2) == gib
    room = int(2.17 * GIB) + 5 * (1 << 20)  # printed to two digits
    assert Pool((states, states, states, attention), 1, 1, 8192).filled(room).longest == 111_456
