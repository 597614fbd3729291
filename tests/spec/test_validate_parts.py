"""Sizes of parts that a model does not have: not offered, and refused by name where they are given."""

from __future__ import annotations

from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.spec import Scenario, get, replace
from memgui.spec.fields import BY_PATH
from memgui.spec.validate import validate
from memgui.spec.validate_parts import parts

CATALOG = Catalog()


def _of(name: str, engine: str = "", **sizes: Any) -> Scenario:
    scenario = replace(CATALOG.first_scenario(), "model", CATALOG.model(name).model)
    scenario = replace(scenario, "training.sequence_length", 128)
    if engine:
        scenario = replace(replace(scenario, "task", "inference"), "inference.engine", engine)
    for size, value in sizes.items():
        scenario = replace(scenario, f"model.{size}", value)
    return scenario


def test_every_built_in_model_has_what_its_parts_need() -> None:
    assert not [(one.name, issue.paths) for one in CATALOG.models for issue in parts(one.model)]


@pytest.mark.parametrize(
    ("name", "engine", "size", "value", "missing"),
    [
        ("google-bert/bert-base-uncased", "", "image_size", 224, "patch_size"),
        (
            "google-bert/bert-base-uncased",
            "",
            "hidden_size_per_layer_input",
            64,
            "vocab_size_per_layer_input",
        ),
        ("openai/gpt-oss-20b", "", "hidden_size_per_layer_input", 64, "vocab_size_per_layer_input"),
        ("google/mobilebert-uncased", "", "altup_num_inputs", 4, "laurel_rank"),
        ("google/recurrentgemma-2b", "llama.cpp", "kv_lora_rank", 64, "v_head_dim"),
        ("meta-llama/Meta-Llama-3.1-8B", "", "kv_lora_rank", 64, "qk_rope_head_dim"),
        ("LiquidAI/LFM2-1.2B", "vllm", "conv1d_width", 0, "conv1d_width"),
        ("state-spaces/mamba-130m-hf", "", "mamba_d_state", 0, "mamba_d_state"),
        ("google/gemma-3n-E4B-it", "", "hidden_size_per_layer_input", 0, "hidden_size_per_layer_input"),
        ("google/vit-base-patch16-224", "", "image_size", 0, "image_size"),
    ],
)
def test_a_part_that_lacks_another_is_refused_by_name(
    name: str, engine: str, size: str, value: int, missing: str
) -> None:
    scenario = _of(name, engine, **{size: value})
    issues = [one for one in validate(scenario) if one.code == "part_missing"]
    assert f"model.{missing}" in {one.paths[0] for one in issues}
    assert all(one.severity == "error" for one in issues)
    assert any(f"model.{size}" in one.paths for one in issues)
    there = _of(name, engine)
    if not get(there, f"model.{size}"):
        assert not BY_PATH[f"model.{size}"].applies(there)


def test_what_a_part_needs_is_no_matter_of_the_articles() -> None:
    scenario = replace(_of("gpt2", image_size=224), "method", "megatron_paper")
    assert not [one for one in validate(scenario) if one.code == "part_missing"]


@pytest.mark.parametrize(
    ("name", "engine", "sizes", "named"),
    [
        (
            "openai/gpt-oss-20b",
            "",
            {"vocab_size_per_layer_input": 100, "hidden_size_per_layer_input": 64},
            "model.hidden_size_per_layer_input",
        ),
        (
            "google-bert/bert-base-uncased",
            "",
            {"vocab_size_per_layer_input": 100, "hidden_size_per_layer_input": 64},
            "model.hidden_size_per_layer_input",
        ),
        (
            "google-bert/bert-base-uncased",
            "",
            {"patch_size": 16, "num_channels": 3, "image_size": 224},
            "model.head",
        ),
        (
            "bigcode/starcoder2-3b",
            "llama.cpp",
            {"qk_rope_head_dim": 64, "v_head_dim": 64, "kv_lora_rank": 64},
            "model.kv_lora_rank",
        ),
    ],
)
def test_whole_parts_that_no_module_writes_are_not_modelled(
    name: str, engine: str, sizes: dict[str, int], named: str
) -> None:
    found = estimate(_of(name, engine, **sizes))
    assert found.verdict.kind == "unknown"
    assert found.verdict.reason is not None
    assert found.verdict.reason.args["path"] == named


def test_a_convolution_of_one_token_keeps_nothing() -> None:
    one, three = (estimate(_of("LiquidAI/LFM2-1.2B", "vllm", conv1d_width=width)) for width in (1, 3))
    assert 0 < one.peak_bytes <= three.peak_bytes
