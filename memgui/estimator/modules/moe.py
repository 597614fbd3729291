"""Mixtures of experts: routed experts as grouped products, shared experts beside them."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import ACTIVATIONS, clamped_swiglu, mlp, upcast_silu
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.parameter_adapters import with_adapter
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.routers import Routed, logits, route
from memgui.estimator.tape import NEW, Dims, Parameter, Tape, Tensor

INT32 = 4
INT64 = 8
FP32 = 4


def sparse(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Each token through its experts, and through the shared ones where there are any."""
    m, o = c.model, c.options
    t.part = "experts"
    if m.shared_expert_gate:  # Qwen: the shared expert comes first, its gate last
        beside = shared(t, c, x)
        y = EXPERTS[m.expert_layout](t, c, x)
        beside = _gated_shared(t, c, x, beside)
        y = op.add(t, y, beside)
        t.use(beside)
    elif m.shared_experts_first and m.n_shared_experts:
        beside = shared(t, c, x)
        y = EXPERTS[m.expert_layout](t, c, x)
        laguna = m.routed_scaling and m.router_scoring == "sigmoid_summed" and m.router_casts_back
        if laguna or m.experts_scaled:
            y = op.scale(t, y)
        y = op.add(t, y, beside)
        t.use(beside)
    else:
        y = EXPERTS[m.expert_layout](t, c, x)
        if m.n_shared_experts and m.experts_summed_in_fp32:
            wide = op.cast(t, y, FP32)
            both = op.add(t, wide, op.cast(t, shared(t, c, x), FP32))
            y = op.cast(t, both, x.width)
        elif m.n_shared_experts:
            y = op.add(t, y, shared(t, c, x))
        elif m.experts_scaled:
            y = op.scale(t, y)
    if m.experts_norm:
        y = norm(t, c, y, "post_mlp_layernorm")
    t.use(x)
    return op.dropout(t, y, o.hidden_dropout)


def shared(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The experts that every token goes through, as one feed-forward."""
    before = t.part
    y = mlp(t, c, x, "w", "shared_experts")
    t.part = before
    return y


def _gated_shared(t: Tape, c: Context, x: Tensor, y: Tensor) -> Tensor:
    before, t.part = t.part, "router"
    gate = projection(t, c, x, "shared_expert_gate", "gate", (1,), ("h",))
    gate = op.pointwise(t, "sigmoid", gate, "gate", saves="output")
    t.part = "shared_experts"
    out = op.mul(t, gate, y, "shared experts", y.dims)
    t.part = before
    return out


# -- experts as grouped products -------------------------------------------------------------------


def grouped(t: Tape, c: Context, x: Tensor, given: Routed | None = None) -> Tensor:
    """Tokens sorted by expert, one grouped product over all experts for each projection.

    ``rows`` is one for each token and expert of it: however tokens are routed, their number is the same.
    ``given``: how tokens are routed, where that does not follow from ``x``.
    """
    m = c.model
    routed = given or route(t, c, x)
    rows: Dims = (*c.rows, "T")
    wide: Dims = ("el",) if m.moe_latent_size else ("h",)
    if m.moe_latent_size:
        x = projection(t, c, x, "experts.narrow", "narrowed", wide, ("h",), bias=m.mlp_bias, cut="")
    ordered = t.tensor("experts in order", rows, INT64)
    order = t.tensor("order", rows, INT64)
    t.run("sort", (routed.indices,), (ordered, order), (), ())
    tokens = t.tensor("tokens in order", rows, INT64)
    t.run("floor_divide", (order,), (tokens,), (), ())
    selected = op.index(t, x, tokens, "tokens by expert", (*rows, *wide))
    weights = op.index(t, routed.weights, order, "router weights", rows)
    narrow = t.tensor("experts in order", rows, INT32)
    t.run("_to_copy", (ordered,), (narrow,), (), ())
    counts = t.tensor("tokens of each expert", ("E",), INT32)
    t.run("histc", (narrow,), (counts,), (), ())
    offsets = t.tensor("offsets", ("E",), INT32)
    t.run("cumsum", (counts,), (offsets,), (), ())
    up: Dims = (2, "m") if m.gated_mlp else ("m",)
    names = ("experts.gate_up", "experts.gate_up_proj") if m.gated_mlp else ("experts.up", "experts.up_proj")
    biases: list[Tensor] = []
    both = _product(t, c, selected, *names, up, wide, offsets, ordered, rows, biases)
    if m.gated_mlp:
        product = GATES["silu_clamped" if m.experts_clamped else m.hidden_act](t, both, (*rows, "m"))
        t.use(both)
    else:
        product = ACTIVATIONS[m.hidden_act](t, both)
    down_names = "experts.down", "experts.down_proj"
    down = _product(t, c, product, *down_names, wide, ("m",), offsets, ordered, rows, biases)
    weighted = op.mul(t, down, weights, "weighted", down.dims)
    back = t.tensor("order back", rows, INT64)
    counting = (back.coefficient, back.monomial)
    t.run("empty_like", (order,), (back,), (), (), counting)
    weighted = op.index(t, weighted, back, "weighted", down.dims)
    # autocast sums in fp32
    y = t.tensor("routed", (*c.rows, *wide), FP32 if t.autocast else weighted.width, weighted.grad)
    t.record("sum", (weighted,), y, (), ((weighted, NEW),))
    y = op.cast(t, y, x.width)
    t.use(
        weighted,
        down,
        selected,
        weights,
        ordered,
        order,
        back,
        narrow,
        counts,
        offsets,
        *biases,
        *routed,
        *c.named,
    )
    c.named.clear()
    if m.moe_latent_size:
        y = projection(t, c, y, "experts.widen", "widened", ("h",), wide, bias=m.mlp_bias, cut="")
    return y


def _product(
    t: Tape,
    c: Context,
    x: Tensor,
    role: str,
    name: str,
    out: Dims,
    wide: Dims,
    offsets: Tensor,
    ordered: Tensor,
    rows: Dims,
    biases: list[Tensor],
) -> Tensor:
    """``grouped_mm``, which autocast does not reach; a bias is added in place, one row for each token.

    The rows are referred to until those of the next product are there.
    """
    o = c.options
    w = t.parameter(f"{name}.weight", ("E", *out, *wide), o.width, o.base_trained, "expert")
    shift = None
    if c.model.expert_bias:
        shift = t.parameter(f"{name}.bias", ("E", *out), o.width, o.base_trained, "expert")
    used = with_adapter(t, c, w, role, out, wide, ranks=2 if out[0] == 2 else 1)
    if shift is not None:
        added = op.index(t, shift, ordered, "bias", (*rows, *out))
        t.use(*biases)
        biases[:] = [added]
    x = op.cast(t, x, w.width)
    y = t.tensor(name, (*rows, *out), w.width, x.grad or used.grad)
    saves, back = op.product(x, used)
    if w.width < FP32:
        saves = (*saves, offsets)
    else:  # what Transformers takes in place of the kernel keeps both operands
        saves = (x, used)
        t.pin(offsets)
    t.record("_grouped_mm", (x, used, offsets), y, saves, back)
    return op.add_in_place(t, y, biases[0]) if biases else y


def _halves(t: Tape, both: Tensor, inner: Dims) -> tuple[Tensor, Tensor]:
    gate, up = op.split(t, both, ("gate", "up"), (inner, inner))
    return gate, up


def _activated(activation: str) -> Callable[[Tape, Tensor, Dims], Tensor]:
    activate = ACTIVATIONS[activation]

    def gated(t: Tape, both: Tensor, inner: Dims) -> Tensor:
        """``act(gate) * up`` of one projection's halves."""
        gate, up = _halves(t, both, inner)
        return op.mul(t, activate(t, gate), up, "product", inner)

    return gated


def _upcast(t: Tape, both: Tensor, inner: Dims) -> Tensor:
    """Beam: gate and up in fp32."""
    gate, up = _halves(t, both, inner)
    y = upcast_silu(t, gate, up)
    t.use(gate, up)
    return y


def clamped_silu(t: Tape, both: Tensor, inner: Dims) -> Tensor:
    """DeepSeek V4: ``silu(gate) * up`` with gate and up clamped."""
    gate, up = _halves(t, both, inner)
    gate = op.pointwise(t, "clamp", gate, "gate, clamped", saves="input")
    up = op.pointwise(t, "clamp", up, "up, clamped", saves="input")
    y = op.mul(t, ACTIVATIONS["silu"](t, gate), up, "product", inner)
    t.use(gate, up)
    return y


GATES: dict[str, Callable[[Tape, Tensor, Dims], Tensor]] = {
    **{name: _activated(name) for name in ACTIVATIONS},
    "swiglu_clamped": clamped_swiglu,
    "silu_clamped": clamped_silu,
    "silu_upcast": _upcast,
}
"""How experts gate, by activation."""


# -- experts written otherwise ---------------------------------------------------------------------


def every_token(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Llama 4: every expert gets every token, weighed by a score that is 0 for most of them."""
    m, o = c.model, c.options
    before, t.part = t.part, "router"
    scores = logits(t, c, x)
    indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
    values = t.tensor("highest scores", (*c.rows, "T"), scores.width, scores.grad)
    saves = (indices,) if scores.grad else ()
    t.run("topk", (scores,), (values, indices), saves, ((scores, NEW),) if scores.grad else ())
    placed = t.tensor("scores", scores.dims, scores.width, scores.grad)
    t.record("scatter_", (values, indices), placed, (indices,), ((values, NEW),))
    placed32 = op.cast(t, placed, FP32)
    opened = op.pointwise(t, "sigmoid", placed32, "scores", saves="output")
    given = op.cast(t, opened, scores.width)
    weights = op.clone(t, given)
    t.part = before
    rows: Dims = ("E", *c.rows)
    repeated = op.clone(t, x, "tokens for every expert", (*rows, "h"))
    routed = op.mul(t, repeated, weights, "routed in", (*rows, "h"))
    gate_up = t.parameter("experts.gate_up_proj", ("E", 2, "m", "h"), o.width, o.base_trained, "expert")
    down = t.parameter("experts.down_proj", ("E", "h", "m"), o.width, o.base_trained, "expert")
    both = op.linear(t, routed, gate_up, None, "gate and up", (*rows, 2, "m"), "bmm")
    gate, up = _halves(t, both, (*rows, "m"))
    product = op.mul(t, up, ACTIVATIONS[m.hidden_act](t, gate), "product", (*rows, "m"))
    out = op.linear(t, product, down, None, "routed out", (*rows, "h"), "bmm")
    t.use(gate, up)
    y = t.tensor("routed", c.hidden, out.width, out.grad)
    t.record("sum", (out,), y, (), ((out, NEW),))
    t.use(routed, out, scores, given)
    return y


def looped(t: Tape, c: Context, x: Tensor) -> Tensor:
    """DBRX: one expert after the other; together they see each token once for each of its experts."""
    m, o = c.model, c.options
    scores, weights, indices = route(t, c, x)
    rows: Dims = (*c.rows, "T")
    experts = [
        t.parameter(f"experts.mlp.{name}", ("E", "m", "h"), o.width, o.base_trained, "expert")
        for name in ("w1", "v1", "w2")
    ]
    tokens, places = t.tensor("tokens", rows, INT64), t.tensor("places", rows, INT64)
    t.run("where", (indices,), (tokens, places), (), ())
    selected = op.index(t, x, tokens, "tokens of each expert", (*rows, "h"))
    gate = _matmul(t, selected, experts[0], "gate", (*rows, "m"))
    up = _matmul(t, selected, experts[1], "up", (*rows, "m"))
    product = op.mul(t, ACTIVATIONS[m.hidden_act](t, gate), up, "product", (*rows, "m"))
    down = _matmul(t, product, experts[2], "down", (*rows, "h"))
    chosen = op.index(t, weights, places, "router weights", rows)
    weighted = op.mul(t, down, chosen, "weighted", down.dims)
    y = t.tensor("routed", c.hidden, weighted.width, weighted.grad)
    t.record("index_add_", (weighted, tokens), y, (tokens,), ((weighted, NEW),))
    t.use(scores, weights, indices)
    return y


def _matmul(t: Tape, x: Tensor, w: Parameter, name: str, dims: Dims) -> Tensor:
    return op.linear(t, x, w, None, name, dims)


EXPERTS: dict[str, Callable[[Tape, Context, Tensor], Tensor]] = {
    "grouped": grouped,
    "every_token": every_token,
    "looped": looped,
}
"""How routed experts are written, by ``expert_layout``."""
