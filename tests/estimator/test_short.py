"""An operator that is said in short is what it is spelled out."""

from collections import Counter

import pytest

from memgui.estimator.modules.norm import inverse_deviation
from memgui.estimator.op import Short, copy
from memgui.estimator.tape import ALIAS, Op, Sizes, Tape


def _forward(ops: list[Op]) -> Counter[int]:
    total: Counter[int] = Counter()
    for op in ops:
        for out in op.outs:
            total[out.monomial] += out.coefficient
        if op.extra is not None:
            total[op.extra[1]] += op.extra[0]
    return total


def _backward(ops: list[Op]) -> Counter[int]:
    total: Counter[int] = Counter()
    for op in ops:
        for tensor, how in op.back:
            total[tensor.monomial] += 0 if how == ALIAS else tensor.coefficient
        if op.back_extra is not None:
            total[op.back_extra[1]] += op.back_extra[0]
    return total


@pytest.mark.parametrize("grad", [True, False])
def test_an_inverse_deviation_in_short_makes_and_saves_what_its_operators_do(grad: bool) -> None:
    tape = Tape("block", Sizes({"h": 64}), part="norm", module="norm")
    x = tape.input(("b", "s", "h"), 4, grad)
    out = inverse_deviation(tape, x, ("b", "s", 1))
    (short,), spelled = tape.written, tape.ops
    assert isinstance(short, Short)
    assert [op.name for op in spelled] == ["pow", "mean", "add", "rsqrt"]
    assert short.name == spelled[0].name
    assert {(op.part, op.module, op.region) for op in spelled} == {(short.part, short.module, short.region)}
    assert short.ins == spelled[0].ins == (x,)
    assert short.outs == spelled[-1].outs == (out,)
    assert short.saves == tuple([tensor for op in spelled for tensor in op.saves])
    assert {tensor for tensor, _ in short.back} == {tensor for tensor, _ in spelled[0].back}
    assert _forward([short]) == _forward(spelled)
    assert _backward([short]) == _backward(spelled)
    assert bool(_backward([short])) == grad


def test_a_tape_is_spelled_out_once_and_one_like_it_on_its_own() -> None:
    tape = Tape("block", Sizes({"h": 64}))
    inverse_deviation(tape, tape.input(("b", "s", "h"), 4, True), ("b", "s", 1))
    spelled = tape.ops
    assert tape.ops is spelled
    assert len(tape.written) == 1
    like = tape.like("other")
    like.written = [copy(op) for op in like.written]
    assert like.ops is not spelled
    assert [op.name for op in like.ops] == [op.name for op in spelled]
