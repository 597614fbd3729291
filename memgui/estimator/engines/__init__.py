"""Engines that serve a model, each with its own rules of what it allocates, when and where."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.result import Estimate
from memgui.spec.scenario import Scenario


def account_of(engine: str) -> Callable[[Scenario], Estimate] | None:
    """The account of an engine; ``None`` for ``transformers``, which runs on PyTorch's ledger.

    It is loaded when it is first asked for: a start that serves nothing need not wait for four engines.
    """
    match engine:
        case "vllm":
            from memgui.estimator.engines.vllm import serve
        case "sglang":
            from memgui.estimator.engines.sglang import serve
        case "llama.cpp" | "ollama":
            from memgui.estimator.engines.llama_cpp import serve
        case _:
            return None
    return serve
