"""Cross-field rules: named fields, nothing clamped."""

from __future__ import annotations

import pytest

from memgui.catalog import Catalog
from memgui.spec import Scenario, replace
from memgui.spec.fields import BY_PATH, FIELDS, Kind
from memgui.spec.validate import validate
from memgui.spec.values import check
from tests.estimator.build import spread
from tests.spec.test_fields import SCENARIO


def codes(scenario: object) -> dict[str, str]:
    return {issue.code: issue.severity for issue in validate(scenario)}  # type: ignore[arg-type]


def test_a_sound_scenario_has_no_issues() -> None:
    assert validate(SCENARIO) == ()


def test_heads_that_cannot_be_grouped_name_both_fields() -> None:
    issues = validate(replace(SCENARIO, "model.num_key_value_heads", 3))
    assert issues[0].severity == "error"
    assert issues[0].paths == ("model.num_attention_heads", "model.num_key_value_heads")
    assert "1, 2, 4, 8" in issues[0].text


def test_learned_positions_end_where_rotary_ones_only_warn() -> None:
    longer = replace(
        replace(SCENARIO, "model.max_position_embeddings", 1024), "training.sequence_length", 2048
    )
    assert codes(longer) == {"beyond_longest": "warning"}
    assert codes(replace(longer, "model.position_embedding", "learned")) == {"beyond_longest": "error"}


def test_only_what_is_generated_needs_positions_beside_the_prompt() -> None:
    serving = replace(replace(SCENARIO, "task", "inference"), "model.max_position_embeddings", 512)
    serving = replace(replace(serving, "model.position_embedding", "learned"), "inference.prompt_tokens", 512)
    assert codes(serving) == {"beyond_longest": "error"}
    assert codes(replace(serving, "model.is_decoder", False)) == {}
    two_stacks = replace(serving, "model.num_encoder_layers", 2)
    assert codes(replace(two_stacks, "inference.generated_tokens", 511)) == {}
    longer = validate(replace(two_stacks, "inference.generated_tokens", 512))
    assert [issue.paths for issue in longer] == [("inference.generated_tokens",)]


def test_degrees_and_devices() -> None:
    two = replace(SCENARIO, "device.count", 2)
    assert codes(two) == {"degrees_and_devices": "warning"}
    (idle,) = validate(two)
    assert idle.text.endswith("use 1 of 2 devices, the rest do nothing: parallelism.data = 2 would use all.")
    (odd,) = validate(replace(replace(two, "device.count", 5), "parallelism.tensor", 2))
    assert odd.text.endswith("use 2 of 5 devices, the rest do nothing.")
    served = replace(two, "task", "inference")
    for engine, path in (("vllm", "parallelism.tensor"), ("transformers", "parallelism.pipeline")):
        (idle,) = validate(replace(served, "inference.engine", engine))
        assert f"{path} = 2 would use all." in idle.text
        assert codes(replace(replace(served, "inference.engine", engine), path, 2)) == {}
    assert codes(replace(two, "parallelism.data", 2)) == {}
    (missing,) = validate(replace(two, "parallelism.data", 4))
    assert (missing.code, missing.severity) == ("degrees_and_devices", "error")
    assert "device.count = 4 would do" in missing.text
    split = replace(replace(two, "device.count", 3), "parallelism.tensor", 3)
    assert codes(split) == {"heads_not_split": "error"}


def test_layouts_name_what_does_not_divide() -> None:
    assert codes(spread(SCENARIO, tensor=4)) == {}
    odd = replace(SCENARIO, "model.intermediate_size", 1023)
    assert codes(spread(odd, tensor=2)) == {"not_split": "error"}
    assert codes(spread(replace(SCENARIO, "training.sequence_length", 1001), context=2)) == {
        "not_split": "error"
    }
    assert codes(spread(SCENARIO, data=2, sequence=True)) == {"sequence_without_tensor": "warning"}
    experts = replace(SCENARIO, "model.num_experts", 6)
    experts = replace(experts, "model.num_experts_per_tok", 2)
    experts = replace(experts, "model.moe_intermediate_size", 64)
    assert codes(spread(experts, data=3, expert=3)) == {}
    assert codes(spread(experts, data=4, expert=4)) == {"not_split": "error"}
    assert codes(spread(experts, data=4, expert=3)) == {"experts_not_spread": "error"}


def test_libraries_rule_out_what_they_do_not_do() -> None:
    mixed = replace(SCENARIO, "training.precision", "bf16_mixed")
    master = replace(SCENARIO, "training.precision", "bf16_master")
    assert codes(spread(mixed, data=2, sharding="zero3")) == {}
    assert codes(spread(master, data=2, sharding="zero3", library="deepspeed")) == {}
    assert codes(spread(mixed, data=2, sharding="zero3", library="deepspeed")) == {
        "precision_of_another_library": "error"
    }
    assert codes(spread(master, data=2, sharding="zero2", library="megatron")) == {
        "sharding_of_another_library": "error"
    }
    packed = replace(replace(mixed, "training.method", "lora"), "training.base_format", "int8")
    assert codes(spread(packed, data=2, sharding="zero3")) == {"int8_not_shared": "error"}
    assert codes(spread(packed, data=2)) == {}
    inside = replace(master, "training.optimizer_in_backward", True)
    assert codes(spread(inside, data=2)) == {"no_gradients_to_reduce": "error"}


def test_unusual_is_a_note_and_hidden_fields_are_not_judged() -> None:
    assert codes(replace(SCENARIO, "training.micro_batch_size", 5000)) == {"unusual": "note"}
    other = replace(replace(SCENARIO, "training.micro_batch_size", 5000), "task", "inference")
    assert codes(other) == {}


def test_bytes_that_were_meant_as_gib_are_asked_about() -> None:
    (issue,) = validate(replace(SCENARIO, "device.memory_bytes", 24))
    assert (issue.severity, issue.code) == ("note", "unusual")
    assert issue.text.endswith("is 24 bytes, which is unusual. Is a unit missing, as in 24 GiB?")
    (issue,) = validate(replace(SCENARIO, "device.memory_bytes", 2**50))
    assert issue.text.endswith("is 1,125,899,906,842,624, which is unusual.")


def test_degrees_on_one_device_are_told() -> None:
    scenario = replace(SCENARIO, "parallelism.tensor", 4)
    (issue,) = [issue for issue in validate(scenario) if issue.code == "degrees_and_devices"]
    assert issue.severity == "error"
    assert issue.paths == ("parallelism.tensor", "device.count")
    assert all(BY_PATH[path].applies(scenario) for path in issue.paths)  # each can be taken back
    assert not BY_PATH["parallelism.tensor"].applies(SCENARIO)
    paper = replace(scenario, "method", "megatron_paper")
    assert not [issue for issue in validate(paper) if issue.code == "degrees_and_devices"]


def serving(engine: str, keys: str, values: str | None = None) -> Scenario:
    made = replace(replace(SCENARIO, "task", "inference"), "inference.engine", engine)
    made = replace(made, "inference.kv_cache_format", keys)
    return replace(made, "inference.kv_cache_format_v", values)


def test_a_cache_that_the_engine_does_not_have_is_refused_with_what_it_has() -> None:
    (issue,) = [one for one in validate(serving("transformers", "fp8")) if one.severity == "error"]
    assert issue.code == "cache_not_offered"
    assert issue.paths == ("inference.kv_cache_format", "inference.engine")
    assert issue.allowed is not None
    assert "quantized_int4" in issue.allowed.text
    assert "fp8" not in issue.allowed.text.replace("(", ",").split(", ")
    assert not [one for one in validate(serving("vllm", "fp8")) if one.severity == "error"]


def test_a_cache_that_no_engine_here_has_is_computed_all_the_same() -> None:
    (issue,) = [one for one in validate(serving("vllm", "exl2_q4")) if one.code == "cache_not_offered"]
    assert issue.severity == "warning"


def test_values_are_judged_apart_where_an_engine_stores_them_apart() -> None:
    issues = validate(serving("ollama", "q8_0", "iq4_nl"))
    assert ("inference.kv_cache_format_v", "inference.engine") in [
        one.paths for one in issues if one.code == "cache_not_offered"
    ]
    assert not [one for one in validate(serving("vllm", "fp8", "q4_0")) if one.code == "cache_not_offered"]


def test_a_token_goes_through_no_more_experts_than_there_are() -> None:
    scenario = replace(SCENARIO, "model.num_experts_per_tok", 9)
    assert codes(scenario) == {}  # a dense model has no router
    scenario = replace(replace(scenario, "model.moe_intermediate_size", 64), "model.num_experts", 8)
    assert codes(scenario) == {"more_experts_chosen_than_there_are": "error"}
    assert codes(replace(scenario, "model.zero_expert_num", 1)) == {}
    assert codes(replace(scenario, "model.num_experts_per_tok", 8)) == {}
    assert "9 of 8 experts" in validate(scenario)[0].text


def test_experts_without_a_width_are_told() -> None:
    scenario = replace(SCENARIO, "model.num_experts", 8)
    (issue,) = [issue for issue in validate(scenario) if issue.code == "experts_without_width"]
    assert issue.severity == "warning"
    assert not [one for one in validate(SCENARIO) if one.code == "experts_without_width"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_format": "nf4_dq"}, "turns them to fp32"),
        ({"base_format": "nf4_dq", "kbit_preparation": False}, "stay in 16 bits"),
        ({"base_format": "hqq_4bit_g64"}, "stay in 16 bits"),
        ({"base_format": "bf16"}, ""),
    ],
)
def test_experts_that_stay_unpacked_are_said(settings: dict[str, object], said: str) -> None:
    """Mixtral beside NF4 is larger than in 16 bits: a person must be told why."""
    scenario = replace(replace(SCENARIO, "model.num_experts", 8), "model.moe_intermediate_size", 64)
    scenario = replace(scenario, "training.method", "lora")
    for name, value in settings.items():
        scenario = replace(scenario, f"training.{name}", value)
    found = [issue for issue in validate(scenario) if issue.code == "experts_not_packed"]
    assert [issue.severity for issue in found] == (["warning"] if said else [])
    assert all(said in issue.text for issue in found)


def test_a_model_without_attention_has_no_odd_heads() -> None:
    """Mamba's one head as wide as its stream is no attention head, and nothing unusual."""
    wide = replace(replace(SCENARIO, "model.head_dim", 2560), "model.layer_types", ("mamba",))
    assert "model.head_dim" not in {path for issue in validate(wide) for path in issue.paths}
    mixed = replace(wide, "model.layer_types", ("mamba", "full_attention"))
    assert "model.head_dim" in {path for issue in validate(mixed) for path in issue.paths}


def test_another_makers_chip_is_said_to_count_as_nvidias() -> None:
    apple = replace(replace(SCENARIO, "device.name", "Apple M4"), "device.compute_capability", "")
    assert codes(apple) == {"no_nvidia_chip": "note"}
    serving = replace(replace(apple, "task", "inference"), "inference.engine", "llama.cpp")
    assert "no_nvidia_chip" not in codes(serving)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_states_of_a_step_in_backward_are_not_parted(share: float) -> None:
    scenario = replace(SCENARIO, "training.optimizer_in_backward", True)
    found = validate(replace(scenario, "training.offload_optimizer", share))
    parted = [one for one in found if one.code == "part_of_the_states_in_backward"]
    assert [one.severity for one in parted] == ["error"] * (share == 0.5)
    assert not [one for one in found if one.severity == "error" and one not in parted]


def test_a_target_has_positions_of_its_own() -> None:
    bart = replace(Catalog().first_scenario(), "model", Catalog().model("bart-large").model)
    bart = replace(bart, "training.sequence_length", 512)
    assert codes(replace(bart, "training.target_length", 5000))["beyond_longest"] == "error"
    assert "beyond_longest" not in codes(replace(bart, "training.target_length", 64))


@pytest.mark.parametrize(
    ("base", "precision", "told"),
    [("bf16", "fp16_mixed", True), ("fp16", "bf16_mixed", True), ("bf16", "bf16_mixed", False)],
)
def test_halves_that_meet_are_told(base: str, precision: str, told: bool) -> None:
    scenario = replace(replace(SCENARIO, "training.method", "lora"), "training.base_format", base)
    assert ("halves_mixed" in codes(replace(scenario, "training.precision", precision))) is told


@pytest.mark.parametrize(
    ("base", "precision", "prepared", "told"),
    [
        ("nf4", "bf16", True, True),
        ("nf4", "bf16_mixed", True, False),
        ("nf4", "bf16", False, False),
        ("bf16", "bf16", True, False),
    ],
)
def test_packed_layers_between_fp32_are_told(base: str, precision: str, prepared: bool, told: bool) -> None:
    scenario = replace(replace(SCENARIO, "training.method", "lora"), "training.base_format", base)
    scenario = replace(
        replace(scenario, "training.precision", precision), "training.kbit_preparation", prepared
    )
    assert ("prepared_without_autocast" in codes(scenario)) is told


SPREAD = {"device.count": 8, "parallelism.data": 2, "parallelism.tensor": 2, "parallelism.pipeline": 2}
MEGATRON = {"training.implementation": "megatron", "training.precision": "bf16_master"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        SPREAD,
        {**SPREAD, **MEGATRON, "parallelism.virtual_pipeline": 2, "parallelism.sequence": True},
        {**SPREAD, "method": "megatron_paper"},
        {**SPREAD, "task": "inference", "inference.engine": "vllm"},
        {"task": "inference", "inference.engine": "llama.cpp"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["Meta-Llama-3.1-8B", "DeepSeek-V3", "t5-base", "mamba-130m-hf"])
def test_a_number_out_of_its_range_is_an_error_and_no_fault(name: str, changes: dict[str, object]) -> None:
    catalog = Catalog()
    scenario = replace(catalog.first_scenario(), "model", catalog.model(name).model)
    for path, value in changes.items():
        scenario = replace(scenario, path, value)
    for field in FIELDS:
        if field.kind not in (Kind.COUNT, Kind.TOKENS, Kind.BYTES):
            continue
        for value in (0, -1, -7, 10**30):
            other = replace(scenario, field.path, value)
            issues = validate(other)
            if field.applies(other) and check(field, value) is not None:
                assert any(one.severity == "error" and field.path in one.paths for one in issues), field.path
