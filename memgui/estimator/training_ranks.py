"""Ranks of a training step that share out layers: what each pipeline stage runs and keeps."""

from __future__ import annotations

from memgui.estimator.account import account
from memgui.estimator.layout import Layout, layout_of
from memgui.estimator.options import options
from memgui.estimator.program import compiled
from memgui.estimator.split import ALL, WHOLE, places, split_of
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


def stage_runs(scenario: Scenario, *, whole: bool = True) -> list[tuple[str, TrainingRun]]:
    """The run of each pipeline stage, by its number; all ranks of a stage hold the same.

    Parameters are counted over the model as it is, once.
    """
    layout = layout_of(scenario)
    split = split_of(scenario, layout)
    chosen = options(scenario)
    counted = account(compiled(scenario.model, chosen)).parameters
    found: list[tuple[str, TrainingRun]] = []
    for place in places(scenario, layout):
        held = compiled(scenario.model, chosen._replace(split=split, stage=place.stage))
        shown = held
        if place.chunk != place.stage and place.stage is not ALL:
            shown = compiled(scenario.model, chosen._replace(split=split, stage=place.chunk))
        run = TrainingRun(scenario, shown, whole=whole, held=held, waiting=place.waiting)
        run.account = run.account._replace(parameters=counted)
        found.append((place.name, run))
    return found
