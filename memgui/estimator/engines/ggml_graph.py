"""The compute buffer of llama.cpp: one arena for the graph of a physical batch, layer after layer.

Everything is fp32 but the mask of flash attention.  Inputs are copied to the device before the first
layer; an operator works in place where nothing else reads its operand.  Rules: llama.cpp b11434,
llama-graph.cpp and ggml-alloc.c; checked against its own scheduler on devices that compute nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from msgspec import structs

from memgui.estimator.engines.cache import RECURRENT
from memgui.estimator.engines.ggml_recurrent import Recurrent
from memgui.estimator.engines.ggml_symbols import symbols
from memgui.estimator.engines.graph import Buffer, Graph
from memgui.estimator.engines.settings import streams, window_cells
from memgui.estimator.engines.sheet import Factor
from memgui.estimator.engines.told import windows
from memgui.estimator.refusals import NotCovered, not_with
from memgui.spec.formats import CACHE_FORMATS
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec, pattern_at
from memgui.spec.scenario import Inference, Scenario

ALIGNMENT = 128
"""Bytes that CUDA buffers are aligned to."""

RESHAPED = ("mamba", "gated_delta_net", "kda")
"""Mixers that reshape what they give: it is added in place to the residual, not the other way round."""

FP32 = 4
INT32 = 4
INT64 = 8


class Compute(NamedTuple):
    """A compute buffer: its bytes, what is alive in it at its fullest, and on which operator."""

    bytes: int
    alive: tuple[Buffer, ...]
    operator: str


def compute_buffer(scenario: Scenario, device: int = 0, devices: int = 1) -> Compute:
    """The arena of one device; the last of several also computes the head.

    On several devices llama.cpp keeps four copies of each input, to run batches one behind the other;
    not where matrices are split by rows.
    """
    copies = 4 if devices > 1 and scenario.parallelism.tensor == 1 else 1
    return _planned(_computed(scenario), copies, device == 0, device == devices - 1)


def _computed(scenario: Scenario) -> Scenario:
    """``scenario`` without what decides nothing here: where weights lie, in which format, on what."""
    plain = Inference()
    inference = structs.replace(
        scenario.inference,
        weight_format=plain.weight_format,
        n_gpu_layers=plain.n_gpu_layers,
        n_cpu_moe=plain.n_cpu_moe,
    )
    return Scenario(model=scenario.model, task=scenario.task, inference=inference)


@lru_cache(maxsize=32)
def _planned(scenario: Scenario, copies: int, first: bool, head: bool) -> Compute:
    """The same, once for all devices between the first and the last."""
    graph = _Writer(scenario, copies, first=first).write(head=head)
    _, alive, operator = graph.peak()
    return Compute(graph.arena(ALIGNMENT), tuple(alive), operator)


class _Writer:
    """Writes the graph of a model: inputs, a few layers that show every kind, the head."""

    def __init__(self, scenario: Scenario, copies: int, *, first: bool) -> None:
        self.scenario = scenario
        self.model = scenario.model
        self.s = symbols(scenario)
        self.copies = copies
        self.first = first
        self.new = scenario.inference.llama_cpp_version != "b6000"
        self.flash = scenario.inference.flash_attention
        self.g = Graph()
        self.masks: dict[str, Buffer] = {}
        self.small: tuple[Buffer, ...] = ()
        self.begun: Recurrent | None = None
        self.following = "none"

    def write(self, *, head: bool) -> Graph:
        g, s = self.g, self.s
        x = self._inputs()
        kinds = _sample(self.model)
        rows = s.tokens
        for index, (mixer, feed_forward) in enumerate(kinds):
            last = head and index == len(kinds) - 1
            self.following = kinds[index + 1][0] if index + 1 < len(kinds) else "none"
            rows = s.outputs if last else s.tokens
            x = self._layer(x, mixer, feed_forward, rows)
            if index == len(kinds) - 1:
                g.use(*self.small)
        if head:
            logits = g.make("result_output", (rows, s.vocabulary), FP32, reads=(x,))
            g.keep(x, logits)
        return g

    # -- inputs ---------------------------------------------------------------------------------------

    def _input(self, name: str, *dims: Factor | int, width: int = FP32) -> Buffer:
        made = self.g.make(name, dims, width)
        if self.copies > 1:
            self.g.keep(made, *(self.g.make(f"{name}, a copy", dims, width) for _ in range(self.copies - 1)))
        return made

    def _inputs(self) -> Buffer:
        g, s = self.g, self.s
        mixed: tuple[Buffer, ...] = ()
        if self.new and self.first:  # a batch of embeddings and tokens mixed: computed and not used
            mixed = (
                self._input("inp_mixed_embd", s.tokens, s.hidden),
                self._input("rows of mixed tokens", s.tokens, s.hidden),
                self._input("inp_mixed_slots", s.tokens, width=INT64),
            )
        x = self._input("embeddings", s.tokens, s.hidden)
        mixers = [mixer for mixer, _ in _sample(self.model)]
        small: list[Buffer] = []
        if not all(mixer in RECURRENT for mixer in mixers):
            small.append(self._input("inp_pos", s.tokens, width=INT32))
        for mixer in dict.fromkeys(mixers):
            if mixer in RECURRENT or mixer == "none":
                continue
            small += self._cache_inputs(mixer)
        ids = self._input("inp_out_ids", s.outputs, width=INT32)
        self.small = (*small, ids)
        if mixed:
            g.keep(g.make("mixed embeddings", (s.tokens, s.hidden), FP32, reads=mixed))
        return x

    def _cache_inputs(self, mixer: str) -> list[Buffer]:
        s = self.s
        window = self.model.sliding_window if mixer.endswith("sliding_attention") else None
        key = "window" if window else "all"
        if key in self.masks:
            return []
        found: list[Buffer] = []
        if self.new:
            found.append(self._input("inp_k_idxs", s.tokens, width=INT64))
            if self.flash:
                found.append(self._input("inp_v_idxs", s.tokens, width=INT64))
            elif self.model.kv_lora_rank is None:
                found.append(self._input("inp_v_idxs", s.tokens, s.shared, s.head, width=INT64))
        seen = s.cells
        if window:
            label = QT_TRANSLATE_NOOP("symbols", "cells of the windows' cache")
            seen = windows(
                self.scenario, window_cells(self.scenario, window) // streams(self.scenario), label
            )
        self.masks[key] = self._input("inp_kq_mask", s.tokens, seen, width=2 if self.flash else FP32)
        return found

    # -- layers ---------------------------------------------------------------------------------------

    def _norm(self, x: Buffer, dims: tuple[Factor | int, ...]) -> Buffer:
        return self.g.make("norm", dims, FP32, reads=(x,))

    def _layer(self, x: Buffer, mixer: str, feed_forward: str, rows: Factor) -> Buffer:
        g, s = self.g, self.s
        stream = (s.tokens, s.hidden)
        begun = self.begun or self._begin(mixer)
        self.begun = None
        normed = self._norm(x, stream)
        if begun is not None:
            y = begun.over(normed, self._begin_next)
            if mixer == "attention_mamba2":
                beside, y = y, self._attention(normed, "full_attention")
                g.use(beside)
        elif mixer == "none":
            y = normed
        elif self.model.kv_lora_rank is not None:
            y = self._latent(normed)
        else:
            y = self._attention(normed, mixer)
        if rows is not s.tokens and self.new:
            y = g.make("rows of outputs", (rows, s.hidden), FP32, reads=(y,))
            x = g.make("rows of the residual", (rows, s.hidden), FP32, reads=(x,))
        elif mixer in RESHAPED:
            g.use(y)
            x, y = y, x
        parallel = self.model.parallel_block != "none"
        if not parallel:
            g.use(x)  # added in place to what attention gave
        if feed_forward == "none":
            return y
        inner = self._norm(x if parallel else y, (rows, s.hidden))
        z = self._experts(inner, rows) if feed_forward.endswith("sparse") else self._dense(inner, rows)
        g.use(x, y) if parallel else g.use(y)
        return z

    def _begin(self, mixer: str) -> Recurrent | None:
        has_state = mixer in (*RECURRENT, "attention_mamba2")
        return Recurrent(self.g, self.scenario, mixer, self.s.tokens) if has_state else None

    def _begin_next(self) -> None:
        """What the next layer gathers stands in the graph before what this one does last."""
        if self.begun is None:
            self.begun = self._begin(self.following)

    def _attention(self, x: Buffer, mixer: str) -> Buffer:
        g, s, m = self.g, self.s, self.model
        wide = (s.tokens, s.heads, s.head)
        narrow = (s.tokens, s.shared, s.head)
        doubled = None
        if m.attention_output_gate:
            doubled = g.make("Qcur_full", (2, *wide), FP32, reads=(x,))
            sources = (doubled, x, x)
        elif m.fused_qkv:
            fused = (s.heads.value + 2 * s.shared.value) * s.head.value
            qkv = g.make("wqkv", (s.tokens, fused), FP32, reads=(x,))
            sources = (qkv, qkv, qkv)
        else:
            q0 = g.make("Qcur", wide, FP32, reads=(x,))
            sources = (q0, x, x)
        q = self._placed(sources[0], wide)
        if m.fused_qkv:
            k = self._placed(sources[1], narrow)
            v = sources[2]
        else:
            v = g.make("Vcur", narrow, FP32, reads=(x,))
            k = self._placed(g.make("Kcur", narrow, FP32, reads=(x,)), narrow)
        g.use(k)
        g.use(v)
        self._begin_next()
        window = m.sliding_window if mixer.endswith("sliding_attention") else None
        mask = self.masks["window" if window else "all"]
        seen = s.cells
        if window:
            seen = windows(
                self.scenario, window_cells(self.scenario, window) // streams(self.scenario), s.cells.label
            )
        out = self._attend(q, mask, seen, wide, narrow)
        if doubled is not None:
            gate = g.make("gate", wide, FP32, reads=(doubled,))
            g.use(out, gate)
        return g.make("attn_out", (s.tokens, s.hidden), FP32, reads=(out,))

    def _placed(self, x: Buffer, dims: tuple[Factor | int, ...]) -> Buffer:
        """Normalised and rotated, where the model does so: one new tensor, the second works in place."""
        g, m = self.g, self.model
        if m.qk_norm != "none" or m.position_embedding == "rope":
            x = g.make("norm and rope", dims, FP32, reads=(x,))
        return x

    def _attend(
        self,
        q: Buffer,
        mask: Buffer,
        seen: Factor,
        wide: tuple[Factor | int, ...],
        narrow: tuple[Factor | int, ...],
    ) -> Buffer:
        g, s = self.g, self.s
        if not self.flash:
            kq = g.make("kq", (seen, s.tokens, s.heads), FP32, reads=(q,))
            g.use(kq, mask)  # softmax in place
            kqv = g.make("kqv", wide, FP32, reads=(kq,))
            return g.make("kqv_out", wide, FP32, reads=(kqv,))
        out = Buffer("flash_attn_ext", wide, FP32)
        copies = tuple(self._converted(seen, narrow)) if self.new else ()
        g.run("flash_attn_ext", (out, *copies), (q, mask))
        return out

    def _converted(self, seen: Factor, narrow: tuple[Factor | int, ...]) -> list[Buffer]:
        """Keys and values of all cells in fp16, where the cache holds them in blocks."""
        inference = self.scenario.inference
        formats = (inference.kv_cache_format, inference.kv_cache_format_v or inference.kv_cache_format)
        return [
            Buffer(f"{name} in fp16", (seen, *narrow[1:]), 2)
            for name, kind in zip(("K", "V"), formats, strict=True)
            if CACHE_FORMATS[kind].block > 1
        ]

    def _latent(self, x: Buffer) -> Buffer:
        """Latent attention, absorbed: queries meet the compressed keys, values are unfolded afterwards."""
        g, s, m = self.g, self.s, self.model
        rank, rope = m.kv_lora_rank or 0, m.qk_rope_head_dim
        whole = m.qk_nope_head_dim + rope
        label = QT_TRANSLATE_NOOP("symbols", "KV latent size")
        latent = Factor("l", rank, label, "model.kv_lora_rank")
        if m.q_lora_rank:
            low = g.make("q_a", (s.tokens, m.q_lora_rank), FP32, reads=(x,))
            q = g.make("q", (s.tokens, s.heads, whole), FP32, reads=(low,))
        else:
            q = g.make("q", (s.tokens, s.heads, whole), FP32, reads=(x,))
        kv = g.make("kv_cmpr_pe", (s.tokens, rank + rope), FP32, reads=(x,))
        turned = g.make("q_pe", (s.tokens, s.heads, rope), FP32, reads=(q,))
        key = g.make("k_pe", (s.tokens, rope), FP32, reads=(kv,))
        small = g.make("kv_cmpr", (s.tokens, rank), FP32, reads=(kv,))
        absorbed = g.make("q_nope_absorbed", (s.tokens, s.heads, latent), FP32, reads=(q,))
        query = g.make("Qcur", (s.tokens, s.heads, rank + rope), FP32, reads=(turned, absorbed))
        stored = g.make("Kcur", (s.tokens, rank + rope), FP32, reads=(key, small))
        g.use(stored)
        self._begin_next()
        mask = self.masks.get("all")
        if mask is None:
            raise NotCovered(not_with("model.kv_lora_rank", rank, "sliding_attention"))
        if self.flash:
            seen = g.make("flash_attn_ext", (s.tokens, s.heads, latent), FP32, reads=(query, mask))
        else:
            kq = g.make("kq", (s.cells, s.tokens, s.heads), FP32, reads=(query,))
            g.use(kq, mask)
            values = g.make("v_cont", (s.cells, latent), 2)
            seen = g.make("kqv", (s.tokens, s.heads, latent), FP32, reads=(kq, values))
        values = g.make("fattn_mla", (s.tokens, s.heads, m.v_head_dim), FP32, reads=(seen,))
        out = g.make("kqv_out", (s.tokens, s.heads, m.v_head_dim), FP32, reads=(values,))
        return g.make("attn_out", (s.tokens, s.hidden), FP32, reads=(out,))

    # -- feed-forwards --------------------------------------------------------------------------------

    def _dense(self, x: Buffer, rows: Factor) -> Buffer:
        g, s = self.g, self.s
        wide = (rows, s.inner)
        if self.model.gated_mlp:
            gate = g.make("ffn_gate", wide, FP32, reads=(x,))
            up = g.make("ffn_up", wide, FP32, reads=(x,))
            inner = g.make("ffn_swiglu", wide, FP32, reads=(gate, up))
        else:
            inner = g.make("ffn_up", wide, FP32, reads=(x,))  # the activation works in place
        return g.make("ffn_out", (rows, s.hidden), FP32, reads=(inner,))

    def _experts(self, x: Buffer, rows: Factor) -> Buffer:
        g, s, m = self.g, self.s, self.model
        probabilities = g.make("ffn_moe_probs", (rows, s.experts), FP32, reads=(x,))
        order = g.make("ffn_moe_argsort", (rows, s.experts), INT32, reads=(probabilities,))
        weights = g.make("ffn_moe_weights", (rows, s.chosen), FP32, reads=(probabilities, order))
        wide = (rows, s.chosen, s.expert_inner)
        up = g.make("ffn_moe_up", wide, FP32, reads=(x, order))
        gate = g.make("ffn_moe_gate", wide, FP32, reads=(x, order))
        inner = g.make("ffn_moe_swiglu", wide, FP32, reads=(gate, up))
        down = g.make("ffn_moe_down", (rows, s.chosen, s.hidden), FP32, reads=(inner, order))
        g.use(weights, down)
        y = g.make("ffn_moe_out", (rows, s.hidden), FP32, reads=(down,))
        if m.n_shared_experts and m.shared_expert_intermediate_size:
            width = m.n_shared_experts * m.shared_expert_intermediate_size
            up = g.make("ffn_up_shexp", (rows, width), FP32, reads=(x,))
            gate = g.make("ffn_gate_shexp", (rows, width), FP32, reads=(x,))
            inner = g.make("ffn_swiglu_shexp", (rows, width), FP32, reads=(gate, up))
            z = g.make("ffn_shexp", (rows, s.hidden), FP32, reads=(inner,))
            g.use(z, y)
        return y


@lru_cache(maxsize=128)
def _sample(model: ModelSpec) -> list[tuple[str, str]]:
    """A few layers that show every kind at least twice, and the last one.

    Streams change places from layer to layer, so that an even number of layers stays even.
    """
    usual = "sparse" if model.num_experts else "dense"
    count = model.num_hidden_layers
    if len(model.layer_types) <= 1 and len(model.mlp_layer_types) <= 1:
        kind = (
            pattern_at(model.layer_types, 0, "full_attention"),
            pattern_at(model.mlp_layer_types, 0, usual),
        )
        return [kind] * min(count, 3)
    kinds = [
        (pattern_at(model.layer_types, i, "full_attention"), pattern_at(model.mlp_layer_types, i, usual))
        for i in range(count)
    ]
    found: list[tuple[str, str]] = []
    for kind in kinds[:-1]:
        if found.count(kind) < 2:
            found.append(kind)
    return [*found, kinds[-1]]
