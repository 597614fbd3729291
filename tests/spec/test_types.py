from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest

from memgui.spec import ModelSpec, Scenario
from memgui.spec.types import allowed_type, wrong_place


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (bool, "Allowed: true or false."),
        (int, "Allowed: a whole number."),
        (float | None, "Allowed: a number, or null."),
        (str, "Allowed: a text."),
        (Annotated[str, msgspec.Meta(max_length=4096)], "Allowed: a text of at most 4,096 characters."),
        (tuple[str, ...], "Allowed: a list of texts."),
        (tuple[str, ...] | None, "Allowed: a list of texts, or null."),
        (Annotated[tuple[str, ...], msgspec.Meta(max_length=50)], "Allowed: a list of texts."),
        (tuple[int, ...], "Allowed: a list."),
        (Mapping[str, Any], "Allowed: an object."),
        (ModelSpec, "Allowed: an object."),
        (Literal["GiB", "GB"], "Allowed: GiB, GB."),
    ],
)
def test_what_a_type_holds_is_said_in_plain_words(kind: Any, said: str) -> None:
    assert allowed_type(kind).text == said


def test_the_place_of_a_wrong_value_is_read_from_msgspec() -> None:
    with pytest.raises(msgspec.ValidationError) as told:
        msgspec.convert({"model": {"hidden_size": "wide"}}, Scenario)
    assert wrong_place(told.value) == "model.hidden_size"
    with pytest.raises(msgspec.ValidationError) as told:
        msgspec.convert([1, "2"], list[int])
    assert wrong_place(told.value) == "[1]"
    with pytest.raises(msgspec.ValidationError) as told:
        msgspec.convert("2", int)
    assert wrong_place(told.value) == ""
