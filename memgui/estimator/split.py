"""What of a layer, and which layers, one rank of a training step has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Final, TypeVar

import msgspec

from memgui.estimator.layout import Layout
from memgui.spec.model import ModelSpec, pattern_at
from memgui.spec.scenario import Scenario

Run = TypeVar("Run")


class Split(msgspec.Struct, frozen=True):
    """How many ranks share each layer's matrices and sequences.

    ``sequence``: the residual stream is cut along the tokens among tensor parallel ranks.  ``vocabulary``
    ranks share the rows of embedding and head, which are filled up to a multiple of ``padding``.
    """

    tensor: int = 1
    sequence: bool = False
    context: int = 1
    expert: int = 1
    expert_tensor: int = 1
    vocabulary: int = 1
    padding: int = 1


WHOLE: Final = Split()
"""One rank has all of it."""


class Stage(msgspec.Struct, frozen=True):
    """Which layers a rank has: ``spans`` of (first layer, how many), all of them where there are none.

    The ``first`` stage has the embedding, the ``last`` one the head and the loss.
    """

    first: bool = True
    last: bool = True
    spans: tuple[tuple[int, int], ...] = ()


ALL: Final = Stage()
"""There is one stage."""


class Place(msgspec.Struct, frozen=True):
    """A pipeline stage's rank: what it has, the chunk that is looked at, how many wait beside it."""

    name: str
    stage: Stage
    chunk: Stage
    waiting: int


PADDING: Final = 128
"""Megatron-LM fills up its vocabulary to a multiple of this on each tensor parallel rank."""


def split_of(scenario: Scenario, layout: Layout) -> Split:
    """How a training step's ranks share its layers, in the code that runs them."""
    code = scenario.training.implementation
    vocabulary, padding = layout.tensor, 1
    if code == "megatron":
        padding = PADDING * layout.tensor
    return Split(
        layout.tensor,
        layout.sequence,
        layout.context,
        layout.expert,
        layout.expert_tensor,
        vocabulary,
        padding,
    )


def on_rank(values: dict[str, int], split: Split) -> dict[str, int]:
    """The values of the model's symbols on one rank; key and value heads are copied where too few."""
    if split == WHOLE:
        return values
    ranks = split.tensor
    heads, shared = values["a"] // ranks, max(1, values["k"] // ranks)
    padded = -(-values["V"] // split.padding) * split.padding
    return {
        **values,
        "a": heads,
        "k": shared,
        "g": heads + 2 * shared,
        "f": -(-values["f"] // ranks),
        "w": -(-values["w"] // ranks),
        "m": -(-values["m"] // split.expert_tensor),
        "X": values["E"] // split.expert,
        "V": padded,
        "Vt": -(-padded // split.vocabulary),
    }


def places(scenario: Scenario, layout: Layout) -> list[Place]:
    """The rank of each pipeline stage, with how many micro batches (or chunks of them) wait in it at most.

    1F1B: each stage has as many in flight as there are stages from it on.  Interleaved: a rank runs
    ``2 (p - r - 1) + (m - 1) p`` chunks ahead before its first backward (Megatron-LM's schedules.py).
    """
    stages, chunks = layout.pipeline, layout.chunks
    if stages == 1:
        return [Place("0", ALL, ALL, 0)]
    steps = scenario.training.gradient_accumulation_steps
    spans = spans_of(scenario, stages * chunks)
    found: list[Place] = []
    for rank in range(stages):
        own = tuple(spans[rank + chunk * stages] for chunk in range(chunks))
        first, last = rank == 0, rank == stages - 1
        ahead = stages - rank - 1
        if chunks > 1:
            ahead = 2 * ahead + (chunks - 1) * stages
        shown = own[-1] if last else own[0]
        found.append(
            Place(
                str(rank),
                Stage(first, last, own),
                Stage(first, last, (shown,)),
                min(ahead, steps * chunks - 1),
            )
        )
    return found


def spans_of(scenario: Scenario, stages: int) -> list[tuple[int, int]]:
    """The layers of each stage, of those that do something: where its first is, and how many.

    torchtitan counts the embedding and the head as a layer each; else the first stages take what is over.
    """
    layers = scenario.model.num_hidden_layers
    ends = 1 if scenario.training.implementation == "torchtitan" and layers + 2 >= 2 * stages else 0
    each, over = divmod(layers + 2 * ends, stages)
    counts = [each + (stage < over) for stage in range(stages)]
    counts[0] -= ends
    counts[-1] -= ends
    real = _doing_something(scenario.model)
    if all(real):
        starts = accumulate(counts[:-1], initial=0)
        return list(zip(starts, counts, strict=True))
    before = list(accumulate(real, initial=0))  # stages count those that do nothing, a program has none
    ends_at = list(accumulate(counts, initial=0))
    return [(before[start], before[stop] - before[start]) for start, stop in pairwise(ends_at)]


def _doing_something(model: ModelSpec) -> list[bool]:
    """Of each layer, whether it has anything to run."""
    halves = model.layer_types or ("",), model.mlp_layer_types or ("",)
    return [
        any(pattern_at(half, layer, "") != "none" for half in halves)
        for layer in range(model.num_hidden_layers)
    ]


def within(runs: Iterable[tuple[Run, int]], stage: Stage) -> list[tuple[Run, int]]:
    """Of runs of layers those that the stage has."""
    listed = list(runs)
    if not stage.spans:
        return listed
    found: list[tuple[Run, int]] = []
    for start, count in stage.spans:
        at, stop = 0, start + count
        for one, many in listed:
            end = at + many
            if end > start:
                if at >= stop:
                    break
                found.append((one, min(end, stop) - max(at, start)))
            at = end
    return found
