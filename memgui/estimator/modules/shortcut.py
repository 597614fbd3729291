"""LongCat Flash: layers with attention and a feed-forward twice, and experts beside the second half.

Experts are written one after the other, and some have no weights: they give back what they are given.
Which tokens go to those is not known before they run; all are counted as if an expert with weights had them.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import idle_adapter
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.latent import latent_attention
from memgui.estimator.modules.mlp import ACTIVATIONS, mlp
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.parameter_adapters import with_adapter
from memgui.estimator.modules.routers import route
from memgui.estimator.tape import NEW, Dims, Tape, Tensor

INT64 = 8


def layer(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The whole of it: what the experts give is added last."""
    x = _attended(t, c, x, 0)
    normed = norm(t, c, x, "post_attention_layernorm.0")
    with t.within("moe"):
        t.part = "experts"
        beside = experts(t, c, normed)
    with t.within("mlp"):
        x = op.add(t, x, mlp(t, c, normed), "residual stream")
    x = _attended(t, c, x, 1)
    normed = norm(t, c, x, "post_attention_layernorm.1")
    with t.within("mlp"):
        x = op.add(t, x, mlp(t, c, normed), "residual stream")
    y = op.add(t, x, beside, "residual stream")
    t.use(beside)
    return y


def _attended(t: Tape, c: Context, x: Tensor, which: int) -> Tensor:
    y = latent_attention(t, c, norm(t, c, x, f"input_layernorm.{which}"))
    return op.add(t, x, y, "residual stream")


def experts(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Tokens of each expert looked up, and what it makes of them added in place."""
    m, o = c.model, c.options
    routed = route(t, c, x)
    idle_adapter(t, c, "classifier", ("Ez",), ("h",))
    rows: Dims = (*c.rows, "T")
    final = t.tensor("routed", c.hidden, x.width)
    t.run("zeros_like", (), (final,), (), ())
    mask = t.tensor("experts of each token, spread", (*rows, "Ez"), INT64)
    t.run("one_hot", (routed.indices,), (mask,), (), ())
    tokens, places = (t.tensor(name, rows, INT64) for name in ("tokens", "places"))
    t.run("where", (mask,), (tokens, places), (), ())
    selected = op.index(t, x, tokens, "tokens of each expert", (*rows, "h"))
    gate_up: Tensor
    down: Tensor
    gate_up, down = (
        t.parameter(f"experts.{name}", dims, o.width, o.base_trained, "expert")
        for name, dims in (("gate_up_proj", ("E", 2, "m", "h")), ("down_proj", ("E", "h", "m")))
    )
    gate_up = with_adapter(t, c, gate_up, "experts.gate_up", (2, "m"), ("h",), ranks=2)
    both = _by_slices(t, selected, gate_up, "gate and up", (*rows, 2, "m"))
    gate, up = op.split(t, both, ("gate", "up"), ((*rows, "m"), (*rows, "m")))
    product = op.mul(t, ACTIVATIONS[m.hidden_act](t, gate), up, "product", (*rows, "m"))
    down = with_adapter(t, c, down, "experts.down", ("h",), ("m",))
    out = _by_slices(t, product, down, "down", (*rows, "h"))
    chosen = t.tensor("router weights", (*rows, 1), routed.weights.width, routed.weights.grad)
    t.record("index", (routed.weights, tokens, places), chosen, (tokens, places), ((routed.weights, NEW),))
    weighted = t.tensor("weighted", (*rows, "h"), x.width, out.grad or chosen.grad)
    t.record("mul", (out, chosen), weighted, op.partners(out, chosen), op.edges(out, NEW, chosen, NEW))
    y = t.view(final, "routed", c.hidden)
    y.grad = weighted.grad
    t.run("index_add_", (final, weighted, tokens), (y,), (weighted, tokens), ((weighted, NEW),))
    t.use(mask, x, *routed, *c.named)
    c.named.clear()
    return y


def _by_slices(t: Tape, x: Tensor, w: Tensor, name: str, dims: Dims) -> Tensor:
    """Products of one expert's weight after the other: each gives back a gradient of the whole stack.

    Autocast keeps no copies of slices.
    """
    used = op.copy_of_weight(t, w, t.autocast) if t.autocast else w
    x = op.cast(t, x, used.width)
    out = t.tensor(name, dims, used.width, x.grad or used.grad)
    twice = 2 * w.coefficient - used.coefficient  # the sum so far and one more, beside the slices' own
    whole = (twice, w.monomial) if used.grad else None
    return t.record("mm", (x, used), out, op.partners(x, used), op.edges(x, NEW, used, NEW), None, whole)
