"""When fields of a training step have any effect."""

from __future__ import annotations

from collections.abc import Callable

from memgui.spec.scenario import Scenario

When = Callable[[Scenario], bool]
"""Says of a scenario whether something applies."""


def targets(scenario: Scenario) -> bool:
    """A decoder learns to write targets beside the source that an encoder reads."""
    return training(scenario) and reads_source(scenario)


def reads_source(scenario: Scenario) -> bool:
    """An encoder reads tokens of a source before the decoder writes."""
    return scenario.model.num_encoder_layers > 0 and not scenario.model.num_mel_bins


def training(scenario: Scenario) -> bool:
    """Whether the scenario is a training step."""
    return scenario.task == "training"


def detailed(scenario: Scenario) -> bool:
    """Whether the scenario is a training step estimated in detail."""
    return scenario.task == "training" and scenario.method == "detailed"


def checkpoints(scenario: Scenario) -> bool:
    """Whether activation checkpointing is counted."""
    return detailed(scenario) or scenario.method == "megatron_paper"


def lora(scenario: Scenario) -> bool:
    """Whether low-rank adapters are trained, in detail: rules of thumb know full training only."""
    return detailed(scenario) and scenario.training.method == "lora"


def adapters(scenario: Scenario) -> bool:
    """Whether something is trained beside a frozen base."""
    return detailed(scenario) and scenario.training.method in ("lora", "ia3", "prompt", "prefix")


def prompt(scenario: Scenario) -> bool:
    """Whether virtual tokens are trained."""
    return detailed(scenario) and scenario.training.method in ("prompt", "prefix")


def full(scenario: Scenario) -> bool:
    """Whether the model's own weights are trained, in detail."""
    return detailed(scenario) and scenario.training.method == "full"


def packed_base(scenario: Scenario) -> bool:
    """Whether adapters are trained beside a quantised base."""
    return adapters(scenario) and scenario.training.base_format not in ("bf16", "fp16", "fp32")


def frozen_input(scenario: Scenario) -> bool:
    """Whether a frozen embedding stands before checkpointed layers."""
    settings = scenario.training
    frozen = settings.method != "full" or settings.frozen_layers > 0
    return detailed(scenario) and frozen and settings.activation_checkpointing != "none"


def sdpa(scenario: Scenario) -> bool:
    """Whether attention goes through SDPA."""
    return detailed(scenario) and scenario.training.attention == "sdpa"
