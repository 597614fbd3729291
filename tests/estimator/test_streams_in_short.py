"""What Gemma 3n says of its streams as one operator is its operators, and what these come to."""

from collections import Counter

import pytest

from memgui.catalog import Catalog
from memgui.estimator.estimate import run_of
from memgui.estimator.modules import gemma3n, magnitudes
from memgui.estimator.op import Op, unfolded
from memgui.estimator.program import Program
from memgui.estimator.tape import Tape
from memgui.estimator.training import TrainingRun
from memgui.spec import replace
from tests.benchmarks.estimating import remembering
from tests.estimator.in_short import check_what_it_tells, facts, told

CATALOG = Catalog()
WRITTEN = {
    "copies": (magnitudes, "_copies"),
    "merged": (magnitudes, "_merged"),
    "predicted": (gemma3n, "_predicted"),
    "corrected": (gemma3n, "_corrected"),
}
"""What is said in short, and what writes it operator by operator."""
SETTINGS: tuple[tuple[dict[str, object], tuple[str, ...]], ...] = (
    ({}, ("copies", "merged", "predicted", "corrected")),
    ({"training.precision": "fp32"}, ("copies", "merged")),
    ({"training.precision": "bf16_mixed"}, ()),
    ({"training.method": "lora"}, ()),
    ({"training.activation_checkpointing": "full"}, ()),
)
"""Settings, and what is said in short with them."""


def _forget() -> None:
    for forget in remembering():
        forget()


def _program(settings: dict[str, object]) -> Program:
    _forget()
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model("gemma-3n-E4B-it").model)
    for path, value in settings.items():
        made = replace(made, path, value)
    run = run_of(made)
    assert isinstance(run, TrainingRun)
    return run.program


def _shorts(tape: Tape) -> list[Op]:
    return [op for op in unfolded(tape.written) if op.name in WRITTEN]


@pytest.mark.parametrize(("settings", "names"), SETTINGS, ids=str)
def test_in_short_it_is_its_operators(
    settings: dict[str, object], names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = _program(settings)
    blocks = [block for block, _ in said.blocks]
    found = Counter(op.name for block in blocks for op in _shorts(block.tape))
    layers = len(blocks) - 2
    times = {"copies": 1, "merged": 1, "predicted": layers, "corrected": layers}
    assert found == {name: times[name] for name in names}
    known = len(said.sizes.monomials)
    ops = [told(block.tape.ops) for block in blocks]
    assert len(said.sizes.monomials) == known  # workloads are counted by those there were
    for module, written in WRITTEN.values():
        monkeypatch.setattr(module, f"{written}_in_short", getattr(module, written))
    spelled = _program(settings)
    assert not any(_shorts(block.tape) for block, _ in spelled.blocks)
    for block, one, (other, _) in zip(blocks, ops, spelled.blocks, strict=True):
        assert [facts(each) for each in block.tape.parameters] == [
            facts(each) for each in other.tape.parameters
        ]
        assert [each.role for each in block.tape.parameters] == [each.role for each in other.tape.parameters]
        assert one == told(other.tape.ops)
    _forget()


@pytest.mark.parametrize("name", WRITTEN)
def test_it_tells_what_its_operators_come_to(name: str) -> None:
    tapes = [block.tape for block, _ in _program({}).blocks]
    tape, short = next((tape, op) for tape in tapes for op in _shorts(tape) if op.name == name)
    check_what_it_tells(tape, short, short.outs[:1])
