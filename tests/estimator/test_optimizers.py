"""Optimizer states and step temporaries against real optimizers: state bytes to the byte."""

from typing import Any

import msgspec
import pytest

from memgui.estimator import estimate, ledger
from memgui.estimator.account import Account
from memgui.estimator.estimate import run_of
from memgui.estimator.optimizers import OPTIMIZERS, Settings, Weight
from memgui.estimator.shards import shape_of
from memgui.estimator.tape import Parameter
from memgui.spec.fields import BY_PATH, optimizers
from memgui.spec.model import ModelSpec
from memgui.spec.validate import validate
from tests.estimator.build import training
from tests.estimator.models import GPT2, LLAMA_3_1B, SMOLLM2, llama

SMALL = llama("small", 1000, 96, 3, (6, 2, 16), 160)

MEASURED: list[tuple[str, dict[str, Any], str, int, int]] = [
    ("adamw", {"optimizer_implementation": "foreach"}, "bf16", 1618560, 809280),
    ("adamw", {"optimizer_implementation": "foreach"}, "fp32", 3237120, 1618560),
    ("adamw", {"optimizer_implementation": "forloop"}, "bf16", 1618560, 384192),
    ("adamw", {"optimizer_implementation": "forloop"}, "fp32", 3237120, 768384),
    ("sgd", {}, "bf16", 0, 0),
    ("sgd_momentum", {}, "bf16", 809280, 0),
    ("sgd_momentum", {}, "fp32", 1618560, 0),
    ("adafactor", {}, "bf16", 28472, 1540384),
    ("adafactor", {}, "fp32", 28472, 772384),
    ("muon", {"optimizer_implementation": "forloop"}, "bf16", 1194624, 384192),
    ("muon", {"optimizer_implementation": "forloop"}, "fp32", 2389248, 768384),
    ("lamb", {}, "bf16", 1618740, 809552),
    ("lamb", {}, "fp32", 3237480, 1619074),
    ("soap", {}, "bf16", 11633792, 24000000),
    ("soap", {}, "fp32", 23267584, 18005728),
    ("galore", {"optimizer_rank": 16}, "bf16", 988800, 390144),
    ("galore", {"optimizer_rank": 16}, "fp32", 2450688, 780288),
    ("apollo", {"optimizer_rank": 16}, "bf16", 988842, 390144),
    ("apollo", {"optimizer_rank": 16}, "fp32", 1977684, 780288),
    ("apollo_mini", {}, "bf16", 784362, 384384),
    ("apollo_mini", {}, "fp32", 1568724, 768768),
    ("adamw_8bit", {}, "bf16", 1511000, 0),
    ("adamw_8bit", {"wide_embedding_states": False}, "bf16", 938000, 0),
    ("adamw_8bit", {"wide_embedding_states": False}, "fp32", 938000, 0),
    ("lion_8bit", {"wide_embedding_states": False}, "bf16", 469000, 0),
    ("ademamix_8bit", {"wide_embedding_states": False}, "bf16", 1405976, 0),
    ("lion", {}, "bf16", 1618560, 0),
    ("ademamix", {}, "bf16", 4855680, 0),
    ("paged_adamw", {}, "bf16", 3237120, 0),
    ("schedule_free", {}, "bf16", 1618560, 809280),
    ("prodigy", {}, "bf16", 3237120, 210432),
    ("prodigy", {}, "fp32", 6474240, 420864),
]
"""A Llama of 404,640 weights stepped with the real optimizer; every storage it holds between steps, and the
most that a step holds beside it (torch 2.13, transformers 5.24, bitsandbytes 0.50, galore-torch 1.0,
apollo-torch 1.0.3, pytorch_optimizer 4.1, schedulefree 1.4, prodigyopt 1.1)."""


def kept(model: ModelSpec, optimizer: str, precision: str = "bf16", **settings: Any) -> Account:
    """The account of a training step."""
    return run_of(
        training(model, optimizer=optimizer, precision=precision, sequence_length=8, **settings)
    ).account


@pytest.mark.parametrize(("optimizer", "settings", "precision", "states", "step"), MEASURED)
def test_states_and_steps(
    optimizer: str, settings: dict[str, Any], precision: str, states: int, step: int
) -> None:
    found = kept(SMALL, optimizer, precision, **settings)
    assert found.state_bytes + found.paged_bytes == states
    assert abs(found.step_bytes - step) <= step * 0.09  # what variables still refer to, of small weights


def test_shampoo() -> None:
    """As pytorch_optimizer 4.1 holds it, but for four statistics of one number."""
    assert kept(SMALL, "shampoo").state_bytes == 13801120 - 32
    assert kept(SMALL, "shampoo", "fp32").state_bytes == 15419680 - 32


@pytest.mark.parametrize(
    ("optimizer", "states"),
    [("adamw_8bit_torchao", 2 * (64000 + 1000 + 1024)), ("adamw_4bit", 2 * (32000 + 2000 + 64))],
)
def test_low_bit_states_of_torchao(optimizer: str, states: int) -> None:
    """A weight of 640 x 100 in torchao 0.18: codes, scales of blocks, the table of values."""
    weight = Weight(_parameter(), (640, 100), 2, 2)
    assert (
        sum(one.bytes(weight) for one in OPTIMIZERS[optimizer].states(weight, Settings(optimizer))) == states
    )


def _parameter() -> Any:
    return run_of(training(SMALL, sequence_length=8)).account.weights[0][0]


def test_every_choice_is_an_optimizer() -> None:
    assert {choice.value for choice in BY_PATH["training.optimizer"].choices} == set(OPTIMIZERS)
    assert set(optimizers.NUMBERS) == {name for name, rule in OPTIMIZERS.items() if rule.plain}
    assert set(optimizers.KERNELS) == {name for name, rule in OPTIMIZERS.items() if rule.kernels}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_says_where_its_figures_come_from(optimizer: str) -> None:
    found = estimate(training(SMOLLM2, optimizer=optimizer))
    node = found.component("optimizer_states")
    for part in node.children:
        for leaf in part.children or (part,):
            assert leaf.derivation.source == OPTIMIZERS[optimizer].source
    assert found.low_bytes <= found.peak_bytes <= found.high_bytes


def test_states_with_a_master_copy_are_fp32() -> None:
    weights = ledger(training(LLAMA_3_1B)).parameters.total
    found = kept(LLAMA_3_1B, "adamw", "bf16_master", optimizer_implementation="foreach")
    assert found.state_bytes == 12 * weights
    low = kept(LLAMA_3_1B, "adamw", "bf16_master", optimizer_implementation="foreach", state_format="bf16")
    assert low.state_bytes == 8 * weights


def test_paged_states_are_not_counted_by_the_allocator() -> None:
    found = estimate(training(LLAMA_3_1B, optimizer="paged_adamw_8bit"))
    plain = estimate(training(LLAMA_3_1B, optimizer="adamw_8bit"))
    assert found.component("optimizer_states").bytes < plain.component("optimizer_states").bytes // 10
    assert any("managed memory" in said.text for said in found.assumptions)


def test_a_weakly_known_optimizer_widens_the_range() -> None:
    known, unsure = (estimate(training(LLAMA_3_1B, optimizer=name)) for name in ("adamw", "lamb"))
    assert unsure.high_bytes - unsure.peak_bytes > known.high_bytes - known.peak_bytes
    exact = estimate(training(LLAMA_3_1B, optimizer="lamb", state_format="fp32"))
    assert exact.high_bytes - exact.peak_bytes < unsure.high_bytes - unsure.peak_bytes


def test_fewer_bits_never_need_more() -> None:
    sizes = [
        kept(LLAMA_3_1B, name, wide_embedding_states=False).state_bytes
        for name in ("paged_adamw", "adamw", "adamw_8bit", "adamw_4bit")
    ]
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert msgspec.structs.asdict(SMALL)["hidden_size"] == 96


IN_BACKWARD = [
    (
        LLAMA_3_1B,
        "bf16",
        "fused",
        3035739544,
        3146711304,
        4086674848,
        3561076128,
        "aten.embedding_dense_backward",
    ),
    (LLAMA_3_1B, "bf16", "forloop", 3035739392, 3146711152, 4611749128, 4611749128, "aten.div"),
    (
        LLAMA_3_1B,
        "bf16_mixed",
        "foreach",
        6071477504,
        7200370800,
        8173348104,
        8172823816,
        "aten.embedding_dense_backward",
    ),
    (GPT2, "bf16", "foreach", 406422016, 449811184, 560909832, 560811528, "aten.embedding_dense_backward"),
    (GPT2, "bf16_mixed", "forloop", 812843008, 995905264, 1276011528, 1276011528, "aten.div"),
]
"""Real models of four layers, one optimizer for each weight, stepped by post_accumulate_grad hooks: bytes
between steps, peaks of forward and backward, backward in the first step, which makes the states, the
operator at the peak of backward (torch 2.13, 1 x 64 tokens)."""


@pytest.mark.parametrize(
    ("model", "precision", "kernels", "rest", "forward", "backward", "made", "operator"), IN_BACKWARD
)
def test_step_in_the_backward_pass(
    model: ModelSpec,
    precision: str,
    kernels: str,
    rest: int,
    forward: int,
    backward: int,
    made: int,
    operator: str,
) -> None:
    scenario = training(
        msgspec.structs.replace(model, num_hidden_layers=4),
        precision=precision,
        optimizer_implementation=kernels,
        optimizer_in_backward=True,
        sequence_length=64,
        keep_outputs=False,
        dropout=0.0,
    )
    first, steady = ledger(scenario).steps
    assert (steady.start, steady.after_backward, first.after_backward) == (rest, rest, rest)
    assert (steady.phases["forward"], steady.phases["backward"]) == (forward, backward)
    assert first.phases["backward"] == made
    assert steady.operators["backward"] == operator
    assert steady.grad_bytes == 0
    found = estimate(scenario)
    beginning = [moment for moment in found.timeline if moment.key.startswith("step1.backward")]
    assert max(one.bytes - one.components["overhead"] for one in beginning) == made
    states = [moment.components["optimizer_states"] for moment in beginning]
    assert states == sorted(states)
    assert states[0] < states[-1] <= steady.optimizer_state_bytes
    assert found.peak_bytes - found.component("overhead").bytes >= backward
    assert found.component("optimizer_states").bytes == steady.optimizer_state_bytes


BY_LAYER = [
    (
        SMOLLM2,
        4,
        {"micro_batch_size": 2, "sequence_length": 256},
        (127434660, 418381852, 468115468, 143364516),
    ),
    (
        SMOLLM2,
        4,
        {"micro_batch_size": 2, "sequence_length": 256, "optimizer_implementation": "foreach"},
        (127434624, 418381816, 468115432, 155755392),
    ),
    (
        SMOLLM2,
        4,
        {"sequence_length": 64, "gradient_accumulation_steps": 2},
        (127427492, 163803668, 170020876, 143357348),
    ),
    (
        SMOLLM2,
        4,
        {"micro_batch_size": 2, "sequence_length": 256, "activation_checkpointing": "full"},
        (127434660, 383299516, 433033132, 143364516),
    ),
    (
        SMOLLM2,
        4,
        {"micro_batch_size": 2, "sequence_length": 256, "precision": "fp32", "torch_version": "2.13"},
        (212379684, 504301628, 603777068, 226540068),
    ),
    (LLAMA_3_1B, 16, {"sequence_length": 512}, (3201495332, 4499047092, 4628279980, 3478335780)),
]
"""The same, stepped by BAdam's own BlockOptimizer over AdamW, its first layer active: bytes between steps,
peaks of forward, backward and step (torch 2.13)."""


@pytest.mark.parametrize(("model", "layers", "settings", "bytes_at"), BY_LAYER)
def test_one_layer_at_a_time(
    model: ModelSpec, layers: int, settings: dict[str, Any], bytes_at: tuple[int, ...]
) -> None:
    scenario = training(
        msgspec.structs.replace(model, num_hidden_layers=layers),
        optimizer="badam",
        keep_outputs=False,
        input_require_grads=False,
        **settings,
    )
    steady = ledger(scenario).steps[1]
    phases = [steady.phases[name] for name in ("forward", "backward", "optimizer")]
    assert (steady.start, *phases) == bytes_at
    found = estimate(scenario)
    assert found.parameters.trainable * 12 == pytest.approx(steady.optimizer_state_bytes, abs=100)
    assert any("one layer for some steps" in said.text for said in found.assumptions)


@pytest.mark.parametrize(
    "settings",
    [{"method": "lora"}, {"frozen_layers": 1}, {"implementation": "megatron", "precision": "fp32"}],
)
def test_what_is_not_modelled_one_layer_at_a_time(settings: dict[str, Any]) -> None:
    found = estimate(training(LLAMA_3_1B, optimizer="badam", **settings))
    assert found.verdict.kind == "unknown"
    assert "with badam" in found.verdict.reason.text


def test_lomo_keeps_neither_gradients_nor_states() -> None:
    steady = ledger(training(LLAMA_3_1B, optimizer="lomo", sequence_length=64)).steps[1]
    assert (steady.grad_bytes, steady.optimizer_state_bytes) == (0, 0)
    assert steady.start == steady.after_backward == steady.after_step


def test_main_gradients_lie_still() -> None:
    """Megatron's 18 bytes a weight: 2 + 4 + 12 (its distributed optimizer's documentation)."""
    weights = ledger(training(LLAMA_3_1B)).parameters.total
    settings = {"precision": "bf16_master", "optimizer_implementation": "foreach", "gradient_format": "fp32"}
    first, steady = ledger(training(LLAMA_3_1B, sequence_length=64, **settings)).steps
    assert steady.start - 18 * weights < 10_000  # the batch and the rotary buffers
    assert first.start == steady.start - 12 * weights
    assert steady.after_zero_grad == steady.start


@pytest.mark.parametrize(("share", "here"), [(0.0, 12), (1.0, 0)])
def test_states_on_the_cpu(share: float, here: int) -> None:
    weights = ledger(training(LLAMA_3_1B)).parameters.total
    settings = {"precision": "bf16_master", "optimizer_implementation": "foreach"}
    found = kept(LLAMA_3_1B, "adamw", offload_optimizer=share, **settings)
    assert found.state_bytes == here * weights
    assert found.state_bytes + found.host_bytes == 12 * weights


def test_a_share_of_states_on_the_cpu() -> None:
    sizes = [kept(LLAMA_3_1B, "adamw", offload_optimizer=share / 4).state_bytes for share in range(5)]
    assert sizes == sorted(sizes, reverse=True)
    for share, size in enumerate(sizes):
        assert abs(size / sizes[0] - (1 - share / 4)) < 0.22  # weights leave whole


@pytest.mark.parametrize("settings", [{"optimizer": "lomo"}, {"optimizer_in_backward": True}])
def test_what_a_step_in_the_backward_pass_rules_out(settings: dict[str, Any]) -> None:
    scenario = training(LLAMA_3_1B, gradient_accumulation_steps=2, gradient_clipping=True, **settings)
    assert {issue.code for issue in validate(scenario) if issue.severity == "error"} == {
        "no_gradients_to_accumulate",
        "no_gradients_to_clip",
    }


@pytest.mark.parametrize("optimizer", ["adamw", "ademamix", "lion_8bit"])
def test_states_that_come_in_the_backward_pass_are_made_by_an_operator(optimizer: str) -> None:
    """Where a step holds nothing for a moment, the first is highest as a state is filled (measured: T5)."""
    scenario = training(
        LLAMA_3_1B, optimizer=optimizer, optimizer_in_backward=True, micro_batch_size=1, sequence_length=8
    )
    assert ledger(scenario).steps[0].operators["backward"] == "aten.zeros_like"


@pytest.mark.parametrize("name", [name for name, rule in OPTIMIZERS.items() if rule.uniform])
@pytest.mark.parametrize("implementation", ["fused", "foreach"])
def test_uniform_states_are_the_same_of_all_weights(name: str, implementation: str) -> None:
    account = kept(SMALL, name, optimizer_implementation=implementation)
    weights = [one for one, _ in account.weights if isinstance(one, Parameter)]
    settings = Settings(name, implementation)
    states = {OPTIMIZERS[name].states(Weight(one, shape_of(one), 2, 2), settings) for one in weights}
    assert len({one.part for one in weights}) > 3
    assert len(states) == 1
    sizes = sum(thing.coefficient * count for thing, count in account.states)
    assert sizes == account.state_bytes
