"""Packed bases are played as they load: once for all formats of computing that read the model alike."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.catalog import Catalog
from memgui.estimator import estimate, loading
from memgui.estimator.account import account
from memgui.estimator.allocator import Allocator
from memgui.estimator.cut_to_size import CutToSize
from memgui.estimator.estimate import run_of
from memgui.estimator.loading import _frozen, base_of, load
from memgui.estimator.quantisation import base_scheme
from memgui.spec import replace
from memgui.spec.scenario import Scenario

CATALOG = Catalog()
MIB = 2**20


def test_formats_that_read_a_model_alike_share_what_is_loaded() -> None:
    made = replace(CATALOG.first_scenario(), "training.method", "lora")
    made = replace(made, "training.base_format", "nf4")
    estimate(made)
    before = _frozen.cache_info().misses
    for precision in ("bf16", "fp16", "bf16_mixed", "fp16_master"):
        estimate(replace(made, "training.precision", precision))
    assert _frozen.cache_info().misses == before
    estimate(replace(made, "training.precision", "fp32"))  # read in 32 bits
    assert _frozen.cache_info().misses == before + 1


def _packed(model: str, base: str, rank: int, precision: str) -> Scenario:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model(model).model)
    settings = {"method": "lora", "base_format": base, "precision": precision, "lora.rank": rank}
    for name, value in settings.items():
        made = replace(made, f"training.{name}", value)
    return made


@pytest.mark.parametrize("base", ["nf4", "nf4_dq", "int8"])
@pytest.mark.parametrize(
    "model",
    [
        "Llama-3.1-8B",
        "Llama-3.1-70B-Instruct",
        "Llama-2-70b-hf",  # the same blocks are free after each tenth layer, and more that are too small
        "EXAONE-4.0-32B",  # after each sixteenth
        "Qwen3-Next-80B-A3B-Instruct",  # three kinds of layers in turn
        "Falcon-H1-7B-Base",
        "DeepSeek-V2-Lite",  # routers that are widened later
        "gemma-3-27b-it",
        "gpt2",
    ],
)
def test_what_is_not_played_comes_out_as_if_it_were(model: str, base: str) -> None:
    for rank, precision in ((16, "bf16_mixed"), (256, "fp32")):
        made = _packed(model, base, rank, precision)
        run = run_of(made)
        how, scheme = base_of(made.training), base_scheme(made)
        cut, whole = _frozen(loading._Frozen(run.program, scheme, how)).copy(), Allocator()
        loading._adapt(run.program, cut)
        load(run.program, account(run.program, scheme=scheme), how, whole)
        assert cut.allocated == whole.allocated


def test_few_of_many_layers_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed base of 8 billion weights took longer to play than all else of its estimate together."""
    read: list[int] = []
    real = CutToSize.pack

    def pack(self: CutToSize, size: int, parts: tuple[int, ...]) -> None:
        read.append(size)
        real(self, size, parts)

    monkeypatch.setattr(CutToSize, "pack", pack)
    made = _packed("Llama-3.1-8B", "nf4_dq", 16, "bf16_mixed")
    loading._played.cache_clear()
    _frozen.cache_clear()
    estimate(made)
    assert 0 < len(read) < 100  # of 224 matrices


REQUESTS = st.one_of(st.integers(1, MIB), st.sampled_from([2 * MIB, 3 * MIB, 5 * MIB, 8 * MIB, 21 * MIB]))


@given(
    st.lists(st.tuples(REQUESTS, st.lists(REQUESTS, max_size=3)), min_size=1, max_size=4),
    st.integers(1, 60),
    st.integers(0, 900),
    st.lists(REQUESTS, max_size=12),
)
def test_layers_that_are_read_and_packed_are_cut_alike_however_many_are_played(
    layer: list[tuple[int, list[int]]], times: int, room: int, after: list[int]
) -> None:
    """``layer``: what each weight is read as, and what it is packed as; nothing where it stays as it is."""

    def play(allocator: Allocator) -> None:
        for read, packed in layer:
            if packed:
                allocator.pack(read, tuple(packed))
            else:
                allocator.take(read)

    counted = []
    for allocator in (Allocator(), CutToSize()):
        allocator.give(allocator.take(room * MIB))
        first = allocator.take(3 * MIB)
        allocator.repeat(partial(play, allocator), times, [first])
        there = allocator.allocated
        allocator.give(first)
        for size in after:
            allocator.take(size)
        counted.append((there, allocator.allocated))
    assert counted[0] == counted[1]


def test_formats_whose_pieces_are_as_large_are_loaded_once() -> None:
    made = replace(CATALOG.first_scenario(), "training.method", "lora")
    first = estimate(replace(made, "training.base_format", "nf4_dq"))
    before = _frozen.cache_info().misses
    other = estimate(replace(made, "training.base_format", "fp4_dq"))
    assert _frozen.cache_info().misses == before
    assert other.peak_bytes == first.peak_bytes
    estimate(replace(made, "training.base_format", "int8"))
    assert _frozen.cache_info().misses == before + 1
