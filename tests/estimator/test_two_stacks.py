"""Encoders with decoders against figures measured on real modules."""

from typing import Any

import pytest

from memgui.estimator.dimensions import MODEL
from memgui.estimator.symbols import INFERENCE, TRAINING
from tests.estimator.families import check_cache, check_parameters, check_saved, check_steps, read, title

ROWS = read("two_stacks")


@pytest.mark.parametrize("row", ROWS["saved"], ids=title)
def test_saved_tensors(row: dict[str, Any]) -> None:
    check_saved(ROWS, row)


@pytest.mark.parametrize("row", ROWS["peaks"], ids=title)
def test_steps(row: dict[str, Any]) -> None:
    check_steps(ROWS, row)


@pytest.mark.parametrize("row", ROWS["parameters"], ids=lambda row: row["model"])
def test_parameters(row: dict[str, Any]) -> None:
    check_parameters(ROWS, row)


@pytest.mark.parametrize("row", ROWS["caches"], ids=lambda row: row["model"])
def test_cache(row: dict[str, Any]) -> None:
    check_cache(ROWS, row)


def test_no_letter_of_a_length_is_a_letter_of_the_model() -> None:
    """A letter that both had would take the model's value: keys and values of T5's targets were nothing."""
    assert not {*TRAINING, *INFERENCE} & {*MODEL}
