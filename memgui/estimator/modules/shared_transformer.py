"""Zamba 2: a transformer whose weights some layers share reads stream and embedding; Mamba-2 follows in each.

What is a layer's own among shared weights are low-rank matrices beside them, a linear layer and the Mamba.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memgui.estimator import operators as op
from memgui.estimator.modules.cache import cached
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.layers import LayerPlan
from memgui.estimator.modules.mamba2 import mamba2
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import FULL
from memgui.estimator.modules.rotary import rotate
from memgui.estimator.tape import Dims, Tape, Tensor
from memgui.spec.model import ModelSpec

MIXER = "shared_mamba2"
WIDE: Dims = (2, "h")


def hybrid(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x + mamba(norm(x + linear(transformer(x, embedding))))``."""
    assert c.entered is not None
    both = op.cat(t, (x, c.entered), "stream and embedding", (*c.rows, *WIDE))
    attended = _attention(t, c, norm(t, c, both, "input_layernorm", axes=2))
    fed = _feed_forward(t, c, norm(t, c, attended, "pre_ff_layernorm"))
    with _own(t):
        t.part = "mixer"
        joined = projection(t, c, fed, "shared.linear", "transformed", ("h",), ("h",))
        hidden = norm(t, c, op.add(t, x, joined, "stream"), "mamba_decoder.input_layernorm")
        y = mamba2(t, c, hidden)
    t.use(joined)
    return op.add(t, x, y, "residual stream")


def sharing(found: list[tuple[LayerPlan, int]], model: ModelSpec) -> list[tuple[LayerPlan, int]]:
    """The layers, of which hybrid ones have the same transformer in turn; the first of these owns it."""
    runs: list[tuple[LayerPlan, int]] = []
    seen = 0
    for layer, many in found:
        if layer.blocks[0][0] != MIXER:
            runs.append((layer, many))
            continue
        for _ in range(many):
            group = seen % model.num_mem_blocks
            suffix = ".first" if seen < model.num_mem_blocks else ""
            blocks = tuple([(f"{name}{suffix}", write) for name, write in layer.blocks])
            key = f"{layer.key}.{group}{suffix}"
            runs.append((layer._replace(key=key, blocks=blocks, weights=f"shared {group}"), 1))
            seen += 1
    return runs


@contextmanager
def _own(t: Tape) -> Iterator[None]:
    """Within, weights are the layer's own."""
    pool, t.pool = t.pool, None
    yield
    t.pool = pool


def _beside(t: Tape, c: Context, x: Tensor, y: Tensor, out: Dims, wide: Dims, rank: int) -> Tensor:
    """What a shared matrix makes, and what the layer's own of low rank does."""
    if not rank:
        return y
    with _own(t):
        narrow = projection(t, c, x, "shared.down", "narrowed", (rank,), wide)
        return op.add(t, y, projection(t, c, narrow, "shared.up", y.name, out, (rank,)), y.name)


def _attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    t.part = "attention"
    m = c.model
    rank = m.adapter_rank if m.shared_attention_adapter else 0
    made = [
        projection(t, c, x, f"attention.{name}", name, (heads, "d"), WIDE)
        for name, heads in (("q", "a"), ("k", "k"), ("v", "k"))
    ]
    q, k, v = (
        _beside(t, c, x, y, (heads, "d"), WIDE, rank) for y, heads in zip(made, ("a", "k", "k"), strict=True)
    )
    q, k = rotate(t, c, FULL, q, k)
    if c.options.cache:
        k, v = cached(t, c, k), cached(t, c, v)
    y = attend(t, c, q, k, v, FULL)
    out = projection(t, c, y, "attention.o", "output", ("h",), ("a", "d"), cut="row")
    t.use(q, k, v, x)
    return out


def _feed_forward(t: Tape, c: Context, x: Tensor) -> Tensor:
    t.part = "mlp"
    m = c.model
    inner: Dims = (*c.rows, "f")
    both = projection(t, c, x, "mlp.gate_up", "gate and up", (2, "f"), ("h",), bias=m.mlp_bias)
    both = _beside(t, c, x, both, (2, "f"), ("h",), m.adapter_rank)
    gate, up = op.split(t, both, ("gate", "up"), (inner, inner))
    product = op.mul(t, ACTIVATIONS[m.hidden_act](t, gate), up, "product", inner)
    y = projection(t, c, product, "mlp.down", "down", ("h",), ("f",), bias=m.mlp_bias, cut="row")
    t.use(gate, up)
    return y
