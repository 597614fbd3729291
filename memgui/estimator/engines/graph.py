"""Buffers that come and go while an engine computes: what is alive at the worst moment, and in what arena.

A graph is written as the engine runs it, one call per operator; a buffer dies after its last use.  It
is small (a layer of each kind and the ends) and is written anew for each scenario, with numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from memgui.estimator.allocator import Allocator, Block
from memgui.estimator.engines.sheet import Factor, Term

Dims = tuple[Factor | int, ...]


class Buffer:
    """A tensor of ``dims`` with ``width`` bytes per element, or ``width`` over ``per`` where blocks share."""

    __slots__ = ("dims", "last", "name", "per", "size", "width")

    def __init__(self, name: str, dims: Dims, width: int, per: int = 1) -> None:
        self.name = name
        self.dims = dims
        self.width = width
        self.per = per
        size = width
        for dim in dims:
            size *= dim if isinstance(dim, int) else dim.value
        self.size = size // per
        self.last = -1

    @property
    def term(self) -> Term:
        """The product that gives its bytes."""
        if self.per == 1:
            return (*self.dims, self.width)
        return (self.size,)

    def __repr__(self) -> str:
        return f"{self.name}:{self.size:,}"


class Graph:
    """Operators in order, each with the buffers it makes and the ones it reads."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, tuple[Buffer, ...], tuple[Buffer, ...]]] = []
        self._kept: set[Buffer] = set()
        self._deaths: dict[int, list[Buffer]] = {}

    def make(
        self, name: str, dims: Dims, width: int = 2, *, reads: Iterable[Buffer] = (), operator: str = ""
    ) -> Buffer:
        """An operator that makes a buffer from others."""
        made = Buffer(name, dims, width)
        self.run(operator or name, (made,), tuple(reads))
        return made

    def run(self, operator: str, makes: tuple[Buffer, ...], reads: tuple[Buffer, ...] = ()) -> None:
        """An operator that makes several buffers (or none) from others."""
        at = len(self.steps)
        for buffer in (*makes, *reads):
            buffer.last = at
        self.steps.append((operator, makes, reads))

    def use(self, *buffers: Buffer) -> None:
        """Something still refers to ``buffers`` up to here."""
        self.run("", (), buffers)

    def keep(self, *buffers: Buffer) -> None:
        """``buffers`` stay to the end."""
        self._kept.update(buffers)

    def _dying(self) -> dict[int, list[Buffer]]:
        """The buffers that die after each step; asked for when all steps are there."""
        if not self._deaths:
            dying = self._deaths
            for _, makes, _ in self.steps:
                for buffer in makes:
                    if buffer in self._kept:
                        continue
                    if buffer.last in dying:
                        dying[buffer.last].append(buffer)
                    else:
                        dying[buffer.last] = [buffer]
        return self._deaths

    def peak(self) -> tuple[int, list[Buffer], str]:
        """The most bytes alive at once, the buffers alive then, and the operator that runs."""
        dying = self._dying()
        alive: dict[Buffer, None] = {}
        live = most = 0
        held: list[Buffer] = []
        running = ""
        for at, (operator, makes, _) in enumerate(self.steps):
            for buffer in makes:
                alive[buffer] = None
                live += buffer.size
            if live > most:
                most, held, running = live, list(alive), operator
            for buffer in dying.get(at, ()):
                del alive[buffer]
                live -= buffer.size
        return most, held, running

    def through(self, allocator: Allocator) -> None:
        """Take every buffer from PyTorch's allocator in order, and give it back when it dies."""
        dying = self._dying()
        taken: dict[Buffer, Block] = {}
        for at, (_, makes, _) in enumerate(self.steps):
            for buffer in makes:
                taken[buffer] = allocator.take(buffer.size)
            for buffer in dying.get(at, ()):
                allocator.give(taken.pop(buffer))

    def arena(self, alignment: int) -> int:
        """Bytes of one arena in which every buffer gets the smallest free gap that holds it.

        As ggml's graph allocator does it: sizes are rounded up to ``alignment``; only where no gap
        fits the arena grows; gaps beside each other become one.
        """
        dying = self._dying()
        offsets: dict[Buffer, int] = {}
        gaps: list[tuple[int, int]] = []  # offset, size; in order of offset
        end = most = 0
        for at, (_, makes, _) in enumerate(self.steps):
            for buffer in makes:
                size = -(-buffer.size // alignment) * alignment
                best = -1
                room = 0
                for where in range(len(gaps) - 1, -1, -1):  # of equal ones the last
                    found = gaps[where][1]
                    if found >= size and (best < 0 or found < room):
                        best, room = where, found
                if best < 0:
                    offsets[buffer] = end
                    end += size
                    most = max(most, end)
                else:
                    offset = offsets[buffer] = gaps[best][0]
                    if room == size:
                        del gaps[best]
                    else:
                        gaps[best] = (offset + size, room - size)
            for buffer in dying.get(at, ()):
                size = -(-buffer.size // alignment) * alignment
                end = _free(gaps, offsets.pop(buffer), size, end)
        return most


def _free(gaps: list[tuple[int, int]], offset: int, size: int, end: int) -> int:
    """Give a block back; returns the new end of what is in use."""
    where = 0
    while where < len(gaps) and gaps[where][0] < offset:
        where += 1
    if where:
        start, length = gaps[where - 1]
        if start + length == offset:
            where -= 1
            offset, size = start, length + size
            del gaps[where]
    if where < len(gaps) and gaps[where][0] == offset + size:
        size += gaps[where][1]
        del gaps[where]
    if offset + size == end:
        return offset
    gaps.insert(where, (offset, size))
    return end
