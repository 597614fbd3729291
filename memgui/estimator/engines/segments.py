"""PyTorch's caching allocator, block by block: what it has reserved after allocations in a given order.

Requests are rounded to 512 bytes.  Up to 1 MiB they share segments of 2 MiB, up to 10 MiB segments of
20 MiB, above that each gets a segment of whole 2 MiB.  A free block is used again for what fits into it,
the smallest first; what is left of it is split off (of large ones only more than 1 MiB).  Neighbours
that are free become one; nothing is given back to the driver.  (c10/cuda/CUDACachingAllocator.cpp)
"""

from __future__ import annotations

from collections.abc import Hashable

from memgui.estimator.overhead import BLOCK, LARGE_SEGMENT, OWN_SEGMENT, SEGMENT_STEP, SMALL, UNSPLIT


class _Block:
    """A piece of a segment; ``before`` and ``after`` are its neighbours in it."""

    __slots__ = ("after", "before", "free", "size", "small")

    def __init__(self, size: int, small: bool) -> None:
        self.size = size
        self.small = small
        self.free = True
        self.before: _Block | None = None
        self.after: _Block | None = None


class Segments:
    """Segments that are reserved, and the blocks in them."""

    def __init__(self) -> None:
        self.reserved = 0
        self._free: list[_Block] = []
        self._used: dict[Hashable, _Block] = {}

    def allocate(self, key: Hashable, size: int) -> None:
        """A block of ``size`` bytes, known as ``key``."""
        rounded = max(BLOCK, -(-size // BLOCK) * BLOCK)
        small = rounded <= SMALL
        fitting = [block for block in self._free if block.small == small and block.size >= rounded]
        block = min(fitting, key=lambda one: one.size) if fitting else self._reserve(rounded, small)
        self._free.remove(block)
        rest = block.size - rounded
        if rest >= BLOCK if small else rest > UNSPLIT:
            self._split(block, rounded)
        block.free = False
        self._used[key] = block

    def _reserve(self, rounded: int, small: bool) -> _Block:
        size = SEGMENT_STEP
        if rounded >= OWN_SEGMENT:
            size = -(-rounded // SEGMENT_STEP) * SEGMENT_STEP
        elif not small:
            size = LARGE_SEGMENT
        self.reserved += size
        block = _Block(size, small)
        self._free.append(block)
        return block

    def _split(self, block: _Block, size: int) -> None:
        rest = _Block(block.size - size, block.small)
        block.size = size
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after = rest
        self._free.append(rest)

    def free(self, key: Hashable) -> None:
        """Give the block known as ``key`` back to the allocator."""
        block = self._used.pop(key)
        block.free = True
        if block.after is not None and block.after.free:
            self._join(block, block.after)
        if block.before is not None and block.before.free:
            self._join(block.before, block)
        else:
            self._free.append(block)

    def _join(self, first: _Block, second: _Block) -> None:
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        if second in self._free:
            self._free.remove(second)
