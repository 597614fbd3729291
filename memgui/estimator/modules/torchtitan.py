"""torchtitan's Llama, of 2025: FSDP2's units, tensor parallel ranks that share tokens too, losses per rank.

What tensor parallel ranks gather is an input like any other, so that autograd keeps it.  Logits stay
shared out by the vocabulary; the loss is computed of them in fp32, or, compiled, keeps them as they are.
Linear layers in fp8 are torchao's: they keep their inputs and weights, whose copies in fp8 are made for
each product.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules import fused
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.layers import LayerPlan
from memgui.estimator.modules.losses import whole
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.ranks import enter, leave, received
from memgui.estimator.modules.reach import FULL
from memgui.estimator.modules.rotary import ROTATIONS
from memgui.estimator.tape import ALIAS, AMBIENT, BY_HEAD, NEW, Dims, Parameter, Tape, Tensor

FP32 = 4
INT64 = 8
HEADS: Dims = ("a", "d")
SHARED: Dims = ("k", "d")


def plans(c: Context) -> list[tuple[LayerPlan, int]]:
    """The layers: all alike."""
    blocks = (("full_attention", _attention_half), ("dense", _feed_forward_half))
    return [(LayerPlan("full_attention.dense", "full attention", blocks), c.model.num_hidden_layers)]


def stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """The embedding; rotary turns for every position of the sequence."""
    o = c.options
    t.part = t.module = "embedding"
    t.buffer("freqs_cis", ("s", "p"), FP32)
    c.rotary[FULL.name] = (t.tensor("freqs_cis", ("s", "p"), FP32, origin=AMBIENT),)
    if not o.stage.first:
        return received(t, c)
    ids = c.ids = c.given(t, "token ids", c.rows, INT64)
    rows = "Vt" if o.split.vocabulary > 1 else "V"
    table = c.table = t.parameter("tok_embeddings.weight", (rows, "h"), o.width, o.base_trained, "vocabulary")
    table.tied = c.model.tie_word_embeddings and table.grad
    x = op.embedding(t, ids, table, "embedded tokens", c.hidden)
    return leave(t, c, x) if o.split.vocabulary > 1 else x


def _attention_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    y = leave(t, c, _attention(t, c, enter(t, c, _norm(t, c, x, "attention_norm"))))
    return op.add(t, x, y, "residual stream")


def _feed_forward_half(t: Tape, c: Context, x: Tensor) -> Tensor:
    y = leave(t, c, _mlp(t, c, enter(t, c, _norm(t, c, x, "ffn_norm"))))
    return op.add(t, x, y, "residual stream")


def _norm(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    if not c.options.compiled:
        return norm(t, c, x, name, kind="rms_norm")
    part, t.part = t.part, "norm"
    y = fused.rms_norm(t, c, x, name)
    t.part = part
    return y


def _mlp(t: Tape, c: Context, x: Tensor) -> Tensor:
    t.part = "mlp"
    gate = _linear(t, c, x, "w1", "gate", ("f",), ("h",))
    if c.options.compiled:
        product = fused.gated(t, gate, _linear(t, c, x, "w3", "up", ("f",), ("h",)))
    else:
        active = ACTIVATIONS[c.model.hidden_act](t, gate)
        product = op.mul(t, active, _linear(t, c, x, "w3", "up", ("f",), ("h",)), "product", gate.dims)
    y = _linear(t, c, product, "w2", "down", ("h",), ("f",))
    t.use(x)
    return y


def _attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    m = c.model
    t.part = "attention"
    q, k, v = (
        _linear(t, c, x, f"w{name}", name, out, ("h",))
        for name, out in (("q", HEADS), ("k", SHARED), ("v", SHARED))
    )
    if m.qk_norm == "head":
        q, k = (norm(t, c, one, f"{one.name}_norm", part="qk_norm") for one in (q, k))
    q, k = _turned(t, c, q), _turned(t, c, k)
    if m.num_key_value_heads != m.num_attention_heads:
        k, v = (op.clone(t, one, one.name, (*c.rows, *HEADS), BY_HEAD) for one in (k, v))
    y = attend(t, c, q, k, v, FULL)
    out = _linear(t, c, y, "wo", "output", ("h",), HEADS)
    t.use(q, k, v, y, x)
    return out


def _turned(t: Tape, c: Context, x: Tensor) -> Tensor:
    if c.options.compiled:
        return fused.rope(t, x)
    return ROTATIONS["complex"].turn(t, c, x, c.rotary[FULL.name])


def _linear(t: Tape, c: Context, x: Tensor, called: str, name: str, out: Dims, wide: Dims) -> Tensor:
    o = c.options
    w = t.parameter(f"{called}.weight", (*out, *wide), o.width, o.base_trained, inputs=len(wide))
    dims: Dims = (*x.dims[: len(x.dims) - len(wide)], *out)
    if not o.fp8:
        return op.linear(t, x, w, None, name, dims)
    _copies(t, x, w)
    return op.linear(t, x, w, None, name, dims)


def _copies(t: Tape, x: Tensor, w: Parameter) -> None:
    """Copies in fp8, of the input and of the weight, for one product."""
    made = (t.tensor(f"{x.name}, fp8", x.dims, 1), t.tensor(f"{w.name}, fp8", w.dims, 1))
    t.run("_to_copy", (x, w), made, (), ())


def tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Final norm, the head, and the loss of the rank's share of the logits."""
    m, o = c.model, c.options
    t.frees_input = t.final = True
    t.module = "final_norm"
    x = enter(t, c, _norm(t, c, x, "norm"))
    t.part = t.module = "lm_head"
    rows = "Vt" if o.split.vocabulary > 1 else "V"
    if m.tie_word_embeddings and c.table is not None:
        w = c.table
    else:
        w = t.parameter("output.weight", (rows, "h"), o.width, o.base_trained, "vocabulary", role="head")
    labels = c.given(t, "labels", c.rows, INT64)
    t.loss = True
    logits = op.linear(t, x, w, None, "logits", ("b", c.queries, rows))
    t.part = t.module = "loss"
    if o.compiled and o.loss == "compiled":
        loss = t.tensor("loss", (), FP32, logits.grad)
        sums = t.tensor("log-sum-exp", c.rows, FP32)
        t.run("cross_entropy", (logits, labels), (loss, sums), (logits, sums), ((logits, NEW),))
    elif o.split.vocabulary > 1:
        loss = _parallel_loss(t, logits, labels)
    else:
        loss = whole(t, c, logits, labels)
    t.use(logits)
    return loss


def _parallel_loss(t: Tape, logits: Tensor, labels: Tensor) -> Tensor:
    """PyTorch's ``loss_parallel``: log-softmax and loss of shares, written out in both directions."""
    full = op.cast(t, logits, FP32)
    full.name = "logits"
    size = full.coefficient, full.monomial
    shifted = t.tensor("shifted logits", full.dims, FP32)
    t.run("sub", (full,), (shifted,), (), ())
    t.run("exp", (shifted,), (t.tensor("exponentials", full.dims, FP32),), (), ())
    known = t.tensor("log-probabilities", full.dims, FP32, full.grad)
    t.record("_log_softmax", (full, shifted), known, (), ((full, ALIAS),))
    t.use(full, shifted)
    loss = t.tensor("loss", (), FP32, full.grad)
    saves, back = ((known, labels), ((known, NEW),)) if full.grad else ((), ())
    t.run("nll_loss_forward", (known, labels), (loss,), saves, back, None, (2 * size[0], size[1]))
    return loss
