"""Devices and degrees that are edited as one."""

from __future__ import annotations

import pytest

from memgui.catalog import Catalog
from memgui.estimator.targets import TARGETS
from memgui.planning.layout import together
from memgui.spec import Scenario, replace
from memgui.spec.scenario import Lora
from tests.planning.fakes import MODEL


def setup(count: int = 1, **degrees: int) -> Scenario:
    scenario = replace(Scenario(model=MODEL), "device.count", count)
    for name, degree in degrees.items():
        scenario = replace(scenario, f"parallelism.{name}", degree)
    return scenario


@pytest.mark.parametrize(
    ("scenario", "path", "value", "follows"),
    [
        (setup(), "device.count", 8, {"parallelism.data": 8}),
        (setup(8, data=2, tensor=4), "device.count", 16, {"parallelism.data": 4}),
        (setup(8, data=2, tensor=4), "device.count", 6, {}),  # no whole degree: the person is told
        (setup(8, data=2, tensor=4), "device.count", 1, {"parallelism.data": 1, "parallelism.tensor": 1}),
        (setup(8, data=8), "parallelism.tensor", 4, {"parallelism.data": 2}),
        (setup(8, data=8), "parallelism.tensor", 16, {"parallelism.data": 1, "device.count": 16}),
        (setup(4, tensor=4), "parallelism.tensor", 8, {"device.count": 8}),
        (setup(4, tensor=4), "parallelism.data", 2, {"device.count": 8}),
        (setup(4), "parallelism.data", 2, {}),  # they did not fit together before
        (setup(8, data=8), "training.micro_batch_size", 2, {}),
    ],
)
def test_degrees_and_devices_stay_together(
    scenario: Scenario, path: str, value: int, follows: dict[str, int]
) -> None:
    assert together(scenario, path, value) == {path: value, **follows}


@pytest.mark.parametrize(
    ("engine", "degree"), [("vllm", "tensor"), ("transformers", "pipeline"), ("llama.cpp", "pipeline")]
)
def test_serving_shares_devices_as_its_engine_does(engine: str, degree: str) -> None:
    scenario = replace(replace(setup(), "task", "inference"), "inference.engine", engine)
    assert together(scenario, "device.count", 2) == {"device.count": 2, f"parallelism.{degree}": 2}


@pytest.mark.parametrize(
    ("variant", "method", "kept"),
    [
        ("printed", "llama_guide", False),
        ("printed", "detailed", False),
        ("exact", "llama_guide", True),
        (None, "llama_guide", True),
    ],
)
def test_another_method_takes_its_own_variant(variant: str | None, method: str, kept: bool) -> None:
    article = replace(replace(setup(), "method", "gpt_article"), "method_variant", variant)
    follows = {} if kept else {"method_variant": None}
    assert together(article, "method", method) == {"method": method, **follows}


def test_adapters_follow_what_the_model_has_unless_somebody_placed_them() -> None:
    latent = ("q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
    plain = setup()
    assert together(plain, "model.hidden_act", "silu") == {"model.hidden_act": "silu"}
    for path, value in (
        ("qk_nope_head_dim", 64),
        ("qk_rope_head_dim", 64),
        ("v_head_dim", 128),
        ("kv_lora_rank", 512),
    ):
        values = together(plain, f"model.{path}", value)
        for one, what in values.items():
            plain = replace(plain, one, what)
    assert plain.training.lora.target_modules == latent
    assert together(plain, "model.kv_lora_rank", None)[TARGETS] == Lora().target_modules
    chosen = replace(setup(), TARGETS, ("o_proj",))
    assert TARGETS not in together(chosen, "model.kv_lora_rank", 512)


def test_lora_is_chosen_with_layers_that_are_there() -> None:
    model = next(entry.model for entry in Catalog().models if entry.model.model_type == "deepseek_v3")
    old = Scenario(model=model)  # as a preset of earlier days has it
    chosen = together(old, "training.method", "lora")
    assert set(chosen) == {"training.method", TARGETS}
    assert not set(chosen[TARGETS]) & set(Lora().target_modules)
    mine = replace(old, TARGETS, ("o_proj",))
    assert together(mine, "training.method", "lora") == {"training.method": "lora"}
    assert together(setup(), "training.method", "lora") == {"training.method": "lora"}
