"""Layers that run several times, against Dory's own class (Transformers 5.24, small sizes, three loops)."""

from typing import Any

import pytest

from memgui.estimator import ledger
from memgui.estimator.estimate import estimate
from memgui.estimator.refusals import NotCovered
from memgui.spec import Inference, Scenario, Training
from tests.estimator.families import model, read

ROWS = read("kin")
LOOPS = 3


@pytest.mark.parametrize(
    ("precision", "layers", "norms"),
    [
        ("bf16", [3332880, 3323664, 9970992, 9581640, 9970992, 9970992, 3323664, 3190808], 740160),
        ("bf16_mixed", [4491536, 4473104, 13419312, 13039176, 13419312, 13419312, 4473104, 4340248], 592704),
    ],
)
def test_what_each_layer_keeps_of_all_its_runs(precision: Any, layers: list[int], norms: int) -> None:
    training = Training(micro_batch_size=2, sequence_length=72, precision=precision, attention="sdpa")
    held = ledger(Scenario(model=model(ROWS, "dory"), training=training))
    kept = list(held.saved_by_layer()["layers"])
    first, rest, last = kept[:2], kept[2:-2], kept[-2:]
    between, runs = rest[::5], [rest[start + 1 : start + 5] for start in range(0, 15, 5)]
    assert len(runs) == LOOPS
    together = [sum(loop[i] for loop in runs) for i in range(4)]
    assert [*first, *together, *last] == layers
    assert sum(between) + held.saved_by_part()["final_norm"] == norms


@pytest.mark.parametrize(
    ("mode", "after_prompt", "after_one_more"),
    [("per_loop", 393_312, 395_360), ("last_loop", 196_656, 197_680)],
)
def test_caches_of_loops(mode: str, after_prompt: int, after_one_more: int) -> None:
    """Storages of the cache of a real run on the CPU."""
    inference = Inference(batch_size=2, prompt_tokens=48, generated_tokens=1, attention="sdpa")
    looped = model(ROWS, "dory", recurrent_kv_cache_mode=mode)
    held = ledger(Scenario(model=looped, task="inference", inference=inference)).cache
    assert (held.after_prompt, held.after_one_more) == (after_prompt, after_one_more)


def test_engines_do_not_say_how_they_keep_loops() -> None:
    scenario = Scenario(model=model(ROWS, "dory"), task="inference", inference=Inference(engine="vllm"))
    assert "n_recurrent_layers" in estimate(scenario).verdict.reason.text
    with pytest.raises(NotCovered):
        ledger(Scenario(model=model(ROWS, "dory"), training=Training(frozen_layers=3)))
