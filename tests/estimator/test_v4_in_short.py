"""What DeepSeek V4's layers say as one operator is its operators: what it tells is what they come to."""

import pytest

from memgui.catalog import Catalog
from memgui.estimator.block import Block
from memgui.estimator.bounds import born_back, born_forward
from memgui.estimator.estimate import run_of
from memgui.estimator.measure import Bytes
from memgui.estimator.modules import compressed, hyper
from memgui.estimator.op import Op, one_by_one
from memgui.estimator.outcome import read_back
from memgui.estimator.saved import saved_roots
from memgui.estimator.tape import PARAMETER, Tape, Tensor
from memgui.estimator.training import TrainingRun
from memgui.spec import replace
from tests.benchmarks.estimating import remembering

CATALOG = Catalog()
KEY = "compressed_sparse_attention"
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"training.micro_batch_size": 3},
    {"training.precision": "fp32", "training.padding_mask": True},
    {"training.method": "lora", "training.lora.target_modules": ("all-linear",)},
)
IN_SHORT = {"indexer": (compressed, "_chosen", "_choice"), "connection": (hyper, "_connection", "_written")}
"""What is said in short, where, by what, and what writes it operator by operator."""


def _run(settings: dict[str, object]) -> TrainingRun:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model("DeepSeek-V4-Flash").model)
    for path, value in {"training.sequence_length": 4096, **settings}.items():
        made = replace(made, path, value)
    run = run_of(made)
    assert isinstance(run, TrainingRun)
    return run


def _block(run: TrainingRun) -> Block:
    return next(block for block, _ in run.program.blocks if block.tape.key == KEY)


def _facts(one: Tensor) -> tuple[object, ...]:
    kinds = one.origin, one.grad, one.loss, one.layout, one.weight_copy, one.stepwise, one.cached
    return one.name, one.dims, one.width, one.coefficient, one.block, one.part, one.module, kinds


def _told(ops: list[Op]) -> list[object]:
    """Each operator, and its tensors by when they were met first."""
    met: dict[Tensor, int] = {}

    def number(one: Tensor) -> tuple[object, ...]:
        base = None if one.base is None else met.setdefault(one.base, len(met))
        return met.setdefault(one, len(met)), base, _facts(one)

    return [
        (
            *(op.name, op.part, op.module, op.region),
            *([number(one) for one in many] for many in (op.ins, op.outs, op.saves)),
            [(number(one), how) for one, how in op.back],
            *[pair and pair[0] for pair in (op.extra, op.back_extra, op.inner, op.back_inner)],
        )
        for op in ops
    ]


@pytest.mark.parametrize("name", IN_SHORT)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_in_short_it_is_its_operators(
    settings: dict[str, object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches = remembering()
    for forget in caches:
        forget()
    run = _run(settings)
    said, sizes = _block(run), run.program.sizes
    times = [op.name for op in said.tape.written if op.spell is not None].count(name)
    assert times == (name == "indexer" or ("training.method" not in settings and len(settings) < 2))
    known = len(sizes.monomials)
    ops = said.tape.ops
    assert len(sizes.monomials) == known  # workloads are counted by those there were
    for forget in caches:
        forget()
    module, short, written = IN_SHORT[name]
    monkeypatch.setattr(module, short, getattr(module, written))
    spelled = _block(_run(settings))
    for forget in caches:
        forget()
    assert [_facts(one) for one in said.tape.parameters] == [_facts(one) for one in spelled.tape.parameters]
    assert [_facts(one) for one in said.tape.buffers] == [_facts(one) for one in spelled.tape.buffers]
    assert [one.role for one in said.tape.parameters] == [one.role for one in spelled.tape.parameters]
    assert _told(ops) == _told(spelled.tape.ops)


@pytest.mark.parametrize("key", [KEY, "sparse"])
def test_a_connection_tells_what_its_operators_come_to(key: str) -> None:
    program = _run({}).program
    tape = next(block.tape for block, _ in program.blocks if block.tape.key == key)
    (short,) = (op for op in tape.written if op.name == "connection")
    said, plain = _alone(tape, [short]), _alone(tape, one_by_one([short]))
    assert list(saved_roots(said).items()) == list(saved_roots(plain).items())
    assert sorted(born_forward(said)) == sorted(born_forward(plain))
    waiting = short.outs[:3]  # a gradient comes to each of them
    for beside in (waiting, (*waiting, short.ins[0])):
        assert sorted(born_back(said, beside)) == sorted(born_back(plain, beside))
        one, other = read_back(said, beside), read_back(plain, beside)
        assert sorted(one.born) == sorted(other.born)
        assert set(one.reached) == set(other.reached)
        assert [each for each in one.reached if each.origin == PARAMETER] == [
            each for each in other.reached if each.origin == PARAMETER
        ]
        assert one.whole
        assert other.whole


def _alone(tape: Tape, ops: list[Op]) -> Tape:
    made = tape.like(tape.key)
    made.written = ops
    return made


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("length", [1, 3, 4, 5, 64, 4096, 60000])
def test_no_more_comes_and_goes_than_it_tells(settings: dict[str, object], length: int) -> None:
    run = _run({**settings, "training.sequence_length": length})
    tape = _block(run).tape
    (short,) = (op for op in tape.written if op.name == "indexer")
    said, plain = _alone(tape, [short]), _alone(tape, one_by_one([short]))
    numbers = Bytes(run.values)
    told, exact = (numbers.sums([born_forward(one)]) for one in (said, plain))
    assert exact <= told
    assert told < 2 * exact or length < 4096  # where the peak is elsewhere, that is seen
