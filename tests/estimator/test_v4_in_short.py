"""What DeepSeek V4's layers say as one operator is its operators: what it tells is what they come to."""

from contextlib import AbstractContextManager

import pytest

from memgui.catalog import Catalog
from memgui.estimator.bounds import born_forward
from memgui.estimator.estimate import run_of
from memgui.estimator.measure import Bytes
from memgui.estimator.modules import compressed, entries, hyper
from memgui.estimator.modules.context import Context
from memgui.estimator.op import Op, one_by_one
from memgui.estimator.tape import Tape
from memgui.estimator.training import TrainingRun
from memgui.spec import replace
from tests.benchmarks.estimating import remembering
from tests.estimator.in_short import alone, check_what_it_tells, facts, told

CATALOG = Catalog()
FEW, MANY = "compressed_sparse_attention", "heavily_compressed_attention"
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"training.micro_batch_size": 3},
    {"training.precision": "fp32", "training.padding_mask": True},
    {"training.method": "lora", "training.lora.target_modules": ("all-linear",)},
)
IN_SHORT = {
    "entries": (compressed, "compressed", entries._written),
    "indexer": (entries, "_chosen", entries._choice),
    "heads": (compressed, "_heads", compressed._written),
    "connection": (hyper, "_connection", hyper._written),
}
"""What is said in short, where, by what, and what writes it operator by operator."""


def _run(settings: dict[str, object]) -> TrainingRun:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model("DeepSeek-V4-Flash").model)
    for path, value in {"training.sequence_length": 4096, **settings}.items():
        made = replace(made, path, value)
    run = run_of(made)
    assert isinstance(run, TrainingRun)
    return run


def _tape(run: TrainingRun, key: str) -> Tape:
    return next(block.tape for block, _ in run.program.blocks if block.tape.key == key)


def _as_it_is(settings: dict[str, object]) -> bool:
    """Whether all of a model is trained in its own format."""
    return not {"training.method", "training.precision"} & settings.keys()


@pytest.mark.parametrize("name", IN_SHORT)
@pytest.mark.parametrize("key", [FEW, MANY])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_in_short_it_is_its_operators(
    settings: dict[str, object], key: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches = remembering()
    for forget in caches:
        forget()
    run = _run(settings)
    said, sizes = _tape(run, key), run.program.sizes
    times = [op.name for op in said.written if op.spell is not None].count(name)
    assert times == (not _as_it_is(settings) and key == FEW if name == "indexer" else _as_it_is(settings))
    known = len(sizes.monomials)
    ops = said.ops
    assert len(sizes.monomials) == known  # workloads are counted by those there were
    for forget in caches:
        forget()
    module, short, written = IN_SHORT[name]
    monkeypatch.setattr(module, short, written)
    spelled = _tape(_run(settings), key)
    for forget in caches:
        forget()
    assert [facts(one) for one in said.parameters] == [facts(one) for one in spelled.parameters]
    assert [facts(one) for one in said.buffers] == [facts(one) for one in spelled.buffers]
    assert [one.role for one in said.parameters] == [one.role for one in spelled.parameters]
    assert told(ops) == told(spelled.ops)


COMING = {"connection": 3, "heads": 2, "entries": 1}
"""To how many of its results gradients come."""


@pytest.mark.parametrize(
    ("name", "key"),
    [("connection", FEW), ("connection", "sparse"), ("heads", FEW), ("entries", FEW), ("entries", MANY)],
)
def test_it_tells_what_its_operators_come_to(name: str, key: str) -> None:
    tape = _tape(_run({}), key)
    short = _said(tape, name)
    check_what_it_tells(tape, short, short.outs[: COMING[name]], forward=name != "entries")


def _said(tape: Tape, name: str) -> Op:
    (short,) = (op for op in tape.written if op.name == name)
    return short


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("length", [1, 3, 4, 5, 64, 4096, 60000])
def test_no_more_comes_and_goes_than_it_tells(settings: dict[str, object], length: int) -> None:
    run = _run({**settings, "training.sequence_length": length})
    tape = _tape(run, FEW)
    short = _said(tape, "entries" if _as_it_is(settings) else "indexer")
    said, plain = alone(tape, [short]), alone(tape, one_by_one([short]))
    numbers = Bytes(run.values)
    bound, exact = (numbers.sums([born_forward(one)]) for one in (said, plain))
    assert exact <= bound
    assert bound < 2 * exact or length < 4096  # where the peak is elsewhere, that is seen


@pytest.mark.parametrize("settings", [{}, {"training.micro_batch_size": 3}], ids=str)
def test_threads_spell_on_contexts_of_their_own(
    settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules change a context's options for a while: on a shared one another thread would see them."""
    for forget in remembering():
        forget()
    run = _run(settings)
    seen: list[Context] = []
    plain = Context.trained

    def trained(self: Context, as_said: bool) -> AbstractContextManager[None]:
        seen.append(self)
        return plain(self, as_said)

    monkeypatch.setattr(Context, "trained", trained)
    for block, _ in run.program.blocks:
        assert block.tape.ops
    assert seen
    assert not any(one is run.program.context for one in seen)
