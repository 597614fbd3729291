"""Doge's attention: a mask for each head of keys that follows from the values, learned with the rest."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import exponential, softplus
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import Reach
from memgui.estimator.tape import BY_HEAD, NEW, Dims, Tape, Tensor


def dynamic_mask(t: Tape, c: Context, x: Tensor, v: Tensor, reach: Reach) -> Tensor:
    """``exp(A * softplus(values @ W))`` of each key, filled where it is hidden, for every query head."""
    m, o = c.model, c.options
    read = op.clone(t, v) if v.layout == BY_HEAD else v
    step = projection(t, c, read, "attention.dt", "step", ("k",), ("k", "d"), bias=m.attention_bias)
    rate = t.parameter("A", ("k",), o.width, o.base_trained)
    weights = exponential(t, op.mul(t, softplus(t, step), rate, "step", step.dims), "weights of keys")
    pairs: Dims = ("b", c.queries, c.keys)
    given = c.masks[reach.name]
    additive = given
    if given.width == 1:
        additive = t.tensor("mask of the layer", pairs, x.width)
        t.run("where", (given,), (additive,), (), ())
    hidden = t.tensor("hidden tokens", pairs, 1)
    t.run("ne", (additive,), (hidden,), (), ())
    dims: Dims = ("b", "k", c.queries, c.keys)
    mask = t.tensor("dynamic mask", dims, weights.width, weights.grad)
    whole = (mask.coefficient, mask.monomial)  # the gradient, before it is summed over the queries
    t.record("masked_fill", (weights, hidden), mask, (hidden,), ((weights, NEW),), None, whole)
    t.use(additive)
    c.named.append(weights)
    if c.sizes.values["k"] == c.sizes.values["a"]:
        return mask
    return op.clone(t, mask, mask.name, ("b", "a", c.queries, c.keys), BY_HEAD)
