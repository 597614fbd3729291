"""Doge's attention: a mask for each head of keys that follows from the values, learned with the rest."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import exponential, softplus
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import Reach
from memgui.estimator.tape import BY_HEAD, NEW, Dims, Tape, Tensor

INT64 = 8


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
    if o.windowed:
        mask = _the_highest(t, c, mask)
    c.named.append(weights)
    if c.sizes.values["k"] == c.sizes.values["a"]:
        return mask
    return op.clone(t, mask, mask.name, ("b", "a", c.queries, c.keys), BY_HEAD)


def _the_highest(t: Tape, c: Context, mask: Tensor) -> Tensor:
    """The mask beyond ``keep_window_size`` tokens: all but so many of each row's are filled."""
    zeros, ones = (t.tensor("tokens kept", mask.dims, mask.width) for _ in range(2))
    t.run("zeros_like", (), (zeros,), (), ())
    found: Dims = (*mask.dims[:-1], c.model.keep_window_size)
    values, at = t.tensor("highest weights", found, mask.width), t.tensor("kept", found, INT64)
    t.run("topk", (mask,), (values, at), (), ())
    t.run("scatter", (zeros, at), (ones,), (), ())
    hidden = t.tensor("hidden tokens", mask.dims, 1)
    t.run("eq", (ones,), (hidden,), (), ())
    out = t.tensor("dynamic mask", mask.dims, mask.width, mask.grad)
    t.record("masked_fill", (mask, hidden), out, (hidden,), ((mask, NEW),))
    t.use(mask, ones, at)
    return out
