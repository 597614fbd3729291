"""Unsloth's layers and loss, as ``FastLanguageModel`` of October 2026 trains adapters.

Queries, keys and values of one layer, its output, and its feed-forward are a function each, with the
adapters inside: it keeps its input and what it cannot make again, writes the gradient of its input over
that input, and unpacks one weight at a time.  Forward passes unpack into one buffer, as large as the
largest weight.  Nothing is left to autocast.  The loss takes chunks of tokens, as many as four
gigabytes (or half of what is free at first, if less) hold at 16 bytes for each logit.

Its checkpoints hold a layer's output and that one's gradient until the layer has run back, which
those of PyTorch do not: that is not written here (2 % of a small model's working set).
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules import ends, fused
from memgui.estimator.modules.adapters import adapted
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.layers import LayerPlan
from memgui.estimator.modules.reach import FULL
from memgui.estimator.options import WIDTHS
from memgui.estimator.tape import NEW, REPLACES, Back, Dims, Parameter, Tape, Tensor

FP32 = 4
HALF = 2
BLOCK = 64
EAGER_LOGIT = 14
"""Bytes of a logit of the chunk at hand: itself in 16 bits; in fp32 its copy, log-probability, gradient."""
HEADS: Dims = ("a", "d")
SHARED: Dims = ("k", "d")

Layer = tuple[str, str, Dims, Dims, bool]
"""Role, name, widths of output and input, whether it has a bias."""


def plans(c: Context) -> list[tuple[LayerPlan, int]]:
    """The layers: all alike."""
    blocks = (("full_attention", _attention_half), ("dense", _feed_forward_half))
    return [(LayerPlan("full_attention.dense", "full attention", blocks), c.model.num_hidden_layers)]


def stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """The embedding and rotary tables as Transformers has them, and the buffer that weights unpack into."""
    x = ends.stem(t, c)
    if c.options.base:
        sizes = c.sizes.values
        wide = "f" if sizes["f"] > sizes["a"] * sizes["d"] else "h"
        t.buffer("unpacked weight", ("h", wide), HALF)
        t.buffer("unpacked scales", (sizes["h"] * sizes[wide] // BLOCK,), FP32)
    return x


def _attention_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    m = c.model
    normed = _norm(t, c, x, "input_layernorm")
    t.part = "attention"
    layers: tuple[Layer, ...] = (
        ("attention.q", "q", HEADS, ("h",), m.attention_bias),
        ("attention.k", "k", SHARED, ("h",), m.attention_bias and m.key_bias),
        ("attention.v", "v", SHARED, ("h",), m.attention_bias),
    )
    q, k, v = _group(t, c, normed, layers, in_place=True)
    if m.qk_norm == "head":  # Qwen 3
        q, k = (_norm(t, c, one, f"{one.name}_norm", ("d",), part="qk_norm") for one in (q, k))
    tables = c.rotary[FULL.name]
    q, k = (fused.rope_in_place(t, one, tables, copied=True) for one in (q, k))
    y = attend(t, c, q, k, v, FULL)
    (out,) = _group(t, c, y, (("attention.o", "output", ("h",), HEADS, False),), in_place=False)
    t.use(normed, q, k, v, y)
    return op.add(t, x, out, "residual stream")


def _feed_forward_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    normed = _norm(t, c, x, "post_attention_layernorm")
    t.part = "mlp"
    inner: Dims = (*c.rows, "f")
    back: list[tuple[Tensor, int]] = [(normed, REPLACES)] if normed.grad else []
    made: list[Tensor] = []
    for role, name in (("mlp.gate", "gate"), ("mlp.up", "up")):
        w, _, trained = _weights(t, c, (role, name, ("f",), ("h",), False))
        back += ((one, NEW) for one in trained)
        one = t.tensor(name, inner, normed.width)
        t.run("matmul_lora", (normed, w), (one,), (), ())
        made.append(one)
    product = t.tensor("product", inner, normed.width, bool(back))
    # Back, the gradients of gate and up are written over them, and the product over its own gradient.
    t.record(
        "swiglu_fg", (*made, normed), product, (normed, *made), tuple(back), None, _unpacks(t, c, ("h", "f"))
    )
    down, _, trained = _weights(t, c, ("mlp.down", "down", ("h",), ("f",), False))
    out = t.tensor("down", c.hidden, normed.width, product.grad)
    t.record("matmul_lora", (product, down), out, (), ((product, NEW), *((one, NEW) for one in trained)))
    t.use(normed)
    return op.add(t, x, out, "residual stream")


def _norm(t: Tape, c: Context, x: Tensor, name: str, weight: Dims = ("h",), *, part: str = "norm") -> Tensor:
    before, t.part = t.part, part
    y = fused.rms_norm(t, c, x, name, weight, in_place=True)
    t.part = before
    return y


def _group(t: Tape, c: Context, x: Tensor, layers: tuple[Layer, ...], *, in_place: bool) -> list[Tensor]:
    """Linear layers of one input, with their adapters, in one function: keeps the input."""
    back: list[tuple[Tensor, int]] = [(x, REPLACES if in_place else NEW)] if x.grad else []
    outs: list[Tensor] = []
    for layer in layers:
        _, name, out, _, _ = layer
        _, _, trained = _weights(t, c, layer)
        back += ((one, NEW) for one in trained)
        outs.append(t.tensor(name, (*c.rows, *out), x.width))
    edges: Back = tuple(back)
    for one in outs:
        one.grad = bool(edges)
    _, _, out, wide, _ = layers[0]
    saves = (x,) if edges else ()
    t.run(
        "matmul_lora", (x,), tuple(outs), saves, edges, None, _unpacks(t, c, (*out, *wide)) if edges else None
    )
    return outs


def _weights(t: Tape, c: Context, layer: Layer) -> tuple[Parameter, Parameter | None, list[Parameter]]:
    """A layer's weight, its bias, and its adapter's two matrices."""
    o, lora = c.options, c.options.lora
    role, _, out, wide, biased = layer
    called = c.names.get(role, role)
    w = t.parameter(f"{called}.weight", (*out, *wide), o.width, o.base_trained, role=role, inputs=len(wide))
    bias = t.parameter(f"{called}.bias", out, o.width, o.base_trained) if biased else None
    if lora is None or not adapted(c, called):
        return w, bias, []
    part, t.part = t.part, "adapter"
    width = WIDTHS[lora.adapter_format]
    down = t.parameter(f"{called}.lora_A", ("r", *wide), width, inputs=len(wide))
    up = t.parameter(f"{called}.lora_B", (*out, "r"), width)
    t.part = part
    return w, bias, [down, up]


def _unpacks(t: Tape, c: Context, dims: Dims) -> tuple[int, int] | None:
    """What unpacking one weight takes in backward, and its scales where they are packed too."""
    if not c.options.base:
        return None
    elements = c.sizes.count(dims)
    return HALF * elements + (FP32 * (elements // BLOCK) if c.options.nested else 0), 0


def tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The final norm, and head and loss in one, which makes the gradient of its input on the way forward."""
    m, o = c.model, c.options
    t.frees_input = t.final = True
    t.module = "final_norm"
    x = _norm(t, c, x, "norm")
    t.part = t.module = "lm_head"
    assert c.table is not None
    w = (
        c.table
        if m.tie_word_embeddings
        else t.parameter("lm_head.weight", ("V", "h"), o.width, o.base_trained)
    )
    given = c.labels or c.given(t, "labels", ("b", "s"), 8)
    labels = t.tensor("labels, shifted", ("b", "s"), 8)
    t.run("empty_like", (given,), (labels,), (), ())
    t.part = t.module = "loss"
    t.loss = True
    held = t.tensor("gradient of the head's input", x.dims, x.width)
    t.run("empty_like", (), (held,), (), ())
    chunk = t.tensor("logits of a chunk", ("bu", "V"), EAGER_LOGIT)
    t.run("mm", (x, w, labels), (chunk,), (), ())
    t.use(chunk, held, x, labels)
    loss = t.tensor("loss", (), FP32, x.grad)
    return t.record("fused_linear_cross_entropy", (held,), loss, (held,), ((x, NEW),))
