"""What every estimate keeps: sums, formulas, names, and more work never taking less memory."""

import ast
import operator
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgui.catalog import Catalog
from memgui.estimator import Estimate, estimate, ledger
from memgui.estimator.result import COMPONENTS, Node
from memgui.spec import Lora, Scenario, replace
from memgui.spec.model import ModelSpec
from tests.estimator import families
from tests.estimator.build import serving, spread, training
from tests.estimator.models import GPT2, LLAMA_3_1B, MISTRAL_7B, MODELS, QWEN_3_8B, SMOLLM2

VARIANTS: list[dict[str, Any]] = [
    {},
    {"precision": "fp32"},
    {"precision": "bf16_mixed"},
    {"precision": "bf16_master"},
    {"attention": "eager", "dropout": 0.1},
    {"activation_checkpointing": "full"},
    {"activation_checkpointing": "full", "precision": "bf16_mixed"},
    {"padding_mask": True},
    {"use_cache": True},
    {"gradient_accumulation_steps": 4, "optimizer_implementation": "foreach"},
    {"optimizer_implementation": "forloop", "micro_batch_size": 1, "sequence_length": 8},
    {"optimizer": "sgd_momentum", "keep_outputs": False},
    {"method": "lora", "lora": Lora(target_modules=("all-linear",), dropout=0.1)},
    {"method": "lora", "precision": "bf16_mixed", "activation_checkpointing": "full"},
    {"method": "frozen"},
    {"activation_checkpointing": "selective", "attention": "eager", "precision": "bf16_mixed"},
    {"activation_checkpointing": "selective", "recompute_modules": ("mlp", "layernorm")},
    {"activation_checkpointing": "selective_op", "gradient_accumulation_steps": 2},
    {"activation_checkpointing": "full", "checkpoint_every": 2, "checkpoint_offload": True},
    {"optimizer": "adamw_8bit", "optimizer_in_backward": True},
    {"optimizer": "adalomo"},
    {"optimizer": "soap", "precision": "bf16_master", "gradient_format": "fp32"},
    {"optimizer": "muon", "optimizer_implementation": "foreach", "offload_optimizer": 0.5},
]

LAYOUTS: list[dict[str, Any]] = [
    {"data": 8},
    {"data": 8, "gradient_as_bucket_view": True},
    *({"data": 8, "sharding": sharding} for sharding in ("zero1", "zero2", "zero3")),
    {"data": 8, "sharding": "zero3", "library": "deepspeed", "bucket_elements": 500_000_000},
    {"data": 8, "sharding": "zero3", "library": "deepspeed", "offload_parameters": True},
    {"data": 8, "sharding": "zero1", "library": "megatron"},
]

MIXTRAL = families.model(families.read("experts"), "mixtral-8x7b")

FEW = {"micro_batch_size": 3, "sequence_length": 200}


def scenarios() -> Iterator[Scenario]:
    """One scenario per model and variant, prompts and decoding included."""
    for model in MODELS.values():
        for variant in VARIANTS:
            if variant.get("method") != "frozen" or not model.tie_word_embeddings:
                yield training(model, **{**FEW, **variant})
        yield serving(model, batch_size=2, prompt_tokens=600, generated_tokens=100)
        yield serving(model, batch_size=2, prompt_tokens=600, generated_tokens=0, attention="eager")
        yield serving(model, batch_size=400, prompt_tokens=1, generated_tokens=1000)
    yield serving(MISTRAL_7B, prompt_tokens=9000, generated_tokens=1)
    for layout in LAYOUTS:
        for precision in ("bf16_master",) if "library" in layout else ("bf16_mixed", "bf16_master", "bf16"):
            for variant in ({}, {"activation_checkpointing": "full", "gradient_accumulation_steps": 2}):
                for model in (LLAMA_3_1B, GPT2, MIXTRAL):
                    yield spread(training(model, **{**FEW, **variant, "precision": precision}), **layout)


ALL = list(scenarios())


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from nodes(child)


OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def evaluated(formula: str, values: dict[str, int]) -> int:
    """A formula of integers, names and + - * //, with values put in."""

    def walk(part: ast.AST) -> int:
        match part:
            case ast.Expression(body):
                return walk(body)
            case ast.BinOp(left, op, right):
                result: int = OPERATORS[type(op)](walk(left), walk(right))
                return result
            case ast.Name(name):
                return values[name]
            case ast.Constant(int() as number):
                return number
            case ast.UnaryOp(ast.USub(), operand):
                return -walk(operand)
        raise AssertionError(ast.dump(part))

    return walk(ast.parse(formula, mode="eval"))


@pytest.mark.parametrize("scenario", ALL, ids=range(len(ALL)))
def test_formulas_give_the_bytes_they_explain(scenario: Scenario) -> None:
    for component in estimate(scenario).components:
        for node in nodes(component):
            why = node.derivation
            values = {name: symbol.value for name, symbol in why.symbols.items()}
            assert evaluated(why.formula, values) == node.bytes, (node, why.formula)
            assert why.source


@pytest.mark.parametrize("task", ["training", "inference"])
def test_formulas_of_every_type_of_model_can_be_read(task: str) -> None:
    """Keys of parts are names in a formula."""
    models = [entry.model for entry in Catalog().models]
    unlike = {
        (one.model_type, frozenset(one.layer_types), one.hidden_size_per_layer_input > 0): one
        for one in models
    }
    assert len(unlike) > 80
    for model in unlike.values():
        for component in estimate(Scenario(model=model, task=task)).components:
            for node in nodes(component):
                why = node.derivation
                values = {name: symbol.value for name, symbol in why.symbols.items()}
                assert evaluated(why.formula, values) == node.bytes, (model.name, why.formula)


@pytest.mark.parametrize("scenario", ALL, ids=range(len(ALL)))
def test_totals_are_sums(scenario: Scenario) -> None:
    found = estimate(scenario)
    assert [node.key for node in found.components] == list(COMPONENTS)
    assert sum(node.bytes for node in found.components) == found.peak_bytes == found.peak_moment.bytes
    for component in found.components:
        assert component.bytes == found.peak_moment.components[component.key]
        for node in nodes(component):
            assert node.bytes >= 0
            assert not node.children or node.bytes == sum(child.bytes for child in node.children)
            assert len({child.key for child in node.children}) == len(node.children)
    assert found.low_bytes <= found.peak_bytes <= found.high_bytes
    assert found.allocated_bytes <= found.reserved_bytes <= found.peak_bytes


@pytest.mark.parametrize("scenario", ALL, ids=range(len(ALL)))
def test_peak_is_the_highest_moment(scenario: Scenario) -> None:
    found = estimate(scenario)
    tensors = [moment.bytes - moment.components["overhead"] for moment in found.timeline]
    assert max(tensors) == found.peak_bytes - found.component("overhead").bytes
    named = next(moment for moment in found.timeline if moment.key == found.peak_moment.key)
    assert named == found.peak_moment
    assert len({moment.key for moment in found.timeline}) == len(found.timeline)
    for moment in found.timeline:
        assert sum(moment.components.values()) == moment.bytes
        assert min(moment.components.values()) >= 0
        assert "{" not in moment.label.text


def test_timeline_holds_the_ledgers_moments() -> None:
    scenario = training(SMOLLM2, **FEW)
    moments = {moment.key: moment for moment in estimate(scenario).timeline}
    for step, figures in zip(("step1", "step2"), ledger(scenario).steps, strict=True):
        for name in ("start", "after_forward", "after_backward", "after_step", "after_zero_grad"):
            moment = moments[f"{step}.{name}"]
            assert moment.bytes - moment.components["overhead"] == getattr(figures, name), name


def test_first_step_peaks_lower() -> None:
    first, steady = ledger(training(SMOLLM2, **FEW)).steps
    assert first.phases["backward"] < steady.phases["backward"]


def test_every_symbol_says_what_it_is() -> None:
    for component in estimate(training(QWEN_3_8B, **FEW)).components:
        for node in nodes(component):
            if not node.children:
                for name, symbol in node.derivation.symbols.items():
                    assert symbol.label, name
    leaf = estimate(training(LLAMA_3_1B)).component("activations").child("mlp")
    assert leaf.derivation.formula == "L*b*s*(8*f + 2*h)"
    assert leaf.derivation.symbols["f"].path == "model.intermediate_size"


def peak(scenario: Scenario) -> int:
    """Bytes of tensors at the peak."""
    found = estimate(scenario)
    return found.peak_bytes - found.component("overhead").bytes


SMALL = st.builds(
    lambda heads, shared, size, ffn, layers: msgspec.structs.replace(
        SMOLLM2,
        num_attention_heads=heads * shared,
        num_key_value_heads=shared,
        head_dim=size * 8,
        hidden_size=heads * shared * size * 8,
        intermediate_size=ffn * 16,
        num_hidden_layers=layers,
    ),
    *(st.integers(1, 4), st.integers(1, 4), st.integers(1, 16), st.integers(1, 64), st.integers(1, 40)),
)
VARIANT = st.sampled_from(VARIANTS)
LUMPS = ("adamw_8bit", "muon")
"""Optimizers in ``VARIANTS`` whose states leave in lumps: from 4,096 numbers on, weight by weight."""


@settings(max_examples=60, deadline=None)
@given(
    SMALL,
    VARIANT.filter(lambda one: one.get("optimizer") not in LUMPS),
    st.integers(1, 5),
    st.integers(2, 300),
)
def test_more_never_takes_less(model: ModelSpec, variant: dict[str, Any], batch: int, length: int) -> None:
    base = {**variant, "micro_batch_size": batch, "sequence_length": length}
    least = peak(training(model, **base))
    wider = msgspec.structs.replace(model, intermediate_size=model.intermediate_size + 16)
    deeper = msgspec.structs.replace(model, num_hidden_layers=model.num_hidden_layers + 1)
    assert least <= peak(training(wider, **base))
    assert least <= peak(training(deeper, **base))
    assert least <= peak(training(model, **{**base, "micro_batch_size": batch + 1}))
    assert least <= peak(training(model, **{**base, "sequence_length": length + 1}))


@settings(max_examples=40, deadline=None)
@given(SMALL, VARIANT, st.integers(1, 5), st.integers(2, 300))
def test_checkpointing_never_saves_more(
    model: ModelSpec, variant: dict[str, Any], batch: int, length: int
) -> None:
    base = {**variant, "micro_batch_size": batch, "sequence_length": length}
    if variant.get("method") == "frozen":  # its head is its embedding
        return
    kept = ledger(training(model, **{**base, "activation_checkpointing": "none"}))
    again = ledger(training(model, **{**base, "activation_checkpointing": "full"}))
    assert again.saved_total <= kept.saved_total


@pytest.mark.parametrize("some", [{"activation_checkpointing": "selective"}, {"checkpoint_every": 2}])
def test_computing_a_part_again_raises_no_total(some: dict[str, Any]) -> None:
    """What is reserved beside is that of a run without: only where all is computed again there is more."""
    base = {"micro_batch_size": 2, "sequence_length": 1024}
    again = {**base, "activation_checkpointing": "full", **some}
    assert (
        estimate(training(LLAMA_3_1B, **again)).peak_bytes
        <= estimate(training(LLAMA_3_1B, **base)).peak_bytes
    )


def test_adapters_take_less_than_all_weights() -> None:
    full, lora = (estimate(training(LLAMA_3_1B, method=method)) for method in ("full", "lora"))
    for key in ("gradients", "optimizer_states"):
        assert sum(_at(lora, key)) < sum(_at(full, key))


def _at(found: Estimate, key: str) -> list[int]:
    return [moment.components[key] for moment in found.timeline]


def test_layers_are_counted_not_looped() -> None:
    """A hundred thousand layers make the same breakdown as one, with another count."""
    deep = msgspec.structs.replace(GPT2, num_hidden_layers=100_000)
    found = estimate(training(deep, **FEW))
    leaf = found.component("activations").child("mlp")
    assert leaf.derivation.symbols["L"].value == 100_000


def test_verdict_has_three_states() -> None:
    scenario = training(LLAMA_3_1B, **FEW)
    found = estimate(scenario)
    kinds = []
    for capacity in (found.low_bytes, found.low_bytes + 1, found.high_bytes, found.high_bytes + 1):
        device = msgspec.structs.replace(scenario.device, memory_bytes=capacity)
        verdict = estimate(msgspec.structs.replace(scenario, device=device)).verdict
        kinds.append(verdict.kind)
        assert verdict.headroom_bytes == capacity - found.peak_bytes
    assert kinds == ["does_not_fit", "tight", "tight", "fits"]


def test_what_is_not_modelled_is_unknown() -> None:
    odd = msgspec.structs.replace(GPT2, position_embedding="smoke signals")
    split = spread(serving(GPT2), context=2)
    for scenario in (training(odd), split):
        found = estimate(scenario)
        assert found.verdict.kind == "unknown"
        assert "not modelled yet" in found.verdict.reason.text
        assert found.peak_bytes == 0
        with pytest.raises(NotImplementedError):
            ledger(scenario)


@pytest.mark.parametrize(
    "model", ["Llama-2-13b-chat-hf", "whisper-large-v3", "Qwen1.5-14B", "Orion-14B-Base"]
)
def test_no_moment_of_serving_is_above_the_peak(model: str) -> None:
    catalog = Catalog()
    scenario = replace(catalog.first_scenario(), "model", catalog.model(model).model)
    found = estimate(replace(scenario, "task", "inference"))
    assert max(moment.bytes for moment in found.timeline) == found.peak_bytes


@pytest.mark.parametrize("library", ["fsdp2", "deepspeed"])
def test_what_ranks_share_is_told_in_the_letters_of_the_whole(library: str) -> None:
    scenario = replace(Catalog().first_scenario(), "device.count", 8)
    scenario = replace(replace(scenario, "parallelism.data", 8), "parallelism.sharding", "zero3")
    found = {
        node.key: node for node in estimate(replace(scenario, "parallelism.library", library)).components
    }
    for component in ("weights", "optimizer_states"):
        (mlp,) = [one for one in found[component].children if one.key == "mlp"]
        assert mlp.derivation.symbols["dp"].path == "parallelism.data"
        assert {"L", "h", "f", "dp"} <= mlp.derivation.symbols.keys()
        assert mlp.derivation.formula.endswith("//dp")


def test_lengths_of_recurrences_lead_to_their_fields() -> None:
    scenario = replace(Catalog().first_scenario(), "model", Catalog().model("Jamba-v0.1").model)
    paths = set()
    for component in estimate(scenario).components:
        for node in nodes(component):
            paths |= {(name, one.path) for name, one in node.derivation.symbols.items() if name in "KQ"}
    assert ("K", "model.mamba_d_conv") in paths
    assert None not in {path for _, path in paths}


def test_of_level_layers_the_one_with_most_blocks_is_the_peak() -> None:
    """Gradients take the place of activations, byte for byte nearly, but in larger blocks."""
    scenario = training(
        Catalog().model("vit-huge-patch14-224").model,
        micro_batch_size=3,
        precision="bf16_mixed",
        optimizer="adamw_8bit",
    )
    found = estimate(scenario)
    assert found.peak_moment.key == "step2.backward.layer.0"
    assert found.allocated_bytes == max(moment.allocated for moment in found.timeline)
