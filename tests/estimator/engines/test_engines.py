"""What holds of every engine's account: it adds up, explains itself, and says what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memgui.estimator import estimate
from memgui.estimator.result import Node
from memgui.spec import replace
from memgui.spec.fields import BY_PATH
from memgui.spec.validate import validate
from tests.estimator.engines.serving import GIB, model, scenario
from tests.estimator.test_estimate import evaluated

MODELS = (
    "meta-llama/Meta-Llama-3.1-8B",
    "Qwen/Qwen3-30B-A3B",
    "Gemma-3-27B-Text",
    "deepseek-ai/DeepSeek-V2-Lite",
    "openai/gpt-oss-20b",
    "state-spaces/mamba2-2.7b",
    "ibm-granite/granite-4.0-h-1b",
    "openai-community/gpt2",
)
SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("transformers", {}),
    ("transformers", {"weight_format": "nf4", "attention": "flash_attention_2"}),
    ("transformers", {"transformers_version": "4.35", "batch_size": 3}),
    ("transformers", {"cache_implementation": "static"}),
    ("transformers", {"kv_cache_format": "quantized_int4"}),
    ("transformers", {"kv_cache_format": "kivi_2bit"}),
    ("transformers", {"device__count": 3, "parallelism__pipeline": 3, "weight_format": "gptq_int4_g128"}),
    ("transformers", {"device__count": 2, "parallelism__tensor": 2, "batch_size": 3}),
    ("gpt-fast", {"kv_cache_format": "int8"}),
    ("vllm", {}),
    ("vllm", {"vllm_version": "0.6", "weight_format": "gptq_int4_g128"}),
    ("vllm", {"vllm_version": "0.3", "weight_format": "gptq_int4_g128"}),
    ("vllm", {"vllm_version": "0.2", "weight_format": "awq_int4_g128", "prompt_tokens": 4096}),
    ("vllm", {"kv_cache_format": "turboquant_3bit"}),
    ("vllm", {"parallelism__tensor": 2, "parallelism__pipeline": 2, "kv_cache_format": "fp8"}),
    ("sglang", {"weight_format": "fp8_block_128x128"}),
    ("llama.cpp", {"weight_format": "q4_k_m"}),
    ("llama.cpp", {"weight_format": "q8_0", "flash_attention": False, "llama_cpp_version": "b6000"}),
    ("llama.cpp", {"weight_format": "iq4_xs", "kv_cache_format": "q8_0", "kv_cache_format_v": "q4_0"}),
    ("llama.cpp", {"weight_format": "q4_0", "n_gpu_layers": 5, "batch_size": 4, "kv_unified": False}),
    ("llama.cpp", {"weight_format": "q5_k_m", "parallelism__tensor": 3, "device__count": 3}),
    ("ollama", {"weight_format": "q4_k_m", "parallelism__pipeline": 2}),
)
KEYS = {
    "transformers": {"kv_bytes_per_token", "kv_cache_bytes"},
    "gpt-fast": {"kv_bytes_per_token", "kv_cache_bytes"},
    "vllm": {"kv_bytes_per_token", "kv_pool_bytes", "pool_tokens", "max_concurrency", "budget_bytes"},
    "sglang": {"kv_bytes_per_token", "kv_pool_bytes", "pool_tokens", "max_concurrency", "budget_bytes"},
    "llama.cpp": {"kv_bytes_per_token", "kv_cache_bytes", "host_bytes", "pool_tokens", "max_concurrency"},
    "ollama": {"kv_bytes_per_token", "kv_cache_bytes", "host_bytes", "pool_tokens", "max_concurrency"},
}


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from nodes(child)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("engine", "settings"), SETTINGS)
def test_accounts_add_up_and_explain_themselves(engine: str, settings: dict[str, Any], name: str) -> None:
    made = scenario(model(name), engine, **{"device__count": 4, **settings})
    answer = estimate(made)
    if answer.verdict.kind == "unknown":
        assert "parallelism__tensor" in settings or engine in (
            "vllm",
            "sglang",
            "llama.cpp",
            "ollama",
            "gpt-fast",
        ), answer.verdict.reason.text
        pytest.skip(answer.verdict.reason.text)
    assert sum(one.bytes for one in answer.components) == answer.peak_bytes
    assert answer.peak_moment.bytes == answer.peak_bytes == max(one.bytes for one in answer.timeline)
    assert answer.low_bytes <= answer.peak_bytes <= answer.high_bytes
    for moment in answer.timeline:
        assert sum(moment.components.values()) == moment.bytes
    for component in answer.components:
        for node in nodes(component):
            if node.children:
                assert sum(child.bytes for child in node.children) == node.bytes, node.key
                continue
            why = node.derivation
            values = {key: symbol.value for key, symbol in why.symbols.items()}
            assert evaluated(why.formula, values) == node.bytes, (node.key, why.formula)
            assert why.source or not node.bytes, node.key
            for symbol in why.symbols.values():
                assert symbol.path is None or symbol.path in BY_PATH
    expected = KEYS[engine]
    assert expected <= set(answer.extra)
    assert all(isinstance(value, int) for value in answer.extra.values())


@pytest.mark.parametrize("engine", ["transformers", "vllm", "sglang", "llama.cpp", "ollama", "gpt-fast"])
def test_more_of_anything_never_takes_less(engine: str) -> None:
    least = scenario("meta-llama/Meta-Llama-3.1-8B", engine, prompt_tokens=1000, generated_tokens=10)
    before = estimate(least).peak_bytes
    for path, values in (
        ("inference.prompt_tokens", (2000, 5000, 20000)),
        ("inference.batch_size", (2, 7, 30)),
        ("inference.generated_tokens", (100, 1000)),
    ):
        last = before
        for value in values:
            now = estimate(replace(least, path, value)).peak_bytes
            assert now >= last, (path, value)
            last = now


@pytest.mark.parametrize(("engine", "degrees"), [("vllm", (1, 4)), ("sglang", (1, 2, 4))])
def test_ranks_share_out_experts_one_way_or_another(engine: str, degrees: tuple[int, ...]) -> None:
    """SGLang's ranks split each expert further where there are more of them (moe_tp_size = tp / ep)."""
    made = scenario("mistralai/Mixtral-8x7B-v0.1", engine, device__count=4, parallelism__tensor=4)
    for degree in (1, 2, 3, 4, 8):
        spread = replace(made, "parallelism.expert", degree)
        refused = [issue.code for issue in validate(spread) if issue.severity == "error"]
        assert refused == ([] if degree in degrees else ["experts_not_spread"]), degree
    held = {estimate(replace(made, "parallelism.expert", one)).component("weights").bytes for one in degrees}
    assert len(held) == 1


@pytest.mark.parametrize("engine", ["transformers", "vllm", "sglang", "llama.cpp", "ollama", "gpt-fast"])
def test_experts_without_a_width_hold_nothing_and_break_nothing(engine: str) -> None:
    """Who sweeps the number of experts of a dense model comes by here."""
    dense = scenario("meta-llama/Meta-Llama-3.1-8B", engine=engine)
    found = estimate(replace(dense, "model.num_experts", 8))
    assert 0 < found.peak_bytes < estimate(dense).peak_bytes


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_a_pool_holds_fits_and_one_more_does_not(engine: str) -> None:
    made = scenario("meta-llama/Meta-Llama-3.1-8B", engine, prompt_tokens=4000, generated_tokens=96)
    made = replace(made, "device.memory_bytes", 40 * GIB)
    most = estimate(made).extra["max_concurrency"]
    assert most > 1
    assert estimate(replace(made, "inference.batch_size", most)).verdict.kind != "does_not_fit"
    assert estimate(replace(made, "inference.batch_size", most + 1)).verdict.kind != "fits"
