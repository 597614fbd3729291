"""What is said beside the figures of a training run: what lies elsewhere, and what was taken for granted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memgui.estimator.layout import layout_of
from memgui.estimator.optimizers import OPTIMIZERS
from memgui.estimator.shards import sharing_of
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message

if TYPE_CHECKING:
    from memgui.estimator.training import TrainingRun

_WITH_PEFT = ("transformers", "transformers_2022", "fused", "unsloth")
"""Implementations whose adapters are PEFT's, which takes names as the model has them."""


def assumed(run: TrainingRun) -> tuple[Message, ...]:
    """Of the optimizer's states, of adapters that found no layer, and of what ranks share."""
    a = run.account
    said: list[Message] = []
    if a.host_bytes:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{bytes} bytes of optimizer states and master copies lie in the computer's memory.",
        )
        said.append(Message(text, {"bytes": a.host_bytes}))
    note = OPTIMIZERS[run.scenario.training.optimizer].note
    if note:
        said.append(Message(note))
    if a.paged_bytes:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{bytes} bytes of optimizer states lie in managed memory: they leave the device under "
            "pressure, and PyTorch's allocator does not count them.",
        )
        said.append(Message(text, {"bytes": a.paged_bytes}))
    if a.doubt_bytes:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "Implementations of this optimizer differ: where states are fp32 whatever the weights are, "
            "they take {bytes} bytes more.",
        )
        said.append(Message(text, {"bytes": a.doubt_bytes}))
    said += _left_out(run)
    said += sharing_of(run.program.options.base, layout_of(run.scenario))
    return tuple(said)


def _left_out(run: TrainingRun) -> Iterator[Message]:
    """That adapters are asked for on layers that the model does not have."""
    training = run.scenario.training
    if training.method != "lora" or training.implementation not in _WITH_PEFT:
        return
    from memgui.estimator.targets import unfound  # what few ask for waits until they do

    left_out = unfound(run.scenario, run.program)
    if left_out:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "The model has no layers called {targets}: adapters go on the others alone.",
        )
        yield Message(text, {"targets": ", ".join(left_out)})
