"""Cross-field rules: named fields, nothing clamped."""

from __future__ import annotations

from memgui.spec import replace
from memgui.spec.validate import validate
from tests.spec.test_fields import SCENARIO


def codes(scenario: object) -> dict[str, str]:
    return {issue.code: issue.severity for issue in validate(scenario)}  # type: ignore[arg-type]


def test_a_sound_scenario_has_no_issues() -> None:
    assert validate(SCENARIO) == ()


def test_heads_that_cannot_be_grouped_name_both_fields() -> None:
    issues = validate(replace(SCENARIO, "model.num_key_value_heads", 3))
    assert issues[0].severity == "error"
    assert issues[0].paths == ("model.num_attention_heads", "model.num_key_value_heads")
    assert "1, 2, 4, 8" in issues[0].text


def test_learned_positions_end_where_rotary_ones_only_warn() -> None:
    longer = replace(
        replace(SCENARIO, "model.max_position_embeddings", 1024), "training.sequence_length", 2048
    )
    assert codes(longer) == {"beyond_longest": "warning"}
    assert codes(replace(longer, "model.position_embedding", "learned")) == {"beyond_longest": "error"}


def test_degrees_and_devices() -> None:
    two = replace(SCENARIO, "device.count", 2)
    assert codes(two) == {"degrees_and_devices": "warning"}
    assert codes(replace(two, "parallelism.data", 2)) == {}
    assert codes(replace(two, "parallelism.data", 4)) == {"degrees_and_devices": "error"}
    split = replace(replace(two, "device.count", 3), "parallelism.tensor", 3)
    assert codes(split) == {"heads_not_split": "error"}


def test_unusual_is_a_note_and_hidden_fields_are_not_judged() -> None:
    assert codes(replace(SCENARIO, "training.micro_batch_size", 5000)) == {"unusual": "note"}
    other = replace(replace(SCENARIO, "training.micro_batch_size", 5000), "task", "inference")
    assert codes(other) == {}
