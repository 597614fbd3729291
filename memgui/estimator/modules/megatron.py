"""Megatron-LM's GPT model (core 0.12) with Transformer Engine's layers.

Norms and their linear layer are one module, which keeps the norm's input and output; an activation keeps
what it reads, with its bias; bias, dropout and residual are one kernel.  With sequence parallelism the
share of the tokens is kept and gathered again in the backward pass.  Weight gradients are added to the
main gradients by the products that make them.  Eager attention is ``DotProductAttention`` of the local
layers, else Transformer Engine's fused one.
"""

from __future__ import annotations

from itertools import groupby

from memgui.estimator import operators as op
from memgui.estimator.modules import fused
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.layers import LayerPlan
from memgui.estimator.modules.megatron_attention import core_attention, latent_attention, normed
from memgui.estimator.modules.megatron_experts import experts
from memgui.estimator.modules.parallel_linear import alone, column, row
from memgui.estimator.modules.ranks import leave, received
from memgui.estimator.tape import ALIAS, NEW, REPLACES, Dims, Tape, Tensor
from memgui.spec.model import pattern_at

FP32 = 4
HALF = 2
INT64 = 8
HEADS: Dims = ("a", "d")
SHARED: Dims = ("k", "d")


def plans(c: Context) -> list[tuple[LayerPlan, int]]:
    """The layers: attention, then a feed-forward or experts."""
    m = c.model
    plain = "sparse" if m.num_experts else "dense"
    kinds = (pattern_at(m.mlp_layer_types, i, plain) for i in range(m.num_hidden_layers))
    halves = {"dense": _feed_forward_half, "sparse": _expert_half}
    found: list[tuple[LayerPlan, int]] = []
    for kind, run in groupby(kinds):
        blocks = (("full_attention", _attention_half), (kind, halves[kind]))
        label = "full attention" if kind == "dense" else "experts"
        found.append((LayerPlan(f"full_attention.{kind}", label, blocks), len(list(run))))
    return found


def stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """Embeddings of the rank's share of the vocabulary, summed over the ranks."""
    m, o = c.model, c.options
    t.part = t.module = "embedding"
    if not o.stage.first:
        x = received(t, c)
        _angles(t, c)
        return x
    ids = c.ids = c.given(t, "token ids", c.rows, INT64)
    c.given(t, "position ids", c.rows, INT64)
    if o.split.vocabulary > 1:
        outside = t.tensor("tokens of other ranks", c.rows, 1)
        t.run("lt", (ids,), (outside,), (), ())
        own = t.tensor("token ids of the rank", c.rows, INT64)
        t.run("sub", (ids, outside), (own,), (), ())
        ids = own
    table = c.table = t.parameter(
        "word_embeddings.weight", ("Vt", "h"), o.width, o.base_trained, "vocabulary"
    )
    x = op.embedding(t, ids, table, "embedded tokens", c.hidden)
    if o.split.vocabulary > 1:
        masked = t.view(x, x.name, x.dims)
        t.run("index_put_", (x, outside), (masked,), (outside,) if x.grad else (), ((x, ALIAS),))
        x = leave(t, c, masked)
    if m.position_embedding == "learned":
        where = t.parameter("position_embeddings.weight", ("P", "h"), o.width, o.base_trained)
        where.part = "position_embedding"
        placed = op.embedding(t, c.ids, where, "embedded positions", x.dims)
        x = op.add(t, x, placed, "embedded")
    t.hold(x)
    _angles(t, c)
    return op.dropout(t, x, o.embedding_dropout)


def _angles(t: Tape, c: Context) -> None:
    """The angles of rotary positions, in fp32 for all layers."""
    if c.model.position_embedding != "rope":
        return
    t.buffer("inv_freq", ("p2",), FP32)
    angles = t.tensor("rotary angles", (c.queries, "p"), FP32)
    t.run("cat", (), (angles,), (), ())
    t.hand_out(angles)
    c.rotary["full"] = (angles,)


def residual(t: Tape, c: Context, x: Tensor, y: Tensor) -> Tensor:
    """``x + dropout(y + bias)`` in one kernel, which keeps the mask."""
    drops = c.options.hidden_dropout
    out = t.tensor("residual stream", x.dims, x.width, x.grad or y.grad)
    back = (((x, ALIAS),) if x.grad else ()) + (((y, NEW if drops else ALIAS),) if y.grad else ())
    if drops:
        mask = t.tensor("dropout mask", x.dims, 1)
        t.run("bias_dropout_add", (x, y), (out, mask), (mask,) if back else (), back)
    else:
        t.run("bias_dropout_add", (x, y), (out,), (), back)
    return out


def _attention_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    return residual(t, c, x, _attention(t, c, normed(t, c, x, "input_layernorm")))


def _feed_forward_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    y = normed(t, c, x, "pre_mlp_layernorm")
    with t.within("mlp"):
        y = feed_forward(t, c, y, "f", "mlp")
    return residual(t, c, x, y)


def _expert_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    y = normed(t, c, x, "pre_mlp_layernorm")
    with t.within("moe"):
        routed = experts(t, c, y)
        if c.model.n_shared_experts:
            beside = feed_forward(t, c, y, "w", "shared_experts")
            if c.model.shared_expert_gate:
                gate = alone(t, c, y, "shared_expert_gate", "gate", (1,), ("h",))
                gate = op.pointwise(t, "sigmoid", gate, "gate", saves="output")
                beside = op.mul(t, beside, gate, "shared experts", beside.dims)
            routed = op.add(t, routed, beside)
    return residual(t, c, x, routed)


def feed_forward(t: Tape, c: Context, x: Tensor, width: str, part: str) -> Tensor:
    """Two products around a fused activation, which keeps what it reads."""
    m = c.model
    t.part = part
    wide: Dims = (2, width) if m.gated_mlp else (width,)
    up = column(t, c, x, "mlp.up", "up", wide, ("h",), bias=m.mlp_bias)
    out = t.tensor("product", (*up.dims[: len(up.dims) - len(wide)], width), up.width, up.grad)
    name = "bias_swiglu" if m.gated_mlp else "bias_gelu"
    t.record(name, (up,), out, (up,), ((up, NEW),))
    return row(t, c, out, "mlp.down", "down", ("h",), (width,), bias=m.mlp_bias)


def _attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    m = c.model
    t.part = "attention"
    if m.kv_lora_rank is not None:
        return latent_attention(t, c, x)
    qkv = column(t, c, x, "attention.qkv", "qkv", ("g", "d"), ("h",), bias=m.attention_bias)
    queries, shared = (*c.rows, *HEADS), (*c.rows, *SHARED)
    q, k, v = op.split(t, qkv, ("q", "k", "v"), (queries, shared, shared))
    if m.qk_norm != "none":
        q, k = (normed(t, c, one, f"{one.name}_layernorm", ("d",), "qk_norm") for one in (q, k))
    if m.position_embedding == "rope":
        q, k = fused.rope(t, q), fused.rope(t, k)
    y = core_attention(t, c, q, k, v)
    y = row(t, c, y, "attention.o", "output", ("h",), HEADS, bias=m.attention_output_bias)
    t.use(q, k, v)
    return y


def tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Final norm, the rank's share of the logits, and the cross-entropy of all ranks' shares."""
    t.frees_input = t.final = True
    t.module = "final_norm"
    x = normed(t, c, x, "final_layernorm")
    t.part = t.module = "lm_head"
    labels = c.given(t, "labels", c.rows, INT64)
    c.given(t, "loss mask", c.rows, FP32)
    t.loss = True
    table = c.table if c.model.tie_word_embeddings else None
    logits = column(t, c, x, "head", "logits", ("Vt",), ("h",), cut="vocabulary", weight=table)
    t.part = t.module = "loss"
    full = op.cast(t, logits, FP32)
    t.loss = False
    outside = t.tensor("labels of other ranks", c.rows, 1)
    own = t.tensor("labels of the rank", c.rows, INT64)
    t.run("lt", (labels,), (outside, own), (), ())
    t.loss = True
    loss = t.tensor("loss", (), FP32, full.grad)
    each = t.tensor("loss of each token", c.rows, FP32, full.grad)
    saves = (full, outside, own) if full.grad else ()
    t.run("vocab_parallel_cross_entropy", (full, outside, own), (each,), saves, ((full, REPLACES),))
    t.record("mean", (each,), loss, (), ((each, NEW),))
    t.use(logits)
    return loss
