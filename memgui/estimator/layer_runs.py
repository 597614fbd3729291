"""Runs of a stack's layers: which of them are frozen, which are computed again."""

from __future__ import annotations

from collections.abc import Iterable

from memgui.estimator.modules.layers import LayerPlan
from memgui.estimator.options import Options

Runs = list[tuple[LayerPlan, int]]
"""Layers in order, as runs of equal ones."""

Thawing = Iterable[tuple[LayerPlan, int, bool]]
"""Runs of layers, and whether they are frozen."""

Checkpointed = Iterable[tuple[LayerPlan, int, bool, str]]
"""The same, and how they are computed again, if they are."""


def thawing(runs: Runs, options: Options, *, first: bool) -> Thawing:
    """The runs of layers, those apart that are not trained; ``first``: of the first stack."""
    if options.by_layer:
        return _first_alone(runs, whole=not first)
    return _thawed(runs, options.frozen_layers)


def _thawed(runs: Runs, frozen: int) -> Thawing:
    """The runs of layers, the first ``frozen`` layers apart."""
    if not frozen:
        return [(layer, count, False) for layer, count in runs]
    found: list[tuple[LayerPlan, int, bool]] = []
    for layer, count in runs:
        first = min(frozen, count)
        frozen -= first
        if first:
            found.append((layer, first, True))
        if count > first:
            found.append((layer, count - first, False))
    return found


def _first_alone(runs: Runs, *, whole: bool) -> Thawing:
    """The runs of layers, all frozen but the first one, or with that one where the ``whole`` stack is."""
    found = [(layer, count, True) for layer, count in runs]
    if whole:
        return found
    (first, count, _), *rest = found
    return [(first, 1, False), *([(first, count - 1, True)] if count > 1 else []), *rest]


def checkpointed(runs: Thawing, options: Options) -> Checkpointed:
    """The runs of layers, those apart that are checkpointed."""
    how = options.checkpointing if options.layerwise else "none"
    if how == "none" or (options.checkpoint_every == 1 and options.checkpoint_layers is None):
        return [(layer, count, frozen, "none" if layer.apart else how) for layer, count, frozen in runs]
    return _some_checkpointed(runs, how, options.checkpoint_every, options.checkpoint_layers)


def _some_checkpointed(runs: Thawing, how: str, every: int, most: int | None) -> Checkpointed:
    """Every so-manieth layer is checkpointed, or some first ones are."""
    index = 0
    for layer, count, frozen in runs:
        if layer.apart:
            yield layer, count, frozen, "none"
            continue
        if most is not None:
            first = min(count, max(0, most - index))
            index += count
            if first:
                yield layer, first, frozen, how
            if count > first:
                yield layer, count - first, frozen, "none"
            continue
        end = index + count
        while index < end:
            plain = min(every - 1 - index % every, end - index)
            if plain:
                yield layer, plain, frozen, "none"
            index += plain
            if index < end:
                yield layer, 1, frozen, how
                index += 1
