"""Models whose layers make masks of their own: what they cannot run, or is not known, is refused."""

import pytest

from memgui.estimator import ledger
from memgui.estimator.estimate import estimate
from memgui.estimator.refusals import NotCovered
from memgui.spec import Inference, Scenario, Training, replace
from tests.estimator.families import model, read

ROWS = read("kin")


@pytest.mark.parametrize("name", ["doge", "qwen4_exp_text"])
def test_no_kernel_without_masks(name: str) -> None:
    with pytest.raises(NotCovered):
        ledger(Scenario(model=model(ROWS, name), training=Training(attention="flash_attention_2")))


def test_what_is_generated_beyond_a_window_is_not_known() -> None:
    doge = model(ROWS, "doge", keep_window_size=64)
    passing = Inference(prompt_tokens=60, generated_tokens=8)
    found = estimate(Scenario(model=doge, task="inference", inference=passing))
    assert "keep_window_size" in found.verdict.reason.text
    beyond = Inference(prompt_tokens=65, generated_tokens=8)
    assert estimate(Scenario(model=doge, task="inference", inference=beyond)).peak_bytes


def test_no_rank_has_a_share_of_sinks_in_fp32() -> None:
    split = Scenario(model=model(ROWS, "flint"), training=Training(sequence_length=64))
    for path, value in (("device.count", 2), ("parallelism.tensor", 2)):
        split = replace(split, path, value)
    assert "score_scaling" in estimate(split).verdict.reason.text
