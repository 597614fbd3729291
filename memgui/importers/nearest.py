"""The nearest known structure for a ``model_type`` that nobody has described."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families import FAMILIES, Describe
from memgui.spec.messages import QT_TRANSLATE_NOOP


def nearest(config: Config) -> Describe:
    """A description that fits the keys the file states; the assumption is booked."""
    found = "gpt2" if config.states("n_embd") and config.states("n_head") else "llama"
    if config.model_type:
        config.assume(
            QT_TRANSLATE_NOOP(
                "messages",
                "The model_type {model_type} is not described here; its layers are taken to be written as "
                "{nearest}'s.",
            ),
            model_type=config.model_type,
            nearest=found,
        )
    else:
        config.assume(
            QT_TRANSLATE_NOOP(
                "messages",
                "The file names no model_type; its layers are taken to be written as {nearest}'s.",
            ),
            nearest=found,
        )
    return FAMILIES[found]
