"""What nvidia-smi prints: its table, and the columns that somebody asked for (``--query-gpu``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memgui.planning.measured.records import WHOLE_DEVICE, Counter, Figure, Measurement

MIB: Final = 2**20

_SMI_DEVICE: Final = re.compile(r"\| *([0-9]{1,8})MiB / *([0-9]{1,8})MiB \|")
_SMI_PROCESS: Final = re.compile(
    r"\| *([0-9]{1,3}) +(?:\S{1,8} +\S{1,8} +)?[0-9]{1,9} +[CG+M]{1,3} .{0,80}? ([0-9]{1,8})MiB \|"
)


def nvidia_smi(lines: list[str]) -> Iterator[Measurement]:
    """The tables of ``nvidia-smi``, drawn and with commas."""
    yield from _drawn(lines)
    yield from _columns(lines)


def _drawn(lines: list[str]) -> Iterator[Measurement]:
    """The device's use and size, and what its largest process holds; a process's row may stand alone."""
    figures: list[Figure] = []
    largest: dict[str, int] = {}
    for line in lines:
        device = _SMI_DEVICE.search(line)
        if device is not None:
            name = f"GPU {sum(one.counter is Counter.CAPACITY for one in figures)}"
            figures.append(
                Figure(int(device[1]) * MIB, MIB, Counter.PROCESS, part="all processes", device=name)
            )
            figures.append(
                Figure(int(device[2]) * MIB, MIB, Counter.CAPACITY, part=WHOLE_DEVICE, device=name)
            )
            continue
        process = _SMI_PROCESS.search(line)
        if process is not None:
            name = f"GPU {process[1]}"
            largest[name] = max(largest.get(name, 0), int(process[2]) * MIB)
    for at, one in enumerate(figures):
        held = largest.get(one.device)
        if one.counter is Counter.PROCESS and held:
            figures[at] = Figure(held, MIB, Counter.PROCESS, device=one.device)
            if one.bytes > held:
                figures.append(Figure(one.bytes - held, MIB, Counter.OTHERS, device=one.device))
    known = {one.device for one in figures}
    figures += [
        Figure(held, MIB, Counter.PROCESS, device=name)
        for name, held in largest.items()
        if name not in known and held
    ]
    if figures:
        yield Measurement("nvidia_smi", tuple(figures[:128]))


_USED: Final = "memory.used"
_TOTAL: Final = "memory.total"
_HELD: Final = "used_gpu_memory"
_NAMES: Final = {"used_memory": _HELD, "gpu_index": "index"}
_ASKED: Final = re.compile(r"--query-(?:gpu|compute-apps)[= ]([a-z_.,]{1,400})")
_HEAD: Final = re.compile(r"([a-z_.]{1,60})(?: \[MiB\])?")
_CELL: Final = re.compile(r"([0-9]{1,9})(?: MiB)?")
_MOST_DEVICES: Final = 64


def _columns(lines: list[str]) -> Iterator[Measurement]:
    """Under each head the most that each device used; where no index stands, of all devices.

    Rows without a head are read below the command that they were asked for with.
    """
    columns: tuple[str, ...] = ()
    largest: dict[str, tuple[int, str, int]] = {}
    for line in lines:
        head = _head(line)
        if head:
            yield from _most_used(largest)
            columns, largest = head, {}
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if not columns or len(cells) != len(columns):
            continue
        row = dict(zip(columns, cells, strict=True))
        key = _USED if _USED in row else _HELD
        used, total = _CELL.fullmatch(row[key]), _CELL.fullmatch(row.get(_TOTAL, ""))
        if used is None:
            continue
        device = f"GPU {int(row['index'])}" if re.fullmatch("[0-9]{1,4}", row.get("index", "")) else ""
        one = int(used[1]), key, int(total[1]) if total is not None else 0
        if device in largest or len(largest) < _MOST_DEVICES:
            largest[device] = max(largest.get(device, one), one)
    yield from _most_used(largest)


def _head(line: str) -> tuple[str, ...]:
    """The columns that a head or a command names, where what is used is one of them."""
    if "memory" not in line:
        return ()
    asked = _ASKED.search(line)
    cells = line.split(",") if asked is None else asked[1].split(",")
    names = [found[1] if (found := _HEAD.fullmatch(cell.strip())) is not None else "" for cell in cells]
    columns = tuple(_NAMES.get(name, name) for name in names)
    return columns if _USED in columns or _HELD in columns else ()


def _most_used(largest: dict[str, tuple[int, str, int]]) -> Iterator[Measurement]:
    figures: list[Figure] = []
    for device, (used, key, total) in largest.items():
        part = "all processes" if key == _USED else ""
        if used:
            figures.append(Figure(used * MIB, MIB, Counter.PROCESS, part=part, device=device))
        if total:
            figures.append(Figure(total * MIB, MIB, Counter.CAPACITY, part=WHOLE_DEVICE, device=device))
    if figures:
        yield Measurement("nvidia_smi", tuple(figures))
