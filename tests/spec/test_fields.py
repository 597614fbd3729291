"""The table of fields and the types agree, and every row can stand in a form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from memgui.spec import ModelSpec, Scenario, get, replace
from memgui.spec.fields import BY_PATH, FIELDS, SECTIONS, Field, Kind
from memgui.spec.values import check

MODEL = ModelSpec(
    vocab_size=32000,
    hidden_size=512,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=64,
    intermediate_size=1024,
)
SCENARIO = Scenario(model=MODEL)

_TYPES: dict[Kind, type] = {
    Kind.COUNT: int,
    Kind.TOKENS: int,
    Kind.BYTES: int,
    Kind.RATIO: float,
    Kind.CHOICE: str,
    Kind.CHOICES: tuple,
    Kind.FLAG: bool,
    Kind.TEXT: str,
}


def leaves(value: msgspec.Struct, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in value.__struct_fields__:
        inner = getattr(value, name)
        if isinstance(inner, msgspec.Struct):
            yield from leaves(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", inner


def test_every_field_of_the_types_has_a_row_and_every_row_a_field() -> None:
    assert {path for path, _ in leaves(SCENARIO)} == set(BY_PATH)
    assert len(BY_PATH) == len(FIELDS), "a path stands twice in the table"


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_row_is_complete(field: Field) -> None:
    assert field.label
    assert field.help.endswith("."), "help is a sentence"
    assert field.section in SECTIONS
    value = get(SCENARIO, field.path)
    if value is None:
        assert field.optional
        assert field.empty_label
    else:
        assert type(value) is _TYPES[field.kind]
        assert check(field, value) is None, "the default is not allowed"
    if field.kind in (Kind.CHOICE, Kind.CHOICES):
        assert field.choices
        assert len({choice.value for choice in field.choices}) == len(field.choices)
        assert all(choice.label for choice in field.choices)
    if field.kind in (Kind.COUNT, Kind.TOKENS, Kind.BYTES, Kind.RATIO):
        assert field.minimum is not None


def test_replace_is_strict_and_leaves_the_rest_alone() -> None:
    changed = replace(SCENARIO, "training.lora.rank", 64)
    assert get(changed, "training.lora.rank") == 64
    assert replace(changed, "training.lora.rank", 16) == SCENARIO
    assert changed.model is SCENARIO.model
    with pytest.raises(KeyError):
        replace(SCENARIO, "training.no_such_field", 1)
    with pytest.raises(KeyError):
        get(SCENARIO, "model.hidden_size.more")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("training.micro_batch_size", "3"),
        ("training.micro_batch_size", 3.5),
        ("training.micro_batch_size", True),
        ("training.micro_batch_size", None),
        ("training.padding_mask", 1),
        ("training.precision", 16),
        ("model.layer_types", "full_attention"),
    ],
)
def test_replace_refuses_another_type(path: str, value: object) -> None:
    with pytest.raises(ValueError, match=path):
        replace(SCENARIO, path, value)


@pytest.mark.parametrize(
    ("path", "implementation", "applies"),
    [
        ("training.compile", "transformers", False),
        ("training.compile", "torchtitan", True),
        ("training.fp8_scaling", "megatron", True),
        ("training.fp8_scaling", "torchtitan", False),
        ("training.torch_version", "transformers", True),
        ("training.torch_version", "litgpt", False),
    ],
)
def test_what_a_code_has_no_choice_of_does_not_apply(path: str, implementation: str, applies: bool) -> None:
    scenario = replace(SCENARIO, "training.implementation", implementation)
    if path == "training.fp8_scaling":
        scenario = replace(scenario, "training.precision", "fp8")
    field = BY_PATH[path]
    assert field.applies(scenario) is applies
    assert field.why_not


def test_compiled_layers_that_nobody_can_estimate_can_be_taken_back() -> None:
    assert BY_PATH["training.compile"].applies(replace(SCENARIO, "training.compile", True))
