"""Columns side by side: every row adds up, every difference is there, nothing equal is."""

from __future__ import annotations

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.result import COMPONENTS
from memgui.planning.compare import Column, by_device, by_method, compare
from memgui.planning.words import English
from memgui.spec import Issue, Message, Scenario, replace

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
OTHER = replace(
    replace(replace(FIRST, "training.activation_checkpointing", "full"), "training.optimizer", "sgd"),
    "training.sequence_length",
    8192,
)


def column(name: str, scenario: Scenario) -> Column:
    return Column(name, scenario, estimate(scenario))


def test_rows_are_the_estimates_parts_and_add_up() -> None:
    found = compare([column("A", FIRST), column("B", OTHER)])
    top = [row for row in found.rows if len(row.path) == 1]
    assert [row.path[0] for row in top] == list(COMPONENTS)
    for index, scenario in enumerate((FIRST, OTHER)):
        direct = estimate(scenario)
        assert found.total.sizes[index] == direct.peak_bytes
        assert found.spare.sizes[index] == direct.verdict.headroom_bytes
        assert sum(row.sizes[index] or 0 for row in top) == direct.peak_bytes
        for row in top:
            assert row.sizes[index] == direct.component(row.path[0]).bytes
            parts = [one for one in found.rows if one.path[:-1] == row.path]
            if direct.component(row.path[0]).children:
                assert sum(one.sizes[index] or 0 for one in parts) == row.sizes[index]


def test_differences_are_signed_against_any_base() -> None:
    found = compare([column("A", FIRST), column("B", OTHER)], depth=1)
    states = next(row for row in found.rows if row.path == ("optimizer_states",))
    assert states.sizes[1] == 0
    assert states.delta(1) == -(states.sizes[0] or 0)
    assert states.delta(0, base=1) == states.sizes[0]
    gap = (found.total.sizes[1] or 0) - (found.total.sizes[0] or 0)
    assert found.total.delta(1) == gap
    said = found.headline(1)
    assert said is not None
    assert said.text(English()).startswith("B needs ")
    assert ("less than A (−" if gap < 0 else "more than A (+") in said.text(English())


def test_inputs_that_differ_are_listed_with_every_value() -> None:
    found = compare([column("A", FIRST), column("B", OTHER)])
    assert {one.path: one.values for one in found.inputs} == {
        "training.sequence_length": (4096, 8192),
        "training.optimizer": ("adamw", "sgd"),
        "training.activation_checkpointing": ("none", "full"),
    }
    assert found.same > 20


def test_what_was_paid_is_said_in_one_direction_only() -> None:
    found = compare([column("A", FIRST), column("B", OTHER)])
    there = [one.text(English()) for one in found.paid(1)]
    assert "About a third slower." in there
    assert "Longer texts are cut or split." not in there
    back = [one.text(English()) for one in found.paid(0, base=1)]
    assert "Longer texts are cut or split." in back
    assert "About a third slower." not in back


def test_equal_columns_need_the_same() -> None:
    found = compare([column("A", FIRST), column("B", FIRST)])
    said = found.headline(1)
    assert said is not None
    assert said.text(English()) == "B and A need the same."
    assert found.inputs == ()
    assert found.paid(1) == ()


def test_an_unknown_column_has_no_figures() -> None:
    issue = Issue("error", "x", (), Message("no"))
    found = compare([column("A", FIRST), Column("B", FIRST, None, issue)])
    assert all(
        row.sizes[1] is None and row.delta(1) is None for row in (*found.rows, found.total, found.spare)
    )
    assert found.headline(1) is None
    assert found.paid(1) == ()


def test_many_columns_stand_side_by_side() -> None:
    lengths = (512, 1024, 2048, 4096)
    found = compare([column(str(one), replace(FIRST, "training.sequence_length", one)) for one in lengths])
    assert [one.path for one in found.inputs] == ["training.sequence_length"]
    assert found.inputs[0].values == lengths
    assert all(len(row.sizes) == 4 for row in found.rows)


def test_methods_are_compared_like_set_ups() -> None:
    columns = by_method(FIRST)
    assert columns[0].scenario.method == "detailed"
    assert len(columns) >= 3
    found = compare(columns)
    assert found.inputs[0].path == "method"
    for index, one in enumerate(columns):
        assert found.total.sizes[index] == estimate(one.scenario).peak_bytes
    # an article describes training only
    assert [one.scenario.method for one in by_method(replace(FIRST, "task", "inference"))] == ["detailed"]


def test_devices_are_compared_like_set_ups() -> None:
    devices = [CATALOG.device(name).device() for name in ("RTX 4090", "H200 SXM 141GB")]
    found = compare(by_device(FIRST, devices))
    assert [one.scenario.device.name for one in found.columns] == [one.name for one in devices]
    assert {one.path for one in found.inputs} >= {"device.name", "device.memory_bytes"}


def test_a_small_difference_has_no_per_cent() -> None:
    found = compare([column("A", FIRST), column("B", replace(FIRST, "training.sequence_length", 4097))])
    for said in (found.headline(1), found.headline(0, base=1)):
        assert said is not None
        assert "%" not in said.text(English())
        assert "GiB" in said.text(English()) or "MiB" in said.text(English())


def test_what_an_article_does_not_divide_is_not_zero() -> None:
    """Its weights are one number: how much of them is attention's it does not say."""
    found = compare(by_method(FIRST))
    detailed, article = (
        0,
        next(number for number, one in enumerate(found.columns) if one.scenario.method == "llama_guide"),
    )
    whole = next(row for row in found.rows if row.path == ("weights",))
    below = [row for row in found.rows if len(row.path) == 2 and row.path[0] == "weights"]
    assert (whole.sizes[article] or 0) > 0
    assert sum(row.sizes[detailed] or 0 for row in below) == whole.sizes[detailed]
    assert {row.sizes[article] for row in below} == {None}
