"""Which kinds of layers a model has, and of what halves each is made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

from memgui.estimator import operators as op
from memgui.estimator.modules.attention import attention
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import mlp
from memgui.estimator.modules.norm import norm
from memgui.estimator.tape import Tape, Tensor
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec, pattern_at

Module = Callable[[Tape, Context, Tensor], Tensor]
Writer = Callable[[Tape, Context, Tensor], Tensor]


def full_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Attention over the whole sequence."""
    return attention(t, c, x)


def sliding_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Attention over a window."""
    return attention(t, c, x, sliding=True)


def dense(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The dense feed-forward and its dropout."""
    return op.dropout(t, mlp(t, c, x), c.options.hidden_dropout)


MIXERS: dict[str, tuple[str, Module]] = {
    "full_attention": (QT_TRANSLATE_NOOP("estimator", "full attention"), full_attention),
    "sliding_attention": (QT_TRANSLATE_NOOP("estimator", "sliding attention"), sliding_attention),
}
"""What may stand in ``layer_types``: its label and the module that writes it."""

FEED_FORWARDS: dict[str, tuple[str, Module]] = {
    "dense": (QT_TRANSLATE_NOOP("estimator", "dense"), dense),
}
"""What may stand in ``mlp_layer_types``."""


class LayerPlan(NamedTuple):
    """A kind of layer: a stable key, a label, and its halves by name."""

    key: str
    label: str
    blocks: tuple[tuple[str, Writer], ...]


def residual(module: Module, name: str) -> Writer:
    """``x + module(norm(x))``, or ``norm(x + module(x))`` where norms stand after."""

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        if c.model.norm_placement == "post":
            return norm(t, c, op.add(t, x, module(t, c, x), "residual stream"), name)
        y = module(t, c, norm(t, c, x, name))
        return op.add(t, x, y, "residual stream")

    return write


def plan(mixer: str, feed_forward: str) -> LayerPlan:
    """The layer that ``mixer`` and ``feed_forward`` make; ``KeyError`` names one that is unknown."""
    found = _PLANS.get((mixer, feed_forward))
    if found is None:
        label = MIXERS[mixer][0] if feed_forward == "dense" else FEED_FORWARDS[feed_forward][0]
        blocks = (
            (mixer, residual(MIXERS[mixer][1], "input_layernorm")),
            (feed_forward, residual(FEED_FORWARDS[feed_forward][1], "post_attention_layernorm")),
        )
        found = _PLANS[mixer, feed_forward] = LayerPlan(f"{mixer}.{feed_forward}", label, blocks)
    return found


def block_label(key: str) -> str:
    """The label of a half of a layer, or of what stands before and after the layers."""
    found = MIXERS.get(key) or FEED_FORWARDS.get(key)
    if found is not None:
        return found[0]
    return _ENDS.get(key, key)


_ENDS = {
    "stem": QT_TRANSLATE_NOOP("estimator", "before the layers"),
    "tail": QT_TRANSLATE_NOOP("estimator", "after the layers"),
}

_PLANS: dict[tuple[str, str], LayerPlan] = {}


def plans(model: ModelSpec) -> list[tuple[LayerPlan, int]]:
    """The layers of ``model`` in order, as runs of equal ones."""
    count = model.num_hidden_layers
    mixers, feeds = model.layer_types, model.mlp_layer_types
    sparse = "sparse" if model.num_experts else "dense"
    if len(mixers) <= 1 and len(feeds) <= 1:
        return [(plan(pattern_at(mixers, 0, "full_attention"), pattern_at(feeds, 0, sparse)), count)]
    kinds = ((pattern_at(mixers, i, "full_attention"), pattern_at(feeds, i, sparse)) for i in range(count))
    return [(plan(*kind), len(list(run))) for kind, run in groupby(kinds)]
