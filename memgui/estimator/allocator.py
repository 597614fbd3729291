"""PyTorch's caching allocator for CUDA, as far as sizes decide: segments, blocks, splitting, joining.

It takes segments from the driver and cuts blocks from them.  Requests of at most 1 MiB share segments
of 2 MiB, those under 10 MiB segments of 20 MiB, larger ones get a segment of their own in whole 2 MiB
steps.  A request takes the smallest free block that is large enough; of what is left over, 512 bytes
(1 MiB among large blocks) stay with it.  Freed neighbours join.  Segments are kept.

Expandable segments are one for each pool and grow at their end, by the same steps; what is left of a
block is always split off, and the end is taken only where nothing before it is large enough.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from memgui.estimator.overhead import BLOCK, LARGE_SEGMENT, OWN_SEGMENT, SEGMENT_STEP, SMALL, UNSPLIT

FIRST: Final = 1 << 160
"""Addresses from one segment to the next: more than any segment has, of whatever a person may ask for."""


class Block:
    """A stretch of a segment: ``before`` and ``after`` are its neighbours there."""

    __slots__ = ("address", "after", "before", "free", "size", "small")

    def __init__(self, size: int, address: int, *, small: bool) -> None:
        self.size = size
        self.address = address
        self.small = small
        self.free = False
        self.before: Block | None = None
        self.after: Block | None = None


Pool = list[tuple[int, int, Block]]


class Allocator:
    """Bytes ``allocated`` (blocks in use), ``reserved`` (segments), and the ``peak`` of the former."""

    __slots__ = (
        "_ends",
        "_expandable",
        "_large",
        "_segments",
        "_small",
        "allocated",
        "peak",
        "reserved",
    )

    def __init__(self, *, expandable: bool = False) -> None:
        self._expandable = expandable
        self._ends: dict[bool, Block] = {}
        self.allocated = self.reserved = self.peak = 0
        self._segments = 0
        self._small: Pool = []
        self._large: Pool = []

    def copy(self) -> Allocator:
        """One that goes on from here, where segments do not expand; blocks in use stay in use in it."""
        other = Allocator()
        other.allocated, other.reserved, other.peak = self.allocated, self.reserved, self.peak
        other._segments = self._segments
        other._small, other._large = (
            [_again(entry) for entry in pool] for pool in (self._small, self._large)
        )
        return other

    def take(self, size: int) -> Block:
        """A block for a request of ``size`` bytes."""
        size = rounded(size)
        small = size <= SMALL
        pool = self._small if small else self._large
        at = bisect_left(pool, (size,))
        if self._expandable:
            block = self._within(pool, at) or self._grown(pool, size, small=small)
        else:
            block = pool.pop(at)[2] if at < len(pool) else self._segment(size, small=small)
        rest = block.size - size
        if rest > UNSPLIT or (rest and (small or self._expandable)):
            piece = Block(rest, block.address + size, small=small)
            piece.before, piece.after = block, block.after
            if piece.after is not None:
                piece.after.before = piece
            block.after, block.size = piece, size
            self._put(pool, piece)
            if self._ends.get(small) is block:
                self._ends[small] = piece
        block.free = False
        self.allocated += block.size
        if self.allocated > self.peak:
            self.peak = self.allocated
        return block

    def give(self, block: Block) -> None:
        """``block`` is not needed any more."""
        self.allocated -= block.size
        pool = self._small if block.small else self._large
        before, after = block.before, block.after
        if before is not None and before.free:
            self._out(pool, before)
            block.address, block.before = before.address, before.before
            block.size += before.size
            if block.before is not None:
                block.before.after = block
        if after is not None and after.free:
            self._out(pool, after)
            block.after = after.after
            block.size += after.size
            if block.after is not None:
                block.after.before = block
            if self._ends.get(block.small) is after:
                self._ends[block.small] = block
        self._put(pool, block)

    def pack(self, size: int, parts: tuple[int, ...]) -> None:
        """A block for a request of ``size`` bytes, which is given back once there are those for its parts."""
        block = self.take(size)
        self.take_all(parts)
        self.give(block)

    def take_all(self, sizes: tuple[int, ...]) -> None:
        """Blocks for requests of so many bytes, one after the other."""
        for size in sizes:
            self.take(size)

    def repeat(self, play: Callable[[], None], times: int, loose: Collection[Block] = ()) -> None:
        """``play``, which gives back nothing but what it took, so many times.

        Of blocks in use the ``loose`` ones may be given back later, and no others.
        """
        for _ in range(times):
            play()

    def empty(self) -> None:
        """What no block in use holds back goes to the driver again (``torch.cuda.empty_cache()``)."""
        for small, end in list(self._ends.items()):
            if end.free:
                self._out(self._small if small else self._large, end)
                self.reserved -= end.size
                del self._ends[small]
                if end.before is not None:
                    end.before.after = None
                    self._ends[small] = end.before
        if self._expandable:
            return
        for pool in (self._small, self._large):
            kept = [entry for entry in pool if entry[2].before is not None or entry[2].after is not None]
            self.reserved -= sum(size for size, _, _ in pool) - sum(size for size, _, _ in kept)
            pool[:] = kept

    def _within(self, pool: Pool, at: int) -> Block | None:
        """The smallest free block from ``at`` on that is not the end of a segment."""
        for place in range(at, len(pool)):
            if pool[place][2].after is not None:
                return pool.pop(place)[2]
        return None

    def _grown(self, pool: Pool, size: int, *, small: bool) -> Block:
        """The end of a segment, which grows as far as ``size`` wants it to."""
        end = self._ends.get(small)
        step = SEGMENT_STEP if small else LARGE_SEGMENT
        if end is not None and end.free:
            self._out(pool, end)
            more = max(0, -(-(size - end.size) // step) * step)
            end.size += more
        else:
            more = -(-size // step) * step
            grown = Block(more, self._segments, small=small)
            if end is None:
                self._segments += FIRST
                grown.address = self._segments
            else:
                grown.address = end.address + end.size
                grown.before, end.after = end, grown
            self._ends[small] = end = grown
        self.reserved += more
        return end

    def _segment(self, size: int, *, small: bool) -> Block:
        whole = SEGMENT_STEP if small else large_segment(size)
        self._segments += FIRST
        self.reserved += whole
        return Block(whole, self._segments, small=small)

    @staticmethod
    def _put(pool: Pool, block: Block) -> None:
        block.free = True
        insort(pool, (block.size, block.address, block))

    @staticmethod
    def _out(pool: Pool, block: Block) -> None:
        del pool[bisect_left(pool, (block.size, block.address))]


def rounded(size: int) -> int:
    """Bytes of the blocks that a request for ``size`` bytes takes: whole ones, and one for nothing."""
    return -(-size // BLOCK) * BLOCK or BLOCK


def large_segment(size: int) -> int:
    """Bytes of the segment taken for a large block."""
    return LARGE_SEGMENT if size < OWN_SEGMENT else -(-size // SEGMENT_STEP) * SEGMENT_STEP


def _again(entry: tuple[int, int, Block]) -> tuple[int, int, Block]:
    """A free block like another; what lies beside it is in use."""
    size, address, block = entry
    made = Block(size, address, small=block.small)
    made.free = True
    made.before = None if block.before is None else Block(0, 0, small=block.small)
    made.after = None if block.after is None else Block(0, 0, small=block.small)
    return size, address, made


def filled(runs: Iterable[tuple[Sequence[int], int]]) -> int:
    """Bytes of the blocks for requests of which none is given back: of each run its sizes, so many times.

    Small ones are cut to size.  Of a segment of large ones one piece is free, at its end: a run goes on
    as it did before once the pieces that any request fits into are the same again.
    """
    whole = [([rounded(size) for size in sizes], times) for sizes, times in runs]
    total = sum([sum(sizes) * times for sizes, times in whole])
    large = [([size for size in sizes if size > SMALL], times) for sizes, times in whole]
    least = min([size for sizes, _ in large for size in sizes], default=0)
    free: list[int] = []
    for sizes, left in large:
        seen: dict[tuple[int, ...], tuple[int, int]] = {}
        while left and sizes:
            pieces = tuple(free)
            if pieces in seen:
                left_then, total_then = seen.pop(pieces)
                total += (total - total_then) * (left // (left_then - left))
                left %= left_then - left
                continue
            seen[pieces] = left, total
            for size in sizes:
                at = bisect_left(free, size)
                rest = (free.pop(at) if at < len(free) else large_segment(size)) - size
                if rest <= UNSPLIT:
                    total += rest
                elif rest >= least:
                    insort(free, rest)
            left -= 1
    return total


class Stream(Allocator):
    """The pools of a further CUDA stream: its blocks serve no other, and count with those of ``owner``."""

    __slots__ = ("owner",)

    def __init__(self, owner: Allocator) -> None:
        super().__init__()
        self.owner = owner

    def take(self, size: int) -> Block:
        before, owner = self.reserved, self.owner
        block = super().take(size)
        owner.reserved += self.reserved - before
        owner.allocated += block.size
        owner.peak = max(owner.peak, owner.allocated)
        return block

    def give(self, block: Block) -> None:
        self.owner.allocated -= block.size
        super().give(block)
