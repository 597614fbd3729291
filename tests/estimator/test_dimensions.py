"""Letters of formulas and what they are worth."""

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator.dimensions import model_values, own_values
from memgui.spec.model import ModelSpec
from memgui.spec.variants import FLAGS, SIZES

MODELS = [Catalog().model(name).model for name in ("gemma-4-E2B-it", "DeepSeek-V3", "Kimi-K3")]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_what_layers_may_have_of_their_own_decides_no_other_letter(model: ModelSpec) -> None:
    usual = model_values(model, 16, 8)
    for name in (*SIZES, *FLAGS):
        field = getattr(model, name)
        other = msgspec.structs.replace(model, **{name: not field if name in FLAGS else (field or 0) + 2})
        assert model_values(other, 16, 8) == {**usual, **own_values(other)}, name
    assert own_values(model).items() <= usual.items()
