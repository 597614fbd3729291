"""What a timeline's moments are called, and how what is alive becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

import msgspec

from memgui.estimator.measure import Contents
from memgui.estimator.result import COMPONENTS, Moment
from memgui.estimator.stock import Stock
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message

FIRST = {
    "start": QT_TRANSLATE_NOOP("messages", "First step: start"),
    "forward.embedding": QT_TRANSLATE_NOOP("messages", "First step: forward, embedding"),
    "forward.encoder.layer": QT_TRANSLATE_NOOP("messages", "First step: forward, encoder layer {layer}"),
    "forward.between": QT_TRANSLATE_NOOP("messages", "First step: forward, between the stacks"),
    "forward.layer": QT_TRANSLATE_NOOP("messages", "First step: forward, layer {layer}"),
    "forward.loss": QT_TRANSLATE_NOOP("messages", "First step: forward, head and loss"),
    "after_forward": QT_TRANSLATE_NOOP("messages", "First step: forward done"),
    "backward.loss": QT_TRANSLATE_NOOP("messages", "First step: backward, loss and head"),
    "backward.layer": QT_TRANSLATE_NOOP("messages", "First step: backward, layer {layer}"),
    "backward.between": QT_TRANSLATE_NOOP("messages", "First step: backward, between the stacks"),
    "backward.encoder.layer": QT_TRANSLATE_NOOP("messages", "First step: backward, encoder layer {layer}"),
    "backward.embedding": QT_TRANSLATE_NOOP("messages", "First step: backward, embedding"),
    "after_backward": QT_TRANSLATE_NOOP("messages", "First step: backward done"),
    "clip": QT_TRANSLATE_NOOP("messages", "First step: gradient clipping"),
    "optimizer": QT_TRANSLATE_NOOP("messages", "First step: optimizer"),
    "after_step": QT_TRANSLATE_NOOP("messages", "First step: optimizer done"),
    "after_zero_grad": QT_TRANSLATE_NOOP("messages", "First step: gradients freed"),
    "save": QT_TRANSLATE_NOOP("messages", "First step: the model is saved"),
}
STEADY = {
    "start": QT_TRANSLATE_NOOP("messages", "Every further step: start"),
    "forward.embedding": QT_TRANSLATE_NOOP("messages", "Forward, embedding"),
    "forward.encoder.layer": QT_TRANSLATE_NOOP("messages", "Forward, encoder layer {layer}"),
    "forward.between": QT_TRANSLATE_NOOP("messages", "Forward, between the stacks"),
    "forward.layer": QT_TRANSLATE_NOOP("messages", "Forward, layer {layer}"),
    "forward.loss": QT_TRANSLATE_NOOP("messages", "Forward, head and loss"),
    "after_forward": QT_TRANSLATE_NOOP("messages", "Forward done"),
    "backward.loss": QT_TRANSLATE_NOOP("messages", "Backward, loss and head"),
    "backward.layer": QT_TRANSLATE_NOOP("messages", "Backward, layer {layer}"),
    "backward.between": QT_TRANSLATE_NOOP("messages", "Backward, between the stacks"),
    "backward.encoder.layer": QT_TRANSLATE_NOOP("messages", "Backward, encoder layer {layer}"),
    "backward.embedding": QT_TRANSLATE_NOOP("messages", "Backward, embedding"),
    "after_backward": QT_TRANSLATE_NOOP("messages", "Backward done"),
    "clip": QT_TRANSLATE_NOOP("messages", "Gradient clipping"),
    "optimizer": QT_TRANSLATE_NOOP("messages", "Optimizer step"),
    "after_step": QT_TRANSLATE_NOOP("messages", "Optimizer done"),
    "after_zero_grad": QT_TRANSLATE_NOOP("messages", "Gradients freed"),
    "save": QT_TRANSLATE_NOOP("messages", "The model is saved"),
}
FURTHER = {
    "forward.embedding": QT_TRANSLATE_NOOP("messages", "Further micro batch: forward, embedding"),
    "forward.encoder.layer": QT_TRANSLATE_NOOP(
        "messages", "Further micro batch: forward, encoder layer {layer}"
    ),
    "forward.between": QT_TRANSLATE_NOOP("messages", "Further micro batch: forward, between the stacks"),
    "forward.layer": QT_TRANSLATE_NOOP("messages", "Further micro batch: forward, layer {layer}"),
    "forward.loss": QT_TRANSLATE_NOOP("messages", "Further micro batch: forward, head and loss"),
    "after_forward": QT_TRANSLATE_NOOP("messages", "Further micro batch: forward done"),
    "backward.loss": QT_TRANSLATE_NOOP("messages", "Further micro batch: backward, loss and head"),
    "backward.layer": QT_TRANSLATE_NOOP("messages", "Further micro batch: backward, layer {layer}"),
    "backward.between": QT_TRANSLATE_NOOP("messages", "Further micro batch: backward, between the stacks"),
    "backward.encoder.layer": QT_TRANSLATE_NOOP(
        "messages", "Further micro batch: backward, encoder layer {layer}"
    ),
    "backward.embedding": QT_TRANSLATE_NOOP("messages", "Further micro batch: backward, embedding"),
    "after_backward": QT_TRANSLATE_NOOP("messages", "Further micro batch: backward done"),
}
SERVING = {
    "prefill.embedding": QT_TRANSLATE_NOOP("messages", "Prompt, embedding"),
    "prefill.encoder.layer": QT_TRANSLATE_NOOP("messages", "Prompt, encoder layer {layer}"),
    "prefill.between": QT_TRANSLATE_NOOP("messages", "Prompt, between the stacks"),
    "prefill.layer": QT_TRANSLATE_NOOP("messages", "Prompt, layer {layer}"),
    "prefill.head": QT_TRANSLATE_NOOP("messages", "Prompt, head"),
    "after_prefill": QT_TRANSLATE_NOOP("messages", "Prompt done"),
    "first_token.embedding": QT_TRANSLATE_NOOP("messages", "First token, embedding"),
    "first_token.layer": QT_TRANSLATE_NOOP("messages", "First token, layer {layer}"),
    "first_token.head": QT_TRANSLATE_NOOP("messages", "First token, head"),
    "after_first_token": QT_TRANSLATE_NOOP("messages", "First token done"),
    "decode.embedding": QT_TRANSLATE_NOOP("messages", "Last token, embedding"),
    "decode.layer": QT_TRANSLATE_NOOP("messages", "Last token, layer {layer}"),
    "decode.head": QT_TRANSLATE_NOOP("messages", "Last token, head"),
    "after_decode": QT_TRANSLATE_NOOP("messages", "All tokens generated"),
}
LOAD = QT_TRANSLATE_NOOP("messages", "Model loaded")

PHASES = {
    "start": "start",
    "forward.loss": "loss",
    "backward.loss": "loss",
    "clip": "optimizer",
    "optimizer": "optimizer",
    "after_step": "optimizer",
    "after_zero_grad": "optimizer",
    "save": "optimizer",
}
"""Phase of a stage where it is not the first word of its name."""


class Amount(msgspec.Struct, frozen=True):
    """Bytes alive by component, without overhead, and what the allocator's blocks add to them."""

    components: Mapping[str, int]
    excess: int

    @property
    def bytes(self) -> int:
        """All components together."""
        return sum(self.components.values())

    def plus(self, other: Amount, times: int = 1) -> Amount:
        """Both together, the other ``times`` times."""
        total = dict(self.components)
        for key, size in other.components.items():
            total[key] = total.get(key, 0) + size * times
        return Amount(total, self.excess + other.excess * times)


def amount_of(stock: Stock, contents: Contents) -> Amount:
    """The bytes of what is in ``stock``, by component."""
    return Amount(*contents.sums(stock))


class Beside(msgspec.Struct, frozen=True):
    """Bytes beside the tensors: all of them as usual, and those that the allocator counts as allocated."""

    usual: int
    allocated: int


Overhead = Callable[[Amount], Beside]
"""What is beside the tensors (rounding, workspaces, fragmentation, context) at an amount."""


def moment(
    key: str,
    stage: str,
    template: str,
    amount: Amount,
    overhead: Overhead,
    layer: int = -1,
    operator: str = "",
) -> Moment:
    """The moment at which ``amount`` is alive."""
    components = {name: amount.components.get(name, 0) for name in COMPONENTS}
    beside = overhead(amount)
    components["overhead"] = beside.usual
    total = sum(components.values())
    return Moment(
        key=key,
        label=Message(template, {"layer": layer} if layer >= 0 else {}),
        phase=PHASES.get(stage, stage.partition(".")[0].removeprefix("after_")),
        bytes=total,
        components=components,
        operator=operator,
        allocated=total - beside.usual + beside.allocated,
    )


class Timeline(Sequence[Moment]):
    """Moments in order, made on first look."""

    def __init__(self, make: Callable[[], Iterator[Moment]]) -> None:
        self._make = make
        self._made: tuple[Moment, ...] | None = None

    def _moments(self) -> tuple[Moment, ...]:
        if self._made is None:
            self._made = tuple(self._make())
        return self._made

    @overload
    def __getitem__(self, index: int) -> Moment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Moment, ...]: ...
    def __getitem__(self, index: int | slice) -> Moment | tuple[Moment, ...]:
        return self._moments()[index]

    def __iter__(self) -> Iterator[Moment]:
        return iter(self._moments())  # Sequence's own asks for one after the other by its index

    def __len__(self) -> int:
        return len(self._moments())
