"""What layers that are computed again fetch from the computer's memory, beside their own input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memgui.estimator.block import Block
from memgui.estimator.events import group
from memgui.estimator.tape import Tensor

if TYPE_CHECKING:
    from memgui.estimator.stacks import Kind


def staying_here(
    frame: Block, kinds: Iterable[Kind], kept: list[Tensor], shared: list[Tensor]
) -> list[Tensor]:
    """What of the tensors that all layers share stays on the device where checkpoints keep theirs elsewhere.

    Each layer that runs again fetches copies of its own of what it was given.
    """
    kinds = tuple(kinds)
    running = [block for kind in kinds if not kind.recomputed for block in kind.blocks]
    here = {root for block in (frame, *running) for root in block.ambient}
    for kind in kinds:
        if kind.recomputed:
            own = {root for block in kind.blocks for root in (*block.ambient, *block.tape.handed_out)}
            given = [one for one in shared if one not in kind.shared.tensors]
            kind.fetched = group(given)
            kind.fetched_unsaved = group([one for one in given if one not in own])
    return [one for one in kept if one in here or one not in shared]
