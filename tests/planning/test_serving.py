"""The best weight format and the phases' peaks: bounded by the estimator on both sides."""

from __future__ import annotations

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import fits, surely_fits
from memgui.planning.served import found as in_words
from memgui.planning.served import length, phase_peaks, told
from memgui.planning.serving import best_weight_format, limits
from memgui.planning.ways.rounding import bits_of
from memgui.planning.ways.rules import other_choices
from memgui.planning.words import English
from memgui.spec import Scenario, replace
from memgui.spec.fields import BY_PATH

FIRST = Catalog().first_scenario()
SERVING = replace(FIRST, "task", "inference")
SMALL = replace(SERVING, "device.memory_bytes", 10 * 2**30)


def test_the_best_format_fits_and_every_wider_one_does_not() -> None:
    best = best_weight_format(SMALL)
    assert best is not None
    assert surely_fits(estimate(replace(SMALL, best.change.path, best.change.new)))
    for other in other_choices(SMALL, BY_PATH["inference.weight_format"]):
        bits = bits_of(other.new)
        if bits is not None and bits > best.bits:
            assert not surely_fits(estimate(replace(SMALL, other.path, other.new)))


def test_where_the_present_format_fits_and_none_is_wider_it_stays() -> None:
    wide = best_weight_format(replace(SERVING, "inference.weight_format", "fp32"))
    assert wide is not None
    assert wide.change.new == "fp32"
    assert best_weight_format(FIRST) is None
    assert best_weight_format(replace(SERVING, "device.memory_bytes", 2**28)) is None


def test_phases_have_their_own_peaks() -> None:
    found = estimate(SERVING)
    peaks = phase_peaks(found)
    assert {"load", "prefill", "decode"} <= set(peaks)
    assert max(peaks.values()) == found.peak_bytes


def said(scenario: Scenario) -> list[str]:
    far = limits(scenario)
    assert far is not None
    made = estimate(scenario)
    return [one.text(English()) for one in (*told(made), *in_words(made, far))]


@pytest.mark.parametrize("engine", ["transformers", "vllm", "sglang", "llama.cpp", "ollama", "gpt-fast"])
def test_a_set_up_that_serves_says_how_far_it_goes(engine: str) -> None:
    small = replace(replace(SERVING, "inference.engine", engine), "device.memory_bytes", 24 * 2**30)
    small = replace(replace(small, "inference.batch_size", 2), "inference.prompt_tokens", 2000)
    far = limits(small)
    assert far is not None
    assert far.context is not None
    assert far.sequences is not None
    assert far.format is not None
    prompt = far.context - small.inference.generated_tokens
    assert fits(estimate(replace(small, "inference.prompt_tokens", prompt)))
    if far.context < small.model.max_position_embeddings:
        assert not fits(estimate(replace(small, "inference.prompt_tokens", prompt + 512)))
    assert fits(estimate(replace(small, "inference.batch_size", far.sequences)))
    assert not fits(estimate(replace(small, "inference.batch_size", far.sequences + 1)))
    texts = said(small)
    assert any("stay free" in text for text in texts)
    assert any(f"{far.context:,} tokens for each of 2 sequences" in text for text in texts)
    assert any(f"{far.sequences:,} sequences of {length(small):,} tokens" in text for text in texts)
    assert any(text.startswith("Best weights") for text in texts)
    if engine in ("vllm", "sglang", "llama.cpp", "ollama"):
        assert any("fit in all" in text for text in texts)
    if engine in ("transformers", "gpt-fast", "vllm"):
        assert any("at its peak" in text for text in texts)


def test_training_and_what_cannot_be_computed_say_nothing() -> None:
    assert limits(FIRST) is None
    assert told(estimate(FIRST)) == ()
    unknown = replace(replace(SERVING, "device.count", 64), "parallelism.context", 64)
    assert told(estimate(unknown)) == ()
