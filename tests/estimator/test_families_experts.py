"""Mixtures of experts and latent attention against figures measured on real modules."""

from typing import Any

import msgspec
import pytest

from memgui.estimator import estimate, ledger
from memgui.spec import Scenario, Training
from tests.estimator.build import training
from tests.estimator.families import (
    check_cache,
    check_parameters,
    check_saved,
    check_steps,
    model,
    read,
    title,
)
from tests.estimator.models import LLAMA_3_1B

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


def test_a_gate_that_only_experts_have_is_refused_where_a_plain_layer_would_take_it() -> None:
    dense = msgspec.structs.replace(LLAMA_3_1B, hidden_act="swiglu_clamped")
    verdict = estimate(training(dense)).verdict
    assert (verdict.kind, verdict.reason.args["path"]) == ("unknown", "model.hidden_act")
