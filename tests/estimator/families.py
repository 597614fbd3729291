"""Measured rows of families that are described by their configuration, and the tests they all take."""

import json
from pathlib import Path
from typing import Any

import msgspec

from memgui.estimator import ledger
from memgui.importers.class_defaults import class_defaults
from memgui.importers.config_reader import SYNONYMS
from memgui.importers.hf_config import NEEDED, model_from_config
from memgui.spec import Inference, Lora, Scenario, Training
from memgui.spec.model import ModelSpec


def read(name: str) -> dict[str, Any]:
    """The rows in ``rows/<name>.json``: models by name, and what was measured of them."""
    content: dict[str, Any] = json.loads((Path(__file__).parent / "rows" / f"{name}.json").read_text("utf-8"))
    return content


def model(rows: dict[str, Any], name: str, **changes: Any) -> ModelSpec:
    """The model called ``name`` with ``changes`` to its configuration."""
    entry = rows["models"][name]
    config = _whole({**entry["config"], **changes})
    return model_from_config(config, entry["head"], entry.get("own_lm_head", False), name)


def _whole(config: dict[str, Any]) -> dict[str, Any]:
    """``config`` with the sizes that a model's own file states: rows leave out what their class takes."""
    known = class_defaults(config["model_type"])
    defaults = known.defaults if known is not None else {}
    names = [(key, *SYNONYMS.get(key, ())) for key in NEEDED]
    left_out = [one for one in names if not config.keys() & {*one}]
    return {**{name: defaults[name] for one in left_out for name in one if name in defaults}, **config}


def title(row: dict[str, Any]) -> str:
    """What a test of ``row`` is called."""
    values = (str(value) for value in row.get("training", row).values())
    return "-".join([row["model"], *values]).replace(" ", "")


def _training(rows: dict[str, Any], row: dict[str, Any]) -> Scenario:
    settings = {"torch_version": "2.13", **row["training"]}  # on which they were measured
    if "lora" in settings:
        settings["lora"] = msgspec.convert(settings["lora"], Lora)
    return Scenario(model=model(rows, row["model"], **row["built"]), training=Training(**settings))


def check_saved(rows: dict[str, Any], row: dict[str, Any]) -> None:
    """What autograd saves: layer by layer, and part by part where parts are named as ours, else in all."""
    held = ledger(_training(rows, row))
    if "layers" in row:
        assert held.saved_by_layer() == {stack: tuple(sizes) for stack, sizes in row["layers"].items()}
    if "parts" in row:
        assert held.saved_by_part() == row["parts"]
    elif "total" in row:
        assert held.saved_total == row["total"]
    assert held.saved_weight_casts == row["weight_casts"]
    assert held.parameters.trainable == row["trainable"]


def check_steps(rows: dict[str, Any], row: dict[str, Any]) -> None:
    """Live bytes at the named moments to the byte; each phase's peak within half a percent."""
    steady = ledger(_training(rows, row)).steps[1]
    assert {name: getattr(steady, name) for name in row["moments"]} == row["moments"]
    for phase, expected in row["phases"].items():
        assert abs(steady.phases[phase] - expected) <= 0.005 * expected, phase


def check_parameters(rows: dict[str, Any], row: dict[str, Any]) -> None:
    """Parameters of the whole model, part by part."""
    counted = ledger(
        Scenario(model=model(rows, row["model"]), training=Training(sequence_length=1))
    ).parameters
    assert counted.by_part == row["parts"]


def check_cache(rows: dict[str, Any], row: dict[str, Any]) -> None:
    """What the cache object holds after the prompt, and after one more token."""
    inference = Inference(generated_tokens=1, **row["inference"])
    scenario = Scenario(model=model(rows, row["model"]), task="inference", inference=inference)
    held = ledger(scenario).cache
    assert held.after_prompt == row["after_prompt"]
    if row["after_one_more"] is not None:
        assert held.after_one_more == row["after_one_more"]
