"""In which order backward reaches the blocks that use the same tensor or weight.

What several blocks use (a tied table, the encoder's states, a bias that all layers share) gets its
gradient in parts.  PyTorch sums them in one buffer, from the first contribution to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from memgui.estimator.block import Block
from memgui.estimator.events import Gradient, gradient_of
from memgui.estimator.lifetimes import ALONE, Role
from memgui.estimator.tape import PARAMETER, Tensor

Roles = tuple[Role, ...]
"""The role of each block of a layer; empty where all are alone."""


Place = tuple[tuple[Block, ...], int]
"""So many equal layers in a row (their blocks in order), or one block that is no layer."""

Concern = tuple[Tensor, Gradient, bool]
"""What several blocks use, the gradient that waits for all of them, whether one of the blocks made it."""

_NONE: Final[frozenset[Tensor]] = frozenset()


class Cast:
    """Gives every place, asked for in the order of backward, the roles of its blocks.

    ``outside`` are the blocks that are no layers': they, and layers that share weights, have the tied ones.
    """

    def __init__(self, places: Iterable[Place], outside: Iterable[Block]) -> None:
        self._places = tuple(places)
        blocks = dict.fromkeys([block for layer, _ in self._places for block in layer])
        shared = [tensor for block in blocks for tensor in block.tape.handed_out if tensor.grad]
        tying = [block for block in blocks if block.tape.pool is not None or block in outside]
        shared += [p for block in tying for p in block.tape.listed if p.tied and p.grad]
        self._waiting = {tensor: gradient_of(tensor) for tensor in shared}
        self.buffers = self._waiting.values()
        """the gradients that may wait for others"""
        self._concerns: dict[Block, tuple[frozenset[Tensor], list[Concern]]] = {}
        self._ending: dict[int, set[Tensor]] = {}
        """of a place, the weights that no further one uses"""
        for weight in [tensor for tensor in self._waiting if tensor.origin == PARAMETER]:
            self._ending.setdefault(self._last(weight), set()).add(weight)
        self._seen: set[Tensor] = set()
        self._settled: dict[tuple[Block, ...], Roles] = {}
        """the roles of layers that stay as they are, but at the end"""
        self._roles: dict[tuple[object, ...], Role] = {}

    def _of(self, block: Block) -> tuple[frozenset[Tensor], list[Concern]]:
        """What of all that is shared gets a gradient in a block's backward, and what concerns the block."""
        found = self._concerns.get(block)
        if found is None:
            own, touched = block.tape.handed_out, _touched(block, self._waiting)
            concerned = [
                (tensor, gradient, tensor in own)
                for tensor, gradient in self._waiting.items()
                if tensor in touched or tensor in own
            ]
            found = self._concerns[block] = touched, concerned
        return found

    def _last(self, weight: Tensor) -> int:
        """The last place at which a weight gets a gradient; -1 where there is none."""
        for index in range(len(self._places) - 1, -1, -1):
            if any(weight in self._of(block)[0] for block in self._places[index][0]):
                return index
        return -1

    def alone(self, blocks: Iterable[Block]) -> bool:
        """Whether none of the blocks uses anything another one uses."""
        return not self._waiting or not any(self._of(block)[1] for block in blocks)

    def roles(self, index: int) -> list[tuple[Roles, int]]:
        """The roles of place ``index``: one for each stretch of layers with the same roles."""
        blocks, count = self._places[index]
        if self.alone(blocks):
            return [((), count)]
        ending = self._ending.get(index, _NONE)
        if count == 1:
            return [(self._layer(blocks, ending), 1)]
        first = self._layer(blocks)
        further = self._layer(blocks)
        if not ending:
            return [(first, count)] if first == further else [(first, 1), (further, count - 1)]
        last = self._layer(blocks, ending)
        return [(first, 1), *([(further, count - 2)] if count > 2 else []), (last, 1)]

    def _layer(self, blocks: tuple[Block, ...], ending: Set[Tensor] = _NONE) -> Roles:
        known = None if ending else self._settled.get(blocks)
        if known is not None:
            return known
        before = len(self._seen)
        found = tuple([self._role(block, ending) for block in reversed(blocks)][::-1])
        if len(self._seen) == before and not ending:  # nothing is new to it: it has these roles each time
            self._settled[blocks] = found
        return found

    def _role(self, block: Block, ending: Set[Tensor]) -> Role:
        touched, concerned = self._of(block)
        if not concerned:
            return ALONE
        seen = self._seen
        waiting: dict[Tensor, Gradient] = {}
        starts: dict[Tensor, Gradient] = {}
        for tensor, gradient, own in concerned:
            if tensor in seen:
                waiting[tensor] = gradient
            elif not own:
                starts[tensor] = gradient
        ends = touched & ending
        seen |= touched
        alike = block, tuple(waiting), tuple(starts), ends
        role = self._roles.get(alike)
        if role is None:  # what layers with the same role leave is worked out once
            role = self._roles[alike] = Role(waiting, starts, ends)
        return role


def _touched(block: Block, shared: Mapping[Tensor, Gradient]) -> frozenset[Tensor]:
    """What of ``shared`` gets a gradient in the block's backward."""
    if not block.tape.handed_out:  # else what is read depends on the roles that are to be found
        reading = block.reading()
        if reading.whole:
            weights = [weight for weight in reading.reached if weight in shared]
            return frozenset([*(shared.keys() & reading.passed), *weights])
    return frozenset([tensor for op in block.apart().written for tensor, _ in op.back if tensor in shared])
