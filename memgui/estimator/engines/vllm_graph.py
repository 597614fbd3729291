"""What vLLM holds for a moment in its profile run: a layer on the largest batch, or the sampler.

Layers fuse: queries, keys and values come from one matrix, so do gate and up; norms and rotations
work in place on two streams, the hidden states and the residual.  The caller of a layer still refers
to the hidden states it handed in.
"""

from __future__ import annotations

from typing import NamedTuple

from memgui.estimator.allocator import Allocator
from memgui.estimator.engines.graph import Buffer, Dims, Graph
from memgui.estimator.engines.settings import batched_tokens, chunked, running_sequences
from memgui.estimator.engines.sheet import Factor, Term, explained
from memgui.estimator.engines.told import predicted, routed
from memgui.estimator.overhead import block_bytes
from memgui.estimator.quantisation import Share
from memgui.estimator.result import Node
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec, pattern_at
from memgui.spec.scenario import Scenario

SOURCE = QT_TRANSLATE_NOOP(
    "sources",
    "vLLM 0.11.0: models/llama.py, fused_moe.py, v1/sample; PyTorch's cuda/Sort.cu; logs from H100, 3090",
)
SORT_SCRATCH = 20
"""Bytes for each number that PyTorch sorts in more than 128 rows: int64 indices once more, and what
CUB's segmented sort takes to and fro (4 for the key, 8 for the index)."""


class WorkingSet(NamedTuple):
    """The most that is alive at once, and the operator that runs then."""

    node: Node
    operator: str


class Sizes(NamedTuple):
    """Symbols of the profile run, as they are on one rank."""

    tokens: Factor
    sequences: Factor
    hidden: Factor
    heads: Factor
    shared: Factor
    head: Factor
    inner: Factor
    experts: Factor
    chosen: Factor
    expert_inner: Factor
    vocabulary: Factor
    width: int
    kernels: str = ""
    """of packed weights, where these make more than their result: ``awq`` or ``gptq``"""


def sizes(scenario: Scenario, share: Share) -> Sizes:
    """The symbols of ``scenario`` on a rank that has ``share``."""
    m, degree = scenario.model, share.tensor
    heads = QT_TRANSLATE_NOOP("symbols", "attention heads on a rank")
    shared = QT_TRANSLATE_NOOP("symbols", "key/value heads on a rank")
    inner = QT_TRANSLATE_NOOP("symbols", "FFN width on a rank")
    return Sizes(
        Factor(
            "n",
            batched_tokens(scenario),
            QT_TRANSLATE_NOOP("symbols", "tokens run at once (max_num_batched_tokens)"),
            "inference.max_num_batched_tokens",
        ),
        Factor(
            "z",
            running_sequences(scenario),
            QT_TRANSLATE_NOOP("symbols", "sequences run at once (max_num_seqs)"),
            "inference.max_num_seqs",
        ),
        Factor("h", m.hidden_size, QT_TRANSLATE_NOOP("symbols", "hidden size"), "model.hidden_size"),
        Factor("a", max(1, m.num_attention_heads // degree), heads, "model.num_attention_heads"),
        Factor("k", max(1, m.num_key_value_heads // degree), shared, "model.num_key_value_heads"),
        Factor("d", m.head_dim, QT_TRANSLATE_NOOP("symbols", "head size"), "model.head_dim"),
        Factor("f", -(-m.intermediate_size // degree), inner, "model.intermediate_size"),
        *routed(m),
        Factor(
            "m",
            -(-m.moe_intermediate_size // max(1, degree // share.expert)),
            QT_TRANSLATE_NOOP("symbols", "expert width on a rank"),
            "model.moe_intermediate_size",
        ),
        predicted(m),
        4 if scenario.inference.weight_format == "fp32" else 2,
        _kernels(scenario),
    )


def _kernels(scenario: Scenario) -> str:
    """Whose kernels run packed weights; from 0.3 on AWQ's unpacks what many tokens use, as GPTQ's does."""
    packing = scenario.inference.weight_format.partition("_")[0]
    if not _is_old(scenario) or packing not in ("awq", "gptq"):
        return ""
    return packing if scenario.inference.vllm_version == "0.2" else "gptq"


def _is_old(scenario: Scenario) -> bool:
    """Whether the vLLM is one that counts what PyTorch has reserved (up to 0.6.3)."""
    return scenario.inference.vllm_version in ("0.2", "0.3")


SPLIT_K = 8
"""Partial results that the AWQ kernel of vLLM 0.2 made side by side."""


def _linear(g: Graph, s: Sizes, name: str, columns: Dims, reads: Buffer, given: int) -> Buffer:
    """A linear layer from ``given`` features to ``columns``; kernels of packed weights make more than that.

    AWQ's splits its sum, GPTQ's unpacks the matrix first.
    """
    n = s.tokens
    if s.kernels == "awq":
        parts = g.make(f"{name}, partial sums", (SPLIT_K, n, *columns), s.width, reads=(reads,))
        return g.make(name, (n, *columns), s.width, reads=(parts,))
    made = Buffer(name, (n, *columns), s.width)
    unpacked = (Buffer(f"{name}, unpacked", (given, *columns), s.width),) if s.kernels == "gptq" else ()
    g.run(name, (made, *unpacked), (reads,))
    return made


def profile_run(scenario: Scenario, share: Share, workspace: int, workspace_source: str) -> WorkingSet:
    """The peak of the profile run above the weights, in the blocks that PyTorch counts."""
    s = sizes(scenario, share)
    moments = [_layer(scenario.model, s, kind) for kind in _feed_forwards(scenario.model)]
    sampled = share.tail and not chunked(scenario)
    if sampled:
        moments.append(_sampler(s))
    _, alive, operator = max((graph.peak() for graph in moments), key=lambda found: found[0])
    return WorkingSet(_node(alive, workspace, workspace_source, _reserved(scenario, moments)), operator)


def _reserved(scenario: Scenario, moments: list[Graph]) -> int:
    """What PyTorch has reserved after the run, where that is what counts."""
    if not _is_old(scenario):
        return 0
    allocator = Allocator()
    for graph in moments:
        graph.through(allocator)
    return allocator.reserved


def _node(alive: list[Buffer], workspace: int, workspace_source: str, reserved: int) -> Node:
    terms: list[Term] = [buffer.term for buffer in alive]
    text = QT_TRANSLATE_NOOP(
        "estimator", "The most that is alive at once while the largest batch runs and is sampled."
    )
    rounding = sum(block_bytes(buffer.size) - buffer.size for buffer in alive)
    if reserved:  # beyond the peak, what is cached
        rounding = reserved - sum(buffer.size for buffer in alive)
    children = (
        explained("tensors", QT_TRANSLATE_NOOP("estimator", "Tensors of the peak"), terms, SOURCE, text),
        explained(
            "workspaces",
            QT_TRANSLATE_NOOP("estimator", "Library workspaces"),
            ((workspace,),),
            workspace_source,
            QT_TRANSLATE_NOOP("estimator", "cuBLAS allocates its workspace in the profile run."),
            depends=("device.compute_capability",),
        ),
        explained(
            "block_rounding",
            QT_TRANSLATE_NOOP("estimator", "Block rounding"),
            ((rounding,),),
            QT_TRANSLATE_NOOP("sources", "PyTorch's CUDA caching allocator"),
            QT_TRANSLATE_NOOP("estimator", "PyTorch counts blocks, not tensors.")
            if not reserved
            else QT_TRANSLATE_NOOP("estimator", "What PyTorch has reserved for the run beyond its peak."),
            depends=("inference.max_num_batched_tokens", "inference.max_num_seqs"),
        ),
    )
    return Node("profile_run", QT_TRANSLATE_NOOP("estimator", "Profile run"), 0, children)


def _feed_forwards(model: ModelSpec) -> list[str]:
    usual = "sparse" if model.num_experts else "dense"
    pattern = model.mlp_layer_types or (usual,)
    return sorted({pattern_at(pattern, index, usual) for index in range(model.num_hidden_layers)})


def _layer(model: ModelSpec, s: Sizes, feed_forward: str) -> Graph:
    g = Graph()
    stream = (s.tokens, s.hidden)
    given = g.make("hidden states", stream, s.width)
    residual = g.make("residual", stream, s.width)
    fused = (s.heads.value + 2 * s.shared.value) * s.head.value
    qkv = _linear(g, s, "qkv", (fused,), given, s.hidden.value)
    seen = g.make("attention", (s.tokens, s.heads, s.head), s.width, reads=(qkv,))
    x = _linear(g, s, "o_proj", (s.hidden,), seen, s.heads.value * s.head.value)
    if feed_forward.endswith("sparse"):
        y = _experts(model, g, s, x)
    elif feed_forward.startswith("dense"):
        y = _dense(model, g, s, x)
    else:
        y = x
    g.use(given, residual, y)
    return g


def _dense(model: ModelSpec, g: Graph, s: Sizes, x: Buffer) -> Buffer:
    if model.gated_mlp:
        wide = _linear(g, s, "gate_up_proj", (2, s.inner), x, s.hidden.value)
        inner = g.make("silu_and_mul", (s.tokens, s.inner), s.width, reads=(wide,))
    else:
        wide = _linear(g, s, "fc_in", (s.inner,), x, s.hidden.value)
        inner = g.make("activation", (s.tokens, s.inner), s.width, reads=(wide,))
    y = _linear(g, s, "down_proj", (s.hidden,), inner, s.inner.value)
    g.use(x)
    return y


CHUNK = 32_768
"""Tokens that the fused experts take at once (VLLM_FUSED_MOE_CHUNK_SIZE)."""


def _experts(model: ModelSpec, g: Graph, s: Sizes, x: Buffer) -> Buffer:
    """Fused experts: the first and the last of their buffers share one storage."""
    tokens = s.tokens
    if tokens.value > CHUNK:
        label = QT_TRANSLATE_NOOP("symbols", "tokens that the experts take at once")
        tokens = Factor("nc", CHUNK, label, s.tokens.path)
    router = g.make("router", (s.tokens, s.experts), s.width, reads=(x,))
    weights = g.make("topk_weights", (s.tokens, s.chosen), 4, reads=(router,))
    ids = g.make("topk_ids", (s.tokens, s.chosen), 4, reads=(router,))
    widest = (2, s.expert_inner) if 2 * s.expert_inner.value > s.hidden.value else (s.hidden,)
    outer = g.make("cache1 and cache3", (tokens, s.chosen, *widest), s.width, reads=(x, ids))
    inner = g.make("cache2", (tokens, s.chosen, s.expert_inner), s.width, reads=(outer,))
    y = g.make("experts", (s.tokens, s.hidden), s.width, reads=(outer, inner, weights))
    if model.n_shared_experts and model.shared_expert_intermediate_size:
        g.use(x)
    g.use(x, router)
    return y


def _sampler(s: Sizes) -> Graph:
    """Logits of the last token of as many sequences as run at once, sorted for top-p."""
    g = Graph()
    states = g.make("hidden states", (s.tokens, s.hidden), s.width)
    last = g.make("last hidden states", (s.sequences, s.hidden), s.width, reads=(states,))
    drawn = g.make("rand_like", (s.sequences, s.hidden), s.width, reads=(last,))
    logits = g.make("logits", (s.sequences, s.vocabulary), s.width, reads=(drawn,))
    full = (
        logits if s.width == 4 else g.make("logits in fp32", (s.sequences, s.vocabulary), 4, reads=(logits,))
    )
    values = Buffer("sorted", (s.sequences, s.vocabulary), 4)
    where = Buffer("sorted indices", (s.sequences, s.vocabulary), 8)
    scratch = Buffer("sort", (s.sequences, s.vocabulary), SORT_SCRATCH)
    g.run("aten.sort", (values, where, scratch), (full,))
    g.use(values, where)
    g.use(states, last, drawn, logits, full)
    return g
