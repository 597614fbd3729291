"""Every check value that the articles give, and what each method says it leaves out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memgui.estimator import estimate
from memgui.estimator.methods import estimate_by_method, omissions
from memgui.estimator.result import COMPONENTS, Estimate, Node, Parameters
from memgui.spec import ModelSpec, Scenario, replace
from memgui.spec.fields import BY_PATH
from memgui.spec.methods import VARIANTS
from memgui.spec.validate import validate

GIB, MIB = 2**30, 2**20
COUNTED = Parameters(total=6_738_415_616, trainable=6_738_415_616, active=6_738_415_616, by_part={})

GPT2_LIKE = ModelSpec(
    name="gpt2",
    vocab_size=50257,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    num_key_value_heads=12,
    head_dim=64,
    intermediate_size=3072,
)
LLAMA_13B = ModelSpec(
    name="llama-13b",
    vocab_size=32000,
    hidden_size=5120,
    num_hidden_layers=40,
    num_attention_heads=40,
    num_key_value_heads=40,
    head_dim=128,
    intermediate_size=13824,
    nominal_parameters=13 * 10**9,
)


def scenario(method: str, model: ModelSpec, **fields: Any) -> Scenario:
    made = Scenario(model=model, method=method)
    made = replace(made, "training.sequence_length", 1024)
    for name, value in fields.items():
        made = replace(made, name.replace("__", "."), value)
    return made


def by_method(method: str, model: ModelSpec, **fields: Any) -> Estimate:
    return estimate_by_method(scenario(method, model, **fields), COUNTED)


def sizes(estimate: Estimate) -> dict[str, int]:
    return {node.key: node.bytes for node in estimate.components if node.bytes}


# gpt_article


def test_gpt_article_counts_its_elements() -> None:
    found = sizes(by_method("gpt_article", GPT2_LIKE))
    assert found["weights"] == 28_311_552 * 8
    assert found["activations"] == 169_869_312 * 8
    assert found["gradients"] == found["activations"]


@pytest.mark.parametrize(
    ("variant", "total"),
    [
        (None, 2_944_401_408),
        ("derived", 2_944_401_408),
        ("printed", 1_585_446_912),
        ("long_sequence", 1_434_451_968),
    ],
)
def test_gpt_article_gives_its_printed_totals(variant: str | None, total: int) -> None:
    assert by_method("gpt_article", GPT2_LIKE, method_variant=variant).peak_bytes == total


@pytest.mark.parametrize(
    ("number_format", "size"), [(None, 8), ("fp64", 8), ("fp32", 4), ("bf16", 2), ("fp16", 2)]
)
def test_gpt_article_multiplies_by_one_numbers_bytes_whatever_the_precision(
    number_format: str | None, size: int
) -> None:
    found = by_method(
        "gpt_article", GPT2_LIKE, method_number_format=number_format, training__precision="bf16_mixed"
    )
    assert found.peak_bytes == 2_944_401_408 * size // 8


def test_gpt_article_is_linear_in_batch_and_quadratic_in_long_sequences() -> None:
    def activations(batch: int, length: int) -> int:
        changed = {"training__micro_batch_size": batch, "training__sequence_length": length}
        found = by_method("gpt_article", GPT2_LIKE, method_variant="long_sequence", **changed)
        return found.component("activations").bytes

    assert activations(3, 1024) == 3 * activations(1, 1024)
    assert activations(1, 4096) == 16 * activations(1, 1024)


def test_gpt_article_says_why_its_variants_differ() -> None:
    for variant in ("derived", "printed"):
        said = " ".join(
            message.text
            for message in by_method("gpt_article", GPT2_LIKE, method_variant=variant).assumptions
        )
        assert "weights + 2 · activations" in said


# llama_guide


def test_llama_guide_is_exact() -> None:
    found = by_method("llama_guide", LLAMA_13B)
    assert sizes(found) == {
        "weights": 26 * 10**9,
        "gradients": 26 * 10**9,
        "optimizer_states": 156 * 10**9,
        "activations": 15_518_924_800,
        "temporary": 20_971_520,
    }
    assert found.peak_bytes == 223_539_896_320
    assert [node.bytes for node in found.component("optimizer_states").children] == [52 * 10**9] * 3
    assert [node.bytes for node in found.component("temporary").children] == [10 * MIB] * 2


def test_llama_guide_prints_its_own_figures() -> None:
    found = by_method("llama_guide", LLAMA_13B, method_variant="as_printed")
    printed = {key: round(size / GIB, 1) for key, size in sizes(found).items() if key != "temporary"}
    assert printed == {"weights": 26.0, "gradients": 26.0, "optimizer_states": 156.0, "activations": 14.5}
    assert [node.bytes / MIB for node in found.component("temporary").children] == [10.0, 10.0]
    assert round(found.peak_bytes / GIB, 1) == 222.5
    assert found.component("activations").bytes == 145 * GIB // 10


def test_llama_guide_shows_the_exact_figures_beside_the_printed_ones() -> None:
    found = by_method("llama_guide", LLAMA_13B, method_variant="as_printed")
    assert found.extra["exact_total_bytes"] == 223_539_896_320
    said = " ".join(message.text for message in found.assumptions)
    for figure in (
        "26,000,000,000",
        "24.2 GiB",
        "223,539,896,320",
        "208.2 GiB",
        "223.5 GB",
        "1.3B",
        "4,000,000",
    ):
        assert figure in said


def test_llama_guide_takes_the_counted_parameters_where_none_are_given() -> None:
    found = by_method("llama_guide", LLAMA_13B, model__nominal_parameters=None)
    assert found.component("weights").bytes == 2 * COUNTED.total


def test_small_activations_are_printed_in_whole_mb() -> None:
    found = by_method("llama_guide", GPT2_LIKE, method_variant="as_printed", training__sequence_length=64)
    assert found.component("activations").bytes % MIB == 0
    assert found.component("activations").bytes > 0


# megatron_paper


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ({}, 387_973_120),
        ({"parallelism__tensor": 8}, 94_371_840),
        ({"parallelism__tensor": 8, "parallelism__sequence": True}, 48_496_640),
        ({"training__activation_checkpointing": "full"}, 10_485_760),
        ({"training__activation_checkpointing": "full", "parallelism__tensor": 8}, 10_485_760),
        ({"training__activation_checkpointing": "selective"}, 34 * 1024 * 5120),
        (
            {
                "training__activation_checkpointing": "selective",
                "parallelism__tensor": 8,
                "parallelism__sequence": True,
            },
            34 * 1024 * 5120 // 8,
        ),
        ({"training__activation_checkpointing": "selective", "parallelism__tensor": 8}, 13 * 1024 * 5120),
    ],
)
def test_megatron_layer(fields: dict[str, Any], size: int) -> None:
    found = by_method("megatron_paper", LLAMA_13B, **fields)
    assert found.extra["layer_bytes"] == size
    layers = found.component("activations").child("layers")
    assert layers.child("layer").bytes == size
    assert layers.bytes == 40 * size


@pytest.mark.parametrize(
    ("stages", "chunks", "layers"), [(1, 1, 40), (4, 1, 40), (8, 1, 40), (4, 2, 55), (8, 5, 47)]
)
def test_megatron_first_stage_holds_its_micro_batches(stages: int, chunks: int, layers: int) -> None:
    found = by_method(
        "megatron_paper", LLAMA_13B, parallelism__pipeline=stages, parallelism__virtual_pipeline=chunks
    )
    assert found.component("activations").child("layers").bytes == layers * 387_973_120


def test_megatron_outside_the_layers() -> None:
    row = 1024 * 5120
    whole = by_method("megatron_paper", LLAMA_13B)
    assert whole.component("activations").child("embedding_dropout").bytes == row
    assert whole.component("activations").child("final_norm_and_head").bytes == 4 * row
    assert whole.component("loss").bytes == 4 * 1024 * 32000
    staged = by_method(
        "megatron_paper",
        LLAMA_13B,
        parallelism__tensor=8,
        parallelism__sequence=True,
        parallelism__pipeline=4,
    )
    assert staged.component("activations").child("embedding_dropout").bytes == row * 4 // 8
    assert [node.key for node in staged.component("activations").children] == ["layers", "embedding_dropout"]
    assert staged.component("loss").bytes == 0
    unspread = by_method("megatron_paper", LLAMA_13B, parallelism__tensor=8)
    assert [node.key for node in unspread.component("activations").children] == ["layers"]
    assert any("Outside the layers" in message.text for message in unspread.assumptions)


def test_megatron_has_eighteen_bytes_per_parameter() -> None:
    found = sizes(by_method("megatron_paper", LLAMA_13B))
    assert found["weights"] == 2 * COUNTED.total
    assert found["gradients"] == 4 * COUNTED.total
    assert found["optimizer_states"] == 12 * COUNTED.total


# every method


def every_case() -> list[Scenario]:
    cases = []
    for method, variants in VARIANTS.items():
        for variant in variants or (None,):
            for model in (GPT2_LIKE, LLAMA_13B):
                cases.append(scenario(method, model, method_variant=variant))
    layouts: list[dict[str, Any]] = [
        {"parallelism__tensor": 8},
        {"parallelism__tensor": 4, "parallelism__sequence": True, "parallelism__pipeline": 3},
        {"parallelism__pipeline": 4, "parallelism__virtual_pipeline": 3},
    ]
    for layout in layouts:
        for checkpointing in ("none", "selective", "full"):
            fields = {**layout, "training__activation_checkpointing": checkpointing}
            cases.append(scenario("megatron_paper", LLAMA_13B, **fields))
    return cases


def nodes_of(node: Node) -> list[Node]:
    return [node, *(deeper for child in node.children for deeper in nodes_of(child))]


@pytest.mark.parametrize(
    "case", every_case(), ids=lambda case: f"{case.method}-{case.method_variant}-{case.model.name}"
)
def test_a_formula_with_its_values_gives_the_shown_bytes(case: Scenario) -> None:
    found = estimate_by_method(case, COUNTED)
    for node in (deeper for top in found.components for deeper in nodes_of(top)):
        derivation = node.derivation
        assert re.fullmatch(r"[\w+\-*/() ]+", derivation.formula)
        values = {name: symbol.value for name, symbol in derivation.symbols.items()}
        assert eval(derivation.formula, {"__builtins__": {}}, values) == node.bytes, node.key
        assert derivation.source


@pytest.mark.parametrize(
    "case", every_case(), ids=lambda case: f"{case.method}-{case.method_variant}-{case.model.name}"
)
def test_eight_components_add_up_to_the_one_moment(case: Scenario) -> None:
    found = estimate_by_method(case, COUNTED)
    assert [node.key for node in found.components] == list(COMPONENTS)
    assert sum(node.bytes for node in found.components) == found.peak_bytes == found.peak_moment.bytes
    assert found.timeline == (found.peak_moment,)
    assert dict(found.peak_moment.components) == {node.key: node.bytes for node in found.components}
    assert (
        found.low_bytes
        == found.high_bytes
        == found.allocated_bytes
        == found.reserved_bytes
        == found.peak_bytes
    )


@pytest.mark.parametrize(
    "case", every_case(), ids=lambda case: f"{case.method}-{case.method_variant}-{case.model.name}"
)
def test_what_is_zero_is_said_to_be_left_out(case: Scenario) -> None:
    found = estimate_by_method(case, COUNTED)
    left_out = {omission.component for omission in omissions(case, COUNTED)}
    assert {node.key for node in found.components if node.bytes == 0} - {"kv_cache"} <= left_out
    assert all(omission.message in found.assumptions for omission in omissions(case, COUNTED))


def test_the_verdict_compares_the_total_with_the_device() -> None:
    fits = by_method("llama_guide", LLAMA_13B, device__memory_bytes=223_539_896_320)
    assert (fits.verdict.kind, fits.verdict.headroom_bytes) == ("fits", 0)
    over = by_method("llama_guide", LLAMA_13B, device__memory_bytes=223_539_896_319)
    assert (over.verdict.kind, over.verdict.headroom_bytes) == ("does_not_fit", -1)


def codes(case: Scenario) -> list[str]:
    return [issue.code for issue in validate(case) if issue.severity == "error"]


def test_a_variant_of_another_method_is_refused() -> None:
    assert codes(scenario("gpt_article", GPT2_LIKE, method_variant="as_printed")) == [
        "variant_of_another_method"
    ]
    assert codes(scenario("megatron_paper", GPT2_LIKE, method_variant="as_printed")) == []
    assert codes(scenario("detailed", GPT2_LIKE, method_variant="as_printed")) == []


def test_the_articles_describe_training_alone() -> None:
    assert codes(scenario("gpt_article", GPT2_LIKE, task="inference")) == ["method_of_training"]


def test_selective_checkpointing_is_known_to_megatron() -> None:
    fields = {"training__activation_checkpointing": "selective"}
    assert codes(scenario("detailed", GPT2_LIKE, **fields)) == []
    assert codes(scenario("megatron_paper", GPT2_LIKE, **fields)) == []


@pytest.mark.parametrize("method", VARIANTS)
def test_what_does_not_apply_to_a_rule_of_thumb_changes_nothing(method: str) -> None:
    plain = scenario(method, LLAMA_13B)
    other = scenario(
        method,
        replace(plain, "model.nominal_parameters", None).model,
        training__method="lora",
        training__lora__rank=512,
        training__precision="fp32",
        training__optimizer="sgd",
        training__base_format="nf4",
    )
    plain = replace(plain, "model.nominal_parameters", None)
    for path in ("training.method", "training.lora.rank", "training.precision", "training.base_format"):
        assert not BY_PATH[path].applies(other)
    assert sizes(estimate(other)) == sizes(estimate(plain))
    assert estimate(other).parameters == estimate(plain).parameters
