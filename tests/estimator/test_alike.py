"""What kinds of layers have in common is written once: that must not show anywhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate, program
from memgui.estimator.alike import Common
from memgui.estimator.events import Thing
from memgui.estimator.modules import gemma3n
from memgui.estimator.op import Stretch
from memgui.estimator.options import options
from memgui.estimator.program import Program, compiled
from memgui.estimator.result import Estimate, Node
from memgui.estimator.tape import AMBIENT, MADE, Tape, Tensor
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
    {"training.attention": "eager", "training.padding_mask": True},
    {"training.padding_mask": True, "training.sequence_length": 300},
    {"training.sequence_length": 300, "training.micro_batch_size": 4},
    {"training.method": "lora", "training.activation_checkpointing": "full"},
    {"training.activation_checkpointing": "selective"},
    {"training.method": "frozen"},
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
        patch.setattr(gemma3n, "common_input", _its_own)
        assert _answer(estimate(scenario)) == found
    _forget()


def _its_own(tape: Tape, common: Common, x: Tensor, *traits: object) -> Tensor:
    return x


@pytest.mark.parametrize("changes", SETTINGS, ids=lambda changes: "-".join(map(str, changes.values())))
def test_taken_apart_all_operators_are_there(
    changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    _forget()
    programs: list[Program] = []
    init = Program.__init__

    def kept(self: Program, *args: Any) -> None:
        init(self, *args)
        programs.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(Program, "__init__", kept)
        estimate(_scenario(changes))
        folded = programs.pop()
        _forget()
        patch.setattr(gemma3n, "common_input", _its_own)
        estimate(_scenario(changes))
    written = programs.pop()
    tapes = [(a.tape, b.tape) for (a, _), (b, _) in zip(folded.blocks, written.blocks, strict=True)]
    if not changes:
        assert all(isinstance(op, Stretch) for tape, _ in tapes[1:-1] for op in tape.written)
    for short, long in tapes:
        assert [_facts(op) for op in short.apart().ops] == [_facts(op) for op in long.ops]
    made = [{one for op in tape.ops for one in (*op.outs, *op.ins)} for tape, _ in tapes[1:-1]]
    for (short, long), there in zip(tapes[1:-1], made, strict=True):
        assert {short.out, short.carried, *short.parameters} <= there
        assert [one.block for one in short.parameters] == [one.block for one in long.parameters]
        assert not any(one.origin == MADE and one.block != short.key for one in there)
    own = [one for there in made for one in there if one.origin != AMBIENT]
    assert len(own) == len({*own})
    _forget()


def test_what_is_kept_is_known_before_a_tape_is_written_out() -> None:
    """Blocks with the same stretches keep the same groups, each of which is counted once."""
    _forget()
    scenario = _scenario({})
    blocks = [block for block, _ in compiled(scenario.model, options(scenario)).blocks[1:-1]]
    assert all(block.tape.folded for block in blocks)
    groups = [block.kept for block in blocks]
    there = [Counter(_size(one) for part in kept.within for one in part.alike) for kept in groups]
    assert there == [Counter(map(_size, kept.things)) for kept in groups]
    assert [kept.size for kept in groups] == [len(kept.things) for kept in groups]
    shared = Counter(part for kept in groups for part in kept.within)
    assert sum(part.size for part in shared) < sum(kept.size for kept in groups) / 3
    _forget()


def _size(thing: Thing) -> tuple[int, int]:
    return thing.coefficient, thing.monomial


def _facts(op: Any) -> list[Any]:
    things = [[repr(one) for one in some] for some in (op.ins, op.outs, op.saves)]
    kinds = [(one.block, one.origin, one.grad, one.base is None) for one in (*op.ins, *op.outs)]
    edges = [(repr(one), how) for one, how in op.back]
    sizes = [op.extra, op.back_extra, op.back_inner, op.inner]
    return [op.name, op.part, op.module, things, kinds, edges, sizes]
