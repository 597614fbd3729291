"""Packed bases are played as they load: once for all formats of computing that read the model alike."""

from __future__ import annotations

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.loading import _frozen
from memgui.spec import replace

CATALOG = Catalog()


def test_formats_that_read_a_model_alike_share_what_is_loaded() -> None:
    made = replace(CATALOG.first_scenario(), "training.method", "lora")
    made = replace(made, "training.base_format", "nf4")
    estimate(made)
    before = _frozen.cache_info().misses
    for precision in ("bf16", "fp16", "bf16_mixed", "fp16_master"):
        estimate(replace(made, "training.precision", precision))
    assert _frozen.cache_info().misses == before
    estimate(replace(made, "training.precision", "fp32"))  # read in 32 bits
    assert _frozen.cache_info().misses == before + 1
