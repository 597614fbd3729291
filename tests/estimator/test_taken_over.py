"""Layers like the first one are told by its tape: as if each had been written."""

from collections.abc import Callable

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate, program
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.taken_over import taken_over
from memgui.estimator.program import compiled
from memgui.estimator.result import Estimate, Node
from memgui.estimator.tape import Tape
from memgui.spec import replace

CATALOG = Catalog()
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"training.method": "lora"},
    {"training.method": "lora", "training.base_format": "nf4"},
    {"training.activation_checkpointing": "full"},
    {"training.activation_checkpointing": "selective", "training.padding_mask": True},
    {"training.optimizer": "lomo"},
    {"training.optimizer_in_backward": True},
    {"training.use_cache": True, "training.precision": "bf16_mixed"},
    {"task": "inference"},
)


def _figures(result: Estimate) -> tuple[object, ...]:
    moments = [(one.key, one.bytes, one.allocated) for one in result.timeline]
    rows = [_row(node) for node in result.components]
    return moments, result.parameters, result.low_bytes, result.high_bytes, rows


def _row(node: Node) -> tuple[object, ...]:
    return node.key, node.bytes, sorted(map(_row, node.children), key=str)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    ("model", "expected"), [("t5-base", "decoder.cross"), ("gemma-4-E2B-it", "lending_attention")]
)
def test_a_tape_taken_over_is_the_tape_written(
    model: str, expected: str, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = replace(CATALOG.first_scenario(), "model", CATALOG.model(model).model)
    scenario = replace(scenario, "training.sequence_length", 500)
    for path, value in settings.items():
        scenario = replace(scenario, path, value)
    taken: list[str] = []

    def noted(name: str, context: Context, written: Callable[[str], Tape | None]) -> Tape | None:
        found = taken_over(name, context, written)
        taken.extend([name] if found is not None else [])
        return found

    compiled.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(program, "taken_over", noted)
        told = _figures(estimate(scenario))
    assert (expected in taken) == (settings.get("training.activation_checkpointing") != "selective")
    compiled.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(program, "taken_over", lambda *given: None)
        written = _figures(estimate(scenario))
    compiled.cache_clear()
    assert told == written
