"""The allocator where only bytes in use are asked for: of what comes again and again little is played."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec
from msgspec import structs

from memgui.estimator.allocator import FIRST, Allocator, Block
from memgui.estimator.overhead import BLOCK, SMALL, UNSPLIT

LONGEST: Final = 16
"""After how many layers at most the free blocks are expected to be alike."""


class _Played(msgspec.Struct, frozen=True):
    """How it was before something was played, and what large blocks were cut for it.

    ``free`` are the sizes of the large blocks that were free, but for the ``end`` of the first segment where
    that was the largest of them.  ``cuts`` are requests, each with the block that it was cut from; all of
    them are cut in the same way where the end is up to ``margin`` bytes smaller.
    """

    allocated: int
    free: list[int]
    end: int
    cuts: list[tuple[int, int]]
    margin: int


class CutToSize(Allocator):
    """Tells what is ``allocated``; what is reserved, and the peak, count large blocks alone.

    A small block is as large as its request wherever it lies, and so none is placed.  Large ones are
    cut, one after the other, from the end of the first segment, as long as that is large enough.
    """

    __slots__ = ("_cuts", "_margin", "_parted")

    def __init__(self) -> None:
        super().__init__()
        self._cuts: list[tuple[int, int]] = []
        self._margin = 0
        self._parted: dict[tuple[int, ...], tuple[int, list[int]]] = {}

    def take(self, size: int) -> Block:
        size = -(-size // BLOCK) * BLOCK or BLOCK
        if size <= SMALL:
            self.allocated += size
            return Block(size, 0, small=True)
        pool = self._large
        at = bisect_left(pool, (size,))
        whole, margin = FIRST, -1
        if at < len(pool):
            whole, end = pool[at][0], pool[-1]
            if _ends_first(end[2]):
                margin = (end[0] - size - UNSPLIT if whole == end[0] else end[0] - whole) - 1
        self._margin = min(self._margin, margin)
        self._cuts.append((size, whole))
        return super().take(size)

    def take_all(self, sizes: tuple[int, ...]) -> None:
        parted = self._parted.get(sizes)
        if parted is None:
            whole = [-(-size // BLOCK) * BLOCK or BLOCK for size in sizes]
            small = sum([size for size in whole if size <= SMALL])
            parted = self._parted[sizes] = small, [size for size in whole if size > SMALL]
        self.allocated += parted[0]
        for size in parted[1]:
            self.take(size)

    def give(self, block: Block) -> None:
        if block.small:
            self.allocated -= block.size
        else:
            super().give(block)

    def repeat(self, play: Callable[[], None], times: int, loose: Collection[Block] = ()) -> None:
        before: list[_Played] = []
        now = self._as_it_is()
        while times > 0:
            self._cuts, self._margin = [], FIRST
            play()
            times -= 1
            if not self._cuts:  # no large block: it is the same each time
                self.allocated += (self.allocated - now.allocated) * times
                return
            before.append(structs.replace(now, cuts=self._cuts, margin=self._margin))
            now = self._as_it_is()
            for period in range(1, min(LONGEST, len(before), times) + 1):
                further = _further(before[-period].free, now.free)
                if further is not None and not _has_free_neighbours(loose):
                    skipped = self._skip(before[-period:], now, times // period, further)
                    if skipped:
                        times -= skipped * period
                        before, now = [], self._as_it_is()
                        break

    def _as_it_is(self) -> _Played:
        free, end = [size for size, _, _ in self._large], 0
        if free and _ends_first(self._large[-1][2]):
            end = free.pop()
        return _Played(self.allocated, free, end, [], 0)

    def _skip(self, period: list[_Played], after: _Played, times: int, further: list[int]) -> int:
        """Do at once what has been played, so many times, or as often as it goes on in the same way.

        It does where blocks of the same sizes are free as before, and ``further`` ones at most that nothing
        would have been cut from.  Which of them is cut, and where it lies, makes no difference, as what is
        beside it stays in use.
        """
        first = period[0]
        less = first.end - after.end
        if less:
            if less < 0 or not after.end:
                return 0
            times = min(times, min([one.margin for one in period]) // less)
        if times <= 0:
            return 0
        if any(size <= one < whole for one in {*further} for played in period for size, whole in played.cuts):
            return 0
        if less:
            _, address, end = self._large.pop()
            end.size, end.address = end.size - less * times, address + less * times
            self._put(self._large, end)
        for size in further * times:
            self._segments += FIRST
            piece = Block(size, self._segments, small=False)
            piece.before = piece.after = _USED
            self._put(self._large, piece)
        self.allocated += (self.allocated - first.allocated) * times
        return times


def _further(before: list[int], after: list[int]) -> list[int] | None:
    """What is in a sorted list beside all that is in another; ``None`` where not all of that is."""
    further: list[int] = []
    at = len(after) - 1
    for size in reversed(before):
        while at >= 0 and after[at] > size:
            further.append(after[at])
            at -= 1
        if at < 0 or after[at] < size:
            return None
        at -= 1
    return further + after[: at + 1]


def _has_free_neighbours(blocks: Iterable[Block]) -> bool:
    return any(beside.free for one in blocks for beside in (one.before, one.after) if beside is not None)


_USED: Final = Block(0, 0, small=False)
"""What lies beside a free block, and stays in use."""


def _ends_first(block: Block) -> bool:
    """Whether it is the end of the first segment."""
    return block.after is None and block.address < 2 * FIRST
