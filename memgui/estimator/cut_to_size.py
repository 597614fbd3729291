"""The allocator where only bytes in use are asked for: of what comes again and again little is played."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection
from typing import Final

import msgspec
from msgspec import structs

from memgui.estimator.allocator import FIRST, Allocator, Block, large_segment, rounded
from memgui.estimator.overhead import SMALL, UNSPLIT

LONGEST: Final = 16
"""After how many layers at most the free blocks are expected to be alike."""


class _Played(msgspec.Struct, frozen=True):
    """How it was before something was played, and what large blocks were cut for it.

    ``free`` are the sizes of the large blocks that were free, but for the ``end`` of the first segment where
    that was the largest of them.  ``cuts`` are requests, each with the size of what it was cut from; all of
    them are cut in the same way where the end is up to ``margin`` bytes smaller.
    """

    allocated: int
    free: list[int]
    end: int
    cuts: list[tuple[int, int]]
    margin: int


class CutToSize(Allocator):
    """Tells what is ``allocated``, and what of large segments is ``unused``.

    A small block is as large as its request wherever it lies, and so none is placed.  Large ones are
    cut, one after the other, from the end of the first segment, as long as that is large enough.
    """

    __slots__ = ("_cuts", "_end", "_free", "_margin", "_parted")

    def __init__(self) -> None:
        super().__init__()
        self._free: list[tuple[int, int]] = []
        """free large blocks: size, address"""
        self._end = 0
        """where the first segment ends"""
        self._cuts: list[tuple[int, int]] = []
        self._margin = 0
        self._parted: dict[tuple[int, ...], tuple[int, list[int]]] = {}

    def copy(self) -> CutToSize:
        other = CutToSize()
        other.allocated, other._segments, other._end = self.allocated, self._segments, self._end
        other._free = self._free[:]
        return other

    @property
    def unused(self) -> int:
        """Bytes of free large blocks."""
        return sum([size for size, _ in self._free])

    def take(self, size: int) -> Block:
        size = rounded(size)
        if size <= SMALL:
            self.allocated += size
            return Block(size, 0, small=True)
        size, address, _ = self._cut(size)
        return Block(size, address, small=False)

    def take_all(self, sizes: tuple[int, ...]) -> None:
        parted = self._parted.get(sizes)
        if parted is None:
            whole = [rounded(size) for size in sizes]
            small = sum([size for size in whole if size <= SMALL])
            parted = self._parted[sizes] = small, [size for size in whole if size > SMALL]
        self.allocated += parted[0]
        for size in parted[1]:
            self._cut(size)

    def pack(self, size: int, parts: tuple[int, ...]) -> None:
        size = rounded(size)
        if size <= SMALL:
            self.take_all(parts)
            return
        size, address, rest = self._cut(size)
        self.take_all(parts)
        self.allocated -= size
        beside = rest, address + size
        free = self._free
        at = bisect_left(free, beside)
        if rest and at < len(free) and free[at] == beside:  # nothing was cut from what was left over
            del free[at]
            size += rest
        insort(free, (size, address))

    def give(self, block: Block) -> None:
        self.allocated -= block.size
        if block.small:
            return
        size, address = block.size, block.address
        for piece in self._beside(block):
            self._free.remove(piece)
            size, address = size + piece[0], min(address, piece[1])
        insort(self._free, (size, address))

    def _beside(self, block: Block) -> list[tuple[int, int]]:
        """The free blocks next to a block in use."""
        start, stop = block.address, block.address + block.size
        return [piece for piece in self._free if piece[1] == stop or piece[1] + piece[0] == start]

    def _cut(self, size: int) -> tuple[int, int, int]:
        """Size and address of a large block, and how much is left over behind it."""
        free = self._free
        at = bisect_left(free, (size,))
        margin, segment = -1, FIRST
        if at < len(free):
            whole, address = free[at]
            largest, its_address = free[-1]
            if largest + its_address == self._end:
                margin = (whole - size - UNSPLIT if at == len(free) - 1 else largest - whole) - 1
            segment = whole
            del free[at]
        else:
            whole = large_segment(size)
            self._segments = address = self._segments + FIRST
            if address == FIRST:
                self._end = address + whole
        self._cuts.append((size, segment))
        if margin < self._margin:
            self._margin = margin
        rest = whole - size
        if rest > UNSPLIT:
            insort(free, (rest, address + size))
        else:
            size, rest = whole, 0
        self.allocated += size
        return size, address, rest

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
                if further is not None and not any(self._beside(one) for one in loose if not one.small):
                    skipped = self._skip(before[-period:], now, times // period, further)
                    if skipped:
                        times -= skipped * period
                        before, now = [], self._as_it_is()
                        break

    def _as_it_is(self) -> _Played:
        free, end = [size for size, _ in self._free], 0
        if free and sum(self._free[-1]) == self._end:
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
            size, address = self._free.pop()
            insort(self._free, (size - less * times, address + less * times))
        for size in further * times:
            self._segments += FIRST
            insort(self._free, (size, self._segments))
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
