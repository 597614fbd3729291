"""vLLM: weights, the peak of its profile run, libraries, and a pool of cache blocks from the rest.

vLLM may use a share of the device.  At start it loads the weights, runs the model once on the largest
batch it will ever run, samples for as many sequences as it will ever run, and gives what that left
of its share to the cache.  Rules: vLLM 0.11.0 (V1) and 0.6.x (V0), read in their sources.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from memgui.estimator.engines.blocks import Pool, pool_of
from memgui.estimator.engines.layout import require_layout
from memgui.estimator.engines.settings import batched_tokens, is_v0, length, running_sequences
from memgui.estimator.engines.sheet import Line, Squeezed, Stage, estimated, ranged
from memgui.estimator.engines.vllm_graph import WorkingSet, profile_run
from memgui.estimator.engines.weights import loaded, model_of, weights_node
from memgui.estimator.loose import stated
from memgui.estimator.options import capability
from memgui.estimator.overhead import CUBLAS_SOURCE, Range, context, cublas_workspace
from memgui.estimator.program import Program
from memgui.estimator.quantisation import Share
from memgui.estimator.result import Estimate, Node, Rank
from memgui.estimator.run_coverage import is_split
from memgui.estimator.tape import AMBIENT, Tensor
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

GIB: Final = 1 << 30
SOURCES: Final = {
    "0.11": QT_TRANSLATE_NOOP("sources", "vLLM 0.11.0: gpu_worker.py, kv_cache_utils.py"),
    "0.6": QT_TRANSLATE_NOOP("sources", "vLLM 0.6: start-up logs in issues 10517 and 11230"),
    "0.3": QT_TRANSLATE_NOOP("sources", "vLLM 0.3 to 0.6.3: worker.py; QwenLM/Qwen3 issue 16"),
    "0.2": QT_TRANSLATE_NOOP("sources", "vLLM 0.2: worker.py, its AWQ kernel; issue 2199"),
}
NON_TORCH_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources", "vLLM start-up logs: issues 14452, 15340, 11251, llm-d-planner's table on H100, and others"
)
GRAPHS_SOURCE: Final = QT_TRANSLATE_NOOP("sources", "CUDA graphs in vLLM start-up logs, 0.6B to 70B")

_V0: Final = (
    Range(int(0.3 * GIB), int(0.35 * GIB), int(0.4 * GIB), NON_TORCH_SOURCE),
    Range(int(0.33 * GIB), int(0.39 * GIB), int(0.87 * GIB), NON_TORCH_SOURCE),
)
NON_TORCH: Final = {
    "0.11": (
        Range(int(0.08 * GIB), int(0.13 * GIB), int(0.17 * GIB), NON_TORCH_SOURCE),
        Range(int(0.33 * GIB), int(0.54 * GIB), int(0.87 * GIB), NON_TORCH_SOURCE),
    ),
    "0.6": _V0,
    "0.3": _V0,
    "0.2": _V0,
}
"""Memory that is not PyTorch's, on one device alone and on each of several: NCCL, kernels, libraries."""

GRAPHS: Final = Range(0, int(0.25 * GIB), int(1.03 * GIB), GRAPHS_SOURCE)

LOAD = QT_TRANSLATE_NOOP("messages", "Model loaded")
PROFILE = QT_TRANSLATE_NOOP("messages", "Profile run: the largest batch, once")
SERVE = QT_TRANSLATE_NOOP("messages", "Serving all sequences")


class Device(NamedTuple):
    """One rank of the layout and what lies on it."""

    name: str
    share: Share
    weights: Node
    working: WorkingSet
    pool: Pool

    @property
    def fixed(self) -> int:
        """Bytes that do not depend on how many sequences there are, libraries apart."""
        return self.weights.bytes + self.working.node.bytes


def serve(scenario: Scenario) -> Estimate:
    """What vLLM holds on the worst rank; raises ``NotCovered``."""
    require_layout(scenario, "tensor", "pipeline", "expert")
    inference, memory = scenario.inference, scenario.device.memory_bytes
    version = inference.vllm_version
    model = model_of(scenario)
    devices = [_device(scenario, model.program, name, share) for name, share in ranks(scenario)]
    tensor = scenario.parallelism.tensor * scenario.parallelism.pipeline
    libraries = NON_TORCH[version][tensor > 1]
    needed = {device.name: device.fixed + device.pool.needed for device in devices}
    worst = max(devices, key=lambda device: needed[device.name])
    budget = int(memory * inference.gpu_memory_utilization)
    smallest = min(budget - device.fixed - libraries.usual for device in devices)
    pool = worst.pool.filled(max(smallest, 0))
    source = SOURCES[version]
    beside = ranged(
        "overhead",
        stated(
            "non_torch",
            QT_TRANSLATE_NOOP("estimator", "Outside PyTorch"),
            libraries.usual,
            NON_TORCH_SOURCE,
            QT_TRANSLATE_NOOP(
                "estimator",
                "NCCL, kernels and libraries; vLLM measures it in its profile run and keeps it free.",
            ),
            libraries,
            depends=("inference.vllm_version", "parallelism.tensor", "parallelism.pipeline"),
        ),
        libraries,
    )
    still = (Line("weights", worst.weights), beside)
    working = Line("temporary", worst.working.node)
    cached = Line("kv_cache", worst.pool.node(scenario, source))
    stages = (
        Stage("load", LOAD, still[:1]),
        Stage("profile", PROFILE, (*still, working), worst.working.operator),
        Stage("decode", SERVE, (*still, working, cached)),
    )
    chip = capability(scenario.device.compute_capability)
    graphs = Range(0, 0, 0, "") if inference.enforce_eager else GRAPHS
    own = context(chip)
    unseen = _bias(scenario)
    outside = own.usual + graphs.usual + unseen
    left = memory - budget
    extra = {
        "kv_bytes_per_token": worst.pool.token_bytes,
        "state_bytes_per_sequence": worst.pool.state_bytes,
        "kv_pool_bytes": max(smallest, 0),
        "pool_blocks": pool.blocks,
        "pool_tokens": pool.tokens,
        "max_concurrency": pool.concurrency,
        "max_concurrency_percent": pool.concurrency_percent,
        "longest_sequence": pool.longest,
        "budget_bytes": budget,
        "cuda_graph_bytes": graphs.usual,
        "outside_budget_bytes": outside,
        "process_bytes": max(budget, needed[worst.name] + libraries.usual) + outside,
        "max_num_batched_tokens": batched_tokens(scenario),
        "max_num_seqs": running_sequences(scenario),
    }
    return estimated(
        scenario,
        f"vLLM {version}",
        model.parameters,
        stages,
        budget,
        extra=extra,
        ranks=every_rank(scenario, [needed[device.name] + libraries.usual for device in devices]),
        squeezed=_squeezed(own.low + graphs.low + unseen, outside, left),
        assumptions=(
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "The CUDA context and CUDA graphs ({bytes} bytes) lie outside vLLM's share.",
                ),
                {"bytes": outside},
            ),
        ),
    )


def _squeezed(least: int, usual: int, left: int) -> Squeezed | None:
    """The cache fills vLLM's share; what lies outside has to fit into what is ``left`` of the device."""
    if usual <= left:
        return None
    reason = Message(
        QT_TRANSLATE_NOOP(
            "messages",
            "vLLM fills its share of the device; outside it {bytes} bytes are needed and {left} are left.",
        ),
        {"bytes": usual, "left": left},
    )
    return Squeezed("does_not_fit" if least > left else "tight", reason)


def _bias(scenario: Scenario) -> int:
    """ALiBi for every pair of tokens of a prompt, which vLLM before 0.8 made and its profile run did not."""
    model, inference = scenario.model, scenario.inference
    if model.position_embedding != "alibi" or not is_v0(scenario):
        return 0
    heads = max(1, model.num_attention_heads // scenario.parallelism.tensor)
    width = 4 if inference.weight_format == "fp32" else 2
    return (heads + 1) * inference.prompt_tokens**2 * width


def ranks(scenario: Scenario) -> list[tuple[str, Share]]:
    """The ranks that differ: one for each pipeline stage.

    Layers are split evenly; where that does not come out, stages other than the last take one more,
    from the last but one backward (vLLM's get_pp_indices).
    """
    split = scenario.parallelism
    count, stages = scenario.model.num_hidden_layers, split.pipeline
    sizes = [count // stages] * stages
    for extra in range(count % stages):
        sizes[-2 - extra if stages > 1 else 0] += 1
    expert = split.expert if is_split(scenario, "expert") else 1
    found: list[tuple[str, Share]] = []
    start = 0
    for index, size in enumerate(sizes):
        share = Share(
            split.tensor,
            expert,
            start,
            start + size,
            stem=index == 0 or (index == stages - 1 and scenario.model.tie_word_embeddings),
            tail=index == stages - 1,
            fill_vocabulary=True,
            fill_experts=256 if padded_experts(scenario) else 1,
        )
        found.append((str(index), share))
        start += size
    return found


def every_rank(scenario: Scenario, stages: list[int]) -> tuple[Rank, ...]:
    """All ranks in order; those that split the matrices of a stage hold alike."""
    peaks = [peak for peak in stages for _ in range(scenario.parallelism.tensor)]
    return tuple(Rank(str(index), peak) for index, peak in enumerate(peaks))


def padded_experts(scenario: Scenario) -> bool:
    """Whether experts are filled up to whole 256 columns: MXFP4 in the layout of Triton's Hopper kernels."""
    hopper = capability(scenario.device.compute_capability)[0] == 9
    return scenario.inference.weight_format == "mxfp4" and hopper


def _device(scenario: Scenario, program: Program, name: str, share: Share) -> Device:
    on_device = loaded(scenario, program, share)
    chip = capability(scenario.device.compute_capability)
    working = profile_run(scenario, share, cublas_workspace(chip, training=False), CUBLAS_SOURCE)
    return Device(
        name,
        share,
        weights_node(scenario, program, [*on_device.things, *_rope(scenario, program)]),
        working,
        pool_of(scenario, share),
    )


def _rope(scenario: Scenario, program: Program) -> list[tuple[Tensor, int]]:
    """Cosines and sines of every position, in the model's format, once for all layers (rotary_embedding)."""
    model = scenario.model
    if model.position_embedding != "rope":
        return []
    rotated = program.sizes.values["p"]
    positions = model.max_position_embeddings or length(scenario)
    width = 4 if scenario.inference.weight_format == "fp32" else 2
    table = Tensor("cos_sin_cache", (positions, "p"), width, positions * rotated * width, 0, False, AMBIENT)
    table.part = "rotary"
    table.block = "stem"
    return [(table, 1)]
