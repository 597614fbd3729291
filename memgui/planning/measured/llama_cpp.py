"""Start-up logs of llama.cpp, with what is built on it; its oldest ones knew no buffers yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memgui.planning.measured.records import HOST, WORKING, Counter, Figure, Measurement
from memgui.planning.measured.sizes import NUMBER, SIZE, size_of

_BUFFER: Final = re.compile(
    r"\s([A-Za-z][A-Za-z0-9_]{0,31})\s{1,16}(model |KV |RS |compute |output )?buffer size\s{0,4}=\s{0,12}"
    rf"({NUMBER})\s{{0,4}}(Mi?B|KiB|GiB)"
)
_KINDS: Final = {
    "": ("model", ("weights",)),
    "model": ("model", ("weights",)),
    "KV": ("KV cache", ("kv_cache",)),
    "RS": ("recurrent state", ("kv_cache",)),
    "compute": ("compute buffer", WORKING),
    "output": ("output buffer", WORKING),
}
_TABLE: Final = re.compile(
    r"- ([A-Za-z][A-Za-z0-9_]{0,31}) [^|:]{0,80}[|:] *([0-9]{1,9}) = *[0-9]{1,9} \+ "
    r"\( *[0-9]{1,9} = *([0-9]{1,9}) \+ *([0-9]{1,9}) \+ *([0-9]{1,9})\) \+ *(-?[0-9]{1,9})"
)
_CELLS: Final = re.compile(r"n_ctx(?:_seq)?\s{1,12}= ([0-9]{1,10})")


def llama_cpp(lines: list[str]) -> Iterator[Measurement]:
    """The buffers of a llama.cpp log, or the table it prints at its end, which counts more."""
    buffers: dict[tuple[str, str], Figure] = {}
    table: list[Figure] = []
    facts: dict[str, int] = {}
    for line in lines:
        cells = _CELLS.search(line)
        if cells is not None:
            facts["n_ctx"] = int(cells[1])
        row = _TABLE.search(line)
        if row is not None:
            table = [one for one in table if one.device != row[1]] + list(_row(row))
            continue
        printed = _BUFFER.search(line)
        size = size_of(printed[3], printed[4]) if printed is not None else None
        if printed is None or size is None:
            continue
        part, components = _KINDS[(printed[2] or "").strip()]
        device = HOST if _is_host(printed[1]) else printed[1]
        known = buffers.get((device, part))
        # a model with windows has two caches on one device; a buffer printed again was made anew
        more = known.bytes if known is not None and part == "KV cache" else 0
        figure = Figure(more + size.bytes, size.step, Counter.ALLOCATED, components, part, device)
        buffers[device, part] = figure
    figures = (*table, *(one for one in buffers.values() if not table or one.device == HOST))
    if not figures:
        figures = tuple(_oldest(lines))
    if figures:
        yield Measurement("llama.cpp", figures[:128], facts)


def _is_host(device: str) -> bool:
    return device.startswith(("CPU", "BLAS", "Host")) or device.endswith("_Host")


def _row(row: re.Match[str]) -> Iterator[Figure]:
    mib = 2**20
    device = row[1]
    if _is_host(device):
        return
    yield Figure(int(row[2]) * mib, mib, Counter.CAPACITY, (), "device", device)
    for number, kind in ((row[3], "model"), (row[4], "KV"), (row[5], "compute")):
        part, components = _KINDS[kind]
        yield Figure(int(number) * mib, mib, Counter.ALLOCATED, components, part, device)
    if int(row[6]) > 0:
        yield Figure(int(row[6]) * mib, mib, Counter.PROCESS, ("overhead",), "unaccounted", device)


_VRAM: Final[tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...]] = (
    (re.compile(rf"llama_\w{{4,30}}: (?:\[cublas\] )?total VRAM used: {SIZE}"), "", ()),
    (re.compile(rf"llm_load_tensors: VRAM used: {SIZE}"), "model", ("weights",)),
    (re.compile(rf"VRAM used: .{{4,24}} \(model: {SIZE}"), "model", ("weights",)),
    (re.compile(rf"VRAM used: .{{16,60}} context: {SIZE}"), "context", ("kv_cache", *WORKING)),
    (re.compile(rf"llama_\w{{4,30}}: VRAM scratch buffer: {SIZE}"), "compute buffer", WORKING),
    (re.compile(rf"llama_\w{{4,30}}: VRAM kv self = {SIZE}"), "KV cache", ("kv_cache",)),
)
_CACHE_IN_MODEL: Final = "offloading k cache to GPU"


def _oldest(lines: list[str]) -> Iterator[Figure]:
    """What logs of 2023 say: the whole, or the weights (at first with the cache) and what is beside."""
    found: dict[str, Figure] = {}
    with_cache = False
    for line in lines:
        with_cache = with_cache or _CACHE_IN_MODEL in line
        for pattern, part, components in _VRAM if "VRAM" in line else ():
            printed = pattern.search(line)
            size = size_of(printed[1], printed[2]) if printed is not None else None
            if size is not None:
                if part == "model" and with_cache:
                    components = (*components, "kv_cache")
                found[part] = Figure(*size, Counter.ALLOCATED, components, part)
    whole = found.pop("", None)
    if "context" in found:  # it is what the others come to
        found = {part: found[part] for part in ("model", "context") if part in found}
    elif whole is not None:
        found = {"": whole}
    yield from found.values()
