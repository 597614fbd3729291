"""What vLLM made of PyTorch's reserved memory before 0.6.4, and of packed weights."""

from __future__ import annotations

from math import prod

import msgspec
import pytest

from memgui.estimator.result import Derivation
from memgui.spec import ModelSpec
from tests.estimator.engines.serving import GIB, model, served

FOUR = model("Qwen/Qwen1.5-4B-Chat")
SEVEN = msgspec.structs.replace(  # Qwen1.5-7B
    FOUR,
    hidden_size=4096,
    intermediate_size=11_008,
    num_attention_heads=32,
    num_key_value_heads=32,
    num_hidden_layers=32,
)


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
