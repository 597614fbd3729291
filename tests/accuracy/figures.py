"""Which figure of an estimate a measured number is compared with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from memgui.estimator.result import Estimate, Moment, Node
from tests.accuracy.express import Inexpressible

ALLOCATED, PROCESS = "allocated", "process"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of an estimate: its value, and the range it is printed with where it has one (bytes)."""

    value: int
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Counter:
    """What a published number counts: its table (``allocated`` or ``process``) and memgui's figure."""

    table: str
    read: Callable[[Estimate], Figure]


def counter_of(text: str, component: str | None, unit: str) -> Counter:
    """The counter that a row names, or the component it measures."""
    if component is not None:
        return Counter(ALLOCATED, COMPONENTS_OF_LOGS.get(component, _unknown(f"the component {component}")))
    words = text.lower()
    if unit == "tokens":
        return Counter(ALLOCATED, _extra("pool_tokens"))
    for pattern, counter in COUNTERS:
        if re.search(pattern, words):
            return counter
    return Counter(PROCESS, process)


def allocated(estimate: Estimate) -> Figure:
    """What ``torch.cuda.max_memory_allocated()`` prints."""
    return Figure(estimate.allocated_bytes)


def reserved(estimate: Estimate) -> Figure:
    """What ``torch.cuda.max_memory_reserved()`` prints: the range less the context."""
    context = context_bytes(estimate)
    return Figure(estimate.reserved_bytes, estimate.low_bytes - context, estimate.high_bytes - context)


def process(estimate: Estimate) -> Figure:
    """What nvidia-smi shows for the process."""
    return Figure(estimate.peak_bytes, estimate.low_bytes, estimate.high_bytes)


def context_bytes(estimate: Estimate) -> int:
    """The CUDA context, which is what the process holds beyond the allocator."""
    return estimate.peak_bytes - estimate.reserved_bytes


def _sum_over_ranks(estimate: Estimate) -> Figure:
    beyond = estimate.peak_bytes - estimate.allocated_bytes
    return Figure(sum(rank.peak_bytes - beyond for rank in estimate.ranks))


def _allocated_and_context(estimate: Estimate) -> Figure:
    """With what NVML's first interface counts as used on an empty board: the driver's own share of it."""
    driver = -estimate.scenario.device.memory_bytes % 2**30
    return Figure(estimate.allocated_bytes + context_bytes(estimate) + driver)


def _between_steps(estimate: Estimate) -> Figure:
    found = moment(estimate, "after_zero_grad")
    return Figure(found.allocated or found.bytes)


def _loaded(estimate: Estimate) -> Figure:
    return Figure(estimate.component("weights").bytes)


def _loaded_reserved(estimate: Estimate) -> Figure:
    whole, weights = reserved(estimate), estimate.component("weights").bytes
    assert whole.high is not None
    return Figure(weights, weights, weights + whole.high - estimate.allocated_bytes)


def _loaded_process(estimate: Estimate) -> Figure:
    whole, weights = process(estimate), estimate.component("weights").bytes
    tensors = estimate.peak_bytes - estimate.component("overhead").bytes
    assert whole.low is not None
    assert whole.high is not None
    return Figure(
        weights + context_bytes(estimate), weights + whole.low - tensors, weights + whole.high - tensors
    )


def part(path: str) -> Callable[[Estimate], Figure]:
    """The node at ``path`` (keys joined by ``/``), where the estimate tells it apart."""

    def read(estimate: Estimate) -> Figure:
        first, *rest = path.split("/")
        node: Node = estimate.component(first)
        for key in rest:
            try:
                node = node.child(key)
            except KeyError:
                raise Inexpressible(f"memgui does not tell {path} apart") from None
        return Figure(node.bytes)

    return read


def _extra(key: str) -> Callable[[Estimate], Figure]:
    def read(estimate: Estimate) -> Figure:
        if key not in estimate.extra:
            raise Inexpressible(f"memgui does not say {key}")
        return Figure(estimate.extra[key])

    return read


def _unknown(what: str) -> Callable[[Estimate], Figure]:
    def read(_: Estimate) -> Figure:
        raise Inexpressible(f"{what} is not known")

    return read


COMPONENTS_OF_LOGS: Mapping[str, Callable[[Estimate], Figure]] = {
    "weights": part("weights"),
    "kv-cache": part("kv_cache"),
    "recurrent": part("kv_cache/recurrent"),
    "compute-buffer": part("temporary"),
    "host": _extra("host_bytes"),
    "process": process,
}

COUNTERS: tuple[tuple[str, Counter], ...] = (
    (r"theoretical", Counter(ALLOCATED, _unknown("a theoretical figure"))),
    (r"non_torch", Counter(ALLOCATED, part("overhead/non_torch"))),
    (r"cuda graph", Counter(ALLOCATED, _extra("cuda_graph_bytes"))),
    (r"activation peak", Counter(ALLOCATED, part("temporary"))),
    (r"model weights take|model loading took", Counter(ALLOCATED, part("weights"))),
    (r"reserved for kv cache", Counter(ALLOCATED, _extra("kv_pool_bytes"))),
    # the initial value was taken before anything was loaded, so that nothing is to be subtracted
    (r"reserved.*minus initial", Counter(PROCESS, reserved)),
    (r"^mean|percentile", Counter(PROCESS, _unknown("the length of the batches it is a mean of"))),
    (r"reserved after model init", Counter(PROCESS, _loaded_reserved)),
    (r"after load|after model init", Counter(ALLOCATED, _loaded)),
    (r"plus \(nvml", Counter(ALLOCATED, _allocated_and_context)),
    (r"sum over gpus.*allocated", Counter(ALLOCATED, _sum_over_ranks)),
    (r"^(max|peak) allocated|^rank-0 peak allocated", Counter(ALLOCATED, allocated)),
    (r"between steps|^memory allocated after iteration", Counter(ALLOCATED, _between_steps)),
    (r"max reserved|reserved", Counter(PROCESS, reserved)),
    (r"allocated|active|reported by pytorch", Counter(ALLOCATED, allocated)),
)


def of_kind(counter: Counter, kind: str) -> Counter:
    """``counter`` for rows of ``kind``: of loaded weights the figure is that of the weights alone."""
    if kind != "weights" or counter.read not in (process, reserved, allocated):
        return counter
    return {process: Counter(PROCESS, _loaded_process), reserved: Counter(PROCESS, _loaded_reserved)}.get(
        counter.read, Counter(ALLOCATED, _loaded)
    )


def moment(estimate: Estimate, name: str) -> Moment:
    """The last moment whose key ends in ``name``: that of the steady state."""
    found = [one for one in estimate.timeline if one.key.rpartition(".")[2] == name]
    if not found:
        raise Inexpressible(f"the timeline has no moment {name}")
    return found[-1]


def half_a_digit(value: Any, bytes_per_unit: float) -> int:
    """Half of the last digit that was published, in bytes: nearer than that no figure can be told."""
    exponent = Decimal(str(value)).as_tuple().exponent
    digits = -int(exponent) if isinstance(exponent, int) and exponent < 0 else 0
    return int(bytes_per_unit * 10**-digits / 2)
