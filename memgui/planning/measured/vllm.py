"""Start-up logs of vLLM, 0.4 to 0.2x."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memgui.planning.measured.records import WORKING, Counter, Figure, Measurement
from memgui.planning.measured.sizes import NUMBER, SIZE, size_of

_VLLM: Final[tuple[tuple[re.Pattern[str], str, Counter, tuple[str, ...]], ...]] = (
    (re.compile(rf"Loading model weights took {SIZE}"), "weights", Counter.ALLOCATED, ("weights",)),
    (re.compile(rf"Model loading took {SIZE}"), "weights", Counter.ALLOCATED, ("weights",)),
    (re.compile(rf"model weights take\s{{1,16}}{SIZE}"), "weights", Counter.ALLOCATED, ("weights",)),
    (re.compile(rf"Actual usage is {SIZE} for weight"), "weights", Counter.ALLOCATED, ("weights",)),
    (
        re.compile(rf"activation peak memory(?: takes)?\s{{1,16}}{SIZE}"),
        "activations",
        Counter.ALLOCATED,
        WORKING,
    ),
    (
        re.compile(rf"peak_torch_memory={SIZE}"),
        "peak in PyTorch",
        Counter.ALLOCATED,
        ("weights", *WORKING),
    ),
    (re.compile(rf"{SIZE} for peak activation"), "activations", Counter.ALLOCATED, WORKING),
    (
        re.compile(rf"non_torch_memory(?: takes)?[\s=]{{1,16}}{SIZE}"),
        "outside PyTorch",
        Counter.PROCESS,
        ("overhead",),
    ),
    (re.compile(rf"{SIZE} for non-torch memory"), "outside PyTorch", Counter.PROCESS, ("overhead",)),
    (re.compile(rf"{SIZE} for CUDAGraph memory"), "CUDA graphs", Counter.PROCESS, ("overhead",)),
    (
        re.compile(rf"Desired GPU memory utilization is \({NUMBER}, {SIZE}\)"),
        "allowed",
        Counter.CAPACITY,
        (),
    ),
    (re.compile(rf"Free memory on device \({NUMBER}/{SIZE}\) on startup"), "device", Counter.CAPACITY, ()),
    (
        re.compile(rf"Graph capturing finished in .{{1,24}} took {SIZE}"),
        "CUDA graphs",
        Counter.PROCESS,
        ("overhead",),
    ),
    (re.compile(rf"reserved for KV Cache is {SIZE}"), "KV cache pool", Counter.RESERVED, ("kv_cache",)),
    (re.compile(rf"Available KV cache memory: {SIZE}"), "KV cache pool", Counter.RESERVED, ("kv_cache",)),
    (
        re.compile(rf"(?:available_kv_cache_memory|kv_cache_size)[\s=]{{1,16}}{SIZE}"),
        "KV cache pool",
        Counter.RESERVED,
        ("kv_cache",),
    ),
    (re.compile(rf"total_gpu_memory[\s(=]{{1,16}}{SIZE}"), "device", Counter.CAPACITY, ()),
    (re.compile(rf"vLLM instance can use\s{{1,16}}{SIZE}"), "allowed", Counter.CAPACITY, ()),
    (re.compile(rf"gpu_memory_utilization \({NUMBER}\) = {SIZE}"), "allowed", Counter.CAPACITY, ()),
)
_VLLM_EXTRAS: Final = {
    "KV cache pool": "kv_pool_bytes",
    "CUDA graphs": "cuda_graph_bytes",
    "allowed": "budget_bytes",
}
_VLLM_FACTS: Final = (
    (re.compile(r"GPU KV cache size: ([0-9,]{1,20}) tokens"), "kv_tokens"),
    (re.compile(r"stored in KV cache \(([0-9,]{1,20})\)"), "kv_tokens"),
    (re.compile(r"# (?:GPU|cuda) blocks: ([0-9,]{1,20})"), "kv_blocks"),
    (re.compile(r"Maximum concurrency for ([0-9,]{1,20}) tokens"), "tokens_per_request"),
    (re.compile(r"estimated maximum model length is ([0-9,]{1,20})"), "longest"),
    (re.compile(r"max seq len \(([0-9,]{1,20})\)"), "tokens_per_request"),
)
_NEEDED: Final = re.compile(rf"{SIZE} KV cache is needed")


def vllm(lines: list[str]) -> Iterator[Measurement]:
    """The figures of a vLLM start-up log; of several workers' the largest of each kind."""
    found: dict[str, Figure] = {}
    facts: dict[str, int] = {}
    for line in lines:
        for pattern, part, counter, components in _VLLM:
            printed = pattern.search(line)
            size = size_of(printed[1], printed[2]) if printed is not None else None
            if size is None:
                continue
            known = found.get(part)
            finer = (
                known is not None and size.step > known.step and abs(size.bytes - known.bytes) <= size.step
            )
            if not finer and (known is None or size.bytes >= known.bytes or size.step < known.step):
                found[part] = Figure(
                    size.bytes, size.step, counter, components, part, extra=_VLLM_EXTRAS.get(part, "")
                )
        for pattern, key in _VLLM_FACTS:
            stated = pattern.search(line)
            if stated is not None:
                facts[key] = int(stated[1].replace(",", "") or 0)
        needed = _NEEDED.search(line)
        size = size_of(needed[1], needed[2]) if needed is not None else None
        if size is not None:
            part = "KV cache of one request"
            found[part] = Figure(size.bytes, size.step, Counter.WANTED, ("kv_cache",), part)
    if found or "kv_tokens" in facts:
        yield Measurement("vllm", tuple(found.values()), facts)
