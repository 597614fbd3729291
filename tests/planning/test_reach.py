"""How far a set-up goes, and the best weight format: each bounded by the estimator on both sides."""

from __future__ import annotations

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import Asker, surely_fits
from memgui.planning.reach import best_weight_format, phase_peaks, reach
from memgui.planning.solve import solve
from memgui.planning.ways.costs import bits_of
from memgui.planning.ways.rules import other_choices
from memgui.spec import replace
from memgui.spec.fields import BY_PATH

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
SERVING = replace(FIRST, "task", "inference")
SMALL = replace(SERVING, "device.memory_bytes", 10 * 2**30)


def test_each_direction_is_solved_alone() -> None:
    devices = [entry.device() for entry in CATALOG.devices]
    far = reach(SERVING, devices)
    assert far.length.largest == solve(SERVING, "inference.prompt_tokens").largest
    assert far.batch.largest == solve(SERVING, "inference.batch_size").largest
    assert far.device is not None
    assert far.device.answer.fits
    assert all(
        one.memory_bytes >= far.device.device.memory_bytes
        or not Asker()(replace(SERVING, "device", one)).fits
        for one in devices
    )
    assert reach(FIRST).length.path == "training.sequence_length"
    assert reach(FIRST).device is None


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
