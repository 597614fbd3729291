"""Scenarios for tests: short to write, and the ones of the measured rows."""

import json
from pathlib import Path
from typing import Any

import msgspec

from memgui.spec import Inference, Lora, Parallelism, Scenario, Training
from memgui.spec.model import ModelSpec
from tests.estimator.models import MODELS

ROWS: dict[str, Any] = json.loads((Path(__file__).parent / "rows.json").read_text("utf-8"))
"""Figures measured on real modules; ``source`` says how."""


def training(model: ModelSpec, **settings: Any) -> Scenario:
    """A training step of ``model``."""
    return Scenario(model=model, training=Training(**settings))


def spread(scenario: Scenario, **degrees: Any) -> Scenario:
    """The same on as many devices as ``degrees``, fields of ``Parallelism``, multiply to."""
    split = Parallelism(**degrees)
    device = msgspec.structs.replace(scenario.device, count=split.devices)
    return msgspec.structs.replace(scenario, parallelism=split, device=device)


def serving(model: ModelSpec, **settings: Any) -> Scenario:
    """Generation with ``model``."""
    return Scenario(model=model, task="inference", inference=Inference(**settings))


def measured(row: dict[str, Any], layers: int = 0) -> Scenario:
    """The scenario of a measured row."""
    model = MODELS[row["model"]]
    if layers:
        model = msgspec.structs.replace(model, num_hidden_layers=layers)
    settings = {"torch_version": "2.13", **row["training"]}  # on which they were measured
    if "lora" in settings:
        settings["lora"] = msgspec.convert(settings["lora"], Lora)
    return training(model, **settings)


def title(row: dict[str, Any]) -> str:
    """What a test of ``row`` is called."""
    return f"{row['model']}-" + "-".join(str(value) for value in row["training"].values())
