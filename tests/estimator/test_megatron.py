"""Megatron-LM's layers: against the closed forms of Korthikanti et al. 2022 (arXiv:2205.05198)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memgui.estimator import estimate, ledger
from memgui.estimator.training_ranks import stage_runs
from memgui.spec import Scenario
from tests.estimator.build import spread, training
from tests.estimator.models import GPT2, LLAMA_2_7B, llama

S, B, H, A, L = 1024, 2, 1024, 16, 4
MODEL = msgspec.structs.replace(
    GPT2,
    hidden_size=H,
    num_hidden_layers=L,
    num_attention_heads=A,
    num_key_value_heads=A,
    head_dim=H // A,
    intermediate_size=4 * H,
    hidden_act="gelu",
)
EXPERTS = msgspec.structs.replace(
    llama("experts", 32000, 1024, 8, (16, 4, 64), 4096),
    num_experts=16,
    num_experts_per_tok=2,
    moe_intermediate_size=1024,
)


def _step(**settings: Any) -> Scenario:
    chosen = {"attention": "eager", "dropout": 0.1, **settings}
    return training(
        MODEL,
        implementation="megatron",
        precision="bf16_master",
        micro_batch_size=B,
        sequence_length=S,
        **chosen,
    )


def _layer(scenario: Scenario) -> int:
    return ledger(scenario).saved_by_layer()["layers"][1]


STATISTICS = 2 * 2 * 4
"""Mean and 1/deviation of both norms, in fp32 for each token: the paper leaves them out."""


@pytest.mark.parametrize("t", [1, 2, 4, 8])
@pytest.mark.parametrize("sequence", [False, True])
def test_a_layer_keeps_what_the_paper_counts(t: int, sequence: bool) -> None:
    scenario = spread(_step(), tensor=t, sequence=sequence) if t > 1 else _step()
    sbh = S * B * H
    scores = 5 * A * S * S * B // t
    if t == 1 or sequence:
        paper = 34 * sbh // t + scores
        statistics = STATISTICS * S * B // t
    else:
        paper = 10 * sbh + 24 * sbh // t + scores
        statistics = STATISTICS * S * B
    assert _layer(scenario) == paper + statistics


def test_selective_recomputation_keeps_34_and_full_2() -> None:
    t = 4
    selective = _step(activation_checkpointing="selective", recompute_modules=("core_attn",))
    found = _layer(spread(selective, tensor=t, sequence=True))
    assert found == 34 * S * B * H // t + STATISTICS * S * B // t
    full = _layer(spread(_step(activation_checkpointing="full"), tensor=t))
    assert full == 2 * S * B * H


def test_vocabulary_is_filled_up_and_counted_as_it_is() -> None:
    """50,257 words become 50,304 rows; four ranks have 12,672 each of 50,688."""
    one = ledger(_step())
    assert one.parameters.by_part["embedding"] == 50257 * H
    assert _table(_step()) == 2 * 50304 * H
    assert _table(spread(_step(), tensor=4)) == 2 * 50688 // 4 * H


def _table(scenario: Scenario) -> int:
    return next(one.bytes for one in ledger(scenario).tensors() if one.name == "word_embeddings.weight")


@pytest.mark.parametrize(("chunks", "layers"), [(1, 8), (2, 8 + 3)])
def test_first_stage_holds_all_layers_whatever_the_stages(chunks: int, layers: int) -> None:
    """Section 4.2.3: L layers' worth in flight on the first stage, L (1 + (p - 1) / (p m)) interleaved."""
    one = msgspec.structs.replace(
        _step(gradient_accumulation_steps=16, attention="sdpa", dropout=0.0),
        model=msgspec.structs.replace(MODEL, num_hidden_layers=8),
    )
    _, run = next(stage_runs(spread(one, pipeline=4, virtual_pipeline=chunks)))
    sent = 2  # what is left of an output that was sent
    held = run.numbers.bytes(run.walk(accumulate=True).after_forward())
    assert held - sent == layers * _layer(one)


def test_main_gradients_are_18_bytes_with_the_rest() -> None:
    held = ledger(training(LLAMA_2_7B, implementation="megatron", precision="bf16_master"))
    assert held.steps[1].start == pytest.approx(18 * held.parameters.total, rel=0.001)


def test_experts_are_spread() -> None:
    base = training(EXPERTS, implementation="megatron", precision="bf16_master")
    whole = estimate(spread(base, data=8, sharding="zero1"))
    shared = estimate(spread(base, data=8, expert=8, sharding="zero1"))
    experts = whole.component("weights").child("experts").bytes
    assert shared.component("weights").child("experts").bytes * 8 == experts
    assert shared.parameters == whole.parameters


def test_fp8_keeps_inputs_in_one_byte_and_adds_copies_of_weights() -> None:
    settings: dict[str, Any] = {"implementation": "megatron", "sequence_length": 4096}
    bf16 = ledger(training(LLAMA_2_7B, precision="bf16_master", **settings))
    fp8 = ledger(training(LLAMA_2_7B, precision="fp8", **settings))
    assert fp8.saved_total < bf16.saved_total
    copies = fp8.steps[1].start - bf16.steps[1].start
    linear = bf16.parameters.total - 2 * 32000 * 4096 - (2 * 32 + 1) * 4096
    scales = 4 * 2 * 4 * 32
    assert copies == 2 * linear + scales  # one in each order before Blackwell


def test_scales_of_blocks() -> None:
    settings: dict[str, Any] = {"implementation": "megatron", "precision": "fp8", "sequence_length": 1024}
    start = {
        name: ledger(training(LLAMA_2_7B, fp8_scaling=name, **settings)).steps[1].start
        for name in ("tensorwise", "blockwise", "mxfp8", "delayed")
    }
    linear = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008)
    few = 4 * 2 * 4 * 32
    assert start["blockwise"] - start["tensorwise"] == 2 * 4 * linear // 128**2 - few
    assert start["mxfp8"] - start["tensorwise"] == 2 * linear // 32 - few
    assert start["delayed"] - start["tensorwise"] == 32 * 4 * 5 * 1024 * 4


LATENT = msgspec.structs.replace(
    EXPERTS,
    kv_lora_rank=256,
    q_lora_rank=384,
    head_dim=96,
    rotary_dim=32,
    v_head_dim=64,
    mlp_layer_types=("dense", *["sparse"] * 7),
    n_shared_experts=1,
    shared_expert_intermediate_size=1024,
)


def test_latents_lie_with_the_tokens_that_a_rank_has() -> None:
    """Heads are shared by tensor parallel ranks; down projections lie whole on each."""
    base = training(LATENT, implementation="megatron", precision="bf16_master")
    whole, shared = (
        estimate(scenario).component("weights").child("attention").bytes
        for scenario in (base, spread(base, tensor=4, sequence=True))
    )
    down = 2 * 8 * 1024 * (384 + 256 + 32)
    assert 4 * (shared - down) == whole - down


def test_ranks_with_fewer_tokens_keep_less() -> None:
    base = training(LATENT, implementation="megatron", precision="bf16_master", sequence_length=1024)
    alone = ledger(base).saved_total
    assert ledger(spread(base, tensor=4, sequence=True)).saved_total < alone / 3


def test_a_block_of_layers_is_computed_again() -> None:
    """``recompute_method`` = block: the first layers of each stage keep their inputs only."""
    some = _step(activation_checkpointing="full", checkpoint_layers=1, gradient_accumulation_steps=2)
    full, kept = 2 * S * B * H, _layer(_step())
    assert ledger(some).saved_by_layer()["layers"] == (full, *[kept] * (L - 1))
    _, (_, last) = stage_runs(spread(some, pipeline=2))
    assert [(kind.recomputed, count) for kind, count in last.program.runs] == [(True, 1), (False, 1)]
