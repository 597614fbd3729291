"""Models whose layers make masks of their own: what they cannot run, or is not known, is refused."""

import pytest

from memgui.estimator import ledger
from memgui.estimator.coverage import NotCovered
from memgui.estimator.estimate import estimate
from memgui.spec import Inference, Scenario, Training
from tests.estimator.families import model, read

ROWS = read("kin")


@pytest.mark.parametrize("name", ["doge", "qwen4_exp_text"])
def test_no_kernel_without_masks(name: str) -> None:
    with pytest.raises(NotCovered):
        ledger(Scenario(model=model(ROWS, name), training=Training(attention="flash_attention_2")))


@pytest.mark.parametrize("task", ["training", "inference"])
def test_what_is_hidden_beyond_a_window_is_not_known(task: str) -> None:
    doge = model(ROWS, "doge", keep_window_size=64)
    long = Scenario(model=doge, task=task, training=Training(sequence_length=65), inference=Inference())
    assert "keep_window_size" in estimate(long).verdict.reason.text
    short = Scenario(model=doge, training=Training(sequence_length=64))
    assert estimate(short).peak_bytes
