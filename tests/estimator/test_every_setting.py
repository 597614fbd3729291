"""Whatever valid scenario is put together, the answer is an estimate or says why there is none."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from memgui.catalog import Catalog
from memgui.estimator import Estimate, estimate
from memgui.estimator.result import Node
from memgui.planning.formula import tokens_of, value_of
from memgui.planning.opening import starting_scenario
from memgui.spec import Scenario, get, replace
from memgui.spec.fields import BY_PATH, FIELDS, Field, Kind
from memgui.spec.validate import validate

DRAWS = int(os.environ.get("MEMGUI_SETTINGS", "400"))
"""Scenarios that are drawn; a thorough run takes 50,000."""
ALWAYS = ("method", "precision", "implementation", "activation_checkpointing", "engine")
NUMBERS: dict[str, tuple[int | float | None, ...]] = {
    "training.sequence_length": (1, 64, 512),
    "training.micro_batch_size": (1, 2),
    "training.gradient_accumulation_steps": (1, 4),
    "training.frozen_layers": (0, 1, 2),
    "training.checkpoint_every": (1, 2, 5),
    "training.target_length": (None, 64),
    "training.offload_optimizer": (0.0, 0.5, 1.0),
    "inference.prompt_tokens": (1, 17, 512),
    "inference.generated_tokens": (1, 2, 512),
    "inference.batch_size": (1, 3),
    "parallelism.data": (1, 1, 2),
    "parallelism.tensor": (1, 1, 2),
    "parallelism.pipeline": (1, 1, 2),
    "parallelism.context": (1, 1, 2),
    "parallelism.expert": (1, 1, 2),
}


def _value(field: Field, draw: random.Random) -> object:
    if field.path in NUMBERS:
        return draw.choice(NUMBERS[field.path])
    if field.kind == Kind.CHOICE:
        return draw.choice(field.choices).value
    if field.kind == Kind.FLAG:
        return draw.random() < 0.5
    return tuple(choice.value for choice in field.choices if draw.random() < 0.4)


def _scenarios(draw: random.Random) -> Iterator[Scenario]:
    """One model of each kind after the other, a quarter of the settings changed."""
    catalog = Catalog()
    base = catalog.first_scenario()
    kinds = {(entry.model.model_type, entry.model.head): entry.model for entry in catalog.models}
    said = [
        field for field in FIELDS if field.path.partition(".")[0] in ("training", "inference", "parallelism")
    ]
    fields = [
        field
        for field in said
        if field.path in NUMBERS
        or field.kind == Kind.FLAG
        or (field.kind in (Kind.CHOICE, Kind.CHOICES) and field.choices)
    ]
    models = list(kinds.values())
    for index in range(DRAWS):
        scenario, _ = starting_scenario(base, models[index % len(models)])
        scenario = replace(scenario, "task", draw.choice(("training", "training", "inference")))
        for field in fields:
            if draw.random() < (0.9 if field.name in ALWAYS else 0.25):
                value = "transformers" if field.name == "implementation" and draw.random() < 0.5 else None
                scenario = replace(scenario, field.path, value or _value(field, draw))
        split = scenario.parallelism
        yield replace(scenario, "device.count", split.devices)


def _look_at(found: Estimate) -> None:
    """As views do: every moment, and the formula of every node but the tensors, which comes to its bytes."""
    assert found.peak_bytes > 0
    assert all(one.bytes >= 0 for one in found.timeline)
    for component in found.components:
        _derive(component, 2)


def _derive(node: Node, depth: int) -> None:
    assert value_of(tokens_of(node.derivation)) == node.bytes, (node.key, node.derivation)
    for child in node.children if depth else ():
        _derive(child, depth - 1)


def test_every_setting_has_an_answer() -> None:
    answered = 0
    for scenario in _scenarios(random.Random(29)):
        if any(issue.severity == "error" for issue in validate(scenario)):
            continue
        found = estimate(scenario)
        if found.verdict.kind == "unknown":
            assert found.verdict.reason.text
        else:
            answered += 1
            _look_at(found)
    assert answered > DRAWS // 8


def test_what_does_not_apply_changes_nothing() -> None:
    """A field that the form disables, and of which the command line says that it has no effect, has none."""
    draw = random.Random(31)
    changed = 0
    for scenario in _scenarios(draw):
        if scenario.task != "training" or any(issue.severity == "error" for issue in validate(scenario)):
            continue
        found = estimate(scenario)
        if found.verdict.kind == "unknown":
            continue
        idle = [field for field in FIELDS if _idle(field, scenario)]
        other = scenario
        for field in draw.sample(idle, 5):
            other = replace(other, field.path, _value(field, draw))
        if any(field.applies(other) for field in idle):  # it brought itself, or another, into effect
            continue
        changed += 1
        again = estimate(other)
        assert (again.peak_bytes, again.low_bytes, again.high_bytes) == (
            found.peak_bytes,
            found.low_bytes,
            found.high_bytes,
        ), [(field.path, get(scenario, field.path), get(other, field.path)) for field in idle]
    assert changed > DRAWS // 16


def _idle(field: Field, scenario: Scenario) -> bool:
    """Whether a choice of a training step does not apply.

    Paged states are their optimizer's to move: what else might move is not offered, though a little would.
    """
    known = field.path in NUMBERS or field.kind in (Kind.CHOICE, Kind.CHOICES, Kind.FLAG)
    paged = scenario.training.optimizer.startswith("paged") and field.path == "training.offload_optimizer"
    mine = field.path.startswith("training.")
    return mine and known and not paged and not field.applies(scenario)


def test_what_is_wrong_can_be_reached() -> None:
    """Each error names a field that applies, as each reason for no answer does: a hidden one is a trap."""
    seen = 0
    for scenario in _scenarios(random.Random(9)):
        errors = [issue for issue in validate(scenario) if issue.severity == "error"]
        for issue in errors:
            assert any(BY_PATH[path].applies(scenario) for path in issue.paths), issue
        if not errors:
            found = estimate(scenario)
            path = next(iter(found.verdict.reason.paths), "") if found.verdict.kind == "unknown" else ""
            assert path not in BY_PATH or BY_PATH[path].applies(scenario), found.verdict.reason
            seen += 1
    assert seen > DRAWS // 8


@pytest.mark.parametrize("engine", ["transformers", "vllm", "llama.cpp"])
def test_experts_spread_of_a_model_without_any_are_no_hindrance(engine: str) -> None:
    scenario = replace(replace(Catalog().first_scenario(), "task", "inference"), "inference.engine", engine)
    found = estimate(replace(scenario, "parallelism.expert", 2))
    assert found.verdict.kind != "unknown"
    assert found.peak_bytes == estimate(scenario).peak_bytes
