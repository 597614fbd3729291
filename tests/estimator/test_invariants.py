"""What holds for every family: less is trained in less memory, more work takes no less, sums are totals."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgui.estimator import Estimate, estimate, ledger
from memgui.spec import Lora, Scenario
from memgui.spec.model import ModelSpec
from memgui.spec.validate import validate
from tests.estimator import families
from tests.estimator.build import training
from tests.estimator.models import MODELS

KINDS = ("decoders", "experts", "mixers", "recurrent", "encoders", "two_stacks")


def _families() -> list[ModelSpec]:
    """Every family that has measured rows, with few layers of each kind, dimensions as they are."""
    found = [*MODELS.values()]
    for kind in KINDS:
        rows = families.read(kind)
        found += [families.model(rows, name) for name in rows["models"]]
    return [_few_layers(model) for model in found]


def _few_layers(model: ModelSpec) -> ModelSpec:
    rhythm = max(2, len(model.layer_types), len(model.mlp_layer_types))
    changes: dict[str, Any] = {"num_hidden_layers": min(model.num_hidden_layers, rhythm, 8)}
    if model.num_encoder_layers:
        changes["num_encoder_layers"] = 2
    return msgspec.structs.replace(model, **changes)


ALL = _families()
FAMILY = st.sampled_from(ALL)
PACKED = ("nf4", "nf4_dq", "fp4", "int8", "gptq_int4_g128", "awq_int4_g128", "hqq_4bit_g64")
TRAINED: list[dict[str, Any]] = [
    {"method": "full"},
    {"method": "full", "precision": "bf16_mixed"},
    {"method": "frozen"},
    {"method": "lora", "lora": Lora(target_modules=("all-linear",), dropout=0.05)},
    {"method": "lora", "lora": Lora(variant="dora"), "precision": "bf16_mixed"},
    {"method": "lora", "implementation": "unsloth", "base_format": "nf4_dq"},
    {"method": "ia3"},
    {"method": "prompt"},
    {"method": "prefix"},
    *({"method": "lora", "base_format": base} for base in PACKED),
]
HOW = st.sampled_from(TRAINED)
OTHERS: list[dict[str, Any]] = [
    {"implementation": "fused"},
    {"implementation": "torchtitan", "precision": "bf16_mixed"},
    {"implementation": "torchtune"},
    {"implementation": "megatron", "precision": "bf16_master"},
    {"implementation": "litgpt", "method": "lora"},
]
"""Whose code runs elsewhere."""
BATCH, LENGTH = st.integers(1, 3), st.integers(16, 300)


def ran(scenario: Scenario) -> Estimate | None:
    """The estimate, or nothing where the model, or its code, has no such thing."""
    if any(issue.severity == "error" for issue in validate(scenario)):
        return None
    found = estimate(scenario)
    return None if found.verdict.kind == "unknown" else found


def tensors(scenario: Scenario) -> int:
    """Bytes of tensors at the peak: what lies around them is not in proportion."""
    return max(ledger(scenario).steps[1].phases.values())


def most(found: Estimate, key: str) -> int:
    return max(moment.components[key] for moment in found.timeline)


@settings(max_examples=60, deadline=None)
@given(FAMILY, st.sampled_from(PACKED), BATCH, LENGTH)
def test_adapters_on_a_packed_base_need_less_than_on_a_plain_one_and_these_less_than_all(
    model: ModelSpec, base: str, batch: int, length: int
) -> None:
    """Of weights the adapters' own are apart; what is not packed stays as it is (no k-bit preparation)."""
    work = {"micro_batch_size": batch, "sequence_length": length, "kbit_preparation": False}
    beside = {**work, "method": "lora", "lora": Lora(rank=1, target_modules=("all-linear",))}
    full = ran(training(model, **work))
    plain = ran(training(model, **beside))
    packed = ran(training(model, **beside, base_format=base))
    for less, more in ((packed, plain), (plain, full)):
        if less is None or more is None:
            continue
        for key in ("gradients", "optimizer_states"):
            assert most(less, key) <= most(more, key), key
        kept = sum(most(less, key) for key in ("weights", "gradients", "optimizer_states"))
        assert kept <= sum(most(more, key) for key in ("weights", "gradients", "optimizer_states"))
    if packed is not None and plain is not None:
        assert most(packed, "weights") <= most(plain, "weights")


@settings(max_examples=60, deadline=None)
@given(FAMILY, HOW, BATCH, LENGTH)
def test_checkpointing_never_saves_more(
    model: ModelSpec, how: dict[str, Any], batch: int, length: int
) -> None:
    work = {**how, "micro_batch_size": batch, "sequence_length": length, "input_require_grads": False}
    plain, again = (training(model, **work, activation_checkpointing=one) for one in ("none", "full"))
    if how["method"] == "frozen" or ran(plain) is None or ran(again) is None:
        return  # a frozen layer keeps nothing either way but, checkpointed, its input
    assert ledger(again).saved_total <= ledger(plain).saved_total


@settings(max_examples=60, deadline=None)
@given(FAMILY, HOW, BATCH, LENGTH, st.booleans())
def test_more_never_takes_less(
    model: ModelSpec, how: dict[str, Any], batch: int, length: int, checkpointed: bool
) -> None:
    """Of tokens eight more: masks whose rows are no multiple of 8 are copied, so one more may take less."""
    work = {**how, "activation_checkpointing": "full" if checkpointed else "none"}
    work |= {"micro_batch_size": batch, "sequence_length": length}
    if ran(training(model, **work)) is None:
        return
    least = tensors(training(model, **work))
    wider = {"intermediate_size": model.intermediate_size + 64}
    if model.num_experts:
        wider["moe_intermediate_size"] = model.moe_intermediate_size + 64
    more = (
        training(model, **{**work, "micro_batch_size": batch + 1}),
        training(model, **{**work, "sequence_length": length + 8}),
        training(msgspec.structs.replace(model, num_hidden_layers=model.num_hidden_layers + 1), **work),
        training(msgspec.structs.replace(model, **wider), **work),
    )
    for number, scenario in enumerate(more):
        assert ran(scenario) is None or least <= tensors(scenario), number


@pytest.mark.parametrize("model", ALL, ids=[model.name for model in ALL])
def test_sums_are_totals(model: ModelSpec) -> None:
    asked = [training(model, micro_batch_size=2, sequence_length=64, **how) for how in (*TRAINED, *OTHERS)]
    found = [one for one in map(ran, asked) if one is not None]
    assert found
    for one in found:
        assert sum(node.bytes for node in one.components) == one.peak_bytes
        for moment in one.timeline:
            assert sum(moment.components.values()) == moment.bytes
        for component in one.components:
            assert (
                component.bytes == sum(child.bytes for child in component.children) or not component.children
            )
