"""Megatron-LM's experts: tokens permuted, sent to the ranks of their experts, and back.

However tokens are routed, all ranks together have as many rows as there are tokens times experts of each;
a rank is taken to get its even share.  Weights of the experts' outputs are multiplied in by the activation.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.fp8 import quantised, weight_copies
from memgui.estimator.tape import NEW, Dims, Parameter, Tape, Tensor

FP32 = 4
INT32 = 4


def experts(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Router, dispatch, two grouped products around the activation, and all of it back."""
    m, o = c.model, c.options
    own: Dims = (*x.dims[:-1], "T")
    rows: Dims = (*c.rows, "T") if o.split.expert_tensor > 1 else own
    weights, map_ = _route(t, c, x)
    t.part = "experts"
    sent = _moved(t, "permute", (x, map_), (*own, "h"), x, (map_,))
    if o.split.expert > 1 or o.split.expert_tensor > 1:
        sent = _moved(t, "all_to_all_single", (sent,), (*rows, "h"), sent)
    if m.num_experts > o.split.expert:
        sent = _moved(t, "sort_chunks", (sent,), (*rows, "h"), sent)
    wide: Dims = (2, "m") if m.gated_mlp else ("m",)
    both = _grouped(t, c, sent, "linear_fc1", wide, ("h",), rows)
    product = t.tensor("product", (*rows, "m"), both.width, both.grad)
    back = (((both, NEW),) if both.grad else ()) + (((weights, NEW),) if weights.grad else ())
    t.record("weighted_bias_swiglu", (both, weights), product, (both, weights), back)
    y = _grouped(t, c, product, "linear_fc2", ("h",), ("m",), rows)
    if m.num_experts > o.split.expert:
        y = _moved(t, "sort_chunks", (y,), (*rows, "h"), y)
    if o.split.expert > 1 or o.split.expert_tensor > 1:
        y = _moved(t, "all_to_all_single", (y,), (*own, "h"), y)
    return _moved(t, "unpermute", (y, map_), x.dims, y, (map_,))


def _moved(
    t: Tape, name: str, ins: tuple[Tensor, ...], dims: Dims, x: Tensor, saves: tuple[Tensor, ...] = ()
) -> Tensor:
    """Rows in another order, or on another rank: a new tensor both ways, and nothing of ``x`` kept."""
    out = t.tensor("tokens by expert", dims, x.width, x.grad)
    return t.record(name, ins, out, saves, ((x, NEW),))


def _route(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    """Weights of each token's experts in fp32, and where its rows go."""
    o = c.options
    t.part = "router"
    w = t.parameter("router.weight", ("E", "h"), o.width, o.base_trained)
    tokens = x.dims[:-1]
    scores = op.cast(t, op.linear(t, x, w, None, "router logits", (*tokens, "E")), FP32)
    chosen = t.tensor("router weights", (*tokens, "T"), FP32, scores.grad)
    places = t.tensor("experts of each token", (*tokens, "T"), INT32)
    t.run("topk_softmax", (scores,), (chosen, places), (scores,) if scores.grad else (), ((scores, NEW),))
    map_ = t.tensor("row map", (*tokens, "E"), INT32)
    t.run("routing_map", (places,), (map_,), (), ())
    return chosen, map_


def _grouped(t: Tape, c: Context, x: Tensor, name: str, out: Dims, wide: Dims, rows: Dims) -> Tensor:
    """One product over all experts of the rank; weights' gradients go into main gradients at once."""
    o = c.options
    w: Parameter = t.parameter(
        f"experts.{name}.weight", ("X", *out, *wide), o.width, o.base_trained, "expert", inputs=len(wide)
    )
    kept: tuple[Tensor, ...] = (x,)
    used = x
    if o.fp8:
        used, kept = quantised(t, c, x)
        weight_copies(t, c, w)
    y = t.tensor(name, (*rows, *out), o.width, x.grad or w.grad)
    return t.record("grouped_gemm", (used, w), y, (*kept, w), ((x, NEW),) if x.grad else ())
