"""PyTorch's counters as people print them: ``torch.cuda.memory_stats()``, and single figures by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from memgui.planning.measured.records import Counter, Figure, Measurement
from memgui.planning.measured.sizes import size_of

LEAST_BARE: Final = 10**6
"""A number without a unit is bytes, and no run uses fewer than this."""
_MOST: Final = 4096
"""Figures beyond so many are not looked at."""

_STATS: Final = re.compile(
    r"(?<![\w.])(allocated_bytes|requested_bytes|reserved_bytes|num_ooms|num_alloc_retries)"
    r"((?:\.all\.(?:peak|current))?)['\"]? ?[:,=] ?([0-9]{1,19})(?![\w.])"
)
_COUNTED: Final = {
    "allocated_bytes": Counter.ALLOCATED,
    "requested_bytes": Counter.REQUESTED,
    "reserved_bytes": Counter.RESERVED,
}
_FACTS: Final = {"num_ooms": "out_of_memory", "num_alloc_retries": "retries"}


def memory_stats(text: str) -> Iterator[Measurement]:
    """The peaks in each printed dictionary of ``memory_stats()``, whichever way it was printed.

    Where it holds no peak, what was in use counts as the least there was.
    """
    figures: dict[Counter, Figure] = {}
    facts: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    for found in islice(_STATS.finditer(text), _MOST):
        name, kind, number = found[1], found[2], int(found[3])
        if (name, kind) in seen:  # the next dictionary
            if figures:
                yield Measurement("memory_stats", tuple(figures.values()), facts)
            figures, facts, seen = {}, {}, set()
        seen.add((name, kind))
        if not kind and name in _FACTS:
            facts[_FACTS[name]] = min(number, 2**62)
        size = size_of(found[3], "bytes") if kind and name in _COUNTED and number else None
        if size is None:
            continue
        counter, peak = _COUNTED[name], kind.endswith("peak")
        if peak or counter not in figures:
            figures[counter] = Figure(*size, counter, at_least=not peak)
    if figures:
        yield Measurement("memory_stats", tuple(figures.values()), facts)


_UNIT: Final = r"(?:[KMGTP]i?)?B|bytes"
_PRINTED: Final = re.compile(
    r"(?<![A-Za-z])((?:max|peak)_)?(?:gpu_|cuda_)?(?:memory|mem)_(allocated|reserved|cached)"
    rf"(?:[ _]?[(\[]?({_UNIT})[)\]]?|\(([^()\n]{{0,40}})\))?['\"]?\s{{0,8}}[:=]\s{{0,8}}"
    rf"([0-9]{{1,3}}(?:[,_][0-9]{{3}}){{1,5}}|[0-9]{{1,15}}(?:\.[0-9]{{1,18}})?) ?((?:{_UNIT})(?!\w))?"
    r"(?!\w|\.[0-9]| ?[A-Za-z]{0,8}B\b)",
    re.IGNORECASE,
)
_INDEX: Final = re.compile(r"[0-9]{1,4}")


def printed(text: str) -> Iterator[Measurement]:
    """What lines like ``max_memory_allocated: 12345678`` say, with or without unit; of several the largest.

    ``torch.cuda.max_memory_allocated(0) = 11.5 GiB`` is read as well.  A figure of a moment (without
    ``max``) is the least there was, and counts where no peak is printed.
    """
    largest: dict[tuple[Counter, str, bool], Figure] = {}
    for found in islice(_PRINTED.finditer(text), _MOST):
        for one in _figure(found):
            key = one.counter, one.device, one.at_least
            if key not in largest or one.bytes > largest[key].bytes:
                largest[key] = one
    figures = tuple(_peaks(largest.values()))
    if figures:
        yield Measurement("printed", figures[:128])


def _figure(found: re.Match[str]) -> Iterator[Figure]:
    number, unit = re.sub("[,_]", "", found[5]), found[6] or found[3]
    size = size_of(number, _spelt(unit or "bytes"), binary=False)
    if size is None or (unit is None and ("." in number or size.bytes < LEAST_BARE)) or not size.bytes:
        return
    index = _INDEX.search(found[4] or "")
    counter = Counter.ALLOCATED if found[2].lower() == "allocated" else Counter.RESERVED
    yield Figure(
        *size, counter, device=f"GPU {int(index[0])}" if index is not None else "", at_least=not found[1]
    )


def _spelt(unit: str) -> str:
    """The unit as it is usually written, however it was: ``gib`` is ``GiB``."""
    return "bytes" if unit.lower() == "bytes" else unit[:-1].upper().replace("I", "i") + "B"


def _peaks(figures: Iterable[Figure]) -> Iterator[Figure]:
    """``figures`` without those of a moment that have a peak beside them."""
    every = tuple(figures)
    peaks = {(one.counter, one.device) for one in every if not one.at_least}
    return (one for one in every if not one.at_least or (one.counter, one.device) not in peaks)
