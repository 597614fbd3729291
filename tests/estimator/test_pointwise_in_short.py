"""What a rotation and an activation say as one operator is their operators, and what these come to."""

from collections.abc import Callable

import pytest

from memgui.estimator.modules import mlp, rotary
from memgui.estimator.tape import AMBIENT, BY_HEAD, Sizes, Tape, Tensor
from tests.estimator.in_short import check_what_it_tells, told

CASES = [(write, width) for write in ("rotated", "gelu_new") for width in (2, 4)]


def _given(
    *, ordered: bool, width: int, trained: bool, exact: bool
) -> tuple[Tape, Tensor, tuple[Tensor, ...]]:
    t = Tape("block", Sizes({"a": 8, "d": 64}), part="attention", module="module", ordered=ordered)
    dims = ("b", "s", "a", "d")
    x = t.input(dims, width, trained)
    tables = [t.tensor(name, ("s", "d"), 4 if exact else width, origin=AMBIENT) for name in ("cos", "sin")]
    return t, x, tuple(tables)


def _made(
    name: str, *, ordered: bool = False, width: int = 2, trained: bool = True, exact: bool = False
) -> Tape:
    t, x, tables = _given(ordered=ordered, width=width, trained=trained, exact=exact)
    write: Callable[..., Tensor] = rotary._half
    if name == "rotated":
        x.layout = BY_HEAD
        t.out = write(t, None, x, tables)
    else:
        t.out = mlp.gelu_new(t, x)
    return t


@pytest.mark.parametrize(("name", "width"), CASES)
def test_it_tells_what_its_operators_come_to(name: str, width: int) -> None:
    tape = _made(name, width=width)
    (short,) = tape.written
    assert short.spell is not None
    assert short.name == name
    check_what_it_tells(tape, short, short.outs[:1])


@pytest.mark.parametrize(("name", "width"), CASES)
def test_it_is_its_operators(name: str, width: int) -> None:
    assert told(_made(name, width=width).ops) == told(_made(name, width=width, ordered=True).written)


@pytest.mark.parametrize("name", ["rotated", "gelu_new"])
def test_what_is_not_trained_is_written(name: str) -> None:
    assert all(op.spell is None for op in _made(name, trained=False).written)


def test_rotations_by_tables_of_another_format_are_written() -> None:
    assert all(op.spell is None for op in _made("rotated", exact=True).written)
