"""What Gemma 4's layers have beside others': experts beside a dense feed-forward, embeddings of their own."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import ACTIVATIONS, mlp
from memgui.estimator.modules.moe import grouped
from memgui.estimator.modules.norm import WITHOUT_WEIGHT, norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.routers import Routed, normalised, top_k
from memgui.estimator.tape import NEW, Dims, Tape, Tensor

FP32 = 4
INT64 = 8

# -- embeddings of each layer's own ----------------------------------------------------------------


def embeddings_of_layers(t: Tape, c: Context, ids: Tensor, x: Tensor) -> None:
    """What every layer is given for each token: looked up, and projected from the embedded tokens."""
    m, o = c.model, c.options
    every: Dims = (m.num_hidden_layers, "pl")
    dims: Dims = (*c.rows, *every)
    part, t.part = t.part, "per_layer"
    table = t.parameter("embed_per_layer.weight", ("Vp", *every), o.width, o.base_trained, "vocabulary")
    if m.altup_num_inputs:  # Gemma 3n looks up 0 for what is not in the table, and has its factors as buffers
        inside = t.tensor("token ids of the table", c.rows, INT64)
        ids = t.record("where", (ids,), inside, (), ())
        for name in ("per_layer_projection_scale", "per_layer_input_scale"):
            t.buffer(name, (), o.width)
    found = op.scale(t, op.embedding(t, ids, table, "embeddings of all layers", dims))
    t.buffer("embed_scale", (), o.width)
    made = projection(t, c, x, "per_layer.model", "projected for all layers", every, ("h",), cut="")
    made = norm(t, c, op.scale(t, made), "per_layer_projection_norm", part="per_layer")
    given = op.scale(t, op.add(t, made, found, "embeddings of all layers"))
    t.use(found, made)
    c.own = given
    t.hand_out(given)
    c.handed.append(given)
    t.part = part


def own_embedding(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x + norm(project(act(gate(x)) * embedding))``, of the embedding that each token has in this layer."""
    assert c.own is not None
    t.part = "per_layer"
    given = op.piece(t, c.own, "embedding of its own", (*c.rows, "pl"))
    gate = ACTIVATIONS[c.model.hidden_act](t, projection(t, c, x, "per_layer.gate", "gate", ("pl",), ("h",)))
    gated = op.mul(t, gate, given, "gated", gate.dims)
    y = projection(t, c, gated, "per_layer.projection", "projected", ("h",), ("pl",), cut="row")
    y = norm(t, c, y, "post_per_layer_input_norm")
    return op.add(t, x, y, "residual stream")


# -- experts beside a dense feed-forward -----------------------------------------------------------


def dense_beside_experts(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x + norm(norm(mlp(norm(x))) + norm(experts(norm(x))))``, whose router reads ``x`` itself."""
    y = norm(t, c, x, "pre_feedforward_layernorm")
    beside = norm(t, c, mlp(t, c, y), "post_feedforward_layernorm_1")
    t.part = "experts"
    routed = _route(t, c, x)
    y = norm(t, c, x, "pre_feedforward_layernorm_2")
    y = norm(t, c, grouped(t, c, y, routed), "post_feedforward_layernorm_2")
    both = op.add(t, beside, y, "both feed-forwards")
    t.use(beside, y)
    return op.add(t, x, norm(t, c, both, "post_feedforward_layernorm"), "residual stream")


def _route(t: Tape, c: Context, x: Tensor) -> Routed:
    """Probabilities of a scaled norm in fp32, divided by their sum, times a number of each expert's own."""
    o = c.options
    part, t.part = t.part, "router"
    y = norm(t, c, x, "router.norm", part="router", kind=WITHOUT_WEIGHT[c.model.norm])
    scale = t.parameter("router.scale", ("h",), o.width, o.base_trained)
    y = op.scale(t, op.mul(t, y, scale, "router input", y.dims))
    scores = projection(t, c, y, "router.proj", "router logits", ("E",), ("h",), cut="")
    weights, indices = top_k(t, c, op.softmax(t, scores, FP32))
    weights = normalised(t, weights)
    each = t.parameter("router.per_expert_scale", ("E",), o.width, o.base_trained)
    factors = t.tensor("factors of experts", weights.dims, each.width, each.grad)
    t.record("index", (each, indices), factors, (indices,), ((each, NEW),))
    weights = op.mul(t, weights, factors, "router weights", weights.dims)
    t.part = part
    return Routed(scores, weights, indices)
