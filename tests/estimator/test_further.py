"""Layers like the first one are told by its tape: as if each had been written."""

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
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
    {"task": "inference"},
)


def _figures(result: Estimate) -> tuple[object, ...]:
    moments = [(one.key, one.bytes, one.allocated) for one in result.timeline]
    rows = [_row(node) for node in result.components]
    return moments, result.parameters, result.low_bytes, result.high_bytes, rows


def _row(node: Node) -> tuple[object, ...]:
    return node.key, node.bytes, sorted(map(_row, node.children), key=str)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_tape_taken_over_is_the_tape_written(
    settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = replace(CATALOG.first_scenario(), "model", CATALOG.model("t5-base").model)
    scenario = replace(scenario, "training.sequence_length", 500)
    for path, value in settings.items():
        scenario = replace(scenario, path, value)
    taken: list[str] = []
    further = Tape.further

    def noted(self: Tape, key: str) -> Tape | None:
        found = further(self, key)
        taken.extend([key] if found is not None else [])
        return found

    compiled.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(Tape, "further", noted)
        told = _figures(estimate(scenario))
    assert {"encoder.attention", "decoder.cross"} & set(taken)
    compiled.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(Tape, "further", lambda self, key: None)
        written = _figures(estimate(scenario))
    compiled.cache_clear()
    assert told == written
