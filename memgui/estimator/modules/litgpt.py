"""LitGPT's model and LoRA loop, as they were at the end of October 2023 (after pull request 606).

One projection for queries, keys and values, adapted by a grouped convolution; norms and rotation in
fp32; logits in chunks of 128 tokens, which Fabric turns to fp32; a loss for each chunk.  Quantised
bases are those of bitsandbytes 0.41, whose 4-bit layers refer to their inputs; the head is among them.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import adapted
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.frozen import LINEARS
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.layers import LayerPlan
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.reach import FULL
from memgui.estimator.options import WIDTHS
from memgui.estimator.tape import NEW, REPLACES, Dims, Parameter, Tape, Tensor

FP32 = 4
INT64 = 8
HEADS: Dims = ("a", "d")
SHARED: Dims = ("k", "d")


def plans(c: Context) -> list[tuple[LayerPlan, int]]:
    """The layers: all alike."""
    m = c.model
    blocks = (("full_attention", _attention_half), ("dense", _feed_forward_half))
    if m.parallel_block != "none":
        return [
            (
                LayerPlan(
                    "full_attention.dense", "full attention", (("parallel.full_attention.dense", _parallel),)
                ),
                m.num_hidden_layers,
            )
        ]
    return [(LayerPlan("full_attention.dense", "full attention", blocks), m.num_hidden_layers)]


def stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """The embedding; rotary tables are buffers as long as the longest sequence."""
    o = c.options
    t.part = t.module = "embedding"
    ids = c.ids = c.given(t, "token ids", ("b", "s"), INT64)
    c.table = t.parameter("wte.weight", ("V", "h"), o.width, o.base_trained, "vocabulary")
    c.rotary[FULL.name] = tuple([c.given(t, f"rotary {name}", ("s", "p"), FP32) for name in ("cos", "sin")])
    return op.embedding(t, ids, c.table, "embedded tokens", ("b", "s", "h"))


def _attention_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    first = _norm(t, c, x, "norm_1")
    h = _attention(t, c, first)
    out = op.add(t, h, x, "residual stream")
    t.use(first, h)
    return out


def _feed_forward_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    y = _mlp(t, c, _norm(t, c, x, "norm_2"))
    return op.add(t, y, x, "residual stream")


def _parallel(t: Tape, c: Context, x: Tensor) -> Tensor:
    first = _norm(t, c, x, "norm_1")
    h = _attention(t, c, first)
    second = first if c.model.parallel_block == "one_norm" else _norm(t, c, x, "norm_2")
    out = op.add(t, op.add(t, _mlp(t, c, second), h), x, "residual stream")
    t.use(first, h, second)
    return out


def _norm(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    kind = "layer_norm" if c.model.norm == "layer_norm" else "litgpt_rms_norm"
    return norm(t, c, x, name, kind=kind)


def _mlp(t: Tape, c: Context, x: Tensor) -> Tensor:
    m = c.model
    t.part = "mlp"
    if m.gated_mlp:
        gate = _linear(t, c, x, "mlp.gate", "gate", ("f",), ("h",), m.mlp_bias)
        up = _linear(t, c, x, "mlp.up", "up", ("f",), ("h",), m.mlp_bias)
        product = op.mul(t, ACTIVATIONS[m.hidden_act](t, gate), up, "product", up.dims)
        t.use(gate, up)
    else:
        product = op.pointwise(
            t,
            "gelu",
            _linear(t, c, x, "mlp.up", "up", ("f",), ("h",), m.mlp_bias),
            "activated",
            saves="input",
        )
    y = _linear(t, c, product, "mlp.down", "down", ("h",), ("f",), m.mlp_bias)
    t.use(x, product)
    return y


def _attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    m = c.model
    t.part = "attention"
    qkv = _queries_keys_values(t, c, x)
    q, k, v = op.split(t, qkv, ("q", "k", "v"), ((*c.rows, *HEADS), (*c.rows, *SHARED), (*c.rows, *SHARED)))
    if m.num_key_value_heads not in (1, m.num_attention_heads):
        full: Dims = (*c.rows, *HEADS)
        q, k, v = op.clone(t, q), op.clone(t, k, "k", full), op.clone(t, v, "v", full)
    (q, queries), (k, keys) = _turned(t, c, q), _turned(t, c, k)
    y = attend(t, c, q, k, v, FULL)
    y = _linear(t, c, y, "attention.o", "output", ("h",), HEADS, m.attention_output_bias)
    t.use(q, k, v, qkv, queries, keys, x)
    return y


def _turned(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """``cat(roped, rest)``, and ``roped``, which the code still refers to."""
    cos, sin = c.rotary[FULL.name]
    part = op.piece(t, x, x.name, (*x.dims[:-1], "p"))
    half = op.rotate_half(t, part)
    straight = op.mul(t, part, cos, x.name, part.dims)
    crossed = op.mul(t, half, sin, x.name, part.dims)
    both = op.add(t, straight, crossed, x.name)
    roped = op.cast(t, both, x.width)
    t.use(half, both)
    rest = op.piece(t, x, x.name, (*x.dims[:-1], "dp"))
    return op.cat(t, (roped, rest), x.name, x.dims), roped


def _weights(
    t: Tape, c: Context, called: str, role: str, out: Dims, wide: Dims, bias: bool
) -> tuple[Parameter, Parameter | None]:
    o = c.options
    w = t.parameter(f"{called}.weight", (*out, *wide), o.width, o.base_trained, role=role, inputs=len(wide))
    return w, t.parameter(f"{called}.bias", out, o.width, o.base_trained) if bias else None


def _base(
    t: Tape, c: Context, x: Tensor, w: Parameter, shift: Parameter | None, name: str, dims: Dims
) -> Tensor:
    if c.options.base:
        return LINEARS[c.options.base](t, c, x, w, shift, name, dims)
    return op.linear(t, x, w, shift, name, dims, "mm" if shift is None else "addmm")


def _linear(
    t: Tape, c: Context, x: Tensor, role: str, name: str, out: Dims, wide: Dims, bias: bool
) -> Tensor:
    """``pretrained + (dropout(x) @ A.T @ B.T) * scaling``."""
    lora = c.options.lora
    called = c.names.get(role, role)
    w, shift = _weights(t, c, called, role, out, wide, bias)
    dims = (*c.rows, *out)
    base = _base(t, c, x, w, shift, name, dims)
    if lora is None or not adapted(c, called):
        return base
    width = WIDTHS[lora.adapter_format]
    down = t.parameter(f"{called}.lora_A", ("r", *wide), width, inputs=len(wide))
    up = t.parameter(f"{called}.lora_B", (*out, "r"), width)
    part, t.part = t.part, "adapter"
    inner = op.linear(t, op.dropout(t, x, lora.dropout), down, None, "adapter, inner", (*c.rows, "r"))
    outer = op.scale(t, op.linear(t, inner, up, None, "adapter, outer", dims))
    result = op.add(t, base, outer, name)
    t.use(base, outer)
    t.part = part
    return result


def _queries_keys_values(t: Tape, c: Context, x: Tensor) -> Tensor:
    """One projection; its adapter's results are put among zeros where not all three are adapted.

    Copying rows to an index keeps what is copied: the convolution's output, or a copy of it where
    there are several sequences.
    """
    m, lora = c.model, c.options.lora
    w, shift = _weights(t, c, "attn", "attention.qkv", ("g", "d"), ("h",), m.attention_bias)
    dims: Dims = (*c.rows, "g", "d")
    base = _base(t, c, x, w, shift, "qkv", dims)
    chosen = [heads for role, heads in _ROLES if adapted(c, c.names[role])]
    if lora is None or not chosen:
        return base
    part, t.part = t.part, "adapter"
    width, count = WIDTHS[lora.adapter_format], len(chosen)
    heads = sum(c.sizes.values[str(one)] for one in chosen)
    down = t.parameter("attn.lora_A", (count, "r", "h"), width)
    up = t.parameter("attn.lora_B", (heads, "d", "r"), width)
    dropped = op.dropout(t, x, lora.dropout)
    inner = op.linear(t, dropped, down, None, "adapter, inner", (*c.rows, count, "r"))
    used = op.weight(t, up, t.autocast)
    outer = t.tensor("adapter, outer", (*c.rows, heads, "d"), used.width, True)
    t.record("convolution", (inner, used), outer, (inner, used), ((inner, NEW), (used, NEW)))
    lines = outer
    if count < len(_ROLES):
        outer = _among_zeros(t, c, outer, dims)
    scaled = op.scale(t, outer)
    result = op.add(t, base, scaled, "qkv")
    t.use(base, scaled, inner, lines)
    t.part = part
    return result


_ROLES = (("attention.q", "a"), ("attention.k", "k"), ("attention.v", "k"))


def _among_zeros(t: Tape, c: Context, x: Tensor, dims: Dims) -> Tensor:
    zeros = t.tensor("zeros", dims, x.width)
    t.run("new_zeros", (), (zeros,), (), ())
    source = x if c.options.one_sequence else op.clone(t, x)
    at = t.tensor("index", x.dims[2:], INT64)
    t.run("_to_copy", (), (at,), (), ())
    out = t.tensor("adapter, padded", dims, x.width, True)
    return t.record("index_copy", (zeros, at, source), out, (at, source), ((source, NEW),))


def tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Final norm, the head in chunks, logits turned to fp32 all together, a loss for each chunk."""
    t.frees_input = t.final = True
    t.module = "final_norm"
    x = _norm(t, c, x, "ln_f")
    t.part = t.module = "lm_head"
    t.loss = True
    logits = _head(t, c, x)
    t.use(x)
    full = t.tensor("logits", logits.dims, FP32, logits.grad)
    t.record("_to_copy", (logits,), full, (), ((logits, REPLACES),))
    t.part = t.module = "loss"
    t.loss = False
    c.given(t, "labels", ("b", "s"), INT64)
    t.loss = True
    y = chunked_loss(t, full, ("b", "sp", "V"), ("b", "sc128", "V"))
    t.hold(full)
    return y


def _head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Logits of every chunk; a frozen head is cast, or unpacked, for each of them anew."""
    o = c.options
    w = t.parameter("lm_head.weight", ("V", "h"), o.width, o.base_trained, "vocabulary", role="head")
    shift = t.parameter("lm_head.bias", ("V",), o.width, o.base_trained) if c.model.lm_head_bias else None
    dims: Dims = ("b", "s", "V")
    if o.base:
        logits = LINEARS[o.base](t, c, x, w, shift, "logits", dims)
        again = t.tensor("weight, unpacked", w.dims, 2)
        t.run("dequantize_4bit", (logits,), (again,), (), ())
        copied = t.tensor("weight, copied", w.dims, o.compute)
        t.run("_to_copy", (again,), (copied,), (), ())
        return logits
    if not t.autocast or w.grad:
        return op.linear(t, x, w, shift, "logits", dims, "mm" if shift is None else "addmm")
    x = op.cast(t, x, t.autocast)
    copies = t.tensor("head, cast for each chunk", ("c128", *w.dims), t.autocast)
    t.run("_to_copy", (w,), (copies,), (), ())
    logits = t.tensor("logits", dims, t.autocast, x.grad)
    return t.record("mm", (x, copies), logits, (copies,), ((x, NEW),))


def chunked_loss(t: Tape, logits: Tensor, dims: Dims, chunk: Dims) -> Tensor:
    """Cross-entropy chunk by chunk: backward turns each chunk's log-probabilities into its gradient."""
    kept = t.tensor("log-probabilities", dims, logits.width)
    loss = t.tensor("loss", (), logits.width, logits.grad)
    coefficient, monomial = t.sizes.of(chunk)
    one_chunk = (2 * logits.width * coefficient, monomial)
    saves, back = ((kept,), ((logits, REPLACES),)) if logits.grad else ((), ())
    t.run("_log_softmax", (logits,), (loss, kept), saves, back, None, one_chunk)
    return loss
