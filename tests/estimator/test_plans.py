"""Layers in order: runs of equal ones, each told from the others by its key."""

from itertools import groupby

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator.modules.plans import plan, plans, runs_of

CATALOG = Catalog()
MODELS = {entry.model.name: entry.model for entry in CATALOG.models}


@pytest.mark.parametrize("mixers", [("a",), ("a", "b"), ("a", "a", "b"), ("a", "b", "b", "a")], ids="".join)
@pytest.mark.parametrize("feeds", [("x",), ("x", "y"), ("x", "x", "y", "y")], ids="".join)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
def test_a_run_is_of_layers_of_which_both_patterns_say_the_same(
    mixers: tuple[str, ...], feeds: tuple[str, ...], count: int
) -> None:
    each = [(mixers[i % len(mixers)], feeds[i % len(feeds)]) for i in range(count)]
    assert runs_of(mixers, feeds, count) == [(*kind, len([*run])) for kind, run in groupby(each)]


def test_layers_with_the_same_key_are_the_same() -> None:
    for model in MODELS.values():
        if model.is_decoder and not model.num_encoder_layers:
            layers = {layer for layer, _ in plans(model)}
            assert len({layer.key for layer in layers}) == len(layers), model.name


@pytest.mark.parametrize("types", [(), ("full_attention", "sliding_attention"), ("sliding_attention",)])
def test_where_there_is_no_first_norm_the_first_layer_stands_apart(types: tuple[str, ...]) -> None:
    model = msgspec.structs.replace(
        MODELS["Meta-Llama-3.1-8B"],
        first_norm=False,
        layer_types=types,
        mlp_layer_types=(),
        num_hidden_layers=5,
    )
    (first, one), *rest = plans(model)
    kinds = [types[i % len(types)] if types else "full_attention" for i in range(5)]
    assert (first, one) == (plan(kinds[0], "dense", bare=True), 1)
    assert [layer for layer, many in rest for _ in range(many)] == [plan(kind, "dense") for kind in kinds[1:]]
