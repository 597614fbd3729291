"""Every built-in model is counted by the estimator as it is by formula, or the answer says why not."""

from __future__ import annotations

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.opening import starting_scenario
from memgui.spec.validate import validate


def test_every_built_in_model_has_an_estimate_or_a_reason() -> None:
    catalog = Catalog()
    base = catalog.first_scenario()
    wrong, unknown = [], 0
    for entry in catalog.models:
        scenario, _ = starting_scenario(base, entry.model)
        assert not [issue for issue in validate(scenario) if issue.severity == "error"], entry.name
        found = estimate(scenario)
        if found.verdict.kind == "unknown":
            assert found.verdict.reason.text
            unknown += 1
        elif found.parameters.total != entry.parameters:
            wrong.append((entry.name, found.parameters.total - entry.parameters))
    assert not wrong
    assert unknown <= 1
