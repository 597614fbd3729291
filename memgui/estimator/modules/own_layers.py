"""Layers with something of their own: other sizes, an embedding, a number they are multiplied by, streams."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from memgui.estimator import operators as op
from memgui.estimator.modules import gemma3n, gemma4, mobilebert, shortcut
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.layers import FEED_FORWARDS, MIXERS, LayerPlan, Writer, residual
from memgui.estimator.tape import Tape, Tensor
from memgui.spec.model import ModelSpec
from memgui.spec.variants import changes

Runs = list[tuple[LayerPlan, int]]
WIDTH: Final = "intermediate_size"


def in_one(model: ModelSpec, runs: list[tuple[str, str, int]]) -> Runs:
    """The layers of ``model`` where each is written as one block; of what mixers and feed-forwards."""
    if model.altup_num_inputs:
        made = {(mixer, feed): _of_kind(mixer, feed) for mixer, feed in {run[:2]: None for run in runs}}
        return [(made[mixer, feed], many) for mixer, feed, many in runs]
    if model.bottleneck_size:
        key = "full_attention"
        return [(LayerPlan(key, MIXERS[key][0], ((key, mobilebert.layer),)), model.num_hidden_layers)]
    if model.shortcut_experts:
        key = "full_attention"
        return [
            (LayerPlan(key, FEED_FORWARDS["sparse"][0], ((key, shortcut.layer),)), model.num_hidden_layers)
        ]
    return []


def completed(model: ModelSpec, found: Runs) -> Runs:
    """The layers of ``model``, each with what it has of its own."""
    sizes = changes(model)
    own: dict[int, LayerPlan] = {}  # by identity: to hash one is to hash all its blocks
    made: Runs = []
    for layer, many in found:
        one = own.get(id(layer))
        if one is None:
            one = own[id(layer)] = _with_own(model, sizes, layer)
        made.append((one, many))
    return made


def _of_kind(mixer: str, feed: str) -> LayerPlan:
    few = feed == "dense_few"
    key = f"{mixer}.few" if few else mixer
    label = (MIXERS[mixer] if not few else FEED_FORWARDS[feed])[0]
    return LayerPlan(key, label, ((key, gemma3n.layer(mixer, few)),))


def _with_own(model: ModelSpec, sizes: Mapping[str, Mapping[str, Any]], layer: LayerPlan) -> LayerPlan:
    """The layer with ``sizes`` of its own, an embedding of its own, a number that it is multiplied by."""
    mixer = layer.blocks[0][0]
    changed = sizes.get(mixer, {})
    blocks = layer.blocks
    width = changed.get(WIDTH, model.intermediate_size)
    if width != model.intermediate_size:  # equal ones are called after the first of them
        mixers = dict.fromkeys(model.layer_types)
        first = next(one for one in mixers if sizes.get(one, {}).get(WIDTH) == width)
        blocks = tuple([(f"{key}.{first}" if key in FEED_FORWARDS else key, write) for key, write in blocks])
    if model.norm_placement == "post_branch_attention" and mixer == "gated_delta_net":
        (_, _), (feed, _) = blocks
        blocks = ((mixer, _normed_before(mixer)), (f"{feed}.{mixer}", _normed_before(feed)))
    if model.hidden_size_per_layer_input:
        blocks = (*blocks, ("own_embedding", gemma4.own_embedding))
    if model.layer_scalar:
        name, last = blocks[-1]
        blocks = (*blocks[:-1], (name, _scaled(last)))
    varies = any(getattr(model, name) != value for name, value in changed.items())
    return LayerPlan(layer.key, layer.label, blocks, layer.weights, mixer if varies else "")


@cache
def _normed_before(kind: str) -> Writer:
    """OLMo Hybrid: half of a layer without attention has its norm before it."""
    if kind in MIXERS:
        return residual(MIXERS[kind][1], "input_layernorm", "", "pre")
    return residual(FEED_FORWARDS[kind][1], "post_attention_layernorm", "", "pre")


@cache
def _scaled(write: Writer) -> Writer:
    """A layer's last half, and the number that the layer's result is multiplied by in place."""

    def scaled(t: Tape, c: Context, x: Tensor) -> Tensor:
        y = write(t, c, x)
        t.buffer("layer_scalar", (1,), c.options.width)
        return op.scale_in_place(t, y)

    return scaled
