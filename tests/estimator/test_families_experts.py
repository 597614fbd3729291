"""Mixtures of experts and latent attention against figures measured on real modules."""

from typing import Any

import pytest

from memgui.estimator import ledger
from memgui.spec import Scenario, Training
from tests.estimator.families import (
    check_cache,
    check_parameters,
    check_saved,
    check_steps,
    model,
    read,
    title,
)

ROWS = read("experts")


@pytest.mark.parametrize("row", ROWS["saved"], ids=title)
def test_saved_tensors(row: dict[str, Any]) -> None:
    check_saved(ROWS, row)


@pytest.mark.parametrize("row", ROWS["peaks"], ids=title)
def test_steps(row: dict[str, Any]) -> None:
    check_steps(ROWS, row)


@pytest.mark.parametrize("row", ROWS["parameters"], ids=lambda row: row["model"])
def test_parameters(row: dict[str, Any]) -> None:
    check_parameters(ROWS, row)
    if row["active"] is not None:
        scenario = Scenario(model=model(ROWS, row["model"]), training=Training(sequence_length=1))
        assert ledger(scenario).parameters.active == row["active"]


@pytest.mark.parametrize("row", ROWS["caches"], ids=lambda row: row["model"])
def test_caches(row: dict[str, Any]) -> None:
    check_cache(ROWS, row)
