"""What was deleted or overruled: it lies beside the presets for a month, and can be brought back till then.

A file is called there by when it was thrown away (UTC) and its own name: ``20261130T101500.a.memgui.json``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from memgui.files.atomic import make_folder, move_into, sweep, write_atomic
from memgui.presets.codec import SUFFIX
from memgui.presets.entries import Entry, Layer, read_entry

DAYS: Final = 30
MOST_LISTED: Final = 50
"""The newest that are listed; the others lie in the folder all the same."""
_STAMP: Final = "%Y%m%dT%H%M%S"
_NAME: Final = re.compile(r"(\d{8}T\d{6})(?:-\d+)?\.(.+)")


class Deleted(msgspec.Struct, frozen=True):
    """What bringing a preset back needs: its entry as it was, with the path that it had.

    ``data`` is what it held, in case somebody empties the trash; empty where it was thrown away by an
    earlier run or another program.
    """

    entry: Entry
    trashed: Path
    data: bytes = b""


class Trash:
    """The folder, which may be missing."""

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        self.folder = folder
        self._now = now
        self._seen: dict[str, Entry] = {}

    def take(self, path: Path) -> Path:
        """Move a file here; where it is now."""
        return move_into(path, self.folder, self._stamped(path))

    def keep(self, path: Path, data: bytes) -> None:
        """Put a copy of what is about to be replaced here."""
        make_folder(self.folder)
        write_atomic(self.folder / self._stamped(path), data)

    def empty(self) -> None:
        """Remove what has lain here for :data:`DAYS`.  Raises nothing."""
        oldest = (self._now().astimezone(UTC) - timedelta(days=DAYS)).strftime(_STAMP)
        sweep(self.folder)
        for stamp, _, path in self._files():
            if stamp < oldest:
                with suppress(OSError):
                    os.unlink(path)

    def listed(self, presets: Path) -> tuple[Deleted, ...]:
        """What lies here, the last thrown away first, as it was called in the folder ``presets``."""
        files = sorted(self._files(), reverse=True)
        files = [one for one in files if one[1].lower().endswith(SUFFIX)][:MOST_LISTED]
        seen = {path: self._seen.get(path) or read_entry(Path(path), Layer.USER) for _, _, path in files}
        self._seen = seen  # nothing here is written again
        return tuple(Deleted(_as_it_was(seen[path], presets / name), Path(path)) for _, name, path in files)

    def _files(self) -> list[tuple[str, str, str]]:
        """When each file was thrown away, how it was called, where it is."""
        found = []
        with suppress(OSError), os.scandir(self.folder) as items:
            for item in items:
                named = _NAME.fullmatch(item.name)
                if named is not None:
                    found.append((named[1], named[2], item.path))
        return found

    def _stamped(self, path: Path) -> str:
        return f"{self._now().astimezone(UTC).strftime(_STAMP)}.{path.name}"


def _as_it_was(entry: Entry, path: Path) -> Entry:
    """The entry with its own path; one that cannot be read is called like its file."""
    name = path.name[: -len(SUFFIX)] if entry.path.name == entry.name + SUFFIX else entry.name
    return msgspec.structs.replace(entry, path=path, name=name)
