"""What engines take for granted: the defaults that follow from the device and the lengths."""

from __future__ import annotations

from memgui.spec.scenario import Scenario

GIB = 1 << 30


def length(scenario: Scenario) -> int:
    """Tokens of each sequence when all are generated."""
    return scenario.inference.prompt_tokens + scenario.inference.generated_tokens


def _large(scenario: Scenario) -> bool:
    """Whether vLLM takes the device for a large one (vLLM 0.11 engine/arg_utils.py)."""
    return scenario.device.memory_bytes >= 70 * GIB and "a100" not in scenario.device.name.lower()


def is_v0(scenario: Scenario) -> bool:
    """Whether the vLLM is one before V1: every layer holds every token, prompts run whole."""
    return scenario.inference.vllm_version != "0.11"


def chunked(scenario: Scenario) -> bool:
    """Whether vLLM 0.6 runs prompts in chunks: by itself only where a sequence can be over 32k long."""
    return scenario.inference.vllm_version == "0.6" and length(scenario) > 32_768


def batched_tokens(scenario: Scenario) -> int:
    """``max_num_batched_tokens``, as ``vllm serve`` chooses it."""
    given = scenario.inference.max_num_batched_tokens
    if given is not None:
        return given
    if is_v0(scenario):
        return 512 if chunked(scenario) else max(length(scenario), 2048)
    return 8192 if _large(scenario) else 2048


def running_sequences(scenario: Scenario) -> int:
    """``max_num_seqs``, as ``vllm serve`` chooses it."""
    given = scenario.inference.max_num_seqs
    if given is None:
        given = 1024 if not is_v0(scenario) and _large(scenario) else 256
    return min(given, batched_tokens(scenario))


def padded(tokens: int, step: int = 256) -> int:
    """``tokens`` rounded up to whole steps."""
    return -(-tokens // step) * step


def cells(scenario: Scenario) -> int:
    """Cells of llama.cpp's cache over all sequences (``n_ctx``), in whole steps."""
    inference = scenario.inference
    if inference.kv_unified or inference.engine == "ollama":
        return padded(inference.batch_size * length(scenario), step(scenario))
    return inference.batch_size * padded(length(scenario), step(scenario))


def step(scenario: Scenario) -> int:
    """Cells that llama.cpp rounds up to; builds of 2025 took 32 where no flash attention wants 256."""
    inference = scenario.inference
    return 32 if inference.llama_cpp_version == "b6000" and not inference.flash_attention else 256


def physical_batch(scenario: Scenario) -> int:
    """Tokens that llama.cpp computes at once."""
    return min(scenario.inference.n_ubatch, cells(scenario))


def window_cells(scenario: Scenario, window: int) -> int:
    """Cells of llama.cpp's cache for layers with a window, over all sequences."""
    inference = scenario.inference
    if inference.swa_full:
        return cells(scenario)
    count = streams(scenario)
    held = window * (inference.batch_size // count) + physical_batch(scenario)
    return count * padded(min(cells(scenario) // count, held), step(scenario))


def streams(scenario: Scenario) -> int:
    """Caches that llama.cpp holds side by side: one for all sequences, or one each."""
    inference = scenario.inference
    return 1 if inference.kv_unified or inference.engine == "ollama" else inference.batch_size
