"""What an optimizer's rule is made of: what it keeps of each weight, and what its step holds for a moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import prod

import msgspec

from memgui.estimator.tape import Parameter

FP32 = 4


class Weight(msgspec.Struct, frozen=True, gc=False):
    """A trained weight as an optimizer meets it: its shape (of the shard, where it is sharded), its numbers.

    ``width`` is bytes per number of what is updated: 4 where a master copy is, else the weight's own.
    ``gradient`` is bytes per number of the gradient.  ``whole``: the shape is that of the model's weight.
    """

    of: Parameter
    shape: tuple[int, ...]
    width: int
    gradient: int
    whole: bool = True

    @property
    def elements(self) -> int:
        """Numbers in the weight."""
        return prod(self.shape)

    @property
    def matrix(self) -> bool:
        """Whether it has rows and columns (a stack of matrices has too)."""
        return len(self.shape) > 1

    @property
    def hidden(self) -> bool:
        """Whether it is a matrix inside the layers: no embedding (of virtual tokens either), no head."""
        return self.matrix and self.of.part not in ENDS and self.of.role != "embedding"

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of the last two dimensions."""
        return self.shape[-2], self.shape[-1]


ENDS = frozenset(
    ("embedding", "position_embedding", "token_type_embedding", "embedding_projection", "stem", "lm_head")
)
"""Parts outside the layers, which optimizers of matrices leave to another."""


class Kept(msgspec.Struct, frozen=True, gc=False):
    """A tensor beside a weight: ``width`` bytes for each number of ``shape`` (the weight's where None)."""

    name: str
    width: int
    shape: tuple[int, ...] | None = None

    def bytes(self, weight: Weight) -> int:
        """Its bytes beside ``weight``."""
        return self.width * (weight.elements if self.shape is None else prod(self.shape))


class Settings(msgspec.Struct, frozen=True):
    """What a person chose about the optimizer.

    ``implementation`` is PyTorch's: fused, foreach or forloop.  ``rank`` is that of projections.
    ``state_width``: bytes per number of states that are plain numbers, 0 for the optimizer's own.
    ``wide_embedding``: 8-bit optimizers keep 32-bit states of embeddings, as Trainer asks them to.
    """

    name: str
    implementation: str = "fused"
    rank: int = 128
    state_width: int = 0
    wide_embedding: bool = True


class Step(msgspec.Struct, frozen=True):
    """What a step holds at its peak beside weights, gradients and states, and the operator there."""

    held: tuple[tuple[Weight, Kept, int], ...] = ()
    operator: str = ""

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(kept.bytes(weight) * count for weight, kept, count in self.held)


Trained = Sequence[tuple[Weight, int]]
"""Trained weights in the model's order, each with how often it occurs."""

States = Callable[[Weight, Settings], tuple[Kept, ...]]
Steps = Callable[[Trained, Settings], Step]
Working = Callable[[Weight, Settings], tuple[Kept, ...]]


class Optimizer(msgspec.Struct, frozen=True):
    """One optimizer.

    ``states``: what it keeps of a weight from its first step on.  ``step``: what a step holds for a
    moment.  ``tables``: bytes of what all weights share.  ``plain``: its states are plain numbers,
    whose format a person may choose.  ``kernels``: it comes in PyTorch's three implementations.
    ``paged``: states of larger weights lie in managed memory, which leaves the device under
    pressure and which PyTorch's allocator does not count.  ``consumes``: it updates each weight
    as soon as its gradient is there.  ``elementwise``: a shard of a weight is updated like a weight.
    ``uniform``: all weights of a format have the same states, whatever their shapes.
    ``by_layer``: it trains one layer for some steps, then another, all else frozen, and keeps fp32 copies.
    ``note`` is said as an assumption; ``wide_elsewhere``: other implementations keep the states in fp32.
    """

    states: States
    step: Steps
    source: str
    tables: int = 0
    plain: bool = False
    kernels: bool = False
    paged: bool = False
    consumes: bool = False
    elementwise: bool = True
    uniform: bool = False
    by_layer: bool = False
    note: str = ""
    wide_elsewhere: bool = False


def nothing(trained: Trained, settings: Settings) -> Step:
    """A step without temporaries."""
    return Step()


def plain(*names: str, width: int = 0) -> States:
    """States of the weight's shape, in the updated numbers' format, or in ``width`` bytes."""

    def states(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
        size = settings.state_width or width or weight.width
        return tuple([Kept(name, size) for name in names])

    return states


def lists(copies: int, operator: str) -> Steps:
    """A step over lists: ``copies`` new tensors for each weight, all at once."""

    def step(trained: Trained, settings: Settings) -> Step:
        held = [
            (weight, Kept("list of temporaries", weight.width), count * copies) for weight, count in trained
        ]
        return Step(tuple(held), operator)

    return step


def one_by_one(work: Working, operator: str, rest: Working | None = None) -> Steps:
    """A step that goes from weight to weight.

    ``work`` is what it holds at a weight, ``rest`` what its variables still refer to of the one before.
    """

    def step(trained: Trained, settings: Settings) -> Step:
        best, most = Step(), 0
        before: Weight | None = None
        for weight, _ in trained:
            held = [(weight, kept, 1) for kept in work(weight, settings)]
            if before is not None and rest is not None:
                held += [(before, kept, 1) for kept in rest(before, settings)]
            found = Step(tuple(held), operator)
            if found.bytes > most:
                best, most = found, found.bytes
            before = weight
        return best

    return step


def largest(*steps: Step) -> Step:
    """The step that holds most, of those that follow each other."""
    return max(steps, key=lambda step: step.bytes)


def working(**widths: int) -> Working:
    """Tensors of the weight's shape: name and bytes per number, 0 for the updated numbers' own."""

    def held(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
        return tuple([Kept(name.replace("_", " "), width or weight.width) for name, width in widths.items()])

    return held


def joined(*parts: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """One tuple of all."""
    return tuple(chain(*parts))
