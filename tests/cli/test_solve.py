"""``memgui solve``: the largest value that fits and the next, in the contract's five keys."""

from __future__ import annotations

import csv
import io
import json

import pytest

from memgui.catalog import Catalog
from memgui.cli import main
from memgui.estimator import estimate
from memgui.spec import replace

FIRST = Catalog().first_scenario()
LENGTH = "training.sequence_length"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["solve", *arguments]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def test_the_object_is_the_estimators_own(capsys: pytest.CaptureFixture[str]) -> None:
    name = FIRST.model.name
    answer = json.loads(printed(capsys, "--for", LENGTH, "--model", name, "--json"))
    assert list(answer) == ["path", "largest", "peak_bytes", "next", "next_peak_bytes"]
    assert answer["path"] == LENGTH
    assert answer["next"] == answer["largest"] + 1
    for value, peak in (("largest", "peak_bytes"), ("next", "next_peak_bytes")):
        there = replace(replace(FIRST, "model.name", name), LENGTH, answer[value])
        assert estimate(there).peak_bytes == answer[peak]
    assert answer["peak_bytes"] <= FIRST.device.memory_bytes < answer["next_peak_bytes"]


def test_a_small_gap_is_said_in_mib(capsys: pytest.CaptureFixture[str]) -> None:
    """Two decimals of a GiB can say that 0.00 GiB are lacking."""
    first, second = printed(capsys, "--for", LENGTH, "--model", FIRST.model.name).splitlines()[:2]
    assert "MiB spare" in first
    assert "MiB lacking" in second


def test_it_takes_what_estimate_takes(capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--model", "gpt2", "--set", "device.memory_bytes=8GiB", "--set", "training.optimizer=sgd")
    answer = json.loads(printed(capsys, "--for", "training.micro_batch_size", *more, "--json"))
    rows = list(
        csv.reader(io.StringIO(printed(capsys, "--for", "training.micro_batch_size", *more, "--csv")))
    )
    assert rows[1] == ["largest", str(answer["largest"]), str(answer["peak_bytes"])]
    assert rows[2] == ["next", str(answer["next"]), str(answer["next_peak_bytes"])]
    table = printed(capsys, "--for", "training.micro_batch_size", *more, "--markdown")
    assert f"| largest | {answer['largest']} | {answer['peak_bytes']} |" in table
    assert f"{answer['largest']:,}" in printed(capsys, "--for", "training.micro_batch_size", *more)


def test_where_there_is_no_next_it_is_null_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(printed(capsys, "--for", LENGTH, "--model", "gpt2", "--json"))
    assert (answer["largest"], answer["next"], answer["next_peak_bytes"]) == (1024, None, None)
    assert "positions for 1,024" in printed(capsys, "--for", LENGTH, "--model", "gpt2")


def test_where_nothing_fits_the_largest_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--model", FIRST.model.name, "--set", "device.memory_bytes=2GiB")
    answer = json.loads(printed(capsys, "--for", LENGTH, *small, "--json"))
    assert (answer["largest"], answer["peak_bytes"], answer["next"]) == (None, None, 1)
    assert answer["next_peak_bytes"] > 2 * 2**30
    assert "no value fits" in printed(capsys, "--for", LENGTH, *small)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("training.precision", "training.precision holds no whole number"),
        ("training.lora.rank", "training.lora.rank has no effect"),
        ("training.sequence_lenght", "near it: training.sequence_length"),
    ],
)
def test_a_field_without_a_largest_value_is_refused(
    capsys: pytest.CaptureFixture[str], path: str, said: str
) -> None:
    assert main(["solve", "--for", path, "--model", "gpt2", "--json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert said in shown.err


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("training.micro_batch_size", ("training.activation_checkpointing=full",)),
        ("training.lora.rank", ("training.method=lora",)),
        ("model.num_hidden_layers", ()),
        ("inference.prompt_tokens", ("task=inference",)),
        ("inference.batch_size", ("task=inference",)),
    ],
)
def test_every_field_that_is_asked_for_is_proved(
    capsys: pytest.CaptureFixture[str], path: str, changes: tuple[str, ...]
) -> None:
    given = [part for change in changes for part in ("--set", change)]
    answer = json.loads(printed(capsys, "--for", path, "--model", FIRST.model.name, *given, "--json"))
    scenario = FIRST
    for change in changes:
        field, _, value = change.partition("=")
        scenario = replace(scenario, field, value)
    found = [estimate(replace(scenario, path, answer[key])) for key in ("largest", "next")]
    assert [one.peak_bytes for one in found] == [answer["peak_bytes"], answer["next_peak_bytes"]]
    assert found[0].peak_bytes <= scenario.device.memory_bytes < found[1].peak_bytes
    assert answer["next"] == answer["largest"] + 1
