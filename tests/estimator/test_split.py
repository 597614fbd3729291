"""What ranks hold that share out layers: tensor, sequence, pipeline, context and expert parallelism."""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgui.estimator import estimate, ledger
from memgui.estimator.split import spans_of
from memgui.estimator.state import State
from memgui.estimator.tape import Parameter
from memgui.estimator.training_ranks import stage_runs
from memgui.spec import Scenario
from tests.estimator import families
from tests.estimator.build import spread, training
from tests.estimator.models import LLAMA_2_7B, llama
from tests.estimator.test_estimate import evaluated

MODEL = llama("small", 1024, 512, 8, (8, 4, 64), 1536)


def _weights(scenario: Scenario) -> list[int]:
    return [run.account.weight_bytes for _, run in stage_runs(scenario)]


def _step(**settings: Any) -> Scenario:
    return training(MODEL, precision="bf16", sequence_length=1024, **settings)


def test_tensor_parallel_ranks_share_matrices_and_copy_norms() -> None:
    """Transformers' plan: the norms lie whole on each rank, all else is shared."""
    (whole,) = _weights(_step())
    (shared,) = _weights(spread(_step(), tensor=4))
    copied = 2 * (2 * 8 + 1) * 512 + 2 * 32 * 4  # and two rotary buffers of 32 fp32 numbers
    assert 4 * (shared - copied) == whole - copied


def _with_idle_layers(count: int, idle: range) -> Scenario:
    mixers = tuple("none" if layer in idle else "full_attention" for layer in range(count))
    feeds = tuple("none" if layer in idle else "dense" for layer in range(count))
    model = llama("idle", 1024, 512, count, (8, 4, 64), 1536)
    model = msgspec.structs.replace(model, layer_types=mixers, mlp_layer_types=feeds)
    return training(model, precision="bf16", sequence_length=1024)


def test_stages_count_layers_that_do_nothing() -> None:
    """As the code does that cuts them: three of the second four do nothing, and two of the third."""
    step = _with_idle_layers(16, range(5, 10))
    assert spans_of(spread(step, pipeline=4), 4) == [(0, 4), (4, 1), (5, 2), (7, 4)]
    (whole,) = _weights(step)
    rotary = 2 * 32 * 4  # each stage has two buffers of its own
    assert sum(_weights(spread(step, pipeline=4))) == whole + 3 * rotary


def test_a_stage_with_nothing_to_run_is_refused() -> None:
    refused = estimate(spread(_with_idle_layers(16, range(4, 9)), pipeline=4)).verdict.reason
    assert refused is not None
    assert refused.template == "{path} = {value} is not modelled yet with {other}."


def test_towers_lie_on_the_first_stage() -> None:
    model = msgspec.structs.replace(MODEL, other_weights=("vision.mlp.up:27x4304x1152",))
    step = training(model, precision="bf16", sequence_length=1024)
    plain = _weights(spread(_step(), pipeline=4))
    tower = 27 * 4304 * 1152 * 2
    assert _weights(spread(step, pipeline=4)) == [plain[0] + tower, *plain[1:]]


def test_what_some_layers_have_is_refused_in_stages() -> None:
    model = msgspec.structs.replace(MODEL, other_weights=("mlp.narrow:3x1000x512",))
    refused = estimate(spread(training(model, precision="bf16"), pipeline=4)).verdict.reason
    assert refused is not None
    assert "mlp.narrow:3x1000x512" in str(refused.args["other"])


def test_a_rank_keeps_what_transformers_keeps() -> None:
    """Measured: Transformers 5.24's plan on two ranks whose collectives do nothing (torch 2.13, fake_pg)."""
    model = llama("tiny", 512, 256, 3, (8, 4, 32), 512)
    scenario = training(model, precision="bf16", attention="eager", micro_batch_size=2, sequence_length=16)
    held = ledger(spread(scenario, tensor=2))
    assert held.saved_by_layer()["layers"] == (243968, 241920, 241920)
    assert sum(held.saved_by_part().values()) == 256 + 131460
    weights = [one.bytes * one.layers for one in held.tensors() if one.kind == "parameter"]
    assert sum(weights) == 2 * 1017600
    assert held.steps[1].grad_bytes == 2 * (1017600 + 256 * 256)  # the embedding's is of all rows


def test_too_few_key_heads_are_copied() -> None:
    def keys(ranks: int) -> int:
        ((_, run),) = stage_runs(spread(_step(), tensor=ranks))
        return sum(one.elements for one, _ in run.account.weights if _is_key(one))

    assert keys(8) == keys(4) == keys(2) // 2 == 512 * 64


def _is_key(one: Parameter | State) -> TypeGuard[Parameter]:
    return isinstance(one, Parameter) and one.name.startswith("k_proj")


def test_stages_hold_the_model_once() -> None:
    (whole,) = _weights(_step())
    rotary = 2 * 32 * 4
    assert sum(_weights(spread(_step(), pipeline=4))) == whole + 3 * rotary


def test_earlier_stages_keep_more_micro_batches() -> None:
    """1F1B: as many in flight as there are stages from here on, if there are so many micro batches."""
    full = spread(_step(gradient_accumulation_steps=8), pipeline=4)
    assert [run.waiting for _, run in stage_runs(full)] == [3, 2, 1, 0]
    short = spread(_step(gradient_accumulation_steps=2), pipeline=4)
    assert [run.waiting for _, run in stage_runs(short)] == [1, 1, 1, 0]
    found = estimate(full)
    assert [rank.rank for rank in found.ranks] == ["0", "1", "2", "3"]
    assert found.peak_bytes == max(rank.peak_bytes for rank in found.ranks)


def test_formulas_of_a_rank_say_its_bytes() -> None:
    found = estimate(spread(training(LLAMA_2_7B, precision="bf16"), tensor=4, pipeline=2))
    for component in found.components[:-1]:
        for part in component.children:
            if part.children:
                continue
            said = part.derivation
            values = {name: symbol.value for name, symbol in said.symbols.items()}
            assert evaluated(said.formula, values) == part.bytes, part.key


DEGREES = st.sampled_from([1, 2, 4])


@settings(max_examples=40, deadline=None)
@given(DEGREES, DEGREES, DEGREES, st.sampled_from(["none", "zero1", "zero2", "zero3"]))
def test_splitting_more_never_holds_more(tensor: int, pipeline: int, data: int, sharding: str) -> None:
    """Of weights, gradients and states."""

    def held(**degrees: int) -> int:
        scenario = spread(_step(optimizer="adamw"), sharding=sharding, **degrees)
        return max(
            a.weight_bytes + a.gradient_bytes + a.state_bytes
            for a in (run.account for _, run in stage_runs(scenario))
        )

    here = held(tensor=tensor, pipeline=pipeline, data=data)
    assert held(tensor=2 * tensor, pipeline=pipeline, data=data) <= here
    assert held(tensor=tensor, pipeline=2 * pipeline, data=data) <= here
    assert held(tensor=tensor, pipeline=pipeline, data=2 * data) <= here


@pytest.mark.parametrize("context", [2, 4])
def test_context_parallel_ranks_keep_their_tokens(context: int) -> None:
    whole = ledger(_step()).saved_total
    shared = ledger(spread(_step(), context=context)).saved_total
    assert shared == pytest.approx(whole / context, rel=0.01)


def test_stages_of_hybrids_hold_the_model_once() -> None:
    """Layers of any kind go to stages; heads are shared of attention only."""
    model = families.model(families.read("recurrent"), "jamba-v0.1")
    base = training(model, precision="bf16", sequence_length=256, gradient_accumulation_steps=2)
    two = spread(base, pipeline=2)
    assert sum(_weights(two)) == sum(_weights(base))
    assert estimate(spread(base, tensor=2)).verdict.kind == "unknown"


def test_pytorchs_stages_make_buffers_for_every_micro_batch() -> None:
    """One to receive in and one for the gradient that comes back, but for the ends; some hold what waits."""
    steps, stages = 8, 4
    one = 2 * 1024 * 512
    few = spread(_step(gradient_accumulation_steps=steps), pipeline=stages)
    found = [sum(run.input_sizes) for _, run in stage_runs(few)]
    ids = [8 * 1024, 0, 0, 8 * 1024]
    unused = [steps - 1, 2 * steps - 4, 2 * steps - 3, steps - 1]
    assert found == [own + many * one for own, many in zip(ids, unused, strict=True)]
