"""Writes resources/catalog/models.json and devices.json from the reference data.

From the root of a checkout, with the reference folder beside it:

    python -m tests.catalog.make [--shared DIR]

One entry stands on each line, so that a change shows as the lines that changed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.catalog.make_devices import devices
from tests.catalog.make_models import models

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "resources" / "catalog"


def write(file: Path, entries: Sequence[msgspec.Struct]) -> None:
    lines = ",\n".join(msgspec.json.encode(entry).decode() for entry in entries)
    file.write_text(f"[\n{lines}\n]\n", "utf-8")
    print(f"{file.name}: {len(entries)} entries, {file.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--shared", type=Path, default=Path(os.environ.get("MEMGUI_SHARED", ROOT.parent / "shared"))
    )
    shared: Path = parser.parse_args().shared
    write(TARGET / "devices.json", devices(json.loads((shared / "data" / "gpus.json").read_text("utf-8"))))
    write(TARGET / "models.json", models(shared))


if __name__ == "__main__":
    main()
