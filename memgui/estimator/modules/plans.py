"""Which kinds of layers a model has, and of what blocks each is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle, islice

from memgui.estimator.modules.layers import (
    FEED_FORWARDS,
    MIXERS,
    WHOLE,
    LayerPlan,
    Writer,
    parallel,
    residual,
    without_norm,
)
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec, pattern_at


def plan(mixer: str, feed_forward: str, together: bool = False, bare: bool = False) -> LayerPlan:
    """The layer that ``mixer`` and ``feed_forward`` make, one after the other or side by side.

    ``bare``: there is no norm before its mixer.  ``KeyError`` names a half that is unknown.
    """
    found = _PLANS.get((mixer, feed_forward, together, bare))
    if found is None:
        key = f"{mixer}.{feed_forward}"
        blocks: tuple[tuple[str, Writer], ...]
        if together:
            blocks = ((f"parallel.{key}", parallel(MIXERS[mixer][1], FEED_FORWARDS[feed_forward][1])),)
        else:
            halves = (
                (mixer, MIXERS, "input_layernorm", "post_attention_layernorm"),
                (feed_forward, FEED_FORWARDS, "pre_feedforward_layernorm", "post_feedforward_layernorm"),
            )
            blocks = tuple(
                [
                    (kind, kinds[kind][1] if kind in WHOLE else residual(kinds[kind][1], *norms))
                    for kind, kinds, *norms in halves
                    if kind != "none"
                ]
            )
            if bare:
                key = f"{key}.first"
                blocks = ((f"{mixer}.first", without_norm(MIXERS[mixer][1])), *blocks[1:])
        named = MIXERS.get(mixer) if feed_forward in ("dense", "none") else None
        label = (named or FEED_FORWARDS[feed_forward])[0]
        found = _PLANS[mixer, feed_forward, together, bare] = LayerPlan(key, label, blocks)
    return found


_PLANS: dict[tuple[str, str, bool, bool], LayerPlan] = {}


def block_label(key: str) -> str:
    """The label of a block of a layer, or of what stands before and after the layers."""
    key = key.removesuffix(".first")
    name = key.partition(".")[0]
    found = MIXERS.get(name) or FEED_FORWARDS.get(name)
    if found is not None:
        return found[0]
    if key.startswith("parallel."):
        return QT_TRANSLATE_NOOP("estimator", "attention and feed-forward")
    return _ENDS.get(key, key)


_ENDS = {
    "own_embedding": QT_TRANSLATE_NOOP("estimator", "embedding of its own"),
    "loop": QT_TRANSLATE_NOOP("estimator", "between loops"),
    "stem": QT_TRANSLATE_NOOP("estimator", "before the layers"),
    "tail": QT_TRANSLATE_NOOP("estimator", "after the layers"),
}


def plans(model: ModelSpec) -> list[tuple[LayerPlan, int]]:
    """The layers of ``model`` in order, as runs of equal ones."""
    found = _in_order(model)
    if model.num_mem_blocks:
        from memgui.estimator.modules.shared_transformer import sharing

        return sharing(found, model)
    if model.hc_count:
        from memgui.estimator.modules.pooled import keeping_positions

        return keeping_positions(found)
    if not model.n_recurrent_layers:
        return found
    from memgui.estimator.modules.looped import looped

    return looped(found, model)


def _in_order(model: ModelSpec) -> list[tuple[LayerPlan, int]]:
    """The layers of ``model``, each once."""
    count = model.num_hidden_layers
    mixers, feeds = model.layer_types, model.mlp_layer_types
    together = model.parallel_block != "none"
    plain = "sparse" if model.num_experts else "dense"
    own = model.layer_variants or model.hidden_size_per_layer_input
    own = own or model.norm_placement == "post_branch_attention"
    plainly = not (own or model.layer_scalar or model.bottleneck_size or model.shortcut_experts)
    if len(mixers) <= 1 and len(feeds) <= 1 and model.first_norm and plainly:
        only = plan(pattern_at(mixers, 0, "full_attention"), pattern_at(feeds, 0, plain), together)
        return _sharing(only, count, model.num_hidden_groups) if model.num_hidden_groups else [(only, count)]
    runs = runs_of(mixers or ("full_attention",), feeds or (plain,), count)
    if not plainly:
        from memgui.estimator.modules.own_layers import completed, in_one

        if whole := in_one(model, runs):
            return whole
    bare: list[tuple[LayerPlan, int]] = []
    if not model.first_norm:
        mixer, feed, many = runs[0]
        bare.append((plan(mixer, feed, together, bare=True), 1))
        runs[:1] = [(mixer, feed, many - 1)] if many > 1 else []
    found = [
        (plan(mixer, feed, together), many) for mixer, feed, many in runs if mixer != "none" or feed != "none"
    ]
    found = [*bare, *found]
    return found if plainly else completed(model, found)


def runs_of(mixers: Sequence[str], feeds: Sequence[str], count: int) -> list[tuple[str, str, int]]:
    """Layers of which both patterns say the same, one after the other: mixer, feed-forward, how many."""
    found: list[tuple[str, str, int]] = []
    before = fed = ""
    many = 0
    for mixer, feed in islice(zip(cycle(mixers), cycle(feeds)), count):
        if mixer != before or feed != fed:
            if many:
                found.append((before, fed, many))
            before, fed, many = mixer, feed, 0
        many += 1
    found.append((before, fed, many))
    return found


def _sharing(layer: LayerPlan, count: int, groups: int) -> list[tuple[LayerPlan, int]]:
    """Layers in groups that share their weights: of each group the first layer owns them."""
    runs: list[tuple[LayerPlan, int]] = []
    members = Counter(i * groups // count for i in range(count))
    for group, many in members.items():
        weights = f"group {group}"
        blocks = tuple([(f"{name}.first", write) for name, write in layer.blocks])
        runs.append((layer._replace(key=f"{layer.key}.{group}.first", blocks=blocks, weights=weights), 1))
        if many > 1:
            runs.append((layer._replace(key=f"{layer.key}.{group}", weights=weights), many - 1))
    return runs
