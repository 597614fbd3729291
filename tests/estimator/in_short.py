"""How operators in short, and those that they stand for, are told and compared."""

from memgui.estimator.bounds import born_back, born_forward
from memgui.estimator.op import Op, one_by_one
from memgui.estimator.outcome import read_back
from memgui.estimator.saved import saved_roots
from memgui.estimator.tape import PARAMETER, Tape, Tensor


def facts(one: Tensor) -> tuple[object, ...]:
    """All that is known of a tensor."""
    kinds = one.origin, one.grad, one.loss, one.layout, one.weight_copy, one.stepwise, one.cached
    return one.name, one.dims, one.width, one.coefficient, one.block, one.part, one.module, kinds


def told(ops: list[Op]) -> list[object]:
    """Each operator, and its tensors by when they were met first."""
    met: dict[Tensor, int] = {}

    def number(one: Tensor) -> tuple[object, ...]:
        base = None if one.base is None else met.setdefault(one.base, len(met))
        return met.setdefault(one, len(met)), base, facts(one)

    return [
        (
            *(op.name, op.part, op.module, op.region),
            *([number(one) for one in many] for many in (op.ins, op.outs, op.saves)),
            [(number(one), how) for one, how in op.back],
            *[pair and pair[0] for pair in (op.extra, op.back_extra, op.inner, op.back_inner)],
        )
        for op in ops
    ]


def alone(tape: Tape, ops: list[Op]) -> Tape:
    """A tape of these operators."""
    made = tape.like(tape.key)
    made.written = ops
    return made


def check_what_it_tells(tape: Tape, short: Op, waiting: tuple[Tensor, ...], *, forward: bool = True) -> None:
    """One in short tells what its operators come to, with gradients of all that is ``waiting`` before.

    ``forward`` too, or no less.
    """
    said, plain = alone(tape, [short]), alone(tape, one_by_one([short]))
    assert list(saved_roots(said).items()) == list(saved_roots(plain).items())
    assert not forward or sorted(born_forward(said)) == sorted(born_forward(plain))
    for beside in (waiting, (*waiting, *[one for one in short.ins if one.origin != PARAMETER])):
        assert sorted(born_back(said, beside)) == sorted(born_back(plain, beside))
        one, other = read_back(said, beside), read_back(plain, beside)
        assert sorted(one.born) == sorted(other.born)
        assert set(one.reached) == set(other.reached)
        assert [each for each in one.reached if each.origin == PARAMETER] == [
            each for each in other.reached if each.origin == PARAMETER
        ]
        assert one.whole
        assert other.whole
