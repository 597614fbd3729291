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


IN_VLLM = replace(SERVING, "inference.engine", "vllm")


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.6"])
def test_an_older_vllm_refuses_bf16_below_8_0(version: str) -> None:
    opened = replace(IN_VLLM, "inference.vllm_version", version)
    (found,) = refusals(on(opened, "7.5"))
    assert found.paths[0] == "inference.weight_format"
    assert found.message.args["needed"] == "8.0"
    assert found.allowed is not None
    assert "fp16" in found.allowed.text
    assert not refusals(on(opened, "8.0"))
    assert not refusals(on(replace(opened, "inference.weight_format", "fp16"), "7.5"))
    assert not refusals(on(replace(opened, "inference.engine", "transformers"), "7.5"))


def notes(scenario: Scenario) -> list[str]:
    return [one.code for one in validate(scenario) if one.code.startswith("bf16")]


def test_a_newer_vllm_goes_over_to_fp16() -> None:
    assert notes(on(IN_VLLM, "7.5")) == ["bf16_as_fp16"]
    assert not refusals(on(IN_VLLM, "7.5"))
    assert not notes(on(IN_VLLM, "8.0"))
    assert not notes(on(replace(IN_VLLM, "inference.weight_format", "fp16"), "7.5"))


def test_a_model_that_vllm_does_not_run_in_fp16_needs_fp32() -> None:
    gemma = replace(IN_VLLM, "model.model_type", "gemma2")
    (found,) = refusals(on(gemma, "7.5"))
    assert found.allowed is not None
    assert found.allowed.text == "Allowed: fp32."
    assert not refusals(on(replace(gemma, "inference.weight_format", "fp32"), "7.5"))
    assert not notes(on(gemma, "8.0"))


@pytest.mark.parametrize("precision", ["bf16", "bf16_mixed", "fp16_mixed", "fp32"])
def test_training_in_bf16_is_emulated_below_8_0(precision: str) -> None:
    opened = replace(FIRST, "training.precision", precision)
    assert notes(on(opened, "7.0")) == ["bf16_emulated"] * precision.startswith("bf16")
    assert not notes(on(opened, "8.0"))
    assert not notes(on(opened, ""))


@pytest.mark.parametrize("text", ["banana", "²", "9.", "9.x", "-1", "1e9", "8.6.1", "99999999999"])
def test_what_is_no_compute_capability_is_an_error(text: str) -> None:
    issues = validate(on(FIRST, text))
    assert issues[0].severity == "error"
    assert issues[0].paths == ("device.compute_capability",)
    assert text[:80] in issues[0].text
    assert "such as 9.0" in issues[0].text


@pytest.mark.parametrize("text", ["", "9", "9.0", "12.1"])
def test_a_compute_capability_is_a_number_or_nothing(text: str) -> None:
    issues = validate(on(FIRST, text))
    assert not any(issue.code == "no_capability" for issue in issues)
