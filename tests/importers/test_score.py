"""The scoreboard of collected files, and how much of Transformers is described."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from memgui.estimator.estimate import parameters
from memgui.importers.hf_config import import_config
from memgui.spec import Scenario
from tests.importers.score import SHARED, coverage, score

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the reference folder is not here")


@needs_shared
def test_every_collected_file_is_counted_exactly_or_the_difference_has_a_reason() -> None:
    lines = score(SHARED / "data" / "hf_configs")
    outcomes = Counter(line.outcome for line in lines)
    off = [line.file for line in lines if line.outcome in ("off", "refused")]
    assert not off
    assert outcomes["exact"] >= 178
    assert len(lines) == 199


@needs_shared
def test_the_total_that_the_program_shows_is_that_of_transformers_modules() -> None:
    """Towers included: the figure of the estimator, not only the one that the tests count."""
    folder = SHARED / "data" / "hf_configs"
    rows = json.loads((folder / "INDEX.json").read_text("utf-8"))["configs"]
    known = [row for row in rows if "module_params" in row]
    assert len(known) == 164
    for row in known:
        model = import_config(folder / row["file"]).model
        assert parameters(Scenario(model=model)).total == row["module_params"], row["file"]


def test_most_text_models_of_transformers_are_described() -> None:
    exact, described, other = coverage()
    assert len(described) >= 189
    assert len(exact) >= 141
    assert not set(described) & set(other)
