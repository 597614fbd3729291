"""MiniMax's lightning attention: exact within blocks of tokens, a state of keys times values between them."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.states import recurrent_state, without_padding
from memgui.estimator.tape import NEW, Back, Dims, Tape, Tensor

FP32 = 4
STATE: Dims = ("b", "a", "d", "d")


def lightning_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Project in, activate, attend block by block, norm, gate, project out."""
    t.part = "attention"
    heads: Dims = (*c.rows, "a", "d")
    _decays(t, c)
    qkv = projection(t, c, x, "attention.qkv", "q, k, v", ("a", 3, "d"), ("h",))
    qkv = without_padding(t, c, ACTIVATIONS[c.model.hidden_act](t, qkv))
    q, k, v = op.split(t, qkv, ("q", "k", "v"), (heads, heads, heads))
    y = (_token if c.options.decode else _blocks)(t, c, q, k, v)
    y = norm(t, c, op.clone(t, y, "attended", heads), "norm", axes=2)
    opened = projection(t, c, x, "lightning.gate", "gate", ("a", "d"), ("h",))
    opened = op.pointwise(t, "sigmoid", opened, "gate", saves="output")
    y = op.mul(t, opened, y, "gated", heads)
    out = projection(t, c, y, "lightning.out", "output", ("h",), ("a", "d"), cut="row")
    t.use(qkv, q, k, v, y, x)
    return out


def _decays(t: Tape, c: Context) -> None:
    """Buffers of each layer: what is left of a token after so many others, for each head."""
    width = c.options.width
    t.buffer("slope_rate", ("a",), width)
    t.buffer("query_decay", ("a", "Q"), width)
    t.buffer("key_decay", ("a", "Q"), width)
    t.buffer("diagonal_decay", ("a", "Q", "Q"), width)


def _blocks(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The blocks one after the other.

    Products of several sequences copy their operands, which lie token by token, in order; what
    belongs to the state after the last block is let go with the layer, as nothing reads it.
    """
    o = c.options
    width = v.width
    first = t.tensor("first state", STATE, width)
    t.run("zeros", (), (first,), (), ())
    kept: list[tuple[str, Dims]] = [
        ("scores", ("b", "a", "cm", "Q", "Q")),
        ("scores", ("b", "a", "cl", "cl")),
        ("states", ("b", "cm", "a", "d", "d")),
        ("q, decayed", ("b", "sf", "a", "d")),
        ("k, decayed", ("b", "cm", "Q", "a", "d")),
    ]
    tokens: Dims = (*c.rows, "a", "d")
    if not o.one_sequence:
        kept += [("q", tokens), ("k", tokens), ("v", tokens), ("v", ("b", "cm", "Q", "a", "d"))]
    made = [t.tensor(name, dims, width) for name, dims in kept]
    made.append(t.tensor("decay of blocks", ("cw", "a"), o.width))
    for tensor in made:
        tensor.stepwise = True
    grad = q.grad
    outputs = t.tensor("outputs", tokens, width, grad)
    last = t.tensor("last state", STATE, max(width, o.width))
    saved = (first, *made, *((q, k, v) if o.one_sequence else ()))
    back: Back = tuple([(one, NEW) for one in (q, k, v)]) if grad else ()
    extra = (outputs.coefficient, outputs.monomial)
    if grad:
        t.run("scan", (q, k, v, first), (outputs, last, *made), saved, back, None, extra)
    else:
        t.run("scan", (q, k, v, first), (outputs, last), (), ())
    y = t.tensor("attended", ("b", "a", c.queries, "d"), width, grad)
    t.record("cat", (outputs,), y, (), ((outputs, NEW),))
    if o.cache:
        recurrent_state(t, c, STATE, width)
    t.hold(last)
    return y


def _token(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A new state, from the one held, and what a token reads from it."""
    held = t.cached_before("recurrent state", STATE, v.width)
    product = op.matmul(t, k, v, "k times v", STATE)
    state = op.add(t, op.scale(t, held, "recurrent state"), product, "recurrent state")
    t.cache(state)
    y = op.matmul(t, q, state, "attended", q.dims)
    t.use(held, product)
    return y
