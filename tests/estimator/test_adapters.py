"""Adapters, frozen bases and loops against figures measured on real modules: every one to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from memgui.estimator import ledger
from tests.estimator.build import measured

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "adapter_rows.json").read_text("utf-8"))[
    "rows"
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_steps(row: dict[str, Any]) -> None:
    held = ledger(measured(row, layers=row["layers"]))
    steady = held.steps[1]
    assert {name: getattr(steady, name) for name in row["moments"]} == row["moments"]
    assert {phase: steady.phases.get(phase) for phase in row["phases"]} == row["phases"]
    assert held.parameters.trainable == row["trainable"]
