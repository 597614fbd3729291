"""Which ways to spread a model over devices an engine has."""

from __future__ import annotations

from memgui.estimator.refusals import NotCovered
from memgui.estimator.run_coverage import DEGREES, is_split
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message, Named
from memgui.spec.scenario import Scenario


def require_layout(scenario: Scenario, *known: str) -> None:
    """Raise ``NotCovered`` where the scenario spreads its model in a way that is not ``known``.

    Engines of their own serve decoders; what attends over an encoder's states they hold otherwise.
    """
    split, model = scenario.parallelism, scenario.model
    for name in DEGREES:
        if name not in known and is_split(scenario, name):
            raise NotCovered(_not_yet(f"parallelism.{name}", getattr(split, name), scenario))
    if model.num_encoder_layers:
        raise NotCovered(_not_yet("model.num_encoder_layers", model.num_encoder_layers, scenario))
    if model.image_size:
        raise NotCovered(_not_yet("model.image_size", model.image_size, scenario))
    if model.num_mem_blocks:
        raise NotCovered(_not_yet("model.num_mem_blocks", model.num_mem_blocks, scenario))
    if model.hc_count:
        raise NotCovered(_not_yet("model.hc_count", model.hc_count, scenario))
    if model.n_recurrent_layers:  # whether their caches are one for each loop
        raise NotCovered(_not_yet("model.n_recurrent_layers", model.n_recurrent_layers, scenario))


def _not_yet(path: str, value: int, scenario: Scenario) -> Message:
    return Message(
        QT_TRANSLATE_NOOP("messages", "{path} = {value} is not modelled yet for {engine}."),
        {
            "path": path,
            "value": str(value),
            "engine": Named("inference.engine", (scenario.inference.engine,)),
        },
    )
