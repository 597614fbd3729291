"""Ranks of a training step that share out layers: what each pipeline stage runs and keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from memgui.estimator.account import account
from memgui.estimator.layout import Layout, layout_of
from memgui.estimator.options import options
from memgui.estimator.program import Program, compiled
from memgui.estimator.split import ALL, WHOLE, Place, Stage, places, split_of, within
from memgui.estimator.training import TrainingRun
from memgui.spec.scenario import Scenario


def is_split(scenario: Scenario) -> bool:
    """Whether a training step's ranks have less than all layers, whole; degrees mean nothing on one device.

    Megatron-LM fills up its vocabulary on one device too.
    """
    if scenario.task != "training":
        return False
    return split_of(scenario, layout_of(scenario)) != WHOLE or _staged(layout_of(scenario))


def _staged(layout: Layout) -> bool:
    return layout.pipeline > 1


_UNCOUNTED: Final[dict[str, Any]] = {
    "masked": False,
    "ragged": (),
    "checkpointing": "none",
    "recomputed": (),
    "checkpoint_every": 1,
    "checkpoint_layers": None,
    "checkpoint_offload": False,
    "input_leaf": False,
    "attention_dropout": False,
    "hidden_dropout": False,
    "embedding_dropout": False,
    "activation_dropout": False,
    "final_dropout": False,
    "loss": "standard",
    "autocast": 0,
}
"""Options that change what is computed, and neither a layer's weights nor which layers are alike."""


def stage_runs(
    scenario: Scenario, *, whole: bool = True, backward: bool = False
) -> Iterator[tuple[str, TrainingRun]]:
    """The run of each pipeline stage, by its number, one after the other; all ranks of a stage hold the same.

    Stages with layers that are alike, and as many of them, are one program; where as much waits in them,
    one run.  Parameters are counted over the model as it is, once.  ``backward``: the last stage comes first.
    """
    layout = layout_of(scenario)
    split = split_of(scenario, layout)
    chosen = options(scenario)
    model = compiled(scenario.model, msgspec.structs.replace(chosen, **_UNCOUNTED))
    counted = account(model).parameters
    known: dict[object, Stage] = {}
    runs: dict[object, TrainingRun] = {}
    placed: list[tuple[Place, Stage, Stage]] = []
    for place in places(scenario, layout):
        stage, chunk = (known.setdefault(layers_of(model, one), one) for one in (place.stage, place.chunk))
        placed.append((place, stage, chunk))
    for place, stage, chunk in reversed(placed) if backward else placed:
        held = compiled(scenario.model, msgspec.structs.replace(chosen, split=split, stage=stage))
        unused = 0 if held.options.reduces_in_place else _unused_buffers(scenario, layout, place)
        run = runs.get((stage, chunk, place.waiting, unused))
        if run is None:
            shown = held
            if chunk != stage and stage is not ALL:
                shown = compiled(scenario.model, msgspec.structs.replace(chosen, split=split, stage=chunk))
            run = TrainingRun(
                scenario, shown, whole=whole, held=held, waiting=place.waiting, unused_buffers=unused
            )
            run.account = msgspec.structs.replace(run.account, parameters=counted)
            runs[stage, chunk, place.waiting, unused] = run
        yield place.name, run


def layers_of(model: Program, stage: Stage) -> object:
    """What tells the layers of a stage, or a device, from those of others: their kinds, in runs."""
    if len(model.stacks) > 1 or not stage.spans:
        return stage
    return stage.first, stage.last, tuple(within(model.runs, stage))


def _unused_buffers(scenario: Scenario, layout: Layout, place: Place) -> int:
    """Buffers to receive in that wait for their micro batch.

    PyTorch's stages make one for each micro batch and chunk before the first step: of what the stage
    before sends, and of the gradient that the stage behind sends back
    (torch/distributed/pipelining/stage.py, ``args_recv_info`` and ``grad_recv_info``).
    """
    if layout.pipeline == 1:
        return 0
    batches = scenario.training.gradient_accumulation_steps * layout.chunks
    ahead = 0 if place.stage.first and layout.chunks == 1 else batches - place.waiting - 1
    back = 0 if place.stage.last and layout.chunks == 1 else batches - 1
    return ahead + back
