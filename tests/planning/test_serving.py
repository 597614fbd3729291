"""The best weight format and the phases' peaks: bounded by the estimator on both sides."""

from __future__ import annotations

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import surely_fits
from memgui.planning.serving import best_weight_format, phase_peaks
from memgui.planning.ways.costs import bits_of
from memgui.planning.ways.rules import other_choices
from memgui.spec import replace
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
