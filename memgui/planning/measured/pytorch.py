"""PyTorch's own words: ``torch.cuda.memory_summary()`` and out-of-memory messages, old and new."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from memgui.planning.measured.records import Counter, Figure, Measurement
from memgui.planning.measured.sizes import SIZE, size_of

_HEAD: Final = re.compile(r"PyTorch (?:CUDA|XPU|HIP) memory summary, device ID ([0-9]{1,4})")
_ROW: Final = re.compile(r"\| ([A-Za-z][A-Za-z -]{2,24}?) *\|([^|]{1,24})\|([^|]{1,24})\|")
_SIZE: Final = re.compile(SIZE)
_ROWS: Final = {
    "Allocated memory": Counter.ALLOCATED,
    "Requested memory": Counter.REQUESTED,
    "GPU reserved memory": Counter.RESERVED,
}
_COUNTS: Final = re.compile(r"(CUDA OOMs|cudaMalloc retries): ([0-9]{1,12})")


def memory_summary(lines: list[str]) -> Iterator[Measurement]:
    """The peaks of each summary in ``lines``, one for each device."""
    device = ""
    figures: list[Figure] = []
    facts: dict[str, int] = {}
    for line in lines:
        head = _HEAD.search(line)
        if head is not None:
            if figures:
                yield Measurement("memory_summary", tuple(figures), facts)
            device, figures, facts = f"GPU {head[1]}", [], {}
            continue
        for name, count in _COUNTS.findall(line):
            facts["out_of_memory" if name == "CUDA OOMs" else "retries"] = int(count)
        row = _ROW.search(line)
        counter = _ROWS.get(row[1]) if row is not None else None
        printed = _SIZE.search(row[3]) if row is not None and counter is not None else None
        size = size_of(printed[1], printed[2]) if printed is not None else None
        if size is not None and counter is not None and all(one.counter is not counter for one in figures):
            figures.append(Figure(size.bytes, size.step, counter, device=device))
    if figures:
        yield Measurement("memory_summary", tuple(figures), facts)


_OUT: Final = re.compile(r"(?:CUDA|HIP|XPU|MPS backend) out of memory|OutOfMemoryError", re.IGNORECASE)
_LONGEST: Final = 1500
_MOST: Final = 256
_TRIED: Final = re.compile(rf"Tried to allocate {SIZE}")
_OLD: Final = re.compile(
    rf"\(GPU ([0-9]{{1,4}}); {SIZE} total capacity; {SIZE} already allocated; {SIZE} free; "
    rf"{SIZE} (reserved|cached)"
)
_NEW: Final = re.compile(rf"GPU ([0-9]{{1,4}}) has a total capaci?ty of {SIZE} of which {SIZE} is free")
_THIS: Final = re.compile(rf"this process has {SIZE} memory in use")
_OTHER: Final = re.compile(rf"Process [0-9]{{1,12}} has {SIZE} memory in use")
_MPS: Final = re.compile(rf"\(MPS allocated: {SIZE}, other allocations: {SIZE}, max allowed: {SIZE}\)")
_ALLOCATED: Final = re.compile(rf"Of the allocated memory {SIZE} is allocated by PyTorch")
_UNALLOCATED: Final = re.compile(rf"{SIZE} is reserved by PyTorch but unallocated")


def out_of_memory(text: str) -> Iterator[Measurement]:
    """The figures of each out-of-memory message in ``text``, whatever line breaks it was given."""
    end = 0
    for found in islice(_OUT.finditer(text), _MOST):
        if found.start() < end:
            continue
        window = text[found.start() : found.start() + _LONGEST]
        again = _OUT.search(window, _TRIED_AFTER)
        if again is not None:
            window = window[: again.start()]
        figures = tuple(_message(" ".join(window.split())))
        if figures:
            end = found.start() + len(window)
            yield Measurement("out_of_memory", figures)


_TRIED_AFTER: Final = 60
"""How far the class of the exception and the message may lie apart (characters)."""


def _message(text: str) -> Iterator[Figure]:
    old, new = _OLD.search(text), _NEW.search(text)
    device = f"GPU {old[1]}" if old is not None else f"GPU {new[1]}" if new is not None else ""
    tried = _TRIED.search(text)
    if tried is not None:
        yield from _figure(tried[1], tried[2], Counter.WANTED, device)
    if old is not None:
        yield from _figure(old[2], old[3], Counter.CAPACITY, device)
        allocated = size_of(old[4], old[5])
        further = size_of(old[8], old[9])
        if allocated is not None and further is not None:
            yield Figure(*allocated, Counter.ALLOCATED, device=device, at_least=True)
            # until 1.3 what was cached was said apart from what was allocated
            reserved = further.bytes + (allocated.bytes if old[10] == "cached" else 0)
            yield Figure(reserved, further.step, Counter.RESERVED, device=device, at_least=True)
    if new is not None:
        yield from _figure(new[2], new[3], Counter.CAPACITY, device)
    apple = _MPS.search(text)
    if apple is not None:
        yield from _figure(apple[5], apple[6], Counter.CAPACITY, "MPS")
        for one in _figure(apple[1], apple[2], Counter.ALLOCATED, "MPS"):
            yield Figure(one.bytes, one.step, one.counter, device="MPS", at_least=True)
    yield from _parts(text, device)


def _parts(text: str, device: str) -> Iterator[Figure]:
    found = _ALLOCATED.search(text)
    allocated = size_of(found[1], found[2]) if found is not None else None
    if allocated is not None:
        yield Figure(*allocated, Counter.ALLOCATED, device=device, at_least=True)
        found = _UNALLOCATED.search(text)
        further = size_of(found[1], found[2]) if found is not None else None
        if further is not None:
            step = max(allocated.step, further.step)
            whole = allocated.bytes + further.bytes
            yield Figure(whole, step, Counter.RESERVED, device=device, at_least=True)
    yield from _processes(text, device, 0 if allocated is None else allocated.bytes)


def _processes(text: str, device: str, least: int) -> Iterator[Figure]:
    """What this process holds, of which PyTorch allocated ``least``, and what all others do.

    In a container PyTorch does not know its own number: it counts itself among the others.  Of those that
    hold enough to be it, the one that holds the least is.  WSL cannot say what a process holds.
    """
    own = _THIS.search(text)
    this = size_of(own[1], own[2]) if own is not None else None
    others = [
        size for number, unit in _OTHER.findall(text)[:64] if (size := size_of(number, unit)) is not None
    ]
    if own is None and not least and len(others) != 1:
        return  # one of them is this one, nobody knows which
    if own is None:
        this = min((size for size in others if size.bytes + size.step >= least), default=None)
        if this is not None:
            others.remove(this)
    if this is not None and this.bytes + this.step >= least:
        yield Figure(*this, Counter.PROCESS, device=device, at_least=True)
    if others:
        total = sum(size.bytes for size in others)
        yield Figure(total, max(size.step for size in others), Counter.OTHERS, device=device)


def _figure(number: str, unit: str, counter: Counter, device: str) -> Iterator[Figure]:
    size = size_of(number, unit)
    if size is not None:
        yield Figure(size.bytes, size.step, counter, device=device)
