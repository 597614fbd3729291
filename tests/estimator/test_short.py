"""A norm said as one operator is its operators: what it tells without them is what they come to."""

from itertools import product

import pytest

from memgui.estimator.alike import stretch_of
from memgui.estimator.bounds import born_back, born_forward
from memgui.estimator.modules import rms
from memgui.estimator.op import copy, one_by_one
from memgui.estimator.outcome import read_back
from memgui.estimator.saved import saved_roots
from memgui.estimator.tape import Parameter, Sizes, Tape, Tensor
from memgui.estimator.tensor import BY_HEAD, OTHER_HALF

ROWS = ("b", "s", 1)
WITH_WEIGHT = (rms.LLAMA, rms.T5, rms.CAST_LAST, rms.CAST_LAST_COPIED, rms.GEMMA, rms.GEMMA4)
WITHOUT = (rms.PLAIN, rms.PLAIN_GEMMA4, rms.SCALED)
CASES = [
    *product(WITH_WEIGHT, (2, 4), (2, 4, OTHER_HALF), (True, False), (True, False)),
    *product(WITHOUT, (2, 4), (0,), (True, False), (False,)),
]


def _norm(
    form: rms.Form, width: int, weight: int, grad: bool, trained: bool
) -> tuple[Tape, Tensor, Parameter | None]:
    tape = Tape("block", Sizes({"h": 64}), part="norm", module="norm")
    x = tape.input(("b", "s", "h"), width, grad)
    x.layout = BY_HEAD
    w = tape.parameter("weight", ("h",), weight, trained) if weight else None
    tape.out = rms.normalised(tape, x, w, ROWS, form)
    return tape, x, w


def _facts(tensor: Tensor) -> tuple[object, ...]:
    return tuple([getattr(tensor, name) for name in tensor.__struct_fields__])


@pytest.mark.parametrize(("form", "width", "weight", "grad", "trained"), CASES)
def test_a_norm_in_short_is_its_operators(
    form: rms.Form, width: int, weight: int, grad: bool, trained: bool
) -> None:
    tape, x, w = _norm(form, width, weight, grad, trained)
    plain = tape.like("block")
    plain.written = one_by_one(tape.written)
    (short,) = tape.written
    assert short.spell is not None
    assert {(op.part, op.module, op.region) for op in plain.written} == {("norm", "norm", 0)}
    assert list(saved_roots(tape).items()) == list(saved_roots(plain).items())
    assert sorted(born_forward(tape)) == sorted(born_forward(plain))
    assert sorted(born_back(tape, ())) == sorted(born_back(plain, ()))
    assert sorted(born_back(tape, (x,))) == sorted(born_back(plain, (x,)))
    said, spelled = read_back(tape), read_back(plain)
    assert (said.reached, sorted(said.born), said.whole) == (
        spelled.reached,
        sorted(spelled.born),
        spelled.whole,
    )
    assert bool(short.back) == (grad or trained)
    kept = {tensor for op in plain.written for tensor in op.saves}
    assert {*short.outs} == {tape.out, *kept} - {x, w}
    outs = [tensor for op in plain.written for tensor in op.outs]
    assert {*short.outs} <= {*outs}


@pytest.mark.parametrize(("form", "width", "weight", "grad", "trained"), CASES)
def test_its_tensors_are_those_of_its_operators(
    form: rms.Form, width: int, weight: int, grad: bool, trained: bool
) -> None:
    tape, x, w = _norm(form, width, weight, grad, trained)
    written = Tape("block", tape.sizes, part="norm", module="norm")
    made = form.write(written, x, w, ROWS)
    assert [(op.name, op.extra, op.back_extra) for op in written.ops] == [
        (op.name, op.extra, op.back_extra) for op in tape.ops
    ]
    for one, other in zip(written.ops, tape.ops, strict=True):
        for tensors in ("ins", "outs", "saves"):
            assert list(map(_facts, getattr(one, tensors))) == list(map(_facts, getattr(other, tensors)))
        assert [(_facts(t), how) for t, how in one.back] == [(_facts(t), how) for t, how in other.back]
    assert tape.out is not None
    assert _facts(made) == _facts(tape.out)


@pytest.mark.parametrize(("form", "width", "weight", "grad", "trained"), CASES)
def test_a_stretch_of_it_knows_the_same(
    form: rms.Form, width: int, weight: int, grad: bool, trained: bool
) -> None:
    tape, x, w = _norm(form, width, weight, grad, trained)
    assert tape.out is not None
    given, out, weights = (x,), (tape.out,), () if w is None else (w,)
    said, spelled = (stretch_of(tape, ops, given, out, weights, ()) for ops in (tape.written, tape.ops))
    assert said.born == spelled.born
    assert said.born_back == spelled.born_back
    assert said.kept.things == spelled.kept.things
    assert said.saves == spelled.saves
    assert {*said.inward} == {*spelled.inward}


def test_a_tape_is_spelled_out_once_and_one_like_it_on_its_own() -> None:
    tape, _, _ = _norm(rms.LLAMA, 2, 2, True, True)
    spelled = tape.ops
    assert tape.ops is spelled
    assert len(tape.written) == 1
    like = tape.like("other")
    like.written = [copy(op) for op in like.written]
    assert like.ops is not spelled
    assert [op.name for op in like.ops] == [op.name for op in spelled]


def test_where_order_matters_all_along_operators_are_written() -> None:
    tape = Tape("block", Sizes({"h": 64}), ordered=True)
    rms.normalised(tape, tape.input(("b", "s", "h"), 2, True), None, ROWS, rms.PLAIN)
    assert len(tape.written) == len(tape.ops) == 7
