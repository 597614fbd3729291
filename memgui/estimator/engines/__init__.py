"""Engines that serve a model, each with its own rules of what it allocates, when and where."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.engines import llama_cpp, sglang, vllm
from memgui.estimator.result import Estimate
from memgui.spec.scenario import Scenario

ENGINES: dict[str, Callable[[Scenario], Estimate]] = {
    "vllm": vllm.serve,
    "sglang": sglang.serve,
    "llama.cpp": llama_cpp.serve,
    "ollama": llama_cpp.serve,
}
"""Every engine with an account of its own; ``transformers`` runs on PyTorch's ledger."""
