"""A program that nobody uses any more goes, whole: its tensors and operators are not looked for in cycles."""

import gc
import weakref

import pytest

from memgui.catalog import Catalog
from memgui.estimator.estimate import run_of
from memgui.estimator.op import Op, Stretch
from memgui.spec import replace
from tests.benchmarks.estimating import remembering

CATALOG = Catalog()
MODELS = ("gemma-3n-E4B-it", "DeepSeek-V4-Flash", "gemma-4-E2B-it", "flan-t5-xxl", "Meta-Llama-3.1-8B")


@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_a_program_stays(name: str) -> None:
    caches = remembering()
    run = run_of(replace(CATALOG.first_scenario(), "model", CATALOG.model(name).model))
    ops: list[Op] = [op for block, _ in run.program.blocks for op in block.tape.written]
    ops += [one for op in ops if isinstance(op, Stretch) for one in op.written]
    spelling = [weakref.ref(op.spell) for op in ops if op.spell is not None]
    assert spelling
    del run, ops
    for forget in caches:
        forget()
    gc.collect()
    assert not any(one() for one in spelling)
