"""Models that are described, at small sizes, against the classes that Transformers has for them."""

from typing import Any

import pytest

from tests.estimator.families import check_cache, check_parameters, check_saved, check_steps, read, title

ROWS = read("kin")


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


def test_how_many_types_are_held_to_their_class() -> None:
    assert len({row["model"] for row in ROWS["saved"]}) >= 113
