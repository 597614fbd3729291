"""What a training step keeps of each trained weight: master copy, gradient, states, each in its format."""

from __future__ import annotations

from typing import Final, NamedTuple

from memgui.estimator.optimizers import Settings
from memgui.spec.scenario import Scenario

STATE_WIDTHS: Final = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
"""Bytes per number of the formats that plain states may have."""


class Keeping(NamedTuple):
    """How a trained weight is kept.

    ``master``: there is an fp32 copy of it, which the optimizer updates.
    """

    settings: Settings
    master: bool = False


def keeping_of(scenario: Scenario) -> Keeping:
    """What the scenario's training step keeps."""
    training = scenario.training
    settings = Settings(
        training.optimizer,
        training.optimizer_implementation,
        training.optimizer_rank,
        STATE_WIDTHS[training.state_format] if training.state_format is not None else 0,
        training.wide_embedding_states,
    )
    return Keeping(settings, training.precision.endswith("_master"))
