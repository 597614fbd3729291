"""What DeepSeek V4's layers say as one operator is its operators: what it tells is what they come to."""

import pytest

from memgui.catalog import Catalog
from memgui.estimator.block import Block
from memgui.estimator.bounds import born_forward
from memgui.estimator.estimate import run_of
from memgui.estimator.measure import Bytes
from memgui.estimator.modules import compressed, hyper
from memgui.estimator.op import one_by_one
from memgui.estimator.training import TrainingRun
from memgui.spec import replace
from tests.benchmarks.estimating import remembering
from tests.estimator.in_short import alone, check_what_it_tells, facts, told

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
    assert [facts(one) for one in said.tape.parameters] == [facts(one) for one in spelled.tape.parameters]
    assert [facts(one) for one in said.tape.buffers] == [facts(one) for one in spelled.tape.buffers]
    assert [one.role for one in said.tape.parameters] == [one.role for one in spelled.tape.parameters]
    assert told(ops) == told(spelled.tape.ops)


@pytest.mark.parametrize("key", [KEY, "sparse"])
def test_a_connection_tells_what_its_operators_come_to(key: str) -> None:
    program = _run({}).program
    tape = next(block.tape for block, _ in program.blocks if block.tape.key == key)
    (short,) = (op for op in tape.written if op.name == "connection")
    check_what_it_tells(tape, short, short.outs[:3])  # a gradient comes to each of them


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("length", [1, 3, 4, 5, 64, 4096, 60000])
def test_no_more_comes_and_goes_than_it_tells(settings: dict[str, object], length: int) -> None:
    run = _run({**settings, "training.sequence_length": length})
    tape = _block(run).tape
    (short,) = (op for op in tape.written if op.name == "indexer")
    said, plain = alone(tape, [short]), alone(tape, one_by_one([short]))
    numbers = Bytes(run.values)
    bound, exact = (numbers.sums([born_forward(one)]) for one in (said, plain))
    assert exact <= bound
    assert bound < 2 * exact or length < 4096  # where the peak is elsewhere, that is seen
