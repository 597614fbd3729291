"""What a change is called: a name of its own, or the field and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping

from memgui.planning.changes import Change
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP
from memgui.spec.fields import BY_PATH

_OWN: Mapping[tuple[str, object], str] = {
    ("training.activation_checkpointing", "full"): QT_TRANSLATE_NOOP("ways", "Checkpoint activations"),
    ("training.activation_checkpointing", "selective"): QT_TRANSLATE_NOOP("ways", "Checkpoint attention"),
    ("training.checkpoint_every", 1): QT_TRANSLATE_NOOP("ways", "Checkpoint every layer"),
    ("training.checkpoint_layers", None): QT_TRANSLATE_NOOP("ways", "Checkpoint every layer"),
    ("training.offload_optimizer", 1.0): QT_TRANSLATE_NOOP("ways", "Optimizer states on the CPU"),
    ("training.attention", "sdpa"): QT_TRANSLATE_NOOP("ways", "SDPA instead of eager attention"),
    ("inference.attention", "sdpa"): QT_TRANSLATE_NOOP("ways", "SDPA instead of eager attention"),
    ("training.implementation", "fused"): QT_TRANSLATE_NOOP("ways", "Fused kernels"),
    ("training.keep_outputs", False): QT_TRANSLATE_NOOP("ways", "Let the outputs go before backward"),
    ("training.use_cache", False): QT_TRANSLATE_NOOP("ways", "No KV cache in training"),
    ("training.zero_grad_set_to_none", True): QT_TRANSLATE_NOOP("ways", "Gradients freed after each step"),
    ("training.padding_mask", False): QT_TRANSLATE_NOOP("ways", "Packed samples, no padding mask"),
    ("training.gradient_clipping", False): QT_TRANSLATE_NOOP("ways", "No gradient clipping"),
}


def title_of(change: Change) -> Said:
    """The title of ``change``."""
    own = _OWN.get((change.path, change.new))
    if own is not None:
        return Said(own, context="ways")
    field = BY_PATH[change.path]
    words: dict[str, str | tuple[str, str]] = {"field": ("fields", field.label)}
    if change.new is False:
        return Said(QT_TRANSLATE_NOOP("ways", "{field} off"), words=words, context="ways")
    if change.new is True:
        return Said(QT_TRANSLATE_NOOP("ways", "{field} on"), words=words, context="ways")
    if isinstance(change.new, int):
        counts = {"value": change.new}
        return Said(QT_TRANSLATE_NOOP("ways", "{field}: {value}"), counts=counts, words=words, context="ways")
    choice = field.choice(change.new)
    if choice is not None:
        words["value"] = ("fields", choice.label)
    else:
        words["value"] = ", ".join(map(str, change.new)) if isinstance(change.new, tuple) else str(change.new)
    return Said(QT_TRANSLATE_NOOP("ways", "{field}: {value}"), words=words, context="ways")
