"""Encoders against figures measured on real modules."""

from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.opening import starting_scenario
from memgui.spec import replace
from tests.estimator.families import check_parameters, check_saved, check_steps, read, title

ROWS = read("encoders")


@pytest.mark.parametrize("row", ROWS["saved"], ids=title)
def test_saved_tensors(row: dict[str, Any]) -> None:
    check_saved(ROWS, row)


@pytest.mark.parametrize("row", ROWS["peaks"], ids=title)
def test_steps(row: dict[str, Any]) -> None:
    check_steps(ROWS, row)


@pytest.mark.parametrize("row", ROWS["parameters"], ids=lambda row: row["model"])
def test_parameters(row: dict[str, Any]) -> None:
    check_parameters(ROWS, row)


@pytest.mark.parametrize("engine", ["transformers", "vllm", "sglang", "llama.cpp"])
def test_encoders_keep_no_cache(engine: str) -> None:
    """Bert, ModernBert, Esm, Albert, Roberta, DebertaV2 of Transformers 5.24 make none when they are run."""
    catalog = Catalog()
    base = replace(replace(catalog.first_scenario(), "task", "inference"), "inference.engine", engine)
    if engine == "llama.cpp":
        base = replace(base, "inference.kv_cache_format", "fp16")
    encoders = [entry.model for entry in catalog.models if not entry.model.is_decoder]
    assert len(encoders) > 20
    for model in encoders:
        found = estimate(starting_scenario(base, model)[0])
        assert found.component("kv_cache").bytes == 0, model.name
