"""Routers: how each family gives every token its experts and their weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memgui.estimator import operators as op
from memgui.estimator.mixing import softplus
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.parameter_adapters import router_with_adapter
from memgui.estimator.tape import NEW, Dims, Tape, Tensor

FP32 = 4
INT64 = 8

EXACT = ("softmax_clamped", "sigmoid_exact")
"""Routers that switch autocast off."""

Chosen = tuple[Tensor, Tensor]
"""Weights and indices of each token's experts: (batch, tokens, experts per token)."""


class Routed(NamedTuple):
    """Logits (batch, tokens, experts), and weights and indices of each token's experts."""

    logits: Tensor
    weights: Tensor
    indices: Tensor


def route(t: Tape, c: Context, x: Tensor) -> Routed:
    """The experts of each token."""
    before, t.part = t.part, "router"
    autocast = t.autocast
    if c.model.router_scoring in EXACT:
        t.autocast = 0
    scores = logits(t, c, x)
    routed = Routed(scores, *ROUTERS[c.model.router_scoring](t, c, scores, x.width))
    t.part, t.autocast = before, autocast
    return routed


def logits(t: Tape, c: Context, x: Tensor) -> Tensor:
    """A score of every expert for every token."""
    m, o = c.model, c.options
    width = FP32 if m.router_in_fp32 else o.width
    every = "Ez" if m.zero_expert_num else "E"
    w = t.parameter("router.weight", (every, "h"), width, o.base_trained)
    added = not m.shortcut_experts  # LongCat's classifier has a bias, but is computed by its weight alone
    shift = t.parameter("router.bias", (every,), o.width, o.base_trained and added) if m.router_bias else None
    if m.router_scoring == "softmax_clamped" or m.router_balance != "none":
        t.parameter(
            "router.balance", (every,), o.width if m.router_balance == "own" else FP32, trainable=False
        )
    elif m.router_correction_bias:
        own = FP32 if m.router_scoring in ("sigmoid_own", "sigmoid_last", "sqrtsoftplus") else width
        t.buffer("e_score_correction_bias", (every,), own)
    if m.router_in_fp32:
        x = op.cast(t, x, FP32)
    used = router_with_adapter(t, c, w)
    if m.router_scoring == "softmax_exact":  # of copies in fp32, which autocast casts again
        x, used = op.cast(t, x, FP32), op.copy_of_weight(t, used, FP32)
    if m.router_upcast:
        if m.router_scoring == "sigmoid_last" and not t.training:  # the product casts by itself
            out = t.tensor("router logits", (*c.rows, every), FP32)
            return t.record("mm", (x, used), out, (), ())
        x, used = op.cast(t, x, FP32), op.copy_of_weight(t, used, FP32)
    return op.linear(t, x, used, shift if added else None, "router logits", (*c.rows, every))


def top_k(t: Tape, c: Context, x: Tensor) -> Chosen:
    """``torch.topk``: saves the indices."""
    values = t.tensor("router weights", (*c.rows, "T"), x.width, x.grad)
    indices = t.tensor("experts of each token", values.dims, INT64)
    saves = (indices,) if x.grad else ()
    t.run("topk", (x,), (values, indices), saves, ((x, NEW),) if x.grad else ())
    return values, indices


def _gathered(t: Tape, c: Context, x: Tensor, indices: Tensor) -> Tensor:
    """``x.gather(-1, indices)``: saves both."""
    out = t.tensor("router weights", indices.dims, x.width, x.grad)
    return t.record("gather", (x, indices), out, (x, indices), ((x, NEW),))


def normalised(t: Tape, x: Tensor) -> Tensor:
    """``x /= x.sum(-1)``: in place, so that a copy of ``x`` is saved beside the sums."""
    total = t.tensor("sum", (*x.dims[:-1], 1), FP32 if t.autocast else x.width, x.grad)
    t.record("sum", (x,), total, (), ((x, NEW),))
    before = t.tensor(x.name, x.dims, x.width)
    t.run("clone", (x,), (before,), (), ())
    out = t.view(x, x.name, x.dims)
    saves, back = ((before, total), ((x, NEW), (total, NEW))) if x.grad else ((), ())
    t.run("div_", (x, total), (out,), saves, back)
    return out


def _weighed(t: Tape, c: Context, weights: Tensor, wanted: int) -> Tensor:
    m = c.model
    if m.norm_topk_prob:
        weights = normalised(t, weights)
    if m.routed_scaling:
        weights = op.scale(t, weights)
    return op.cast(t, weights, wanted) if m.router_casts_back else weights


def _divided(t: Tape, x: Tensor) -> Tensor:
    """``x / x.sum(-1)``."""
    total = t.tensor("sum", (*x.dims[:-1], 1), FP32 if t.autocast else x.width, x.grad)
    t.record("sum", (x,), total, (), ((x, NEW),))
    out = t.tensor(x.name, x.dims, total.width, x.grad)
    return t.record("div", (x, total), out, (x, total), ((x, NEW), (total, NEW)))


def softmax_first(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Probabilities of all experts in fp32, of which the highest are taken (Mixtral, Qwen, DeepSeek-V2)."""
    weights, indices = top_k(t, c, op.softmax(t, scores, FP32))
    return _weighed(t, c, weights, scores.width), indices


def softmax_balanced(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Probabilities of all experts in fp32, chosen with a balance (LongCat)."""
    probabilities = op.softmax(t, scores)
    indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
    t.run("topk", (probabilities,), (indices,), (), (), (probabilities.coefficient, probabilities.monomial))
    weights = _weighed(t, c, _gathered(t, c, probabilities, indices), scores.width)
    return op.cast(t, weights, scores.width), indices


def softmax_clamped(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Probabilities in fp32, chosen with a balance, divided by their sum or a least number (ERNIE 4.5)."""
    probabilities = op.softmax(t, scores, FP32)
    indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
    t.run("topk", (probabilities,), (indices,), (), ())
    weights = _gathered(t, c, probabilities, indices)
    total = t.tensor("sum", (*weights.dims[:-1], 1), FP32, weights.grad)
    t.record("sum", (weights,), total, (), ((weights, NEW),))
    least = op.pointwise(t, "clamp", total, "sum", saves="input")
    out = t.tensor("router weights", weights.dims, FP32, weights.grad)
    t.record("div", (weights, least), out, (weights, least), ((weights, NEW), (least, NEW)))
    return op.cast(t, out, width), indices


def softmax_last(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Probabilities of the highest scores (gpt-oss)."""
    values, indices = top_k(t, c, scores)
    return op.softmax(t, values, values.width), indices


def softmax_last_plain(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """The same as autocast has it (Aria)."""
    values, indices = top_k(t, c, scores)
    return op.softmax(t, values), indices


def softmax_last_fp32(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """The same in fp32, cast back (Granite)."""
    values, indices = top_k(t, c, op.cast(t, scores, FP32))
    return op.cast(t, op.softmax(t, values, FP32), width), indices


def sigmoid(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Sigmoids, chosen with a correction that is no part of the weights (DeepSeek-V3, GLM 4.5)."""
    values = scores if c.model.router_in_fp32 else op.cast(t, scores, FP32)
    opened = op.pointwise(t, "sigmoid", values, "router scores", saves="output")
    indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
    t.run("topk", (opened,), (indices,), (), (), (opened.coefficient * 3, opened.monomial))
    weights = _gathered(t, c, opened, indices)
    return _weighed(t, c, weights, values.width), indices


def sigmoid_own(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Sigmoids in the model's format, divided by their sum (LFM2)."""
    m = c.model
    opened = op.pointwise(t, "sigmoid", scores, "router scores", saves="output")
    if m.router_correction_bias:
        indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
        t.run("topk", (opened,), (indices,), (), ())
        weights = _gathered(t, c, opened, indices)
    else:
        weights, indices = top_k(t, c, opened)
    if m.norm_topk_prob:
        total = t.tensor("sum", (*weights.dims[:-1], 1), FP32 if t.autocast else weights.width, weights.grad)
        t.record("sum", (weights,), total, (), ((weights, NEW),))
        shifted = op.shift(t, total)
        out = t.tensor("router weights", weights.dims, shifted.width, weights.grad)
        t.record("div", (weights, shifted), out, (weights, shifted), ((weights, NEW), (shifted, NEW)))
        weights = out
    return op.scale(t, weights) if m.routed_scaling else weights, indices


def sqrtsoftplus(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Roots of softplus, chosen with a balance, divided by their sum (DeepSeek V4)."""
    opened = op.pointwise(t, "sqrt", softplus(t, scores), "router scores", saves="output")
    indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
    t.run("topk", (opened,), (indices,), (), (), (opened.coefficient // opened.width * FP32, opened.monomial))
    weights = _gathered(t, c, opened, indices)
    total = t.tensor("sum", (*weights.dims[:-1], 1), weights.width, weights.grad)
    t.record("sum", (weights,), total, (), ((weights, NEW),))
    total = op.shift(t, total)
    out = t.tensor("router weights", weights.dims, weights.width, weights.grad)
    t.record("div", (weights, total), out, (weights, total), ((weights, NEW), (total, NEW)))
    return op.scale(t, out), indices


def sigmoid_summed(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Sigmoids in fp32, chosen with a balance, divided by their sum (AFMoE, Laguna, HunYuan 3)."""
    m = c.model
    values = scores if m.router_in_fp32 else op.cast(t, scores, FP32)
    opened = op.pointwise(t, "sigmoid", values, "router scores", saves="output")
    indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
    t.run("topk", (opened,), (indices,), (), (), (opened.coefficient, opened.monomial))
    weights = _gathered(t, c, opened, indices)
    total = t.tensor("sum", (*weights.dims[:-1], 1), FP32 if t.autocast else values.width, weights.grad)
    t.record("sum", (weights,), total, (), ((weights, NEW),))
    total = op.shift(t, total)
    out = t.tensor("router weights", weights.dims, max(weights.width, total.width), weights.grad)
    t.record("div", (weights, total), out, (weights, total), ((weights, NEW), (total, NEW)))
    if m.routed_scaling:
        out = op.scale(t, out)
    return op.cast(t, out, width) if m.router_casts_back else out, indices


def sigmoid_last(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Sigmoids of the highest logits, chosen with a balance (Kolibri)."""
    indices = t.tensor("experts of each token", (*c.rows, "T"), INT64)
    balanced = (scores.coefficient // scores.width * FP32, scores.monomial)
    t.run("topk", (scores,), (indices,), (), (), balanced)
    weights = op.pointwise(t, "sigmoid", _gathered(t, c, scores, indices), "router weights", saves="output")
    return (_divided(t, weights) if c.model.norm_topk_prob else weights), indices


def softmax_exact(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Probabilities in fp32 of which the highest are taken, divided by their sum, cast back (Lara)."""
    weights, indices = top_k(t, c, op.softmax(t, scores, FP32))
    weights = _divided(t, weights) if c.model.norm_topk_prob else weights
    return op.cast(t, weights, width), indices


def sigmoid_exact(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Sigmoids in fp32 of which the highest are taken, divided by their sum (Flint)."""
    weights, indices = top_k(t, c, op.pointwise(t, "sigmoid", scores, "router scores", saves="output"))
    return (_divided(t, weights) if c.model.norm_topk_prob else weights), indices


def softmax_upcast(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Probabilities in fp32 of the highest scores, cast back (Command A+)."""
    values, indices = top_k(t, c, scores)
    return op.cast(t, op.softmax(t, values, FP32), width), indices


def softmax_own(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Probabilities in the model's format, divided by their norm (DBRX)."""
    weights, indices = top_k(t, c, op.softmax(t, scores, scores.width))
    if not c.model.norm_topk_prob:
        return weights, indices
    total = t.tensor("norm", (*weights.dims[:-1], 1), weights.width, weights.grad)
    t.record("linalg_vector_norm", (weights,), total, (weights, total), ((weights, NEW),))
    out = t.tensor("router weights", weights.dims, weights.width, weights.grad)
    t.record("div", (weights, total), out, (weights, total), ((weights, NEW), (total, NEW)))
    return out, indices


def sparse_mixer(t: Tape, c: Context, scores: Tensor, width: int) -> Chosen:
    """Phi-3.5-MoE's sparsemixer: one expert drawn after the other from masked probabilities."""
    drawn = [_drawn(t, c, scores) for _ in range(2)]
    weights = t.tensor("router weights", (*c.rows, "T"), drawn[0][0].width, scores.grad)
    t.record("cat", tuple([one for one, _ in drawn]), weights, (), tuple([(one, NEW) for one, _ in drawn]))
    indices = t.tensor("experts of each token", weights.dims, INT64)
    t.run("cat", tuple([at for _, at in drawn]), (indices,), (), ())
    return weights, indices


def _drawn(t: Tape, c: Context, scores: Tensor) -> Chosen:
    one: Dims = (*c.rows, 1)
    mask = t.tensor("mask", scores.dims, 1)
    t.run("gt", (scores,), (mask,), (), ())
    masked = t.tensor("masked scores", scores.dims, scores.width, scores.grad)
    t.record("masked_fill", (scores,), masked, (mask,), ((scores, NEW),))
    at = t.tensor("expert", one, INT64)
    t.run("max", (masked,), (at,), (), ())
    gates = op.softmax(t, masked, masked.width if not t.autocast else 0)
    chosen = t.tensor("multiplier", one, gates.width, gates.grad)
    t.record("gather", (gates, at), chosen, (at,), ((gates, NEW),))
    if not t.training:
        return chosen, at
    out = t.tensor("multiplier", one, chosen.width, chosen.grad)
    saves = (chosen, at, gates)
    t.record("mul", (scores, chosen, at, gates), out, saves, ((scores, NEW),))
    return out, at


Router = Callable[[Tape, Context, Tensor, int], Chosen]
ROUTERS: dict[str, Router] = {
    "softmax": softmax_first,
    "softmax_own": softmax_own,
    "softmax_balanced": softmax_balanced,
    "softmax_clamped": softmax_clamped,
    "topk_softmax": softmax_last,
    "topk_softmax_plain": softmax_last_plain,
    "topk_softmax_fp32": softmax_last_fp32,
    "sigmoid": sigmoid,
    "sigmoid_own": sigmoid_own,
    "sigmoid_summed": sigmoid_summed,
    "sigmoid_last": sigmoid_last,
    "sigmoid_exact": sigmoid_exact,
    "softmax_exact": softmax_exact,
    "sqrtsoftplus": sqrtsoftplus,
    "topk_softmax_upcast": softmax_upcast,
    "sparsemixer": sparse_mixer,
}
"""How routers score, by ``router_scoring``: from their logits and the width of what they read."""
