"""llama.cpp held to its own logs, and to its scheduler on devices that compute nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memgui.estimator import estimate
from memgui.estimator.engines.cache import Keys, layers
from memgui.estimator.engines.ggml_graph import _planned, compute_buffer
from memgui.estimator.engines.llama_cpp import loaded_on, places
from memgui.estimator.engines.rows import stretch
from memgui.estimator.engines.weights import model_of
from memgui.spec import replace
from memgui.spec.formats import cache_format
from memgui.spec.validate import validate
from tests.estimator.engines.serving import GIB, MIB, model, scenario, served

B6000 = {"llama_cpp_version": "b6000"}
NO_FLASH = {"flash_attention": False}

# model, settings, MiB of a log: weights on the device, on the host, cache, compute buffer (None: not logged)
LOGS: tuple[tuple[str, dict[str, Any], float | None, float | None, float | None, float | None], ...] = (
    (
        "Llama-3.1-8B",
        {"prompt_tokens": 8192, "weight_format": "q4_0", **B6000, **NO_FLASH},
        4155.99,
        281.81,
        1024,
        560,
    ),
    ("Qwen3-0.6B", {"prompt_tokens": 4096, "weight_format": "q8_0"}, 604.15, 157.65, 448, None),
    (
        "Qwen3-8B",
        {"prompt_tokens": 8192, "weight_format": "q4_k_m", "kv_cache_format": "q4_0", **B6000},
        *(4455.34, None, 324, 304.75),
    ),
    (
        "Qwen3-30B-A3B",
        {"prompt_tokens": 65536, "weight_format": "q8_0", **B6000},
        *(None, 315.30, 6144, 300.75),
    ),
    ("Qwen3-32B", {"prompt_tokens": 8192, "weight_format": "q5_k_m", **B6000}, None, 510.04, 2048, None),
    ("Qwen2.5-7B-Instruct", {"prompt_tokens": 4096, "weight_format": "q4_k_m"}, 4168.09, None, 224, None),
    (
        "gpt-oss-20b",
        {"prompt_tokens": 131072, "weight_format": "mxfp4_moe", **B6000},
        None,
        None,
        3072 + 18,
        398.38,
    ),
)


@pytest.mark.parametrize(("name", "settings", "weights", "host", "cache", "compute"), LOGS)
def test_the_lines_of_a_log(
    name: str,
    settings: dict[str, Any],
    weights: float | None,
    host: float | None,
    cache: float | None,
    compute: float | None,
) -> None:
    answer = served(name, "llama.cpp", **{"kv_cache_format": "fp16", "generated_tokens": 0, **settings})
    found = (
        answer.component("weights").bytes,
        answer.extra["host_bytes"],
        answer.extra["kv_cache_bytes"],
        answer.extra["compute_buffer_bytes"],
    )
    for size, logged in zip(found, (weights, host, cache, compute), strict=True):
        if logged is not None:
            assert size / MIB == pytest.approx(logged, abs=0.006)


# MiB that llama.cpp b11434 plans for its CUDA device: layers, context of a sequence, flash attention, more
PLANNED: tuple[tuple[str, int, int, bool, dict[str, Any], float], ...] = (
    ("Llama-3.1-8B", 32, 8192, False, {}, 572.01),
    ("Llama-3.1-8B", 32, 8192, True, {}, 124.01),
    ("Llama-3.1-8B", 4, 2048, False, {"batch_size": 4}, 572.01),
    ("Llama-3.1-8B", 4, 2048, False, {"batch_size": 4, "kv_unified": False}, 176.01),
    ("Qwen2.5-7B-Instruct", 4, 8192, True, {}, 147.01),
    ("Qwen3-8B", 4, 8192, True, {}, 112.01),
    ("Yi-6B-Chat", 4, 4096, False, {}, 306.01),
    ("Qwen3-30B-A3B", 4, 8192, True, {}, 92.01),
    ("Qwen3-30B-A3B", 4, 8192, False, {}, 562.01),
    ("Mixtral-8x7B-v0.1", 4, 8192, True, {}, 208.01),
    ("Gemma-3-27B-Text", 12, 8192, True, {}, 177.52),
    ("Gemma-3-27B-Text", 12, 131072, True, {}, 297.52),
    ("Gemma-3-27B-Text", 12, 32768, False, {}, 2181.01),
    ("Gemma-3-27B-Text", 12, 8192, True, {"batch_size": 4}, 204.52),
    ("Gemma-3-27B-Text", 12, 8192, True, {"batch_size": 4, "kv_unified": False}, 177.52),
    ("DeepSeek-V3", 5, 8192, True, {}, 400.01),
    ("DeepSeek-V3", 5, 8192, False, {}, 2456.01),
    ("DeepSeek-V3", 5, 32768, False, {}, 8648.01),
    ("DeepSeek-V2-Lite", 27, 8192, True, {}, 88.14),
    ("DeepSeek-V2-Lite", 27, 8192, False, {}, 328.01),
    ("state-spaces/mamba-2.8b-hf", 64, 8192, True, {}, 61.0),
    ("state-spaces/mamba2-2.7b", 64, 8192, True, {}, 74.22),
    ("state-spaces/mamba2-2.7b", 64, 8192, True, {"n_ubatch": 128}, 20.48),
    ("state-spaces/mamba2-2.7b", 64, 8192, True, {"batch_size": 4}, 81.91),
    ("Qwen3.5-27B-Text", 8, 8192, True, {}, 150.02),
    ("Qwen3.5-27B-Text", 8, 32768, False, {}, 1680.01),
)


@pytest.mark.parametrize(("name", "depth", "context", "flash", "more", "planned"), PLANNED)
def test_the_compute_buffer_that_ggml_plans(
    name: str, depth: int, context: int, flash: bool, more: dict[str, Any], planned: float
) -> None:
    made = scenario(
        msgspec.structs.replace(model(name), num_hidden_layers=depth),
        "llama.cpp",
        weight_format="q4_0",
        kv_cache_format="fp16",
        prompt_tokens=context,
        generated_tokens=0,
        flash_attention=flash,
        **more,
    )
    assert compute_buffer(made).bytes / MIB == pytest.approx(planned, abs=0.011)


def gemma_3_4b() -> Any:
    return msgspec.structs.replace(
        model("Gemma-3-27B-Text"),
        num_hidden_layers=34,
        hidden_size=2560,
        intermediate_size=10240,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
    )


def test_what_llama_fit_params_prints() -> None:
    """ggml-org/llama.cpp PR 22171: gemma-3-4b-it in f16 at 32,768: 7,401 + 814 + 517, 1,280 on the host."""
    answer = served(
        gemma_3_4b(),
        "llama.cpp",
        weight_format="fp16",
        kv_cache_format="fp16",
        prompt_tokens=32768,
        generated_tokens=0,
        llama_cpp_version="b6000",
    )
    assert answer.extra["compute_buffer_bytes"] // MIB == 517
    assert answer.component("weights").bytes // MIB == 7401
    assert answer.extra["kv_cache_bytes"] == 814 * MIB
    assert answer.extra["host_bytes"] // MIB == 1280


@pytest.mark.parametrize(
    ("name", "tokens", "allocated"),
    [
        ("Gemma-3-27B-Text", 131_072, 10.609),  # llama-kv-cache-iswa.cpp: windows take 1,536 cells each
        ("deepseek-ai/DeepSeek-V3", 163_840, 10.72),
        ("moonshotai/Kimi-K2-Instruct", 262_144, 17.16),  # Kimi-K2.5's text model
        ("Qwen/Qwen3-0.6B", 40_960, 4.38),
    ],
)
def test_caches_at_full_length(name: str, tokens: int, allocated: float) -> None:
    """unslothai/unsloth PR 4757, in GiB."""
    whole = msgspec.structs.replace(model(name), max_position_embeddings=tokens)
    answer = served(
        whole,
        "llama.cpp",
        weight_format="q4_0",
        kv_cache_format="fp16",
        prompt_tokens=tokens,
        generated_tokens=0,
    )
    assert answer.extra["kv_cache_bytes"] / GIB == pytest.approx(allocated, abs=0.006)


def cached(name: str, tokens: int) -> int:
    """Bytes that the layers look back on, in 16 bits, however an engine holds them."""
    kept = cache_format("fp16")
    return sum(
        count * min(tokens, one.window or tokens) * one.bytes_for(kept, kept)
        for one, count in layers(model(name))
        if isinstance(one, Keys)
    )


def test_caches_in_theory() -> None:
    assert cached("Gemma-3-27B-Text", 131_072) / GIB == pytest.approx(10.406, abs=0.001)
    assert cached("Qwen3.5-27B-Text", 262_144) == 16 * GIB
    drafts = cached("deepseek-ai/DeepSeek-V3", 202_752) // 61 * 79  # GLM-5: 78 layers and one for drafts
    assert round(drafts / GIB, 2) == 17.18


def test_sizes_in_error_messages() -> None:
    """QUESTIONS.md, chapter 3."""
    million = msgspec.structs.replace(model("Meta-Llama-3-8B-Instruct"), max_position_embeddings=2**20)
    answer = served(
        million,
        "llama.cpp",
        weight_format="q4_0",
        kv_cache_format="fp16",
        prompt_tokens=2**20,
        generated_tokens=0,
    )
    assert answer.extra["kv_cache_bytes"] + 32 == 137_438_953_504  # llama.cpp 8101, with ggml's own 32 bytes
    answer = served(
        "Llama-3.1-70B-Instruct",
        "ollama",
        weight_format="q4_0",
        kv_cache_format="fp16",
        prompt_tokens=16_384,
        generated_tokens=0,
    )
    assert answer.extra["kv_cache_bytes"] == 5_120 * MIB  # ollama 6860
    expanded = Keys(128, 192, 128).bytes_for(cache_format("fp16"), cache_format("fp16"))
    assert 16 * 163_840 * expanded == 204_800 * MIB  # llama-cpp-python 1944: latent attention written out


def test_layers_go_where_they_are_sent() -> None:
    made = scenario("Qwen3-30B-A3B", "llama.cpp", weight_format="q4_k_m", prompt_tokens=4096)
    whole = estimate(made)
    host = whole.extra["host_bytes"]
    none = estimate(replace(made, "inference.n_gpu_layers", 0))
    assert none.component("weights").bytes == none.extra["kv_cache_bytes"] == 0
    assert none.extra["host_bytes"] == host + whole.component("weights").bytes
    experts = estimate(replace(made, "inference.n_cpu_moe", 48))
    moved = whole.component("weights").bytes - experts.component("weights").bytes
    assert experts.extra["host_bytes"] == host + moved
    assert moved > 0.9 * whole.component("weights").bytes
    assert experts.extra["kv_cache_bytes"] == whole.extra["kv_cache_bytes"]
    two = estimate(replace(replace(made, "device.count", 2), "parallelism.pipeline", 2))
    assert len(two.ranks) == 2
    assert two.extra["kv_cache_bytes"] == whole.extra["kv_cache_bytes"]


def test_cells_are_whole_256() -> None:
    made = scenario("Llama-3.1-8B", "llama.cpp", weight_format="q4_0", prompt_tokens=1000, generated_tokens=1)
    assert estimate(made).extra["n_ctx"] == 1024
    several = replace(made, "inference.batch_size", 3)
    assert estimate(several).extra["n_ctx"] == 3072
    assert estimate(replace(several, "inference.kv_unified", False)).extra["n_ctx"] == 3 * 1024


def test_keys_and_values_have_formats_of_their_own() -> None:
    made = scenario(
        "Llama-3.1-8B",
        "llama.cpp",
        weight_format="q4_0",
        kv_cache_format="q8_0",
        prompt_tokens=8192,
        generated_tokens=0,
    )
    assert estimate(made).extra["kv_cache_bytes"] == 1024 * MIB * 34 // 64
    apart = replace(made, "inference.kv_cache_format_v", "q4_0")
    assert estimate(apart).extra["kv_cache_bytes"] == 512 * MIB * 34 // 64 + 512 * MIB * 18 // 64
    wrong = replace(apart, "inference.flash_attention", False)
    assert [issue.code for issue in validate(wrong) if issue.severity == "error"] == ["packed_values"]


def test_matrices_split_by_rows_lie_on_every_device() -> None:
    """The parts add up to the whole; each device's share is even to within a kernel's 128 rows."""
    settings = {"weight_format": "q4_k_m", "kv_cache_format": "fp16", "prompt_tokens": 4096}
    made = scenario("Llama-3.1-8B", "llama.cpp")
    for name in ("Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.2-1B"):
        one = served(name, "llama.cpp", **settings)
        made = scenario(name, "llama.cpp", device__count=2, parallelism__tensor=2, **settings)
        share = [loaded_on(made, model_of(made), place, places(made)) for place in places(made)]
        assert sum(part.weights.bytes for part in share) == one.component("weights").bytes
        assert sum(part.cache.bytes for part in share) == one.extra["kv_cache_bytes"]
        two = estimate(made)
        assert len(two.ranks) == 2
        assert two.extra["host_bytes"] == one.extra["host_bytes"]
        first, second = (part.weights.bytes for part in share)
        assert first == pytest.approx(second, rel=0.08)  # experts go by layers
    assert stretch(made, 1000, 0) == 384
    assert stretch(made, 1000, 1) == 616


def test_a_graph_is_planned_once_for_all_devices_between_the_first_and_the_last() -> None:
    made = scenario("Llama-3.1-8B", "llama.cpp", device__count=16, parallelism__pipeline=16)
    before = _planned.cache_info().misses
    assert len(estimate(made).ranks) == 16
    assert _planned.cache_info().misses - before == 3


def test_rows_and_layers_are_not_split_at_once_and_ollama_splits_layers_only() -> None:
    for engine, layout in (("llama.cpp", {"parallelism__pipeline": 2}), ("ollama", {})):
        answer = served(
            "Llama-3.1-8B",
            engine,
            weight_format="q4_k_m",
            device__count=4,
            parallelism__tensor=2,
            **layout,
        )
        assert answer.verdict.kind == "unknown"
