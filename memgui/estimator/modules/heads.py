"""Heads in memory: when an operator copies queries, keys or values before it can use them."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import BY_HEAD, NEW, SPREAD, Tape, Tensor


def every_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``repeat_kv``: keys or values for every query head; one head is only seen as many."""
    sizes = c.sizes.values
    shared = sizes[str(x.dims[-2])]
    if shared == sizes["a"]:
        return x
    dims = ("b", c.keys, "a", x.dims[-1])
    if shared > 1:
        return op.clone(t, x, x.name, dims, BY_HEAD)
    out = t.view(x, x.name, dims)
    out.layout = SPREAD
    t.run("expand", (x,), (out,), (), ((x, NEW),) if x.grad else ())
    return out


def batched(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x`` as a batched matrix product takes it, batch and heads in one: a copy unless they lie so.

    One head is spread over all query heads on the way.
    """
    x = x if x.layout == SPREAD else _spread(t, c, x)
    if x.layout == BY_HEAD or c.options.one_sequence:
        return x
    return op.clone(t, x, layout=BY_HEAD)


def _spread(t: Tape, c: Context, x: Tensor) -> Tensor:
    return every_head(t, c, x) if c.sizes.values[str(x.dims[-2])] == 1 else x
