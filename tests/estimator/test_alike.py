"""What kinds of layers have in common is written once: that must not show anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate, program
from memgui.estimator.modules import attention
from memgui.estimator.op import Pattern, Stretch
from memgui.estimator.program import Program
from memgui.estimator.result import Estimate, Node
from memgui.spec import Scenario, replace
from tests.benchmarks.estimating import remembering

SETTINGS = [
    {},
    {"training.precision": "fp32"},
    {"training.precision": "bf16_mixed"},
    {"training.method": "lora"},
    {"training.activation_checkpointing": "full"},
    {"training.activation_checkpointing": "selective_op"},
    {"training.gradient_accumulation_steps": 4},
    {"training.use_cache": True},
    {"task": "inference"},
]


def _scenario(changes: dict[str, object]) -> Scenario:
    catalog = Catalog()
    scenario = replace(catalog.first_scenario(), "model", catalog.model("google/gemma-3n-E4B-it").model)
    for path, value in changes.items():
        scenario = replace(scenario, path, value)
    return scenario


@pytest.fixture(autouse=True)
def _written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tape is taken over from a like one: blocks are called what they are."""
    monkeypatch.setattr(program, "taken_over", lambda *given: None)


def _forget() -> None:
    for clear in remembering():
        clear()


def _tree(node: Node) -> list[Any]:
    return [node.key, node.bytes, node.derivation.formula, [_tree(child) for child in node.children]]


def _answer(estimated: Estimate) -> list[Any]:
    trees = [_tree(node) for node in estimated.components]  # before anything else is looked at
    return [estimated.parameters, trees, list(estimated.timeline)]


@pytest.mark.parametrize("changes", SETTINGS, ids=lambda changes: "-".join(map(str, changes.values())))
def test_answers_do_not_depend_on_what_is_written_once(
    changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    _forget()
    scenario = _scenario(changes)
    found = _answer(estimate(scenario))
    _forget()
    with monkeypatch.context() as patch:
        patch.setattr(Pattern, "usable", False)
        patch.setattr(attention, "_common", lambda c: False)
        assert _answer(estimate(scenario)) == found
    _forget()


def test_taken_apart_all_operators_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget()
    programs: list[Program] = []
    init = Program.__init__

    def kept(self: Program, *args: Any) -> None:
        init(self, *args)
        programs.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(Program, "__init__", kept)
        estimate(_scenario({}))
        folded = programs.pop()
        _forget()
        patch.setattr(Pattern, "usable", False)
        estimate(_scenario({}))
    written = programs.pop()
    tapes = [(a.tape, b.tape) for (a, _), (b, _) in zip(folded.blocks, written.blocks, strict=True)]
    assert any(isinstance(op, Stretch) for tape, _ in tapes for op in tape.written)
    for short, long in tapes:
        assert [_facts(op) for op in short.ops] == [_facts(op) for op in long.ops]
    _forget()


def _facts(op: Any) -> list[Any]:
    things = [[repr(one) for one in some] for some in (op.ins, op.outs, op.saves)]
    kinds = [(one.block, one.origin, one.grad, one.base is None) for one in (*op.ins, *op.outs)]
    edges = [(repr(one), how) for one, how in op.back]
    sizes = [op.extra, op.back_extra, op.back_inner, op.inner]
    return [op.name, op.part, op.module, things, kinds, edges, sizes]
