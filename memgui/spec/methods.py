"""The published methods beside the detailed one, and the variants of each."""

from __future__ import annotations

from memgui.spec.scenario import Scenario

VARIANTS: dict[str, tuple[str, ...]] = {
    "gpt_article": ("derived", "printed", "long_sequence"),
    "llama_guide": ("exact", "as_printed"),
    "megatron_paper": (),
}
"""Variants of each article's method, the default first."""


def variant_of(scenario: Scenario) -> str:
    """The variant that ``scenario`` takes; empty where its method has none."""
    chosen = scenario.method_variant
    return next(iter(VARIANTS.get(scenario.method, ())), "") if chosen is None else chosen
