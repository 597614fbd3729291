"""Devices of the catalog from the reference data: what a process gets on each, and how that is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median
from typing import Any

from memgui.catalog import DeviceEntry

GIB = 2**30
MIB = 2**20

# By device, the short names people use; the rest follow from rules.
SHORT_NAMES = {
    "H100 SXM5 80GB": ("H100", "H100 SXM 80GB", "NVIDIA H100 80GB HBM3"),
    "H100 PCIe 80GB": ("NVIDIA H100 PCIe",),
    "H100 NVL 94GB": ("NVIDIA H100 NVL",),
    "A100 SXM4 80GB": ("A100", "A100 80GB", "A100 SXM 80GB"),
    "A100 SXM4 40GB": ("A100 40GB", "A100 SXM 40GB"),
    "A100 PCIe 80GB": ("NVIDIA A100 80GB PCIe",),
    "H200 SXM 141GB": ("H200", "NVIDIA H200"),
    "B200 SXM 180GB": ("B200", "NVIDIA B200"),
    "B300 SXM": ("B300", "NVIDIA B300"),
    "Tesla V100 SXM2 16GB": ("V100", "V100 16GB"),
    "Tesla V100 SXM2 32GB": ("V100 32GB",),
    "GB10 (DGX Spark)": ("DGX Spark", "NVIDIA GB10"),
    "RTX PRO 6000 Blackwell Workstation": ("RTX PRO 6000", "RTX PRO 6000 Blackwell"),
    "RTX A6000": ("A6000",),
}

KINDS = ("datacentre", "workstation", "consumer", "laptop", "apple", "other")

# Share of unified memory that Metal keeps resident: older macOS, newer macOS.
METAL_SHARES = ((24, 0.667, 0.74), (48, 0.75, 0.75), (64, 0.75, 0.81), (10**6, 0.75, 0.84))


def devices(data: dict[str, Any]) -> list[DeviceEntry]:
    """Entries in the order the catalog shows them: by kind, newest and largest first."""
    rows = data["gpus"]
    kept_back = _ratios(rows, lambda row: (row.get("driver_total_mib") or 0) * MIB)
    of_marketed = _ratios(rows, lambda row: row["marketed_gb"] * GIB)
    entries = [
        entry
        for row in rows
        for entry in (
            _apple(row) if row.get("memory_options_gb") else [_discrete(row, kept_back, of_marketed)]
        )
    ]
    return sorted(entries, key=lambda e: (KINDS.index(e.kind), -e.year, -e.marketed_gb, e.name))


class Ratios:
    """What a process sees over something known, by group (the more alike, the better) and over all."""

    def __init__(self) -> None:
        self.groups: dict[tuple[str, ...], list[float]] = {}

    def add(self, row: dict[str, Any], ratio: float) -> None:
        for group in self._groups(row):
            self.groups.setdefault(group, []).append(ratio)

    def of(self, row: dict[str, Any]) -> list[float]:
        return next((g for g in map(self.groups.get, self._groups(row)) if g and len(g) >= 2), [1.0])

    @staticmethod
    def _groups(row: dict[str, Any]) -> list[tuple[str, ...]]:
        return [
            (row["vendor"], (row.get("compute_capability") or "").partition(".")[0]),
            (row["vendor"],),
            (),
        ]


def _ratios(rows: list[dict[str, Any]], base: Callable[[dict[str, Any]], int]) -> Ratios:
    ratios = Ratios()
    for row in rows:
        if row.get("torch_total_gib") and base(row):
            ratios.add(row, row["torch_total_gib"] * GIB / base(row))
    return ratios


def _discrete(row: dict[str, Any], kept_back: Ratios, of_marketed: Ratios) -> DeviceEntry:
    driver = row.get("driver_total_mib")
    if row.get("torch_total_gib"):
        figure = row["torch_total_gib"]
        seen = row["torch_evidence"].startswith("seen")
        typical, low, high = (round((figure + half) * GIB) for half in (0, -0.005, 0.005))
        known, how = ("seen" if seen else "recalled"), f"PyTorch reports {figure:.2f} GiB"
    else:
        base = driver * MIB if driver else row["marketed_gb"] * GIB
        shares = (kept_back if driver else of_marketed).of(row)
        typical, low, high = (round(base * share) for share in (median(shares), min(shares), max(shares)))
        what = f"the driver's total, {driver} MiB" if driver else f"the marketed {row['marketed_gb']} GB"
        known = "derived"
        how = (
            f"{min(shares):.1%} to {max(shares):.1%} of {what}, as on {len(shares)} related devices whose "
            "total in a process is known"
        )
    return _entry(row, row["name"], row["marketed_gb"], typical, low, high, known, how)


def _apple(row: dict[str, Any]) -> list[DeviceEntry]:
    entries = []
    for size in row["memory_options_gb"]:
        low, high = next((low, high) for limit, low, high in METAL_SHARES if size <= limit)
        entries.append(
            _entry(
                row,
                f"{row['name']} {size}GB",
                size,
                round(size * GIB * low),
                round(size * GIB * low),
                round(size * GIB * high),
                "derived",
                f"Metal keeps {low:.1%} (older macOS) to {high:.1%} (newer macOS) of unified memory resident",
            )
        )
    return entries


def _entry(
    row: dict[str, Any], name: str, marketed: int, typical: int, low: int, high: int, known: str, how: str
) -> DeviceEntry:
    return DeviceEntry(
        name=name,
        aliases=_aliases(name, row["vendor"]),
        vendor=row["vendor"],
        kind=row["class"],
        year=row["year"],
        marketed_gb=marketed,
        memory_bytes=typical,
        low_bytes=low,
        high_bytes=high,
        known=known,
        how=how,
        compute_capability=row.get("compute_capability") or "",
        bandwidth_gb_s=round(row["bandwidth_gb_s"]),
        note=row.get("note", ""),
        source=row["source"],
    )


def _aliases(name: str, vendor: str) -> tuple[str, ...]:
    bare = re.sub(r"^(GeForce|Tesla|Quadro|Instinct|Radeon) ", "", name)
    found = [*SHORT_NAMES.get(name, ())]
    if bare != name:
        found.append(bare)
    if bare.startswith(("RTX ", "GTX ", "RX ")) and "Ada" not in bare and "PRO" not in bare:
        found.append(bare.partition(" ")[2])
    if vendor in ("NVIDIA", "AMD", "Intel"):
        found.append(f"{vendor} {name}")
    return tuple(dict.fromkeys(found))
