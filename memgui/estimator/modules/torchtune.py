"""torchtune's decoder and recipes for one device, as they were in November 2024.

Rotation of neighbours in fp32 by rows of a table for every position there may be; keys and values
copied for every head; packed samples go through FlexAttention.  The recipe lets the logits go before
the backward pass.  Compiled, each layer keeps the operands of products and of attention and what its
fused stretches read, and the loss keeps the logits of each chunk as they are.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules import fused
from memgui.estimator.modules.adapters import adapted
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.frozen import LINEARS
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.layers import LayerPlan
from memgui.estimator.modules.losses import in_chunks, shifted_labels, whole
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.reach import FLEX, FULL
from memgui.estimator.options import WIDTHS
from memgui.estimator.tape import AMBIENT, BY_HEAD, BY_TOKEN, Dims, Tape, Tensor

FP32 = 4
INT64 = 8
HEADS: Dims = ("a", "d")
SHARED: Dims = ("k", "d")


def plans(c: Context) -> list[tuple[LayerPlan, int]]:
    """The layers: all alike."""
    blocks = (("full_attention", _attention_half), ("dense", _feed_forward_half))
    return [(LayerPlan("full_attention.dense", "full attention", blocks), c.model.num_hidden_layers)]


def stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """The embedding, and the rotary table for all layers."""
    o = c.options
    t.part = t.module = "embedding"
    ids = c.ids = c.given(t, "token ids", ("b", "s"), INT64)
    t.buffer("rope cache", ("P", "p"), FP32)
    t.buffer("theta", ("p2",), FP32)
    rows: Dims = ("s",)
    if o.attention == FLEX:
        c.given(t, "input_pos", ("b", "s"), INT64)
        c.given(t, "document ids", ("b", "s"), INT64)
        rows = ("b", "s")
    c.rotary[FULL.name] = (t.tensor("rope cache", (*rows, "p"), FP32, origin=AMBIENT),)
    table = c.table = t.parameter("tok_embeddings.weight", ("V", "h"), o.width, o.base_trained, "vocabulary")
    table.tied = c.model.tie_word_embeddings and table.grad
    return op.embedding(t, ids, table, "embedded tokens", ("b", "s", "h"))


def _attention_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    first = _norm(t, c, x, "sa_norm")
    y = _attention(t, c, first)
    out = op.add(t, y, x, "residual stream")
    if not c.options.compiled:
        t.use(first)
        t.hold(y)
    return out


def _feed_forward_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    y = _mlp(t, c, _norm(t, c, x, "mlp_norm"))
    return op.add(t, x, y, "residual stream")


def _norm(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    if c.options.compiled:
        part, t.part = t.part, "norm"
        y = fused.rms_norm(t, c, x, name)
        t.part = part
        return y
    return norm(t, c, x, name, kind="torchtune_rms_norm")


def _mlp(t: Tape, c: Context, x: Tensor) -> Tensor:
    t.part = "mlp"
    gate = _linear(t, c, x, "mlp.gate", "gate", ("f",), ("h",))
    if c.options.compiled:
        product = fused.gated(t, gate, _linear(t, c, x, "mlp.up", "up", ("f",), ("h",)))
    else:
        active = ACTIVATIONS[c.model.hidden_act](t, gate)
        product = op.mul(t, active, _linear(t, c, x, "mlp.up", "up", ("f",), ("h",)), "product", gate.dims)
    y = _linear(t, c, product, "mlp.down", "down", ("h",), ("f",))
    t.use(x)
    return y


def _attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    m = c.model
    t.part = "attention"
    turn = _turned_at_once if c.options.compiled else _turned
    q = turn(t, c, _linear(t, c, x, "attention.q", "q", HEADS, ("h",), m.attention_bias))
    k = _linear(t, c, x, "attention.k", "k", SHARED, ("h",), m.attention_bias and m.key_bias)
    v = _linear(t, c, x, "attention.v", "v", SHARED, ("h",), m.attention_bias)
    k = turn(t, c, k)
    if m.num_key_value_heads != m.num_attention_heads:
        k, v = (op.clone(t, one, one.name, (*c.rows, *HEADS), BY_HEAD) for one in (k, v))
    y = attend(t, c, q, k, v, FULL)
    out = _linear(t, c, y, "attention.o", "output", ("h",), HEADS, m.attention_output_bias)
    if not c.options.compiled:
        t.use(q, k, v, y, x)
    return out


def _turned(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Neighbours turned together; four products of half a head each, stacked."""
    (table,) = c.rotary[FULL.name]
    if table.dims[0] == "b":
        rows = t.tensor("rows of the rope cache", table.dims, FP32)
        table = t.record("index", (table,), rows, (), ())
    x32 = op.cast(t, x, FP32)
    half: Dims = (*x.dims[:-1], "p2")

    def product() -> Tensor:
        return op.mul(t, op.piece(t, x32, x.name, half), table, x.name, half)

    one = op.minus(t, product(), product())
    other = op.add(t, product(), product(), x.name)
    out = op.cat(t, (one, other), x.name, x.dims)
    out.layout = BY_TOKEN
    turned = op.cast(t, out, x.width)
    t.use(x, x32, table, out)
    return turned


def _turned_at_once(t: Tape, c: Context, x: Tensor) -> Tensor:
    return fused.rope(t, x)


def _linear(
    t: Tape, c: Context, x: Tensor, role: str, name: str, out: Dims, wide: Dims, bias: bool = False
) -> Tensor:
    """``F.linear(x, weight) + (alpha / rank) * lora_b(lora_a(dropout(x)))``."""
    o, lora = c.options, c.options.lora
    called = c.names.get(role, role)
    w = t.parameter(f"{called}.weight", (*out, *wide), o.width, o.base_trained, role=role, inputs=len(wide))
    shift = t.parameter(f"{called}.bias", out, o.width, o.base_trained) if bias else None
    dims: Dims = (*c.rows, *out)
    if o.base:
        base = LINEARS[o.base](t, c, x, w, shift, name, dims)
    else:
        base = op.linear(t, x, w, shift, name, dims, "mm" if shift is None else "addmm")
    if lora is None or not adapted(c, called):
        return base
    width = WIDTHS[lora.adapter_format]
    down = t.parameter(f"{called}.lora_A", ("r", *wide), width, inputs=len(wide))
    up = t.parameter(f"{called}.lora_B", (*out, "r"), width)
    part, t.part = t.part, "adapter"
    inner = op.linear(t, op.dropout(t, x, lora.dropout), down, None, "adapter, inner", (*c.rows, "r"))
    outer = op.linear(t, inner, up, None, "adapter, outer", dims)
    if not o.compiled:
        t.use(inner)
        outer = op.scale(t, outer)
    result = op.add(t, base, outer, name)
    if not o.compiled:
        t.use(base, outer)
    t.part = part
    return result


def tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Final norm, the head, and the loss of all logits or of chunks of them."""
    m, o = c.model, c.options
    t.frees_input = t.final = True
    t.module = "final_norm"
    x = norm(t, c, x, "norm", kind="torchtune_rms_norm")
    t.part = t.module = "lm_head"
    assert c.table is not None
    w = c.table
    if not m.tie_word_embeddings:
        w = t.parameter("output.weight", ("V", "h"), o.width, o.base_trained, "vocabulary", role="head")
    labels = shifted_labels(t, c)
    t.loss = True
    if o.loss == "chunked":
        return in_chunks(t, c, x, w, labels)
    logits = op.cast(t, op.linear(t, x, w, None, "logits", ("b", "s", "V")), FP32)
    t.part = t.module = "loss"
    return whole(t, c, logits, labels)
