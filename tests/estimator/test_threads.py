"""Estimates of one model in several threads at once: they share its program, and each is what it is alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.estimate import run_of
from memgui.estimator.once import by_one, once
from memgui.estimator.options import options
from memgui.estimator.points import Outside, Place, Spot
from memgui.estimator.program import Program, compiled
from memgui.estimator.search import Heights, measured
from memgui.estimator.training import TrainingRun
from memgui.estimator.walk import walk_of
from memgui.spec import Scenario, replace

CATALOG = Catalog()
ROUNDS, THREADS = 4, 4


@pytest.fixture(autouse=True)
def _taking_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _told(scenario: Scenario) -> list[Any]:
    found = estimate(scenario)
    parts = [(part.key, part.bytes) for node in found.components for part in (node, *node.children)]
    return [found.peak_bytes, found.peak_moment.key, parts]


@pytest.mark.parametrize("model", ["gemma-3n-E4B-it", "gemma-4-E2B-it", "flan-t5-base", "DeepSeek-V4-Flash"])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_threads_share_a_program(model: str, checkpointing: str) -> None:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model(model).model)
    made = replace(made, "training.activation_checkpointing", checkpointing)
    scenarios = [replace(made, "training.sequence_length", 256 * (1 + turn % 2)) for turn in range(THREADS)]
    alone = [_told(scenario) for scenario in scenarios]
    for _ in range(ROUNDS):
        for remembered in (compiled, walk_of, measured):
            remembered.cache_clear()
        assert compiled(made.model, options(made)).kinds  # all find it, and nothing of it is worked out
        begin = Barrier(THREADS)

        def run(scenario: Scenario, begin: Barrier = begin) -> list[Any]:
            begin.wait()
            return _told(scenario)

        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(run, scenarios)) == alone


class _Slow:
    def __init__(self) -> None:
        self.made = 0

    @by_one
    def number(self) -> int:
        self.made += 1
        time.sleep(0.05)  # long enough for all others to ask
        return self.made


def test_what_changes_others_is_made_by_one_thread() -> None:
    slow = _Slow()
    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(lambda _: slow.number, range(THREADS))) == {1}
    assert slow.made == 1


def test_whose_turn_it_is_in_backward_is_told_by_one_thread() -> None:
    """It is asked in the order of backward, and each answer depends on those before."""
    for name in ("cast", "tail_role", "back"):
        assert isinstance(vars(Program)[name], by_one)
    assert not isinstance(vars(Program).get("blocks"), once)


def test_one_that_looks_where_another_is_looking_finds_the_same() -> None:
    """Of two spots inside a block the higher one is looked at; meanwhile somebody else asks."""
    run = run_of(CATALOG.first_scenario())
    assert isinstance(run, TrainingRun)
    walk = run.walk(accumulate=False)
    heights, known = Heights(walk, run.numbers), run.heights(walk)
    (real,) = walk.loss_back.inside.spots
    meanwhile: list[int] = []

    def place() -> Place:
        if not meanwhile:
            meanwhile.append(0)
            meanwhile[0] = heights.peak(inside)[0]
        return real.place()

    inside = Outside(Spot(real.before, real.sort, place, real.most))
    assert heights.peak(inside)[0] == meanwhile[0] == known.peak(walk.loss_back.inside)[0]
