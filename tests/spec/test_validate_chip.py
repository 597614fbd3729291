"""What a chip is too old for is refused by name, and on nothing newer."""

from __future__ import annotations

import pytest

from memgui.catalog import Catalog
from memgui.spec import Device, Issue, Scenario, replace
from memgui.spec.validate import validate

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
SERVING = replace(FIRST, "task", "inference")


def on(scenario: Scenario, capability: str) -> Scenario:
    return replace(scenario, "device", Device(name="a card", compute_capability=capability))


def refusals(scenario: Scenario) -> list[Issue]:
    return [one for one in validate(scenario) if one.code == "chip_too_old"]


@pytest.mark.parametrize(
    ("path", "value", "least", "below", "allowed"),
    [
        ("training.attention", "flash_attention_2", "8.0", "7.5", "eager, sdpa, flex_attention"),
        ("training.attention", "flex_attention", "7.0", "6.1", "eager, sdpa"),
        ("inference.attention", "flash_attention_2", "8.0", "7.0", "eager, sdpa"),
        ("training.sdpa_backend", "flash", "8.0", "7.5", "auto, efficient, math"),
        ("training.sdpa_backend", "cudnn", "8.0", "7.0", "auto, efficient, math"),
        ("training.precision", "fp8", "8.9", "8.6", None),
        ("training.compile", True, "7.0", "6.1", "off"),
        ("inference.engine", "vllm", "7.0", "6.1", "transformers, llama.cpp, gpt-fast, ollama"),
        ("inference.engine", "sglang", "7.5", "7.0", "transformers, vllm, llama.cpp, gpt-fast, ollama"),
    ],
)
def test_a_choice_is_refused_below_its_chip(
    path: str, value: object, least: str, below: str, allowed: str | None
) -> None:
    base = SERVING if path.startswith("inference") else FIRST
    if value == "fp8" or path == "training.compile":
        base = replace(base, "training.implementation", "torchtitan")
    scenario = replace(base, path, value)
    assert not refusals(on(scenario, least))
    assert not refusals(on(scenario, ""))  # no NVIDIA chip: nothing is known
    (found,) = refusals(on(scenario, below))
    assert found.severity == "error"
    assert found.paths == (path, "device.name", "device.compute_capability")
    assert found.message.args["needed"] == least
    assert found.message.args["device"] == "a card"
    assert found.allowed is not None
    if allowed is not None:
        assert found.allowed.text == f"Allowed: {allowed}."
    else:
        assert "fp8" not in found.allowed.text.rstrip(".").split(", ")


def test_what_does_not_apply_is_not_judged() -> None:
    scenario = replace(replace(FIRST, "training.attention", "eager"), "training.sdpa_backend", "flash")
    assert not refusals(on(scenario, "7.5"))
    assert not refusals(on(replace(FIRST, "inference.attention", "flash_attention_2"), "7.5"))
    by_article = replace(replace(FIRST, "method", "gpt_article"), "training.attention", "flash_attention_2")
    assert not refusals(on(by_article, "7.5"))


def test_nothing_is_refused_that_a_device_of_the_catalog_runs() -> None:
    for entry in CATALOG.devices:
        assert not refusals(replace(FIRST, "device", entry.device())), entry
